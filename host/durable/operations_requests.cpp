// The request that an operation sends, and the stored answer.
#include "durable/operations.hpp"
#include "json/json.hpp"

#include <algorithm>

namespace hearth::durable {
namespace {

constexpr const char* kKeyHeader = "Idempotency-Key";
constexpr std::size_t kMaxUpstreamIdBytes = 256;

}  // namespace

Operations::Running* Operations::find_running(std::string_view id) {
  const auto found = running_ids_.find(id);
  if (found == running_ids_.end()) return nullptr;
  return &running_.at(found->second);
}

bool Operations::is_resumable(std::int64_t seq) {
  const auto request = answers_.find(seq);
  return request && request->is_resumable();
}

void Operations::forget_answer(std::int64_t seq, bool was_executed) {
  if (was_executed) {
    answers_.drop_answer(seq);
  } else {
    answers_.drop(seq);
  }
}

Result<std::string> Operations::may_send(const OperationSending& sending) {
  Running* const running = find_running(sending.id);
  if (running == nullptr) return Error{Errc::kNotFound, "no operation of this id runs"};
  if (running->is_probe) {
    return Error{Errc::kInvalidArgument,
                 "a probe asks about an operation, and cannot send the operation's request"};
  }
  if (!running->in_flight.expired()) {
    return Error{Errc::kConflict,
                 "a request of the operation is in flight: read its answer to the end, or drop it, "
                 "before you send the next one"};
  }
  const auto before = answers_.find(running->seq);
  const bool may_have_sent = before || !running->is_anew;
  const bool is_mild = running->effect <= Effect::kIdempotent;
  if (sending.resumes) {
    if (!running->can_resume || !before || !before->is_resumable() || before->whole ||
        sending.from > before->bytes)
      return Error{Errc::kConflict, "the operation has no answer whose rest could be asked for"};
  } else if (before && running->effect == Effect::kKeyed &&
             before->fingerprint != sending.fingerprint) {
    return Error{Errc::kConflict, "the operation has sent another request under the same key"};
  } else if (before && !is_mild && running->effect != Effect::kKeyed) {
    return Error{Errc::kConflict, "the operation has sent its request"};
  } else if (may_have_sent && running->effect == Effect::kKeyed && !is_key_known(*running)) {
    return Error{Errc::kConflict,
                 "the horizon of the operation's key is over, and the request may have had its "
                 "effect: let the function fail, and the operation is unknown"};
  }
  running->has_asked = true;
  return running->key_header.empty() ? std::string(kKeyHeader) : running->key_header;
}

std::shared_ptr<const void> Operations::dispatched(const OperationSending& sending) {
  Running& running = *find_running(sending.id);
  prepare_write();
  // The request owns the pointer. Once the request is destroyed, none is in flight.
  const auto in_flight = std::make_shared<const char>();
  running.in_flight = in_flight;
  running.unsent = running.is_broken = running.was_refused = false;
  running.resumes = sending.resumes;
  running.kept = running.received = sending.resumes ? sending.from : 0;
  if (sending.resumes) {
    answers_.cut(running.seq, sending.from);
    return in_flight;
  }
  // An earlier request may have acted, so this run is not the first any more.
  running.is_repeated = answers_.find(running.seq).has_value();
  if (running.is_repeated) running.is_anew = false;
  answers_.drop(running.seq);
  DispatchedRequest request;
  request.fingerprint = sending.fingerprint;
  request.dispatched_at_ms = now_ms();
  request.can_resume = running.can_resume;
  answers_.write(running.seq, request);
  return in_flight;
}

void Operations::answered(std::string_view id, std::int64_t status,
                          const std::optional<std::string>& upstream_id, std::string_view head,
                          bool fits) {
  Running* const running = find_running(id);
  if (running == nullptr) return;
  auto request = answers_.find(running->seq);
  if (!request) return;
  prepare_write();
  if (running->resumes) {  // the stored head stays
    if (status < 200 || status >= 300 || !fits) refuse_answer(*running, *std::move(request));
    return;
  }
  request->status = status;
  if (upstream_id && upstream_id->size() <= kMaxUpstreamIdBytes) request->upstream_id = upstream_id;
  answers_.write(running->seq, *request);
  if (head.size() <= OperationAnswers::kMaxHeadBytes) {
    answers_.put_head(running->seq, head);
  } else {
    answers_.put_head(running->seq,
                      R"({"status":)" + std::to_string(status) + R"(,"url":"","headers":[]})");
  }
}

void Operations::received(std::string_view id, std::string_view piece) {
  Running* const running = find_running(id);
  if (running == nullptr || running->was_refused) return;
  running->received += piece.size();
  const std::uint64_t room = settings_.max_result_bytes -
                             std::min<std::uint64_t>(running->kept, settings_.max_result_bytes);
  piece = piece.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(room, piece.size())));
  if (piece.empty()) return;
  prepare_write();
  answers_.append(running->seq, piece);
  running->kept += piece.size();
}

void Operations::answer_ended(std::string_view id) {
  Running* const running = find_running(id);
  if (running == nullptr || running->was_refused || running->kept != running->received) return;
  auto request = answers_.find(running->seq);
  if (!request || !request->status) return;
  prepare_write();
  request->whole = true;
  answers_.write(running->seq, *request);
}

void Operations::refuse_answer(Running& running, DispatchedRequest request) {
  running.was_refused = true;
  prepare_write();
  request.can_resume = false;
  const bool is_kept = running.effect > Effect::kKeyed;
  request.whole = request.whole && is_kept;
  answers_.write(running.seq, request);
  if (!is_kept) answers_.drop_answer(running.seq);
}

Result<void> Operations::drop_answer(std::string_view id) {
  Running* const running = find_running(id);
  if (running == nullptr) return Error{Errc::kNotFound, "no operation of this id runs"};
  if (auto request = answers_.find(running->seq)) refuse_answer(*running, *std::move(request));
  return {};
}

void Operations::broke_off(std::string_view id) {
  if (Running* const running = find_running(id)) running->is_broken = true;
}

void Operations::not_sent(std::string_view id) {
  broke_off(id);
  Running* const running = find_running(id);
  if (running == nullptr || running->resumes || running->is_repeated) return;
  prepare_write();
  running->unsent = running->is_anew;
  answers_.drop(running->seq);
}

void Operations::not_made(std::string_view id) {
  broke_off(id);
  Running* const running = find_running(id);
  if (running != nullptr && running->is_anew && !answers_.find(running->seq))
    running->unsent = true;
}

std::string Operations::id_of_run(std::uint64_t operation) const {
  const auto found = running_.find(operation);
  return found == running_.end() ? std::string() : found->second.id;
}

void Operations::never_begins(std::uint64_t operation) {
  const auto found = running_.find(operation);
  if (found != running_.end()) found->second.unsent = true;
}

void Operations::waits_for(std::uint64_t operation, std::uint64_t wait) {
  const auto found = running_.find(operation);
  if (found != running_.end()) found->second.wait = wait;
}

void Operations::cancelled(std::uint64_t wait) {
  if (wait == 0) return;
  for (auto& [operation, running] : running_) {
    if (running.wait == wait) running.unsent = true;
  }
}

void Operations::sent_elsewhere() {
  for (auto& [operation, running] : running_) {
    if (std::exchange(running.unsent, false)) running.is_anew = false;
  }
}

Result<StoredAnswer> Operations::answer(std::string_view id) {
  const auto row = find(id);
  if (!row) return Error{Errc::kNotFound, "no operation has this id"};
  auto request = answers_.find(row->seq);
  if (!request) return Error{Errc::kNotFound, "the operation has sent no request"};
  return StoredAnswer{*std::move(request), answers_.head(row->seq), answers_.body(row->seq)};
}

}  // namespace hearth::durable

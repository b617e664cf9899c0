#include "durable/operation_requests.hpp"

#include "durable/operation_rules.hpp"

#include <algorithm>
#include <utility>

namespace hearth::durable {
namespace {

constexpr const char* kKeyHeader = "Idempotency-Key";
constexpr std::size_t kMaxUpstreamIdBytes = 256;

}  // namespace

std::uint64_t RunningOperations::add(RunningOperation running) {
  ids_[running.id] = ++last_;
  running_[last_] = std::move(running);
  return last_;
}

RunningOperation RunningOperations::take(std::uint64_t operation) {
  RunningOperation running = std::move(running_.extract(operation).mapped());
  ids_.erase(running.id);
  return running;
}

RunningOperation* RunningOperations::find(std::string_view id) {
  const auto found = ids_.find(id);
  return found == ids_.end() ? nullptr : &running_.at(found->second);
}

std::string RunningOperations::id_of(std::uint64_t operation) const {
  const auto found = running_.find(operation);
  return found == running_.end() ? std::string() : found->second.id;
}

OperationState RunningOperations::state_of(const OperationRow& row) const {
  if (ids_.contains(row.id)) return OperationState::kRunning;
  if (row.state == "completed") return OperationState::kCompleted;
  if (row.state == "not_executed") return OperationState::kNotExecuted;
  return row.state == "unknown" ? OperationState::kUnknown : OperationState::kInterrupted;
}

void RunningOperations::never_begins(std::uint64_t operation) {
  if (const auto found = running_.find(operation); found != running_.end())
    found->second.unsent = true;
}

void RunningOperations::waits_for(std::uint64_t operation, std::uint64_t wait) {
  if (const auto found = running_.find(operation); found != running_.end())
    found->second.wait = wait;
}

void RunningOperations::cancelled(std::uint64_t wait) {
  if (wait == 0) return;
  for (auto& [operation, running] : running_) {
    if (running.wait == wait) running.unsent = true;
  }
}

void RunningOperations::sent_elsewhere() {
  for (auto& [operation, running] : running_) {
    if (std::exchange(running.unsent, false)) running.is_anew = false;
  }
}

// ---- requests -----------------------------------------------------------------------------------

Result<std::string> OperationRequests::may_send(const OperationSending& sending) {
  RunningOperation* const running = running_.find(sending.id);
  if (running == nullptr) return Error{Errc::kNotFound, "no operation of this id runs"};
  const std::int64_t now = unix_millis(clock_.wall_now());
  const auto may = check_sending(*running, sending, answers_.find(running->seq), now);
  if (!may) return may.error();
  running->has_asked = true;
  return running->key_header.empty() ? std::string(kKeyHeader) : running->key_header;
}

std::shared_ptr<const void> OperationRequests::dispatched(const OperationSending& sending) {
  RunningOperation& running = *running_.find(sending.id);
  table_.prepare_write();
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
  request.dispatched_at_ms = unix_millis(clock_.wall_now());
  request.can_resume = running.can_resume;
  answers_.write(running.seq, request);
  return in_flight;
}

void OperationRequests::answered(std::string_view id, std::int64_t status,
                                 const std::optional<std::string>& upstream_id,
                                 std::string_view head, bool fits) {
  RunningOperation* const running = running_.find(id);
  if (running == nullptr) return;
  auto request = answers_.find(running->seq);
  if (!request) return;
  table_.prepare_write();
  if (running->resumes) {  // the stored head stays
    if (status < 200 || status >= 300 || !fits) refuse(*running, *std::move(request));
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

void OperationRequests::received(std::string_view id, std::string_view piece) {
  RunningOperation* const running = running_.find(id);
  if (running == nullptr || running->was_refused) return;
  running->received += piece.size();
  const std::uint64_t room = settings_.max_result_bytes -
                             std::min<std::uint64_t>(running->kept, settings_.max_result_bytes);
  piece = piece.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(room, piece.size())));
  if (piece.empty()) return;
  table_.prepare_write();
  answers_.append(running->seq, piece);
  running->kept += piece.size();
}

void OperationRequests::answer_ended(std::string_view id) {
  RunningOperation* const running = running_.find(id);
  if (running == nullptr || running->was_refused || running->kept != running->received) return;
  auto request = answers_.find(running->seq);
  if (!request || !request->status) return;
  table_.prepare_write();
  request->whole = true;
  answers_.write(running->seq, *request);
}

void OperationRequests::refuse(RunningOperation& running, DispatchedRequest request) {
  running.was_refused = true;
  table_.prepare_write();
  request.can_resume = false;
  const bool is_kept = running.effect > Effect::kKeyed;
  request.whole = request.whole && is_kept;
  answers_.write(running.seq, request);
  if (!is_kept) answers_.drop_answer(running.seq);
}

Result<void> OperationRequests::drop_answer(std::string_view id) {
  RunningOperation* const running = running_.find(id);
  if (running == nullptr) return Error{Errc::kNotFound, "no operation of this id runs"};
  if (auto request = answers_.find(running->seq)) refuse(*running, *std::move(request));
  return {};
}

void OperationRequests::broke_off(std::string_view id) {
  if (RunningOperation* const running = running_.find(id)) running->is_broken = true;
}

void OperationRequests::not_sent(std::string_view id) {
  broke_off(id);
  RunningOperation* const running = running_.find(id);
  if (running == nullptr || running->resumes || running->is_repeated) return;
  table_.prepare_write();
  running->unsent = running->is_anew;
  answers_.drop(running->seq);
}

void OperationRequests::not_made(std::string_view id) {
  broke_off(id);
  RunningOperation* const running = running_.find(id);
  if (running != nullptr && running->is_anew && !answers_.find(running->seq))
    running->unsent = true;
}

Result<StoredAnswer> OperationRequests::answer(std::string_view id) {
  const auto row = table_.find(id);
  if (!row) return Error{Errc::kNotFound, "no operation has this id"};
  auto request = answers_.find(row->seq);
  if (!request) return Error{Errc::kNotFound, "the operation has sent no request"};
  return StoredAnswer{*std::move(request), answers_.head(row->seq), answers_.body(row->seq)};
}

}  // namespace hearth::durable

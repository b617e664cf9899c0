#include "durable/operations.hpp"

#include "base/escape.hpp"
#include "base/http_token.hpp"
#include "base/utf8.hpp"
#include "json/json_scanner.hpp"
#include "json/json_text.hpp"

#include <algorithm>
#include <array>

namespace hearth::durable {

using storage::nullable;
using storage::Param;
using storage::Rows;

namespace {

constexpr std::size_t kMaxKindBytes = 64;
constexpr std::size_t kMaxOperationKeyBytes = 256;
constexpr std::size_t kMaxOperationNoteBytes = 1024;
constexpr std::size_t kMaxActorBytes = 256;

Error bad_operation(std::string why) {
  return Error{Errc::kInvalidArgument, std::move(why)};
}

bool is_label(std::string_view text, std::size_t max_bytes) {
  return text.size() <= max_bytes && is_valid_utf8(text) &&
         text.find('\0') == std::string_view::npos;
}

Result<void> check_operation(const OperationRequest& request) {
  if (request.kind.empty() || !is_label(request.kind, kMaxKindBytes))
    return bad_operation("an operation's kind is 1 to 64 bytes of UTF-8");
  if (!is_label(request.key, kMaxOperationKeyBytes))
    return bad_operation("an operation's key is at most 256 bytes of UTF-8");
  if (request.effect < Effect::kRead || request.effect > Effect::kUnsafe)
    return bad_operation("an operation's effect is read, idempotent, keyed, probe or unsafe");
  if ((request.effect == Effect::kKeyed) != (request.horizon_ms > 0))
    return bad_operation("an operation has a horizon if its effect is keyed, and only then");
  if (!request.key_header.empty() && !is_http_token(request.key_header))
    return bad_operation("the header for an operation's key is a name such as Idempotency-Key");
  if (request.arguments.size() > Operations::kMaxArgumentBytes)
    return Error{Errc::kLimitExceeded, "the arguments of an operation have at most 65536 bytes"};
  if (request.cost > Operations::kMostCost)
    return bad_operation("the cost of an operation is at most 1,000,000,000,000,000");
  return {};
}

// The text may be any bytes of failed code: makes it valid UTF-8.
std::string note_of(std::string_view text) {
  text = cut_text(text, kMaxOperationNoteBytes);
  if (is_valid_utf8(text)) return std::string(text);
  std::string json;
  append_json_string(json, text);
  return decode_json_string(json);
}

}  // namespace

// ---- what an earlier instance left --------------------------------------------------------------

void Operations::close() {
  try {
    if (may_be_open_ && !database_.broken()) {
      may_be_open_ = has_open();
      if (!has_lost()) next_loss_ms_ = find_next_loss();
    }
  } catch (const StorageError&) {  // agent boundary
    may_be_open_ = true;           // safe: the index may list the agent without need
  }
}

void Operations::make_unknown(const Row& row, std::string_view why) {
  prepare_write();
  database_
      .kept(
          "UPDATE cf_agents_operations SET state = 'unknown', told = 0, settled_at = NULL, note = "
          "?2 "
          "WHERE seq = ?1")
      .execute(std::array{Param(row.seq), Param(why)});
  untold_.push_back(row.seq);
  ++unknown_now_;
  note_state(row, OperationState::kUnknown);
}

void Operations::leave_unknown(const Row& row) {
  if (row.state != "unknown") return;
  std::erase(untold_, row.seq);
  --unknown_now_;
  database_.kept("DELETE FROM cf_agents_operation_documents WHERE operation = ?1 AND part = ?2")
      .execute(
          std::array{Param(row.seq), Param(static_cast<std::int64_t>(OperationPart::kGivenUp))});
}

// ---- beginning ----------------------------------------------------------------------------------

Result<OperationBegun> Operations::begin(const OperationRequest& request) {
  if (auto checked = check_operation(request); checked.has_error()) return checked.error();
  const auto arguments = read_arguments(request);
  if (!arguments) return arguments.error();
  const std::string& likeness = arguments->likeness;
  std::optional<Scope> scope;
  if (request.fiber != 0) {
    const Job* const fiber = fibers_.find_running(request.fiber);
    if (fiber == nullptr) return Error{Errc::kNotFound, "the fiber has ended"};
    scope = scope_of(fiber->id);
    std::erase_if(used_, [&](const auto& each) {
      return each.first != request.fiber && fibers_.find_running(each.first) == nullptr;
    });
  }
  auto row = identify(request, likeness, scope);
  if (!row) return row.error();
  if (row->likeness != likeness) {
    return Error{Errc::kConflict, "the operation of this key has other arguments"};
  }
  const bool is_anew = row->seq == 0 || state_of(*row) == OperationState::kNotExecuted;
  if (row->seq == 0) {
    if (auto room = make_room(); room.has_error()) return room.error();
  }
  if (is_anew) {
    const auto counted = spend(row->kind, request.cost);
    if (!counted) return counted.error();
    row->day = *counted;
  }
  if (scope) keep_scope(*scope);
  if (row->seq == 0) return insert(*std::move(row), request, scope, arguments->json);
  // A row with only a key is the work of the fiber that has begun it last.
  if (!row->scope) row->root = scope ? std::optional(scope->root) : std::nullopt;
  return decide(*std::move(row), request);
}

Result<OperationBegun> Operations::insert(Row row, const OperationRequest& request,
                                          const std::optional<Scope>& scope,
                                          std::string_view arguments) {
  prepare_write();
  keep_incarnation();
  row.effect = request.effect;
  row.cost = static_cast<std::int64_t>(request.cost);
  row.acts_by_request = request.acts_by_request;
  row.state = "started";
  row.started_at_ms = now_ms();
  if (request.horizon_ms > 0)
    row.horizon_at_ms = row.started_at_ms + static_cast<std::int64_t>(request.horizon_ms);
  if (scope) row.root = scope->root;
  {
    Rows rows =
        database_
            .kept(
                "INSERT INTO cf_agents_operations(id, kind, effect, state, root, scope, key, "
                "likeness, "
                "n, started_at, horizon_at, cost, day, by_request) "
                "VALUES(?, ?, ?, 'started', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "RETURNING seq")
            .query(std::array{
                Param(std::string_view(row.id)), Param(std::string_view(row.kind)),
                Param(static_cast<std::int64_t>(row.effect)), nullable(row.root),
                nullable(row.scope), nullable(row.key), Param(std::string_view(row.likeness)),
                Param(row.n), Param(row.started_at_ms), nullable(row.horizon_at_ms),
                Param(row.cost), nullable(row.day), Param(std::int64_t{row.acts_by_request})});
    if (rows.next()) row.seq = rows.integer(0);
    while (rows.next()) {  // SQLite completes the insert only at the end of the rows
    }
  }
  put(row.seq, OperationPart::kArguments, arguments);
  OperationBegun begun;
  begun.decision = OperationDecision::kRun;
  begun.operation = add_running(row, request, Begin::kAnew);
  begun.id = std::move(row.id);
  return begun;
}

// ---- what is to be done -------------------------------------------------------------------------

OperationBegun Operations::decide(Row row, const OperationRequest& request) {
  OperationBegun begun;
  begun.id = row.id;
  const FiberHandle fiber = row.scope ? request.fiber : 0;
  switch (state_of(row)) {
    case OperationState::kRunning: begun.decision = OperationDecision::kJoin; return begun;
    case OperationState::kCompleted:
      begun.decision = OperationDecision::kCompleted;
      begun.result = document(row.seq, OperationPart::kResult).value_or("");
      use(fiber, row.likeness, row.seq);
      return begun;
    case OperationState::kNotExecuted: return run(std::move(row), request, true);
    case OperationState::kUnknown:
      if (!document(row.seq, OperationPart::kGivenUp)) return begun;
      break;
    case OperationState::kInterrupted: break;
  }
  row.effect = std::max(row.effect, request.effect);
  if (request.can_resume && is_resumable(row.seq)) return run(std::move(row), request, false);
  if (row.effect == Effect::kKeyed && !row.horizon_at_ms)
    row.horizon_at_ms = row.started_at_ms + static_cast<std::int64_t>(request.horizon_ms);
  const bool is_known = is_key_known(row);
  if (row.effect <= Effect::kIdempotent || (row.effect == Effect::kKeyed && is_known))
    return run(std::move(row), request, false);
  if (row.effect == Effect::kProbe && request.can_probe) {
    begun.decision = OperationDecision::kProbe;
    begun.operation = probe(row, request);
    return begun;
  }
  if (row.state == "unknown") return begun;
  make_unknown(row, row.effect == Effect::kKeyed ? "the other side may not know its key any more"
                                                 : "its run was cut off");
  return begun;
}

// `anew`: the operation certainly had no effect yet.
OperationBegun Operations::run(Row row, const OperationRequest& request, bool anew) {
  if (anew) {
    row.effect = request.effect;
    row.cost = static_cast<std::int64_t>(request.cost);
    row.acts_by_request = true;
    row.started_at_ms = now_ms();
    row.horizon_at_ms.reset();
    if (request.horizon_ms > 0)
      row.horizon_at_ms = row.started_at_ms + static_cast<std::int64_t>(request.horizon_ms);
  }
  // What an earlier run may have done besides its request stays possible.
  row.acts_by_request = row.acts_by_request && request.acts_by_request;
  prepare_write();
  leave_unknown(row);
  database_
      .kept(
          "UPDATE cf_agents_operations SET state = 'started', effect = ?2, attempts = attempts + "
          "1, "
          "started_at = ?3, horizon_at = ?4, cost = ?5, day = ?6, root = ?7, by_request = ?8, "
          "settled_at = NULL, settled_by = NULL, note = NULL, told = NULL WHERE seq = ?1")
      .execute(std::array{Param(row.seq), Param(static_cast<std::int64_t>(row.effect)),
                          Param(row.started_at_ms), nullable(row.horizon_at_ms), Param(row.cost),
                          nullable(row.day), nullable(row.root),
                          Param(std::int64_t{row.acts_by_request})});
  OperationBegun begun;
  begun.decision = OperationDecision::kRun;
  begun.attempt = row.attempts + 1;
  begun.operation = add_running(row, request, anew ? Begin::kAnew : Begin::kAgain);
  begun.id = std::move(row.id);
  return begun;
}

std::uint64_t Operations::probe(const Row& row, const OperationRequest& request) {
  prepare_write();
  leave_unknown(row);
  database_
      .kept(
          "UPDATE cf_agents_operations SET state = 'started', root = ?2, told = NULL WHERE seq = "
          "?1")
      .execute(std::array{Param(row.seq), nullable(row.root)});
  return add_running(row, request, Begin::kProbe);
}

std::uint64_t Operations::add_running(const Row& row, const OperationRequest& request, Begin how) {
  Running& running = running_[++last_operation_];
  static_cast<Row&>(running) = row;
  running.fiber = row.scope ? request.fiber : 0;
  running.key_header = request.key_header;
  running.can_resume = request.can_resume;
  running.is_anew = how == Begin::kAnew;
  running.is_probe = how == Begin::kProbe;
  may_be_open_ = true;
  const auto loss = loss_without_answer_ms(row);
  if (row.effect != Effect::kUnsafe && loss && *loss > now_ms()) plan_loss(loss);
  note_state(row, OperationState::kRunning);
  running_ids_[row.id] = last_operation_;
  return last_operation_;
}

// Marks the row as used: the next equal request of this run is another operation.
void Operations::use(FiberHandle fiber, std::string_view likeness, std::int64_t seq) {
  if (fiber == 0 || fibers_.find_running(fiber) == nullptr) return;
  used_[fiber][std::string(likeness)].insert(seq);
}

void Operations::checkpointed(std::string_view fiber) {
  for (auto& [handle, used] : used_) {
    const Job* const running = fibers_.find_running(handle);
    if (running == nullptr || running->id != fiber || used.empty()) continue;
    prepare_write();
    for (const auto& [likeness, rows] : used) {
      for (const std::int64_t seq : rows) {
        database_.kept("UPDATE cf_agents_operations SET behind = 1 WHERE seq = ? AND behind = 0")
            .execute(std::array{Param(seq)});
      }
    }
    used.clear();
  }
}

// ---- what became of it --------------------------------------------------------------------------

OperationOutcome Operations::outcome_of_cut(const Running& running) {
  if (running.unsent && running.is_anew) return OperationOutcome::kNotExecuted;
  if (running.acts_by_request && !answers_.find(running.seq)) return OperationOutcome::kNotExecuted;
  if (running.effect != Effect::kUnsafe) return OperationOutcome::kCutOff;
  const bool goes_on = running.can_resume && is_resumable(running.seq) && may_go_on(running.root);
  return goes_on ? OperationOutcome::kCutOff : OperationOutcome::kUnknown;
}

Result<OperationState> Operations::settle(std::uint64_t operation, OperationOutcome outcome,
                                          std::string_view body) {
  const auto found = running_.find(operation);
  if (found == running_.end()) return Error{Errc::kNotFound, "the operation does not run"};
  const bool has_result = outcome == OperationOutcome::kCompleted;
  if (has_result && !is_json(body)) return bad_operation("the result of an operation must be JSON");
  const bool is_too_large = has_result && body.size() > settings_.max_result_bytes;
  Running running = std::move(found->second);
  running_.erase(found);
  running_ids_.erase(running.id);
  const std::string note = has_result ? std::string() : note_of(body);
  if (has_result && running.acts_by_request && !running.has_asked && !answers_.find(running.seq)) {
    const char* const why = "it is listed as one that acts by its request, and has sent none";
    make_unknown(running, why);
    return Error{Errc::kConflict, std::string("the operation is unknown: ") + why +
                                      ": give its id to its request (.op)"};
  }
  if (outcome == OperationOutcome::kFailed) {
    auto request = answers_.find(running.seq);
    if (request && request->is_resumable() && !running.is_broken)
      refuse_answer(running, *std::move(request));
    outcome = OperationOutcome::kCutOff;
  }
  if (outcome == OperationOutcome::kCutOff) outcome = outcome_of_cut(running);
  if (outcome == OperationOutcome::kUnknown) {
    make_unknown(running, note);
    return OperationState::kUnknown;
  }
  if (outcome == OperationOutcome::kNotExecuted) {
    if (const auto row = find(running.id)) set_not_executed(*row, note);
    return OperationState::kNotExecuted;
  }
  prepare_write();
  if (outcome == OperationOutcome::kCutOff) {
    database_.kept("UPDATE cf_agents_operations SET note = ?2 WHERE seq = ?1")
        .execute(std::array{Param(running.seq), Param(std::string_view(note))});
    note_state(running, OperationState::kInterrupted);
    if (running.root && fibers_.find_running(running.fiber) == nullptr) must_look_ = true;
    if (const auto row = find(running.id)) plan_loss(loss_ms(*row));
    return OperationState::kInterrupted;
  }
  std::optional<std::string> why;
  if (is_too_large) why = "its result was too large to be kept";
  database_
      .kept(
          "UPDATE cf_agents_operations SET state = 'completed', settled_at = ?2, note = ?3 "
          "WHERE seq = ?1")
      .execute(std::array{Param(running.seq), Param(now_ms()), nullable(why)});
  note_state(running, OperationState::kCompleted);
  forget_answer(running.seq, true);
  use(running.fiber, running.likeness, running.seq);
  if (is_too_large) {
    return Error{Errc::kLimitExceeded,
                 "the operation has completed, and its result has more than " +
                     std::to_string(settings_.max_result_bytes) + " bytes"};
  }
  put(running.seq, OperationPart::kResult, body);
  return OperationState::kCompleted;
}

void Operations::set_not_executed(const Row& row, std::string_view why) {
  prepare_write();
  database_
      .kept(
          "UPDATE cf_agents_operations SET state = 'not_executed', settled_at = ?2, note = ?3 "
          "WHERE seq = ?1")
      .execute(std::array{Param(row.seq), Param(now_ms()), Param(why)});
  note_state(row, OperationState::kNotExecuted);
  forget_answer(row.seq, false);
  give_back(row);
}

Result<void> Operations::may_resolve(std::string_view id, OperationOutcome outcome,
                                     std::string_view result, std::string_view note,
                                     std::string_view actor) {
  const bool has_result = outcome == OperationOutcome::kCompleted;
  if (!has_result && outcome != OperationOutcome::kNotExecuted)
    return bad_operation("an operation is resolved as completed or as not executed");
  if (!is_label(note, kMaxOperationNoteBytes) || actor.empty() || !is_label(actor, kMaxActorBytes))
    return bad_operation("a note has at most 1024 bytes of UTF-8, an actor 1 to 256");
  if (result.size() > settings_.max_result_bytes)
    return Error{Errc::kLimitExceeded, "the result of an operation has at most " +
                                           std::to_string(settings_.max_result_bytes) + " bytes"};
  if (has_result && !result.empty() && !is_json(result))
    return bad_operation("the result of an operation must be JSON");
  const auto row = find(id);
  if (!row) return Error{Errc::kNotFound, "no operation has this id"};
  const OperationState state = state_of(*row);
  if (state != OperationState::kUnknown && state != OperationState::kInterrupted) {
    return Error{Errc::kConflict, "only an operation that is unknown or interrupted is resolved"};
  }
  return {};
}

Result<void> Operations::resolve(std::string_view id, OperationOutcome outcome,
                                 std::string_view result, std::string_view note,
                                 std::string_view actor) {
  if (auto may = may_resolve(id, outcome, result, note, actor); may.has_error()) return may;
  const auto row = find(id);
  if (!row) return Error{Errc::kNotFound, "no operation has this id"};
  const bool has_result = outcome == OperationOutcome::kCompleted;
  // Copies: the views may point into a row that the first of these statements ends.
  const std::string its_result(result.empty() ? "null" : result);
  const std::string its_note(note);
  const std::string its_actor(actor);
  prepare_write();
  leave_unknown(*row);
  database_
      .kept(
          "UPDATE cf_agents_operations SET state = ?2, settled_at = ?3, settled_by = ?4, note = "
          "?5, "
          "told = NULL WHERE seq = ?1")
      .execute(std::array{
          Param(row->seq), Param(std::string_view(has_result ? "completed" : "not_executed")),
          Param(now_ms()), Param(std::string_view(its_actor)), Param(std::string_view(its_note))});
  if (has_result) put(row->seq, OperationPart::kResult, its_result);
  if (!has_result) give_back(*row);
  forget_answer(row->seq, has_result);
  note_state(*row, has_result ? OperationState::kCompleted : OperationState::kNotExecuted);
  return {};
}

}  // namespace hearth::durable

#include "durable/operations.hpp"

#include "durable/operation_rules.hpp"
#include "json/json_scanner.hpp"

#include <optional>
#include <utility>

namespace hearth::durable {

void Operations::load() {
  if (!table_.exists()) return;
  unknown_.load();
  open_.load();
  give_up_lost(true);
}

void Operations::give_up_lost(bool have_fibers_ended) {
  if (!have_fibers_ended && !open_.has_lost()) return;
  for (const LostOperation& lost : open_.take_lost()) {
    if (lost.was_sent) {
      transitions_.give_up(lost.row);
    } else {
      transitions_.set_not_executed(lost.row, "its run was cut off before its request had left");
    }
  }
}

// ---- beginning ----------------------------------------------------------------------------------

Result<OperationBegun> Operations::begin(const OperationRequest& request) {
  if (auto checked = check_operation(request); checked.has_error()) return checked.error();
  auto identified = identity_.identify(request);
  if (!identified) return identified.error();
  const std::optional<OperationScope>& scope = identified->scope;
  OperationRow row = std::move(identified->row);
  const bool is_new = row.seq == 0;
  const OperationState state = is_new ? OperationState::kNotExecuted : running_.state_of(row);
  if (is_new) {
    if (auto room = retention_.make_room(); room.has_error()) return room.error();
  }
  if (state == OperationState::kNotExecuted) {
    const auto counted = budgets_.spend(row.kind, request.cost);
    if (!counted) return counted.error();
    row.day = *counted;
  }
  if (scope) fibers_.keep(*scope);
  // A row with only a key is the work of the fiber that has begun it last.
  if (is_new || !row.scope) row.root = scope ? std::optional(scope->root) : std::nullopt;
  return proceed(std::move(row), state, request, identified->arguments);
}

OperationBegun Operations::proceed(OperationRow row, OperationState state,
                                   const OperationRequest& request, std::string_view arguments) {
  const bool is_unknown = state == OperationState::kUnknown;
  const bool was_given_up = is_unknown && table_.document(row.seq, OperationPart::kGivenUp);
  const bool is_open = was_given_up || state == OperationState::kInterrupted;
  const bool goes_on = is_open && request.can_resume && answers_.is_resumable(row.seq);
  const std::int64_t now = unix_millis(clock_.wall_now());
  auto decided = decide(std::move(row), state, request, was_given_up, goes_on, now);
  row = std::move(decided.row);
  OperationBegun begun;
  begun.decision = decided.decision;
  begun.id = row.id;
  switch (begun.decision) {
    case OperationDecision::kRun:
      if (row.seq == 0) {
        table_.prepare_write();
        identity_.keep_incarnation();
        transitions_.start(row, arguments);
      } else {
        transitions_.start_again(row);
        begun.attempt = row.attempts + 1;
      }
      begun.operation = run(row, request, state == OperationState::kNotExecuted, false);
      break;
    case OperationDecision::kProbe:
      transitions_.start_probe(row);
      begun.operation = run(row, request, false, true);
      break;
    case OperationDecision::kCompleted:
      begun.result = table_.document(row.seq, OperationPart::kResult).value_or("");
      identity_.use(row.scope ? request.fiber : 0, row.likeness, row.seq);
      break;
    case OperationDecision::kJoin: break;
    case OperationDecision::kUnknown:
      if (is_unknown) break;
      transitions_.make_unknown(row, row.effect == Effect::kKeyed
                                         ? "the other side may not know its key any more"
                                         : "its run was cut off");
  }
  return begun;
}

std::uint64_t Operations::run(const OperationRow& row, const OperationRequest& request,
                              bool is_anew, bool is_probe) {
  RunningOperation running{row};
  running.fiber = row.scope ? request.fiber : 0;
  running.key_header = request.key_header;
  running.can_resume = request.can_resume;
  running.is_anew = is_anew;
  running.is_probe = is_probe;
  open_.began(row);
  return running_.add(std::move(running));
}

// ---- what became of it --------------------------------------------------------------------------

OperationOutcome Operations::end_of_cut(const RunningOperation& running) {
  const bool goes_on = running.effect == Effect::kUnsafe && running.can_resume &&
                       answers_.is_resumable(running.seq) && fibers_.may_go_on(running.root);
  return outcome_of_cut(running, answers_.find(running.seq).has_value(), goes_on);
}

Result<OperationState> Operations::settle(std::uint64_t operation, OperationOutcome outcome,
                                          std::string_view body) {
  if (running_.id_of(operation).empty())
    return Error{Errc::kNotFound, "the operation does not run"};
  const bool has_result = outcome == OperationOutcome::kCompleted;
  if (has_result && !is_json(body))
    return Error{Errc::kInvalidArgument, "the result of an operation must be JSON"};
  RunningOperation running = running_.take(operation);
  if (has_result && running.acts_by_request && !running.has_asked && !answers_.find(running.seq)) {
    const char* const why = "it is listed as one that acts by its request, and has sent none";
    transitions_.make_unknown(running, why);
    return Error{Errc::kConflict, std::string("the operation is unknown: ") + why +
                                      ": give its id to its request (.op)"};
  }
  if (has_result) {
    const bool is_too_large = body.size() > settings_.max_result_bytes;
    transitions_.complete(running, is_too_large ? std::nullopt : std::optional(body));
    identity_.use(running.fiber, running.likeness, running.seq);
    if (!is_too_large) return OperationState::kCompleted;
    return Error{Errc::kLimitExceeded,
                 "the operation has completed, and its result has more than " +
                     std::to_string(settings_.max_result_bytes) + " bytes"};
  }
  const std::string note = readable_text(body, kMaxOperationNoteBytes);
  if (outcome == OperationOutcome::kFailed) {
    auto request = answers_.find(running.seq);
    if (request && request->is_resumable() && !running.is_broken)
      requests_.refuse(running, *std::move(request));
    outcome = OperationOutcome::kCutOff;
  }
  if (outcome == OperationOutcome::kCutOff) outcome = end_of_cut(running);
  if (outcome == OperationOutcome::kUnknown) {
    transitions_.make_unknown(running, note);
    return OperationState::kUnknown;
  }
  const auto row = table_.find(running.id);  // its cost may have changed
  if (outcome == OperationOutcome::kNotExecuted) {
    if (row) transitions_.set_not_executed(*row, note);
    return OperationState::kNotExecuted;
  }
  transitions_.interrupt(running, note);
  if (row) open_.cut_off(*row, running.fiber);
  return OperationState::kInterrupted;
}

Result<void> Operations::set_cost(std::string_view id, std::uint64_t cost) {
  const bool runs = running_.find(id) != nullptr;
  const auto row = runs ? table_.find(id) : std::nullopt;
  if (!row) return Error{Errc::kNotFound, "no operation of this id runs"};
  if (cost > kMostOperationCost) return Error{Errc::kInvalidArgument, "a cost is at most 10^15"};
  budgets_.set_cost(*row, static_cast<std::int64_t>(cost));
  return {};
}

Result<std::string> Operations::path_of(std::string_view id) {
  const RunningOperation* const running = running_.find(id);
  if (running == nullptr) return Error{Errc::kNotFound, "no operation of this id runs"};
  return table_.path_of(*running);
}

Result<void> Operations::may_resolve(std::string_view id, OperationOutcome outcome,
                                     std::string_view result, std::string_view note,
                                     std::string_view actor) {
  auto checked = check_resolution(outcome, result, note, actor, settings_.max_result_bytes);
  if (checked.has_error()) return checked;
  const auto row = table_.find(id);
  if (!row) return Error{Errc::kNotFound, "no operation has this id"};
  const OperationState state = running_.state_of(*row);
  if (state == OperationState::kUnknown || state == OperationState::kInterrupted) return {};
  return Error{Errc::kConflict, "only an operation that is unknown or interrupted is resolved"};
}

Result<void> Operations::resolve(std::string_view id, OperationOutcome outcome,
                                 std::string_view result, std::string_view note,
                                 std::string_view actor) {
  if (auto may = may_resolve(id, outcome, result, note, actor); may.has_error()) return may;
  const auto row = table_.find(id);
  if (!row) return Error{Errc::kNotFound, "no operation has this id"};
  // Copies: the views may point into a row that the first write ends.
  const std::string its_result(result.empty() ? "null" : result);
  const std::string its_note(note);
  const std::string its_actor(actor);
  const bool has_result = outcome == OperationOutcome::kCompleted;
  transitions_.resolve(*row,
                       has_result ? std::optional<std::string_view>(its_result) : std::nullopt,
                       its_note, its_actor);
  return {};
}

Wake Operations::wake() const {
  Wake wake = open_.wake();
  wake.working = wake.working || unknown_.must_tell();
  if (open_.may_exist()) wake.unknown_operations = unknown_.count();
  return wake;
}

}  // namespace hearth::durable

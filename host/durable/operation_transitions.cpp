#include "durable/operation_transitions.hpp"

#include "durable/operation_rules.hpp"

#include <string>

namespace hearth::durable {

using storage::nullable;

void OperationTransitions::start(OperationRow& row, std::string_view arguments) {
  table_.insert(row);
  table_.put(row.seq, OperationPart::kArguments, arguments);
  note(row, OperationState::kRunning);
}

void OperationTransitions::start_again(const OperationRow& row) {
  unknown_.leave(row);
  table_.run(
      "UPDATE cf_agents_operations SET state = 'started', effect = ?2, attempts = attempts + 1, "
      "started_at = ?3, horizon_at = ?4, cost = ?5, day = ?6, root = ?7, by_request = ?8, "
      "settled_at = NULL, settled_by = NULL, note = NULL, told = NULL WHERE seq = ?1",
      row.seq, row.effect, row.started_at_ms, nullable(row.horizon_at_ms), row.cost,
      nullable(row.day), nullable(row.root), row.acts_by_request);
  note(row, OperationState::kRunning);
}

void OperationTransitions::start_probe(const OperationRow& row) {
  unknown_.leave(row);
  table_.run(
      "UPDATE cf_agents_operations SET state = 'started', root = ?2, told = NULL WHERE seq = ?1",
      row.seq, nullable(row.root));
  note(row, OperationState::kRunning);
}

void OperationTransitions::interrupt(const OperationRow& row, std::string_view note_text) {
  table_.run("UPDATE cf_agents_operations SET note = ?2 WHERE seq = ?1", row.seq, note_text);
  note(row, OperationState::kInterrupted);
}

void OperationTransitions::complete(const OperationRow& row,
                                    std::optional<std::string_view> result) {
  std::optional<std::string> why;
  if (!result) why = "its result was too large to be kept";
  table_.run(
      "UPDATE cf_agents_operations SET state = 'completed', settled_at = ?2, note = ?3 "
      "WHERE seq = ?1",
      row.seq, unix_millis(clock_.wall_now()), nullable(why));
  note(row, OperationState::kCompleted);
  answers_.drop_answer(row.seq);
  if (result) table_.put(row.seq, OperationPart::kResult, *result);
}

void OperationTransitions::make_unknown(const OperationRow& row, std::string_view why) {
  unknown_.add(row, why);
  note(row, OperationState::kUnknown);
}

void OperationTransitions::set_not_executed(const OperationRow& row, std::string_view why) {
  table_.run(
      "UPDATE cf_agents_operations SET state = 'not_executed', settled_at = ?2, note = ?3 "
      "WHERE seq = ?1",
      row.seq, unix_millis(clock_.wall_now()), why);
  note(row, OperationState::kNotExecuted);
  answers_.drop(row.seq);
  budgets_.give_back(row);
}

void OperationTransitions::give_up(const OperationRow& row) {
  if (row.effect <= Effect::kIdempotent) {
    table_.remove("FROM cf_agents_operations WHERE seq = ? RETURNING id",
                  storage::params_of(row.seq));
    return;
  }
  make_unknown(row, row.note.value_or("its run was cut off"));
  const bool may_come_back =
      row.effect == Effect::kProbe || is_key_known(row, unix_millis(clock_.wall_now()));
  if (may_come_back && row.effect != Effect::kUnsafe)
    table_.put(row.seq, OperationPart::kGivenUp, "");
}

void OperationTransitions::resolve(const OperationRow& row, std::optional<std::string_view> result,
                                   std::string_view note_text, std::string_view actor) {
  unknown_.leave(row);
  const std::string_view state = result ? "completed" : "not_executed";
  table_.run(
      "UPDATE cf_agents_operations SET state = ?2, settled_at = ?3, settled_by = ?4, note = ?5, "
      "told = NULL WHERE seq = ?1",
      row.seq, state, unix_millis(clock_.wall_now()), actor, note_text);
  if (result) {
    table_.put(row.seq, OperationPart::kResult, *result);
    answers_.drop_answer(row.seq);
  } else {
    budgets_.give_back(row);
    answers_.drop(row.seq);
  }
  note(row, result ? OperationState::kCompleted : OperationState::kNotExecuted);
}

}  // namespace hearth::durable

#include "durable/unsettled_operations.hpp"

#include "durable/operation_rules.hpp"

#include <algorithm>
#include <utility>

namespace hearth::durable {

using storage::Rows;

namespace {

constexpr std::string_view kAnyOpen =
    "SELECT EXISTS(SELECT 1 FROM cf_agents_operations WHERE state IN ('started', 'unknown'))";

}  // namespace

void OpenOperations::load() {
  may_exist_ = table_.number(kAnyOpen) != 0;
}

void OpenOperations::began(const OperationRow& row) {
  may_exist_ = true;
  const auto loss = loss_without_answer_ms(row);
  if (row.effect != Effect::kUnsafe && loss && *loss > unix_millis(clock_.wall_now()))
    next_ms_ = earliest(next_ms_, loss);
}

void OpenOperations::cut_off(const OperationRow& row, FiberHandle fiber) {
  if (row.root && fibers_.find_running(fiber) == nullptr) must_look_ = true;
  next_ms_ = earliest(next_ms_, loss_ms(row, row.horizon_at_ms && goes_on(row)));
}

bool OpenOperations::goes_on(const OperationRow& row) {
  const bool matters = row.effect == Effect::kKeyed || row.effect == Effect::kUnsafe;
  return matters && answers_.is_resumable(row.seq) && fibers_.may_go_on(row.root);
}

void OpenOperations::look(std::vector<LostOperation>* lost) {
  std::optional<std::int64_t> next;
  const std::int64_t now = unix_millis(clock_.wall_now());
  std::optional<OperationFibers::Roots> of_open;
  const auto work_goes_on = [&](const OperationRow& row) {
    if (!row.root) return true;
    if (!of_open) of_open = fibers_.roots_of_open();
    return fibers_.may_go_on(*row.root, *of_open);
  };
  table_.each("FROM cf_agents_operations WHERE state = 'started' ORDER BY seq", {},
              [&](OperationRow& row) {
                const bool runs = running_.state_of(row) == OperationState::kRunning;
                const bool is_judged = lost != nullptr && !runs;
                if (is_judged && row.acts_by_request && !answers_.find(row.seq)) {
                  lost->push_back({std::move(row), false});
                  return true;
                }
                const bool continues = (is_judged || row.horizon_at_ms) && goes_on(row);
                if (is_judged && (!work_goes_on(row) || is_lost(row, continues, now))) {
                  lost->push_back({std::move(row)});
                  return true;
                }
                // A running operation whose moment has passed has no further moment: its own end
                // decides.
                const auto loss = loss_ms(row, continues);
                if (loss && (*loss > now || !runs)) next = earliest(next, loss);
                return true;
              });
  next_ms_ = next;
}

std::vector<LostOperation> OpenOperations::take_lost() {
  std::vector<LostOperation> lost;
  must_look_ = false;
  look(&lost);
  return lost;
}

void OpenOperations::close() {
  if (!may_exist_ || table_.database().broken()) return;
  try {
    const bool exists = table_.number(kAnyOpen) != 0;
    if (!has_lost()) look(nullptr);
    may_exist_ = exists;
  } catch (const StorageError&) {  // agent boundary
    may_exist_ = true;             // safe: the index may list the agent without need
  }
}

Wake OpenOperations::wake() const {
  Wake wake;
  const std::int64_t now = unix_millis(clock_.wall_now());
  wake.working = has_lost() || std::ranges::any_of(running_.all(), [now](const auto& each) {
                   const auto loss = loss_without_answer_ms(each.second);
                   return each.second.effect == Effect::kUnsafe || (loss && *loss <= now);
                 });
  if (!has_lost()) wake.at_ms = next_ms_;
  return wake;
}

// ---- the unknown ones ---------------------------------------------------------------------------

void count_crash(OperationTable& table, const EndedProcess& ended) {
  if (!ended.row || *ended.row <= kOperationRows || *ended.row == kSeveralRows) return;
  table.run("UPDATE cf_agents_operations SET told = told + ?2 WHERE seq = ?1",
            *ended.row - kOperationRows, UnknownOperations::kMostTellings / 2);
}

void UnknownOperations::load() {
  Rows rows =
      table_.rows("SELECT seq FROM cf_agents_operations WHERE told IS NOT NULL ORDER BY seq");
  while (rows.next()) untold_.push_back(rows.integer(0));
  count_ = table_.number("SELECT count(*) FROM cf_agents_operations WHERE state = 'unknown'");
}

void UnknownOperations::add(const OperationRow& row, std::string_view why) {
  table_.run(
      "UPDATE cf_agents_operations SET state = 'unknown', told = 0, settled_at = NULL, note = ?2 "
      "WHERE seq = ?1",
      row.seq, why);
  untold_.push_back(row.seq);
  ++count_;
}

void UnknownOperations::leave(const OperationRow& row) {
  if (row.state != "unknown") return;
  std::erase(untold_, row.seq);
  --count_;
  table_.run("DELETE FROM cf_agents_operation_documents WHERE operation = ?1 AND part = ?2",
             row.seq, OperationPart::kGivenUp);
}

std::optional<UnknownOperation> UnknownOperations::next_untold() {
  while (has_untold()) {
    const std::int64_t seq = untold_.front();
    untold_.pop_front();
    const auto row =
        table_.first("FROM cf_agents_operations WHERE seq = ? AND told IS NOT NULL", seq);
    if (!row) continue;
    table_.run(
        "UPDATE cf_agents_operations SET told = iif(told < ?2, told + 1, NULL) WHERE seq = ?1", seq,
        kMostTellings);
    // Null: it was told kMostTellings times.
    if (table_.number("SELECT told FROM cf_agents_operations WHERE seq = ?", seq) == 0) continue;
    telling_ = true;
    return UnknownOperation{row->id, row->kind, records_.record(*row), row->seq};
  }
  return std::nullopt;
}

void UnknownOperations::told(std::string_view id, bool was_heard) {
  telling_ = false;
  if (!was_heard) return;
  table_.run("UPDATE cf_agents_operations SET told = NULL WHERE id = ?", id);
}

std::vector<UnknownOperation> UnknownOperations::standing() {
  std::vector<UnknownOperation> standing;
  if (count_ == 0) return standing;
  Rows rows = table_.rows(
      "SELECT id, kind, started_at FROM cf_agents_operations WHERE state = "
      "'unknown' ORDER BY seq DESC LIMIT ?",
      kMostStanding);
  while (rows.next())
    standing.push_back({.id = std::string(rows.text(0)),
                        .kind = std::string(rows.text(1)),
                        .since_ms = rows.integer(2)});
  std::ranges::reverse(standing);
  return standing;
}

}  // namespace hearth::durable

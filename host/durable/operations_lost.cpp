// Operations that are given up, because they will not be begun again (P12).
#include "durable/operations.hpp"

#include <algorithm>
#include <array>

namespace hearth::durable {

using storage::Param;

std::optional<std::int64_t> Operations::loss_without_answer_ms(const Row& row) {
  if (row.effect == Effect::kKeyed && row.horizon_at_ms) return row.horizon_at_ms;
  if (row.root) return std::nullopt;
  return row.started_at_ms + kLongestInterruption.count();
}

std::optional<std::int64_t> Operations::loss_ms(const Row& row) {
  const auto loss = loss_without_answer_ms(row);
  const bool has_horizon = row.effect == Effect::kKeyed && row.horizon_at_ms;
  if (!has_horizon || !is_resumable(row.seq) || !may_go_on(row.root)) return loss;
  // It goes on with its answer, and does not need its key.
  if (row.root) return std::nullopt;
  return std::max(loss.value_or(0), row.started_at_ms + kLongestInterruption.count());
}

bool Operations::is_lost(const Row& row, const Roots& of_open) {
  if (row.root && !may_go_on(*row.root, of_open)) return true;
  const std::int64_t now = now_ms();
  const std::int64_t ahead = row.started_at_ms - now;  // the clock was set back
  if (const auto loss = loss_ms(row);
      loss && (*loss <= now || (!row.root && ahead > kLongestInterruption.count())))
    return true;
  const std::int64_t skew = skew_ms(row);
  const bool is_strict =
      row.effect == Effect::kUnsafe || (row.effect == Effect::kKeyed && ahead > skew);
  return is_strict && !(is_resumable(row.seq) && may_go_on(row.root));
}

void Operations::give_up(const Row& row) {
  if (row.effect > Effect::kIdempotent) {
    make_unknown(row, row.note.value_or("its run was cut off"));
    const bool may_come_back = row.effect == Effect::kProbe || is_key_known(row);
    if (may_come_back && row.effect != Effect::kUnsafe) put(row.seq, OperationPart::kGivenUp, "");
    return;
  }
  prepare_write();
  remove_rows("DELETE FROM cf_agents_operations WHERE seq = ? RETURNING id",
              std::array{Param(row.seq)});
}

void Operations::give_up_lost() {
  must_look_ = false;
  next_loss_ms_.reset();
  if (!exists()) return;
  std::optional<Roots> of_open;
  for (const Row& row : started_rows()) {
    if (running_ids_.contains(row.id)) continue;
    if (row.acts_by_request && !answers_.find(row.seq)) {
      set_not_executed(row, "its run was cut off before its request had left");
      continue;
    }
    if (row.root && !of_open) of_open = roots_of_open();
    if (is_lost(row, of_open ? *of_open : Roots())) give_up(row);
  }
  next_loss_ms_ = find_next_loss();
}

// A running operation whose moment has passed has no further moment: its own end decides.
std::optional<std::int64_t> Operations::find_next_loss() {
  std::optional<std::int64_t> next;
  if (!exists()) return next;
  const std::int64_t now = now_ms();
  for (const Row& row : started_rows()) {
    const auto loss = loss_ms(row);
    if (loss && (*loss > now || !running_ids_.contains(row.id))) next = earliest(next, loss);
  }
  return next;
}

}  // namespace hearth::durable

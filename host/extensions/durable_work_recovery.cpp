// The recovery of an agent's fibers: the plan, the offers, and what becomes of them. The rest:
// durable_work.cpp.
#include "extensions/durable_work.hpp"
#include "json/json.hpp"
#include "json/json_text.hpp"

#include <algorithm>
#include <utility>

namespace hearth::extensions {

using durable::Interrupted;

namespace {

constexpr std::size_t kMaxParallel = 100;

}  // namespace

// ---- what is offered ----------------------------------------------------------------------------

std::optional<Interrupted> DurableWork::next_interrupted() {
  if (!held_) return fibers_.begin_recovery();
  const std::string held_id = held_->id;
  // The one that was claimed before the plan was known has its place in it like the others.
  const auto place = [this](std::string_view id) { return std::ranges::find(order_, id); };
  const std::string next_id = fibers_.next_due_id();
  if (!next_id.empty() && place(next_id) < place(held_id)) return fibers_.begin_recovery();
  order_ = {};
  std::optional<Interrupted> held = std::exchange(held_, std::nullopt);
  const auto standing = fibers_.find(held_id);
  if (standing && standing->recovering) return held;
  fibers_.recovered(held_id);  // it was cancelled meanwhile: there is no hook to wait for
  return fibers_.begin_recovery();
}

std::optional<DueWork> DurableWork::next_recovery() {
  if (planning_ || offers_.size() >= parallel_) return std::nullopt;
  std::optional<Interrupted> fiber = next_interrupted();
  if (fiber) stop_point("fiber.attempt.written");
  for (const durable::PassedOver& dead : fibers_.take_passed_over()) {
    if (is_managed(dead.id)) managed_->died(dead.id, dead.why);
    report(DurableEvent::kFiberRecoveryDead, dead.id, dead.why);
  }
  if (!fiber) return std::nullopt;
  if (!planned_) {
    const std::vector<Interrupted> others = fibers_.due_list();
    if (!others.empty()) {
      held_ = std::move(fiber);
      return ask_for_plan(others);
    }
  }
  return offer(std::move(*fiber));
}

DueWork DurableWork::ask_for_plan(const std::vector<Interrupted>& others) {
  HEARTH_ASSERT(held_, "a plan is asked for while nothing waits for one");
  planned_ = true;
  planning_ = true;
  std::string body = "[";
  const auto add = [&body](const Interrupted& fiber) {
    body += body.size() == 1 ? R"({"id":)" : R"(,{"id":)";
    append_json_string(body, fiber.id);
    body += R"(,"name":)";
    append_json_string(body, fiber.name);
    body += R"(,"created_at":)" + std::to_string(fiber.created_at_ms);
    body += R"(,"attempt":)" + std::to_string(fiber.attempt) + "}";
  };
  add(*held_);  // the oldest
  for (const Interrupted& fiber : others) add(fiber);
  body += "]";
  return DueWork{EventKind::kFibersRecovered,       {},          0, {}, std::move(body),
                 settings_.fibers.recovery_timeout, std::nullopt};
}

DueWork DurableWork::offer(Interrupted fiber) {
  std::string body = R"({"id":)";
  append_json_string(body, fiber.id);
  body += R"(,"snapshot":)" + fiber.snapshot.value_or("null");
  body += R"(,"created_at":)" + std::to_string(fiber.created_at_ms);
  body += R"(,"attempt":)" + std::to_string(fiber.attempt);
  if (is_managed(fiber.id)) body += "," + managed_->begin_recovery(fiber.id);
  body += "}";
  offers_.push_back(fiber.id);
  return DueWork{EventKind::kFiberRecovered,
                 std::move(fiber.id),
                 0,
                 std::move(fiber.name),
                 std::move(body),
                 settings_.fibers.recovery_timeout,
                 DurableEvent::kFiberRecoveryAttempt};
}

// ---- what becomes of it -------------------------------------------------------------------------

void DurableWork::plan_ended(const Result<std::string_view>& outcome) {
  planning_ = false;
  if (!outcome || outcome->empty()) return;
  const Result<Json> plan = parse_json(*outcome);
  if (!plan || !plan->is_object()) return;
  if (const auto parallel = plan->find("parallel");
      parallel != plan->end() && parallel->is_number_integer()) {
    parallel_ = static_cast<std::size_t>(
        std::clamp<std::int64_t>(parallel->get<std::int64_t>(), 1, kMaxParallel));
  }
  const auto order = plan->find("order");
  if (order == plan->end() || !order->is_array()) return;
  for (const Json& id : *order) {
    if (id.is_string()) order_.push_back(id.get<std::string>());
  }
  fibers_.plan(order_);
}

void DurableWork::continued(std::string_view fiber_id) {
  if (std::erase(offers_, fiber_id) > 0) report(DurableEvent::kFiberRecoveryHandled, fiber_id);
}

void DurableWork::offer_ended(const std::string& id, const Result<std::string_view>& outcome) {
  if (std::erase(offers_, id) == 0) {
    fibers_.recovered(id);  // its hook is over; for the rest the work speaks for itself
    if (!outcome || is_managed(id)) return;
    stop_point("fiber.recovered.written");
    return stops_.add("fiber.recovered.committed");
  }
  const bool refused = outcome.has_error() && outcome.error().code == Errc::kUnsupported;
  if (!outcome && !refused) return hook_failed(id, outcome.error().message);
  if (is_managed(id)) {
    const auto change = managed_->recovered(id, refused ? std::string_view() : *outcome);
    // Not found: it was cancelled in its hook. The hook has no say any more, and has not failed
    // either.
    if (!change && change.error().code != Errc::kNotFound)
      return hook_failed(id, change.error().message);
  }
  fibers_.recovered(id);
  stop_point("fiber.recovered.written");
  stops_.add("fiber.recovered.committed");
  if (refused) {
    report(DurableEvent::kFiberRecoverySkipped, id, "the class recovers no fibers");
  } else {
    report(DurableEvent::kFiberRecoveryHandled, id);
  }
}

void DurableWork::hook_failed(const std::string& id, std::string_view why) {
  const auto failure = fibers_.failed(id, why);
  if (failure.dead && is_managed(id)) managed_->died(id, why);
  stop_point("fiber.failed.written");
  stops_.add("fiber.failed.committed");
  report(DurableEvent::kFiberRecoveryFailed, id, why);
  if (failure.dead) report(DurableEvent::kFiberRecoveryDead, id, why);
}

}  // namespace hearth::extensions

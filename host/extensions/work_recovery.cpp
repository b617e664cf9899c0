#include "extensions/work_recovery.hpp"

#include "base/assert.hpp"
#include "json/json.hpp"
#include "json/json_object_text.hpp"

#include <algorithm>
#include <utility>

namespace hearth::extensions {

using durable::Interrupted;

namespace {

constexpr std::size_t kMaxParallel = 100;

std::vector<std::string> texts_in(const Json& plan, const char* member) {
  std::vector<std::string> texts;
  const auto list = plan.find(member);
  if (list == plan.end() || !list->is_array()) return texts;
  for (const Json& each : *list) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
  }
  return texts;
}

}  // namespace

// ---- what is offered ----------------------------------------------------------------------------

std::optional<Interrupted> WorkRecovery::next_interrupted() {
  if (!held_) return fibers_.recovery().begin();
  const std::string held_id = held_->id;
  // The fiber that was claimed before the plan has a place in the plan's order like the others.
  const auto place = [this](std::string_view id) { return std::ranges::find(order_, id); };
  const std::string next_id = fibers_.recovery().next_due_id();
  if (!next_id.empty() && place(next_id) < place(held_id)) return fibers_.recovery().begin();
  order_ = {};
  std::optional<Interrupted> held = std::exchange(held_, std::nullopt);
  if (fibers_.recovery().line().is_claimed(held_id)) return held;
  return fibers_.recovery().begin();  // it was cancelled meanwhile, and needs no hook
}

std::optional<DueWork> WorkRecovery::next() {
  if (planning_ || is_full()) return std::nullopt;
  const std::string planned_id = held_ ? held_->id : std::string();
  std::optional<Interrupted> fiber = next_interrupted();
  if (fiber) stop_point("fiber.attempt.written");
  reports_.add(DurableEvent::kFiberRecoveryDead, fibers_.recovery().line().take_given_up());
  if (!fiber) return std::nullopt;
  if (plans_singly_ ? fiber->id != planned_id : !planned_) {
    const auto others = plans_singly_ ? std::vector<Interrupted>() : fibers_.recovery().due_list();
    if (!others.empty() || !fiber->is_pending) {
      held_ = std::move(fiber);
      return ask_for_plan(others);
    }
  }
  return offer(std::move(*fiber));
}

bool WorkRecovery::due() const {
  if (planning_ || is_full()) return false;
  return held_ || fibers_.due();
}

DueWork WorkRecovery::ask_for_plan(const std::vector<Interrupted>& others) {
  HEARTH_ASSERT(held_, "a plan is asked for while nothing waits for one");
  planned_ = true;
  planning_ = true;
  std::string body = "[";
  const auto add = [&body](const Interrupted& fiber) {
    if (body.size() > 1) body += ',';
    body += JsonObjectText()
                .text("id", fiber.id)
                .text("name", fiber.name)
                .number("created_at", fiber.created_at_ms)
                .number("attempt", fiber.attempt)
                .take();
  };
  add(*held_);  // the oldest
  for (const Interrupted& fiber : others) add(fiber);
  body += "]";
  const bool is_alone = others.empty();
  return DueWork{.kind = EventKind::kFibersRecovered,
                 .id = is_alone ? held_->id : std::string(),
                 .row = is_alone ? held_->row : kSeveralRows,
                 .body = std::move(body),
                 .timeout = settings_.fibers.recovery_timeout};
}

DueWork WorkRecovery::offer(Interrupted fiber) {
  const durable::Offered offered = fibers_.recovery().offer(fiber.row);
  std::string body = JsonObjectText()
                         .text("id", fiber.id)
                         .json_or_null("snapshot", fiber.snapshot)
                         .number("created_at", fiber.created_at_ms)
                         .number("attempt", fiber.attempt)
                         .json("record", offered.record)
                         .text("reason", offered.reason)
                         .take();
  const bool is_pending = fiber.is_pending;
  offers_.push_back({fiber.id, ++last_offer_, is_pending});
  return DueWork{
      .kind = EventKind::kFiberRecovered,
      .id = fiber.id,
      .run = last_offer_,
      .row = fiber.row,
      .name = std::move(fiber.name),
      .body = std::move(body),
      .timeout = settings_.fibers.recovery_timeout,
      .step = is_pending ? DurableEvent::kFiberRunStarted : DurableEvent::kFiberRecoveryAttempt,
      .trace = reports_.trace_of_fiber(fiber.id)};
}

// ---- what becomes of it -------------------------------------------------------------------------

void WorkRecovery::plan_ended(const Result<std::string_view>& outcome) {
  planning_ = false;
  if (!outcome || outcome->empty()) return;
  const Result<Json> plan = parse_json(*outcome);
  if (!plan || !plan->is_object()) return;
  if (const auto parallel = plan->find("parallel");
      parallel != plan->end() && parallel->is_number_integer()) {
    parallel_ = static_cast<std::size_t>(
        std::clamp<std::int64_t>(parallel->get<std::int64_t>(), 1, kMaxParallel));
  }
  for (const std::string& id : texts_in(*plan, "skip")) skip(id);
  if (plans_singly_) return;  // a single fiber has no order
  order_ = texts_in(*plan, "order");
  fibers_.recovery().plan(order_);
}

// The plan says not to recover this fiber: ends it as a hook that does nothing would.
void WorkRecovery::skip(const std::string& id) {
  if (!held_ || held_->id != id) {
    if (!fibers_.recovery().claim_uncounted(id)) return;
  } else {
    held_.reset();
  }
  if (!fibers_.recovery().recovered(id, {})) return;
  reports_.add(DurableEvent::kFiberRecoverySkipped, id, "on_fibers_recovered has skipped it");
}

void WorkRecovery::continued(std::string_view fiber_id) {
  const auto offer = std::ranges::find(offers_, fiber_id, &Offer::id);
  if (offer == offers_.end()) return;
  if (!offer->is_pending) reports_.add(DurableEvent::kFiberRecoveryHandled, fiber_id);
  offers_.erase(offer);
}

void WorkRecovery::offer_ended(const DueWork& work, const Result<std::string_view>& outcome) {
  const std::string& id = work.id;
  const auto offer = std::ranges::find(offers_, work.run, &Offer::number);
  if (offer == offers_.end()) return;  // continued() came before: only the hook is over
  offers_.erase(offer);
  if (needs_code(outcome)) {
    if (!fibers_.recovery().unknown(id)) return;  // it was cancelled in its hook
    const bool is_unreadable = has_code(outcome, Errc::kUnreadable);
    if (is_unreadable) reports_.note_unreadable();
    return report_waiting(id, is_unreadable ? std::string_view(outcome.error().message) : "");
  }
  if (!outcome) return hook_failed(id, outcome.error().message, has_code(outcome, Errc::kFinal));
  const auto change = fibers_.recovery().recovered(id, *outcome);
  // Not found: the fiber was cancelled in its hook. So the hook has no effect, but has not
  // failed.
  if (!change && change.error().code != Errc::kNotFound)
    return hook_failed(id, change.error().message, false);
  stop_point("fiber.recovered.written");
  stops_.add("fiber.recovered.committed");
  reports_.add(DurableEvent::kFiberRecoveryHandled, id);
}

void WorkRecovery::report_waiting(std::string_view id, std::string_view what) {
  std::string why = "this version of the class cannot go on with it: it waits for another version";
  if (!what.empty()) why += ": " + std::string(what);
  reports_.add(DurableEvent::kFiberUnknown, id, why);
}

Result<durable::FiberChange> WorkRecovery::wait_for_code(durable::FiberHandle fiber,
                                                         std::string_view what) {
  auto change = fibers_.wait_for_code(fiber);
  if (!change) return change;
  reports_.note_unreadable();
  report_waiting(change->id, what);
  return change;
}

void WorkRecovery::hook_failed(const std::string& id, std::string_view why, bool is_final) {
  const auto failure = fibers_.recovery().failed(id, why, is_final);
  stop_point("fiber.failed.written");
  stops_.add("fiber.failed.committed");
  reports_.add(DurableEvent::kFiberRecoveryFailed, id, why);
  if (failure.dead) reports_.add(DurableEvent::kFiberRecoveryDead, id, why);
}

}  // namespace hearth::extensions

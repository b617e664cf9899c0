// When which agent of a shard must be awake, and who may recover.
#include "durable/back_off.hpp"
#include "runtime/shard.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;

// The class of an agent that should be awake is not loaded: it may come later.
constexpr milliseconds kUnknownClassRetry{60'000};
constexpr milliseconds kLongestAlarmWait{60'000};
constexpr milliseconds kNoRoomWait{1'000};
// After a failure; doubled with each further one. Up to a quarter is added at random.
constexpr milliseconds kFailureBase{4'000};
constexpr milliseconds kFailureCap{240'000};
// The wall's clock was set back, and not only slowed down.
constexpr milliseconds kSetBack{1'000};

}  // namespace

void Shard::set_wake(const storage::AgentKey& key, const durable::Wake& wake) {
  wakes_.set(key, wake);
  arm_alarm();
}

void Shard::start_alarms() {
  alarms_started_ = true;
  if (!condemned_.empty()) finish_destructions_later();
  run_alarms();
}

// ---- who is due -------------------------------------------------------------------------------------------

void Shard::run_alarms() {
  if (!alarms_started_ || stopping_) return;
  notice_clock();
  const std::int64_t now = unix_millis(loop_.clock().wall_now());
  while (const std::optional<storage::AgentKey> key = wakes_.due(now)) {
    wakes_.taken(*key);
    look_at(*key, now);
  }
  admit_waiting();
  arm_alarm();
}

void Shard::admit_waiting() {
  admit_to_wake();
  admit_to_recover();
}

void Shard::admit_to_wake() {
  if (waking_.waiting() == 0 || std::exchange(waking_admission_waits_, true)) return;
  steps_.add([this] {
    waking_admission_waits_ = false;
    if (stopping_) return;
    const std::optional<storage::AgentKey> key = waking_.next();
    if (!key) return;  // comes back with the next permit
    let_wake(*key);
    admit_to_wake();
  });
}

void Shard::admit_to_recover() {
  if (recovery_.waiting() == 0 || std::exchange(recovery_admission_waits_, true)) return;
  recoveries_.add([this] {
    recovery_admission_waits_ = false;
    if (stopping_) return;
    const std::optional<storage::AgentKey> key = recovery_.next();
    if (!key) return;
    let_recover(*key);
    admit_to_recover();
  });
}

// A live agent begins what is due. A cold one waits for the permit that it needs.
void Shard::look_at(const storage::AgentKey& key, std::int64_t now_ms) {
  const auto found = slots_.find(key);
  if (found != slots_.end() && found->second->state() != AgentState::kCold) {
    AgentSlot& slot = *found->second;
    slot.look();
    if (slot.end_waits_) slot.end_in_turn(steps_);  // so that it can come back for it
    return;
  }
  const durable::Wake wake = wakes_.find(key);
  const bool is_due_by_time = wake.at_ms && *wake.at_ms <= now_ms;
  if (!wake.working || is_due_by_time) {
    waking_.wait(key);
    return;
  }
  recovery_.wait(key);
  if (wake.at_ms) wakes_.look_again(key, *wake.at_ms);  // which may come before its turn
}

void Shard::let_recover(const storage::AgentKey& key) {
  const auto found = slots_.find(key);
  if (found == slots_.end() || found->second->state() == AgentState::kCold) {
    wake_cold(key, recovery_, &AgentSlot::has_permit_);
    return;
  }
  AgentSlot& slot = *found->second;
  if (slot.state() != AgentState::kLive || slot.has_permit_) return;  // it asks once it has started
  slot.has_permit_ = recovery_.take();
  slot.look();
}

void Shard::let_wake(const storage::AgentKey& key) {
  const auto found = slots_.find(key);
  if (found == slots_.end() || found->second->state() == AgentState::kCold) {
    wake_cold(key, waking_, &AgentSlot::has_waking_permit_);
  } else {
    found->second->look();
  }
}

void Shard::wake_cold(const storage::AgentKey& key, Permits& permits, bool AgentSlot::* permit) {
  if (wakes_.find(key).none()) return;  // it was awake meanwhile, and is done
  const auto served = environment_.classes.find_by_name(key.agent_class);
  if (!served || !served->refusal.empty()) {
    wakes_.look_again(
        key, unix_millis(loop_.clock().wall_now()) + milliseconds(kUnknownClassRetry).count());
    arm_alarm();
    durable_events_.report(DurableEvent::kAlarmClassMissing, key.agent_class, key.name, "");
    return;
  }
  if (loop_.clock().steady_now() < room_again_) {  // for thousands of them that is asked once
    wakes_.look_again(key, unix_millis(loop_.clock().wall_now()) + kNoRoomWait.count());
    arm_alarm();
    return;
  }
  AgentSlot& slot = slot_for(key, served->segment);
  if (slot.room_place_) return;  // it looks at what is due once it is awake
  slot.*permit = permits.take();
  metrics_.woken_by_alarm.add();
  durable_events_.report(DurableEvent::kAlarmWoken, key.agent_class, key.name, "");
  slot.wake();
  if (slot.state() == AgentState::kCold && !slot.room_place_)
    give_back_permits(slot);  // it was refused
}

// Rows are in the wall's time. What an interval or a delay waits for must not be an hour further away because the clock was
// set back by one: everybody is looked at at the moment that was meant, and puts his rows right or goes on waiting.
void Shard::notice_clock() {
  const auto steady =
      std::chrono::duration_cast<milliseconds>(loop_.clock().steady_now().time_since_epoch());
  const std::int64_t offset = unix_millis(loop_.clock().wall_now()) - steady.count();
  const std::int64_t last = std::exchange(clock_offset_ms_, offset).value_or(offset);
  if (offset < last - kSetBack.count()) wakes_.bring_forward(last - offset);
}

void Shard::arm_alarm() {
  notice_clock();  // before the timer that would notice it is put off
  publish_recoveries();
  loop_.cancel_timer(alarm_);
  alarm_ = 0;
  const std::optional<std::int64_t> next = wakes_.next_ms();
  if (!next || !alarms_started_ || stopping_) return;
  // Rows are in the wall's time, which may jump; looking at it now and then bounds what a jump can cost.
  const std::int64_t wait = *next - unix_millis(loop_.clock().wall_now());
  const auto bounded =
      milliseconds(std::clamp<std::int64_t>(wait, 0, milliseconds(kLongestAlarmWait).count()));
  alarm_ = loop_.call_at(loop_.clock().steady_now() + bounded, [this] {
    alarm_ = 0;
    run_alarms();
  });
}

void Shard::publish_recoveries() {
  metrics_.recovering.set(static_cast<std::int64_t>(recovery_.out()));
  metrics_.waiting_for_recovery.set(static_cast<std::int64_t>(recovery_.waiting()));
  metrics_.waiting_for_wake.set(static_cast<std::int64_t>(waking_.waiting()));
  metrics_.pending_wakes.set(std::ssize(wakes_));
}

// ---- live agents ------------------------------------------------------------------------------------------

void Shard::pump(const storage::AgentKey& key) {
  const auto found = slots_.find(key);
  if (found == slots_.end()) return;
  AgentSlot& slot = *found->second;
  slot.pump_posted_ = false;
  if (slot.state() != AgentState::kLive || stopping_) return;  // finish_eviction() sees to the rest
  LiveAgent& live = *slot.live_;
  if (live.lent()) return;                 // take_back() looks again
  const bool crowded = live.is_crowded();  // after_turn() comes when some of it has left
  if (!crowded && live.recovery_due()) ask_to_recover(slot);
  const bool has_begun = !crowded && live.dispatch(slot.has_permit_);
  if (slot.state() != AgentState::kLive) return;
  if (slot.has_waking_permit_ || (slot.has_permit_ && !live.recovering() && !live.recovery_due()))
    give_back_permits(slot);
  if (has_begun) {
    slot.look();
  } else if (live.broken()) {
    slot.after_turn();
  } else if (const auto at = live.next_look_ms()) {
    // What is due later must not be forgotten while the agent stays up.
    wakes_.look_again(key, *at);
    arm_alarm();
  }
}

void Shard::ask_to_recover(AgentSlot& slot) {
  if (slot.has_permit_) return;
  if (recovery_.waiting() == 0 && recovery_.take()) {
    slot.has_permit_ = true;
  } else {
    recovery_.wait(slot.key());
  }
  publish_recoveries();
}

// The one for recovery stays with an agent that still recovers.
void Shard::give_back_permits(AgentSlot& slot) {
  if (std::exchange(slot.has_waking_permit_, false)) {
    waking_.give_back();
    none_idle_until_ = {};  // it may be idle now
  }
  const bool recovers =
      slot.state() == AgentState::kLive && (slot.live_->recovering() || slot.live_->recovery_due());
  if (!recovers && std::exchange(slot.has_permit_, false)) recovery_.give_back();
  publish_recoveries();
  admit_waiting();
}

// ---- agents that are not awake ----------------------------------------------------------------------------

void Shard::look_again(AgentSlot& slot, milliseconds wait) {
  if (wakes_.find(slot.key()).none()) return;
  wakes_.look_again(slot.key(), unix_millis(loop_.clock().wall_now()) + wait.count());
  arm_alarm();
}

milliseconds Shard::wait_after_failure(const storage::AgentKey& key) {
  return durable::back_off(++failures_[key], kFailureBase, kFailureCap, environment_.random);
}

void Shard::rest(AgentSlot& slot, const durable::Wake& wake, std::optional<std::int64_t> next_look,
                 milliseconds at_least) {
  if (wake.none()) return;
  const std::int64_t now = unix_millis(loop_.clock().wall_now());
  // Work that was under way ended with the instance: it is interrupted now.
  std::int64_t at = wake.working ? now : wake.at_ms.value_or(now);
  // Who stands in line to recover is woken when it is his turn. Sooner he would only take the place of another who waits, and so on.
  if (!wake.working && recovery_.waits(slot.key()))
    at = next_look.value_or(now + milliseconds(kLongestAlarmWait).count());
  wakes_.look_again(slot.key(), std::max(at, now + at_least.count()));
  arm_alarm();
}

}  // namespace hearth::runtime

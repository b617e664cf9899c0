#include "runtime/shard.hpp"

#include "base/assert.hpp"
#include "storage/data_directory.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace hearth::runtime {
namespace {

// The class of an agent that should be awake is not loaded: it may come later.
constexpr std::chrono::minutes kUnknownClassRetry{1};
constexpr std::chrono::minutes kLongestWait{1};

}  // namespace

unsigned shard_index(const storage::AgentKey& key, unsigned count) {
  return static_cast<unsigned>(std::hash<storage::AgentKey>{}(key) % count);
}

Shard::Shard(unsigned index, unsigned count, ShardLoop& loop, const ShardEnvironment& environment)
    : index_(index),
      max_live_(std::max<std::size_t>(1, (environment.limits.max_live_agents + count - 1) / count)),
      max_recovering_(
          std::max<std::size_t>(1, (environment.limits.max_recovering + count - 1) / count)),
      loop_(loop),
      environment_(environment),
      directory_(environment.data.directory_path()),
      wakes_(directory_) {
  wakes_.load(unix_millis(loop_.clock().wall_now()), [index, count](const storage::AgentKey& key) {
    return shard_index(key, count) == index;
  });
}

Shard::~Shard() {
  *alive_ = false;
}

// ---- what clients do ------------------------------------------------------------------------------------

ConnectionId Shard::connect(const storage::AgentKey& key, std::string_view segment,
                            ConnectRequest request, std::unique_ptr<ConnectionPort> port) {
  const auto [id, client] = connections_.emplace();
  client.id = id;
  client.slot = &slot_for(key, segment);
  client.port = std::move(port);
  client.client_id = std::move(request.id);
  client.target = std::move(request.target);
  client.headers = std::move(request.headers);
  client.slot->connect(id);
  return id;
}

void Shard::message(ConnectionId id, std::string_view payload, FrameKind kind) {
  Connection* client = connections_.find(id);
  if (client == nullptr || client->closing) return;
  Incoming incoming;
  incoming.kind = EventKind::kMessage;
  incoming.connection = id;
  incoming.body = payload;
  incoming.flags = static_cast<std::uint32_t>(kind);
  client->slot->accept(std::move(incoming));
}

void Shard::call(ConnectionId id, std::string_view method, std::string_view arguments,
                 std::unique_ptr<CallSink> sink) {
  Connection* client = connections_.find(id);
  if (client == nullptr || client->closing) return;
  Incoming incoming;
  incoming.kind = EventKind::kCall;
  incoming.connection = id;
  incoming.name = method;
  incoming.body = arguments;
  incoming.sink = std::move(sink);
  client->slot->accept(std::move(incoming));
}

void Shard::write_state(ConnectionId id, std::string_view json, std::unique_ptr<CallSink> sink) {
  Connection* client = connections_.find(id);
  if (client == nullptr || client->closing) return;
  Incoming incoming;
  incoming.kind = EventKind::kStateCheck;
  incoming.connection = id;
  incoming.body = json;
  incoming.sink = std::move(sink);
  client->slot->accept(std::move(incoming));
}

void Shard::disconnected(ConnectionId id, std::uint16_t code, std::string_view reason,
                         bool was_clean) {
  Connection* client = connections_.find(id);
  if (client == nullptr || client->state == ConnectionState::kClosed) return;
  client->slot->disconnected(id, code, reason, was_clean);
}

void Shard::request(const storage::AgentKey& key, std::string_view segment, std::string_view method,
                    std::string_view body, std::unique_ptr<RequestHead> head,
                    std::unique_ptr<CallSink> sink) {
  Incoming incoming;
  incoming.kind = EventKind::kRequest;
  incoming.name = method;
  incoming.body = body;
  incoming.request = std::move(head);
  incoming.sink = std::move(sink);
  slot_for(key, segment).accept(std::move(incoming));
}

// ---- slots ------------------------------------------------------------------------------------------------

AgentSlot& Shard::slot_for(const storage::AgentKey& key, std::string_view segment) {
  std::unique_ptr<AgentSlot>& slot = slots_[key];
  if (!slot) slot = std::make_unique<AgentSlot>(*this, key, std::string(segment));
  return *slot;
}

void Shard::remove_if_unused(AgentSlot& slot) {
  if (slot.state() != AgentState::kCold || !slot.connections().empty() || !slot.queue_.empty())
    return;
  loop_.post([alive = alive_, this, key = slot.key()] {
    if (!*alive) return;
    const auto found = slots_.find(key);
    if (found == slots_.end()) return;
    const AgentSlot& unused = *found->second;
    if (unused.state() == AgentState::kCold && unused.connections().empty() &&
        unused.queue_.empty()) {
      slots_.erase(found);
    }
  });
}

bool Shard::make_room() {
  if (recent_.size() < max_live_) return true;
  for (AgentSlot* slot : recent_) {
    if (!slot->can_be_evicted_for_room()) continue;
    slot->evict(EvictReason::kLimit, true);
    return true;  // it leaves a moment later; the limit is exceeded by one until then
  }
  return false;
}

AgentHandle Shard::admit(AgentSlot& slot) {
  slot.recency_ = recent_.insert(recent_.end(), &slot);
  const auto [id, place] = handles_.emplace(&slot);
  return AgentHandle{index_} << 56 | id;
}

void Shard::release(AgentSlot& slot) {
  recent_.erase(slot.recency_);
  handles_.erase(slot.handle_ & ((AgentHandle{1} << 56) - 1));
  slot.handle_ = 0;
}

LiveAgent* Shard::find_agent(AgentHandle handle) {
  AgentSlot* const* slot = handles_.find(handle & ((AgentHandle{1} << 56) - 1));
  return slot == nullptr ? nullptr : (*slot)->live();
}

Shard::Counts Shard::counts() const {
  return Counts{recent_.size(), slots_.size(), connections_.size()};
}

// ---- services -----------------------------------------------------------------------------------------------

std::filesystem::path Shard::database_path(const storage::AgentKey& key) const {
  return environment_.data.agent_path(key);
}

void Shard::record_agent(const storage::AgentKey& key) {
  directory_.record(key, unix_millis(loop_.clock().wall_now()));
}

std::string Shard::state_frame(std::string_view state_json) {
  return environment_.state_frame(state_json);
}

bool Shard::run_job(std::shared_ptr<const AgentClass> agent_class, std::uint64_t job,
                    std::shared_ptr<std::atomic<bool>> abandoned,
                    std::function<void(Result<void>)> done) {
  return environment_.pool.run([agent_class = std::move(agent_class), job,
                                abandoned = std::move(abandoned), done = std::move(done),
                                alive = alive_, &loop = loop_](bool cancelled) {
    const Result<void> outcome = agent_class->run_job(job, cancelled || *abandoned);
    loop.post([alive, done, outcome] {
      if (*alive) done(outcome);
    });
  });
}

// ---- alarms and recovery ------------------------------------------------------------------------------------

void Shard::set_wake(const storage::AgentKey& key, const durable::Wake& wake) {
  wakes_.set(key, wake);
  arm_alarm();
}

void Shard::start_alarms() {
  alarms_started_ = true;
  run_alarms();
}

void Shard::run_alarms() {
  if (!alarms_started_ || stopping_) return;
  const std::int64_t now = unix_millis(loop_.clock().wall_now());
  while (recovering_ < max_recovering_) {
    const std::optional<storage::AgentKey> key = wakes_.due(now);
    if (!key) break;
    wakes_.taken(*key);
    const auto served = environment_.classes.find_by_name(key->agent_class);
    if (!served) {
      wakes_.look_again(*key, now + std::chrono::milliseconds(kUnknownClassRetry).count());
      continue;
    }
    AgentSlot& slot = slot_for(*key, served->segment);
    if (slot.has_permit_) continue;
    ++recovering_;
    slot.has_permit_ = true;
    slot.wake_for_alarm();
  }
  arm_alarm();
}

void Shard::arm_alarm() {
  loop_.cancel_timer(alarm_);
  alarm_ = 0;
  const std::optional<std::int64_t> next = wakes_.next_ms();
  if (!next || !alarms_started_ || stopping_ || recovering_ >= max_recovering_) return;
  // Rows are in the wall's time, which may jump; looking at it now and then bounds what a jump can cost.
  const std::int64_t wait = *next - unix_millis(loop_.clock().wall_now());
  const auto bounded = std::chrono::milliseconds(
      std::clamp<std::int64_t>(wait, 0, std::chrono::milliseconds(kLongestWait).count()));
  alarm_ = loop_.call_at(loop_.clock().steady_now() + bounded, [this] {
    alarm_ = 0;
    run_alarms();
  });
}

void Shard::ask_to_recover(AgentSlot& slot) {
  if (slot.has_permit_ || slot.waits_for_permit_) return;
  if (recovering_ < max_recovering_) {
    ++recovering_;
    slot.has_permit_ = true;
    slot.recover();
  } else {
    slot.waits_for_permit_ = true;
    want_permit_.push_back(slot.key());
  }
}

void Shard::recover_now(const storage::AgentKey& key) {
  const auto found = slots_.find(key);
  if (found == slots_.end() || !found->second->has_permit_) return;
  AgentSlot& slot = *found->second;
  if (slot.state_ != AgentState::kLive) return;  // finish_eviction() gives the permit back
  if (!slot.live_->recover_one()) {
    // Looked at too early, or done for now: what is due later must not be forgotten while the agent stays up.
    if (const auto at = slot.live_->wake().at_ms; at && !slot.live_->broken())
      wakes_.look_again(key, *at);
    give_back_permit(slot);
    slot.after_turn();
  }
}

void Shard::give_back_permit(AgentSlot& slot) {
  slot.has_permit_ = false;
  --recovering_;
  while (!want_permit_.empty() && recovering_ < max_recovering_) {
    const auto next = slots_.find(want_permit_.front());
    want_permit_.pop_front();
    if (next == slots_.end()) continue;
    next->second->waits_for_permit_ = false;
    if (next->second->state() == AgentState::kLive) ask_to_recover(*next->second);
  }
  // From the loop: the slot that gives back is in the middle of something.
  loop_.post([alive = alive_, this] {
    if (*alive) run_alarms();
  });
}

void Shard::look_again(AgentSlot& slot, std::chrono::milliseconds wait) {
  if (wakes_.find(slot.key()).none()) return;
  wakes_.look_again(slot.key(), unix_millis(loop_.clock().wall_now()) + wait.count());
  arm_alarm();
}

void Shard::rest(AgentSlot& slot, const durable::Wake& wake, std::chrono::milliseconds at_least) {
  if (wake.none()) return;
  const std::int64_t now = unix_millis(loop_.clock().wall_now());
  // Work that was under way ended with the instance: it is interrupted now.
  const std::int64_t at = wake.working ? now : wake.at_ms.value_or(now);
  wakes_.look_again(slot.key(), std::max(at, now + at_least.count()));
  arm_alarm();
}

// ---- the end ------------------------------------------------------------------------------------------------

void Shard::stop(SteadyTime deadline, std::function<void()> done) {
  stopping_ = true;
  stopped_ = std::move(done);
  std::vector<AgentSlot*> slots;
  for (const auto& [key, slot] : slots_) slots.push_back(slot.get());
  for (AgentSlot* slot : slots) slot->begin_shutdown();
  stop_timer_ = loop_.call_at(deadline, [this] {
    stop_timer_ = 0;
    environment_.logger.write(LogLevel::kWarn, "shard.stop_deadline",
                              {{"shard", index_}, {"busy_agents", recent_.size()}});
    for (AgentSlot* slot : std::vector(recent_.begin(), recent_.end())) {
      slot->schedule_end(EvictReason::kShutdown, std::nullopt);
    }
  });
  check_stopped();
}

void Shard::check_stopped() {
  if (!stopped_ || !recent_.empty()) return;
  loop_.cancel_timer(stop_timer_);
  loop_.cancel_timer(alarm_);
  const std::function<void()> done = std::exchange(stopped_, {});
  done();
}

}  // namespace hearth::runtime

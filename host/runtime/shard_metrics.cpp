#include "runtime/shard_metrics.hpp"

#include "json/json.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace hearth::runtime {
namespace {

// From the cost of a message in memory to the time that a patient client waits.
constexpr std::array kSeconds = {0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03,
                                 0.1,    0.3,    1.0,   3.0,   10.0, 60.0};

// A wake takes about a millisecond. With a slow on_start it takes seconds.
constexpr std::array kWakeSeconds = {0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0};

bool is_listed(std::string_view methods, std::string_view name) {
  const auto listed = parse_json(methods);
  return listed && listed->is_array() && std::ranges::any_of(*listed, [name](const Json& method) {
           return text_member(method, "name") == name;
         });
}

MetricLabels label_of(std::string_view agent_class) {
  return {{"class", std::string(agent_class)}};
}

}  // namespace

std::string_view to_string(EventOutcome outcome) noexcept {
  switch (outcome) {
    case EventOutcome::kOk: return "ok";
    case EventOutcome::kError: return "error";
    case EventOutcome::kTimeout: return "timeout";
    case EventOutcome::kEvicted: return "evicted";
  }
  return "unknown";
}

ClassMetrics::ClassMetrics(Metrics& metrics, std::string_view agent_class)
    : live_agents(metrics.gauge("hearth_live_agents", "Agents that are in memory now.",
                                label_of(agent_class))),
      starts(metrics.counter("hearth_agent_starts_total", "Agents that came into memory.",
                             label_of(agent_class))),
      failed_starts(metrics.counter("hearth_agent_failed_starts_total",
                                    "Agents that could not be started; the log says why.",
                                    label_of(agent_class))),
      storage_failures(
          metrics.counter("hearth_storage_failures_total",
                          "Agents whose files could not be read or written; the log says why.",
                          label_of(agent_class))),
      commits(metrics.counter("hearth_commits_total", "Transactions of agents that were committed.",
                              label_of(agent_class))),
      metrics_(metrics),
      class_(agent_class),
      seconds_(metrics.histogram(
          "hearth_event_duration_seconds",
          "From handing a client's event to an agent until its answer, waits included.", kSeconds,
          label_of(agent_class))) {}

void ClassMetrics::event_ended(EventKind kind, EventOutcome outcome) {
  const auto row = std::min<std::size_t>(static_cast<std::size_t>(kind), kKinds - 1);
  Counter*& counter = events_[row][static_cast<std::size_t>(outcome)];
  if (counter == nullptr) {
    counter = &metrics_.counter("hearth_events_total",
                                "Events that were handed to agents, by how they ended.",
                                {{"class", class_},
                                 {"kind", std::string(to_string(kind))},
                                 {"outcome", std::string(to_string(outcome))}});
  }
  counter->add();
}

void ClassMetrics::event_took(std::chrono::nanoseconds duration) {
  seconds_.observe(std::chrono::duration<double>(duration).count());
}

void ClassMetrics::evicted(EvictReason reason) {
  const auto place = std::min<std::size_t>(static_cast<std::size_t>(reason), kReasons - 1);
  Counter*& counter = evictions_[place];
  if (counter == nullptr) {
    counter =
        &metrics_.counter("hearth_agent_evictions_total", "Agents that left memory, by reason.",
                          {{"class", class_}, {"reason", std::string(to_string(reason))}});
  }
  counter->add();
}

void ClassMetrics::named_event(std::string_view name) {
  constexpr std::string_view kOther = "other";
  auto found = named_.find(name);
  if (found == named_.end()) {
    const bool is_name =
        !name.empty() && name.size() <= kMaxNameBytes &&
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789:_") == std::string_view::npos;
    if (name != kOther && (!is_name || named_.size() >= kMaxNames)) return named_event(kOther);
    Counter& counter = metrics_.counter("hearth_agent_events_total",
                                        "Events that the code of agents has named in the log.",
                                        {{"class", class_}, {"event", std::string(name)}});
    found = named_.emplace(std::string(name), &counter).first;
  }
  found->second->add();
}

ClassMetrics::Objects& ClassMetrics::objects() {
  if (!objects_)
    objects_.emplace(Objects{
        metrics_.gauge("agentkernel_objects_active", "Objects that are in memory now.",
                       label_of(class_)),
        metrics_.counter("agentkernel_object_hibernations_total",
                         "Objects that left memory with their data kept.", label_of(class_)),
        metrics_.histogram("agentkernel_object_wake_duration_seconds",
                           "From waking an object until it has started.", kWakeSeconds,
                           label_of(class_))});
  return *objects_;
}

void ClassMetrics::object_called(std::string_view method,
                                 const std::function<std::string()>& methods) {
  auto& calls = objects().calls;
  auto found = calls.find(method);
  if (found == calls.end()) {
    const std::string label(is_listed(methods(), method) ? method : "other");
    found = calls.try_emplace(label, nullptr).first;
    if (found->second == nullptr)
      found->second =
          &metrics_.counter("agentkernel_object_calls_total", "Calls of objects over plain HTTP.",
                            {{"class", class_}, {"method", label}});
  }
  found->second->add();
}

void ClassMetrics::object_started(std::chrono::nanoseconds took) {
  objects().wake_seconds.observe(std::chrono::duration<double>(took).count());
}

void ClassMetrics::object_left(bool hibernated) {
  objects().active.add(-1);
  if (hibernated) objects().hibernations.add();
}

void ClassMetrics::set_gauges_to_zero() {
  live_agents.set(0);
  if (objects_) objects_->active.set(0);
}

ShardMetrics::ShardMetrics(Metrics& metrics)
    : slots(metrics.gauge("hearth_agent_slots",
                          "Agents that the server keeps a place for: live ones and those whose "
                          "clients are connected.")),
      connections(metrics.gauge("hearth_connections", "WebSockets of agents that are open.")),
      dropped_for_memory(metrics.counter("hearth_clients_dropped_total",
                                         "Clients that the server gave up.",
                                         {{"reason", "memory"}})),
      recovering(metrics.gauge("hearth_recoveries_in_progress",
                               "Agents that recover interrupted work now.")),
      waiting_for_recovery(
          metrics.gauge("hearth_recoveries_waiting",
                        "Agents with interrupted work that wait for their turn to recover.")),
      waiting_for_wake(metrics.gauge("hearth_wakes_waiting",
                                     "Agents whose time has come that wait to be woken.")),
      pending_wakes(metrics.gauge("hearth_pending_wakes",
                                  "Agents that must be awake at some time, by the wake index.")),
      unknown_operations(metrics.gauge(
          "hearth_operations_unknown",
          "Operations that may have been executed: an operator must decide about them.")),
      woken_by_alarm(metrics.counter("hearth_alarm_wakes_total",
                                     "Agents that were awoken because their time had come.")),
      metrics_(metrics) {}

ShardMetrics::~ShardMetrics() {
  for (Gauge* gauge : {&slots, &connections, &recovering, &waiting_for_recovery, &waiting_for_wake,
                       &pending_wakes, &unknown_operations})
    gauge->set(0);
  for (auto& [name, figures] : classes_) figures.set_gauges_to_zero();
}

ClassMetrics& ShardMetrics::of_class(std::string_view agent_class) {
  const auto found = classes_.find(agent_class);
  if (found != classes_.end()) return found->second;
  return classes_
      .emplace(std::piecewise_construct, std::forward_as_tuple(agent_class),
               std::forward_as_tuple(metrics_, agent_class))
      .first->second;
}

}  // namespace hearth::runtime

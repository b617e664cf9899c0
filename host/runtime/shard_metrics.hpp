#pragma once
// What a shard counts about its agents and its clients, beside the steps of durable work
// (durable_events.hpp).

#include "runtime/types.hpp"
#include "telemetry/metrics.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::runtime {

// How an event that was handed to an agent has ended. kOk: also if its class ignored it and may do
// so.
enum class EventOutcome { kOk, kError, kTimeout, kEvicted };
[[nodiscard]] std::string_view to_string(EventOutcome outcome) noexcept;

// The figures of one class on one shard.
//
// Cost       event_ended() is two additions to cells that no other shard writes. A series is made
//            when it is first needed.
// Threads    The shard's.  Lifetime  Of its ShardMetrics.
class ClassMetrics {
 public:
  ClassMetrics(Metrics& metrics, std::string_view agent_class);

  Gauge& live_agents;
  Counter& starts;
  Counter& failed_starts;
  Counter& storage_failures;
  Counter& commits;

  void event_ended(EventKind kind, EventOutcome outcome);
  // An event whose kind is_timed: the time from handing it to the agent until its answer, waits
  // included.
  void event_took(std::chrono::nanoseconds duration);
  void evicted(EvictReason reason);
  // An event that the class's code has named, as ext/log.h says. Bounded: kMaxNames series, and one
  // for all further names.
  void named_event(std::string_view name);

  // ---- of objects, under names that existing dashboards of objects know ----
  //  agentkernel_objects_active{class}                gauge
  //  agentkernel_object_calls_total{class,method}     counter; a method that the class does not
  //                                                   list is "other"
  //  agentkernel_object_hibernations_total{class}     counter
  //  agentkernel_object_wake_duration_seconds{class}  histogram: from the decision to wake an
  //                                                   object until its start has ended
  // `methods`: returns the class's list, as JSON. Called on the first call of a method.
  void object_called(std::string_view method, const std::function<std::string()>& methods);
  void object_came() { objects().active.add(1); }
  void object_started(std::chrono::nanoseconds took);
  // `hibernated`: the object has data, and may come back.
  void object_left(bool hibernated);
  // The shard goes.
  void set_gauges_to_zero();

  static constexpr std::size_t kMaxNames = 64;
  static constexpr std::size_t kMaxNameBytes = 64;

 private:
  static constexpr std::size_t kKinds =
      32;  // more than EventKind has; the rest are counted as unknown
  static constexpr std::size_t kReasons = 16;  // the same for EvictReason

  struct Objects {
    Gauge& active;
    Counter& hibernations;
    Histogram& wake_seconds;
    std::map<std::string, Counter*, std::less<>> calls{};  // by method
  };
  Objects& objects();

  Metrics& metrics_;
  const std::string class_;
  Histogram& seconds_;
  std::array<std::array<Counter*, 4>, kKinds> events_{};  // null until the first event
  std::array<Counter*, kReasons> evictions_{};
  std::map<std::string, Counter*, std::less<>> named_;
  std::optional<Objects> objects_;  // since the first object of the class
};

// Threads    The shard's; text() of the metrics reads from any.
// Lifetime   The metrics outlive it. Its destructor sets the gauges to zero.
class ShardMetrics {
 public:
  explicit ShardMetrics(Metrics& metrics);
  ~ShardMetrics();
  ShardMetrics(const ShardMetrics&) = delete;
  ShardMetrics& operator=(const ShardMetrics&) = delete;

  Gauge& slots;
  Gauge& connections;
  Counter& dropped_for_memory;  // net counts the other clients that are dropped
  Gauge& recovering;
  Gauge& waiting_for_recovery;
  Gauge& waiting_for_wake;
  Gauge& pending_wakes;
  Gauge& unknown_operations;
  Counter& woken_by_alarm;

  // Valid as long as this object.
  ClassMetrics& of_class(std::string_view agent_class);

 private:
  Metrics& metrics_;
  std::map<std::string, ClassMetrics, std::less<>> classes_;
};

}  // namespace hearth::runtime

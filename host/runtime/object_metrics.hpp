#pragma once
// What a shard counts about objects, under names that existing dashboards of objects know.

#include "telemetry/metrics.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::runtime {

//  agentkernel_objects_active{class}                gauge
//  agentkernel_object_calls_total{class,method}     counter; a method that the class does not list
//                                                   is "other"
//  agentkernel_object_hibernations_total{class}     counter
//  agentkernel_object_wake_duration_seconds{class}  histogram: from the decision to wake an object
//                                                   until its start has ended
//
// Bounded    Series: classes and the methods that they list.
// Threads    The shard's.
// Lifetime   The metrics outlive it. Its destructor sets the gauges to zero.
class ObjectMetrics {
 public:
  explicit ObjectMetrics(Metrics& metrics) : metrics_(metrics) {}
  ~ObjectMetrics();
  ObjectMetrics(const ObjectMetrics&) = delete;
  ObjectMetrics& operator=(const ObjectMetrics&) = delete;

  // `methods`: returns the class's list, as JSON. Called on the first call of a method.
  void called(std::string_view agent_class, std::string_view method,
              const std::function<std::string()>& methods);
  void came(std::string_view agent_class);
  void started(std::string_view agent_class, std::chrono::nanoseconds took);
  // `hibernated`: the object has data, and may come back.
  void left(std::string_view agent_class, bool hibernated);

 private:
  struct Figures {
    Gauge& active;
    Counter& hibernations;
    Histogram& wake_seconds;
    std::map<std::string, Counter*, std::less<>> calls;  // by method
  };
  Figures& of_class(std::string_view agent_class);
  Counter& calls_of(std::string_view agent_class, std::string_view method);

  Metrics& metrics_;
  std::map<std::string, Figures, std::less<>> classes_;
};

}  // namespace hearth::runtime

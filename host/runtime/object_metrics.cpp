#include "runtime/object_metrics.hpp"

#include "json/json.hpp"

#include <array>

namespace hearth::runtime {
namespace {

// A wake takes about a millisecond. With a slow on_start it takes seconds.
constexpr std::array kWakeSeconds = {0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0};

constexpr std::string_view kUnlisted = "other";

bool is_listed(std::string_view methods, std::string_view name) {
  const auto listed = parse_json(methods);
  if (!listed || !listed->is_array()) return false;
  for (const Json& method : *listed) {
    if (text_member(method, "name") == name) return true;
  }
  return false;
}

}  // namespace

ObjectMetrics::~ObjectMetrics() {
  for (auto& [name, figures] : classes_) figures.active.set(0);
}

ObjectMetrics::Figures& ObjectMetrics::of_class(std::string_view agent_class) {
  const auto found = classes_.find(agent_class);
  if (found != classes_.end()) return found->second;
  const MetricLabels label = {{"class", std::string(agent_class)}};
  Figures figures{
      metrics_.gauge("agentkernel_objects_active", "Objects that are in memory now.", label),
      metrics_.counter("agentkernel_object_hibernations_total",
                       "Objects that left memory with their data kept.", label),
      metrics_.histogram("agentkernel_object_wake_duration_seconds",
                         "From waking an object until it has started.", kWakeSeconds, label),
      {}};
  return classes_.emplace(std::string(agent_class), std::move(figures)).first->second;
}

Counter& ObjectMetrics::calls_of(std::string_view agent_class, std::string_view method) {
  return metrics_.counter("agentkernel_object_calls_total", "Calls of objects over plain HTTP.",
                          {{"class", std::string(agent_class)}, {"method", std::string(method)}});
}

void ObjectMetrics::called(std::string_view agent_class, std::string_view method,
                           const std::function<std::string()>& methods) {
  auto& calls = of_class(agent_class).calls;
  auto found = calls.find(method);
  if (found == calls.end()) {
    const std::string_view label = is_listed(methods(), method) ? method : kUnlisted;
    found = calls.find(label);
    if (found == calls.end())
      found = calls.emplace(std::string(label), &calls_of(agent_class, label)).first;
  }
  found->second->add();
}

void ObjectMetrics::came(std::string_view agent_class) {
  of_class(agent_class).active.add(1);
}

void ObjectMetrics::started(std::string_view agent_class, std::chrono::nanoseconds took) {
  of_class(agent_class).wake_seconds.observe(std::chrono::duration<double>(took).count());
}

void ObjectMetrics::left(std::string_view agent_class, bool hibernated) {
  Figures& figures = of_class(agent_class);
  figures.active.add(-1);
  if (hibernated) figures.hibernations.add();
}

}  // namespace hearth::runtime

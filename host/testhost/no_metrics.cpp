// Metrics for the test host of plugin authors: they count, and nothing reads them. So its archive
// needs no library that writes them.
#include "telemetry/metrics.hpp"

#include <deque>
#include <utility>

namespace hearth {

struct Metrics::Series {};

struct Metrics::Family {
  std::deque<Counter> counters;
  std::deque<Gauge> gauges;
  std::deque<Histogram> histograms;
};

Histogram::Histogram(std::span<const double> /*bounds*/) {}
void Histogram::observe(double /*value*/) noexcept {}

Metrics::Metrics() {
  families_.emplace("", std::make_unique<Family>());
}
Metrics::~Metrics() = default;

Counter& Metrics::counter(std::string_view /*name*/, std::string_view /*help*/,
                          const MetricLabels& /*labels*/) {
  const MutexLock lock(mutex_);
  return families_.begin()->second->counters.emplace_back();
}
Gauge& Metrics::gauge(std::string_view /*name*/, std::string_view /*help*/,
                      const MetricLabels& /*labels*/) {
  const MutexLock lock(mutex_);
  return families_.begin()->second->gauges.emplace_back();
}
Histogram& Metrics::histogram(std::string_view /*name*/, std::string_view /*help*/,
                              std::span<const double> bounds, const MetricLabels& /*labels*/) {
  const MutexLock lock(mutex_);
  return families_.begin()->second->histograms.emplace_back(bounds);
}

Metrics::Watch::Watch(Watch&& other) noexcept
    : metrics_(std::exchange(other.metrics_, nullptr)), id_(other.id_) {}
Metrics::Watch& Metrics::Watch::operator=(Watch&& other) noexcept {
  std::swap(metrics_, other.metrics_);
  std::swap(id_, other.id_);
  return *this;
}
Metrics::Watch::~Watch() {
  if (metrics_ != nullptr) metrics_->forget(id_);
}
void Metrics::forget(std::uint64_t /*id*/) noexcept {}

Metrics::Watch Metrics::watch_gauge(
    std::string_view /*name*/, std::string_view /*help*/,
    // NOLINTNEXTLINE(performance-unnecessary-value-param): metrics.hpp
    std::function<double()> /*read*/, const MetricLabels& /*labels*/) {
  return {};
}
Metrics::Watch Metrics::watch_counter(
    std::string_view /*name*/, std::string_view /*help*/,
    // NOLINTNEXTLINE(performance-unnecessary-value-param): metrics.hpp
    std::function<double()> /*read*/, const MetricLabels& /*labels*/) {
  return {};
}
std::string Metrics::text() const {
  return {};
}

}  // namespace hearth

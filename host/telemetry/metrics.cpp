#include "telemetry/metrics.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <limits>

#include <prometheus/check_names.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace hearth {
namespace {

// Labels as they are stored and compared: sorted by name.
MetricLabels cleaned(const MetricLabels& labels) {
  MetricLabels clean = labels;
  std::ranges::sort(clean);
  for (auto& [name, value] : clean) {
    HEARTH_ASSERT(prometheus::CheckLabelName(name), "a label has a bad name");
    value =
        is_valid_utf8(value) ? std::string(cut_text(value, Metrics::kMaxLabelBytes)) : "invalid";
  }
  return clean;
}

bool same_names(const MetricLabels& a, const MetricLabels& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return x.first == y.first; });
}

}  // namespace

Histogram::Histogram(std::span<const double> bounds) : size_(bounds.size()) {
  HEARTH_ASSERT(bounds.size() <= kMaxBounds && std::ranges::is_sorted(bounds),
                "a histogram's bounds are few and ascend");
  std::ranges::copy(bounds, bounds_.begin());
}

void Histogram::observe(double value) noexcept {
  std::size_t place = 0;
  while (place < size_ && value > bounds_[place]) ++place;
  counts_[place].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

// One line of the text, or the lines of one histogram.
struct Metrics::Series {
  struct Reader {
    std::uint64_t id = 0;
    std::function<double()> read;
  };
  std::vector<std::unique_ptr<Counter>> counters;
  std::vector<std::unique_ptr<Gauge>> gauges;
  std::vector<std::unique_ptr<Histogram>> histograms;
  std::vector<Reader> readers;

  [[nodiscard]] double value() const {
    std::uint64_t counted = 0;
    std::int64_t gauged = 0;
    double asked = 0;
    for (const auto& cell : counters) counted += cell->value();
    for (const auto& cell : gauges) gauged += cell->value();
    for (const Reader& reader : readers) asked += reader.read();
    return static_cast<double>(counted) + static_cast<double>(gauged) + asked;
  }

  [[nodiscard]] prometheus::ClientMetric::Histogram histogram() const {
    prometheus::ClientMetric::Histogram sum;
    const std::span<const double> bounds = histograms.front()->bounds();
    for (std::size_t place = 0; place <= bounds.size(); ++place) {
      for (const auto& cell : histograms) sum.sample_count += cell->in_bucket(place);
      const double bound =
          place < bounds.size() ? bounds[place] : std::numeric_limits<double>::infinity();
      sum.bucket.push_back({.cumulative_count = sum.sample_count, .upper_bound = bound});
    }
    for (const auto& cell : histograms) sum.sample_sum += cell->sum();
    return sum;
  }
};

struct Metrics::Family {
  Type type{};
  std::string help;
  std::map<MetricLabels, Series> series;

  [[nodiscard]] prometheus::MetricFamily collect(const std::string& name) const {
    prometheus::MetricFamily family;
    family.name = name;
    family.help = help;
    for (const auto& [labels, each] : series) {
      prometheus::ClientMetric metric;
      for (const auto& [label, value] : labels) metric.label.push_back({label, value});
      switch (type) {
        case Type::kCounter:
          family.type = prometheus::MetricType::Counter;
          metric.counter.value = each.value();
          break;
        case Type::kGauge:
          family.type = prometheus::MetricType::Gauge;
          metric.gauge.value = each.value();
          break;
        case Type::kHistogram:
          family.type = prometheus::MetricType::Histogram;
          metric.histogram = each.histogram();
          break;
      }
      family.metric.push_back(std::move(metric));
    }
    return family;
  }
};

Metrics::Metrics() = default;
Metrics::~Metrics() = default;

Metrics::Series& Metrics::series(Type type, std::string_view name, std::string_view help,
                                 const MetricLabels& labels) {
  HEARTH_ASSERT(prometheus::CheckMetricName(std::string(name)), "a metric has a bad name");
  HEARTH_ASSERT((type == Type::kCounter) == name.ends_with("_total"),
                "counters, and nothing else, end in _total");
  HEARTH_ASSERT(!help.empty() && help.find_first_of("\n\\") == std::string_view::npos,
                "a metric's help is one plain line");
  MetricLabels clean = cleaned(labels);
  auto found = families_.find(name);
  if (found == families_.end()) {
    found = families_.emplace(std::string(name), std::make_unique<Family>()).first;
    found->second->type = type;
    found->second->help = help;
  }
  Family& family = *found->second;
  HEARTH_ASSERT(family.type == type && family.help == help, "a metric is described in one way");
  HEARTH_ASSERT(family.series.empty() || same_names(family.series.begin()->first, clean),
                "the series of a metric have the same labels");
  // One series is reserved for what exceeds the limit.
  if (!family.series.contains(clean) && family.series.size() + 1 >= kMaxSeries) {
    for (auto& [label, value] : clean) value = "other";
  }
  return family.series[std::move(clean)];
}

Counter& Metrics::counter(std::string_view name, std::string_view help,
                          const MetricLabels& labels) {
  const MutexLock lock(mutex_);
  auto& cells = series(Type::kCounter, name, help, labels).counters;
  return *cells.emplace_back(std::make_unique<Counter>());
}

Gauge& Metrics::gauge(std::string_view name, std::string_view help, const MetricLabels& labels) {
  const MutexLock lock(mutex_);
  auto& cells = series(Type::kGauge, name, help, labels).gauges;
  return *cells.emplace_back(std::make_unique<Gauge>());
}

Histogram& Metrics::histogram(std::string_view name, std::string_view help,
                              std::span<const double> bounds, const MetricLabels& labels) {
  const MutexLock lock(mutex_);
  auto& cells = series(Type::kHistogram, name, help, labels).histograms;
  HEARTH_ASSERT(cells.empty() || std::ranges::equal(cells.front()->bounds(), bounds),
                "the cells of a histogram have the same bounds");
  return *cells.emplace_back(std::make_unique<Histogram>(bounds));
}

Metrics::Watch Metrics::watch(Type type, std::string_view name, std::string_view help,
                              std::function<double()> read, const MetricLabels& labels) {
  const MutexLock lock(mutex_);
  const std::uint64_t id = ++last_watch_;
  series(type, name, help, labels).readers.push_back({id, std::move(read)});
  return Watch(*this, id);
}

Metrics::Watch Metrics::watch_gauge(std::string_view name, std::string_view help,
                                    std::function<double()> read, const MetricLabels& labels) {
  return watch(Type::kGauge, name, help, std::move(read), labels);
}

Metrics::Watch Metrics::watch_counter(std::string_view name, std::string_view help,
                                      std::function<double()> read, const MetricLabels& labels) {
  return watch(Type::kCounter, name, help, std::move(read), labels);
}

void Metrics::forget(std::uint64_t id) noexcept {
  const MutexLock lock(mutex_);
  for (auto& [name, family] : families_) {
    for (auto& [labels, each] : family->series) {
      if (std::erase_if(each.readers, [id](const auto& reader) { return reader.id == id; }) == 0)
        continue;
      // A metric without a cell and without a callback is absent, not zero.
      if (each.readers.empty() && each.counters.empty() && each.gauges.empty())
        family->series.erase(labels);
      if (family->series.empty()) families_.erase(name);
      return;
    }
  }
}

std::string Metrics::text() const {
  std::vector<prometheus::MetricFamily> collected;
  {
    const MutexLock lock(mutex_);
    collected.reserve(families_.size());
    for (const auto& [name, family] : families_) collected.push_back(family->collect(name));
  }
  return prometheus::TextSerializer().Serialize(collected);
}

// ---- Watch --------------------------------------------------------------------------------------

Metrics::Watch::Watch(Watch&& other) noexcept
    : metrics_(std::exchange(other.metrics_, nullptr)), id_(other.id_) {}

Metrics::Watch& Metrics::Watch::operator=(Watch&& other) noexcept {
  if (this == &other) return *this;
  if (metrics_ != nullptr) metrics_->forget(id_);
  metrics_ = std::exchange(other.metrics_, nullptr);
  id_ = other.id_;
  return *this;
}

Metrics::Watch::~Watch() {
  if (metrics_ != nullptr) metrics_->forget(id_);
}

}  // namespace hearth

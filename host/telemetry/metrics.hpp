#pragma once
// Metrics of the process: counters, gauges, histograms, and their text for a scraper.

#include "base/mutex.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

// The cell of one metric. A write takes no lock and allocates nothing: look the cell up once and
// keep the reference. Each cell has a cache line of its own, so that threads with cells of their
// own do not slow each other down.
//
// Threads   Any, for all three kinds.
class alignas(64) Counter {
 public:
  void add(std::uint64_t by = 1) noexcept { value_.fetch_add(by, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_ = 0;
};

class alignas(64) Gauge {
 public:
  void set(std::int64_t to) noexcept { value_.store(to, std::memory_order_relaxed); }
  void add(std::int64_t by) noexcept { value_.fetch_add(by, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t value() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::int64_t> value_ = 0;
};

// Counts values by upper bounds, and sums them up.
class alignas(64) Histogram {
 public:
  static constexpr std::size_t kMaxBounds = 23;

  // `bounds`: ascending, at most kMaxBounds. Values beyond the last bound have a bucket of their
  // own.
  explicit Histogram(std::span<const double> bounds);

  void observe(double value) noexcept;

  [[nodiscard]] std::span<const double> bounds() const noexcept {
    return std::span(bounds_).first(size_);
  }
  // Values in (bounds()[place - 1], bounds()[place]]. place == bounds().size(): values beyond the
  // last bound.
  [[nodiscard]] std::uint64_t in_bucket(std::size_t place) const noexcept {
    return counts_[place].load(std::memory_order_relaxed);
  }
  [[nodiscard]] double sum() const noexcept { return sum_.load(std::memory_order_relaxed); }

 private:
  std::array<double, kMaxBounds> bounds_{};
  std::size_t size_ = 0;
  std::array<std::atomic<std::uint64_t>, kMaxBounds + 1> counts_{};
  std::atomic<double> sum_ = 0;
};

// Names and values that tell the series of one family apart. Values must come from a bounded set:
// classes, reasons, kinds; never an agent's name, an id, an address or a text of a client.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// Promises
//  P1 Cells      Each call of counter(), gauge() or histogram() makes a new cell; cells with the
//                same name and labels are one series, and text() shows their sum.
//  P2 Text       text() is the Prometheus text exposition format 0.0.4: families in the order of
//                their names, each once, with HELP and TYPE.
//  P3 Bounded    A family has at most kMaxSeries series, and a label's value at most
//                kMaxLabelBytes.
//
// P1: so each thread may have a cell of its own.
// P2: the name of a counter ends in _total; names say whether they count seconds or bytes.
// P3: series beyond the limit are added up in one series whose labels all say "other". A longer
// value is cut; a value that is not UTF-8 becomes "invalid".
//
// Threads    Any. Only text() and the calls that make cells or watches take the lock.
// Lifetime   Cells live as long as the Metrics. Callbacks live until their Watch is destroyed; that
//            waits for a callback that runs.
// Failure    Bugs of the caller, asserted: a bad name, a family with two types, labels of one
//            family with different names.
class Metrics {
 public:
  static constexpr std::size_t kMaxSeries = 10'000;  // some 300 classes with each of their events
  static constexpr std::size_t kMaxLabelBytes = 128;

  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  Counter& counter(std::string_view name, std::string_view help, const MetricLabels& labels = {});
  Gauge& gauge(std::string_view name, std::string_view help, const MetricLabels& labels = {});
  Histogram& histogram(std::string_view name, std::string_view help, std::span<const double> bounds,
                       const MetricLabels& labels = {});

  // Keeps a callback in use. Destroy it before the objects that the callback reads.
  class [[nodiscard]] Watch {
   public:
    Watch() = default;
    Watch(Watch&& other) noexcept;
    Watch& operator=(Watch&& other) noexcept;
    ~Watch();

   private:
    friend class Metrics;
    Watch(Metrics& metrics, std::uint64_t id) : metrics_(&metrics), id_(id) {}
    Metrics* metrics_ = nullptr;
    std::uint64_t id_ = 0;
  };

  // A gauge that is read on demand: text() calls `read` on its own thread, under the lock. `read`
  // must be quick, must not throw, and must not use these Metrics. Its value is added to the other
  // cells of the same labels.
  Watch watch_gauge(std::string_view name, std::string_view help, std::function<double()> read,
                    const MetricLabels& labels = {});
  // The same for a value that only grows.
  Watch watch_counter(std::string_view name, std::string_view help, std::function<double()> read,
                      const MetricLabels& labels = {});

  // Everything, for GET /metrics.
  [[nodiscard]] std::string text() const;

 private:
  struct Series;
  struct Family;
  enum class Type { kCounter, kGauge, kHistogram };

  Series& series(Type type, std::string_view name, std::string_view help,
                 const MetricLabels& labels) REQUIRES(mutex_);
  Watch watch(Type type, std::string_view name, std::string_view help, std::function<double()> read,
              const MetricLabels& labels);
  void forget(std::uint64_t id) noexcept;

  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<Family>, std::less<>> families_ GUARDED_BY(mutex_);
  std::uint64_t last_watch_ GUARDED_BY(mutex_) = 0;
};

}  // namespace hearth

#pragma once
// The spans that wait for a collector.

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "extensions/open_span.hpp"
#include "telemetry/metrics.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace hearth::server {

// Promises
//  P1 Bounded  It keeps at most kMostSpans, of at most kMostBytes; a span beyond is dropped.
//  P2 Counted  Each span is taken, or counted in
//              hearth_spans_dropped_total{reason="queue_full"|"shutdown"}.
//
// Threads   Any.
class SpanQueue final : public extensions::SpanLog {
 public:
  static constexpr std::size_t kMostSpans = 8192;
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20;

  SpanQueue(const Clock& clock, double ratio, Metrics& metrics);

  // `came` is called when a span comes into the empty queue, and when as many wait as take() gives
  // at once; on the thread that records. Before the first span.
  void on_spans(std::function<void()> came, std::size_t at_once);

  void record(extensions::SpanRecord record) override;

  // The oldest, at most so many.
  [[nodiscard]] std::vector<extensions::SpanRecord> take(std::size_t most);
  struct Waiting {
    std::size_t spans = 0;
    SteadyTime since{};  // the first of them
  };
  [[nodiscard]] Waiting waiting() const;
  // Drops all, and those that still come.
  void close();

 private:
  struct Entry {
    extensions::SpanRecord record;
    SteadyTime came;
  };

  Counter& full_;
  Counter& late_;
  std::function<void()> came_;
  std::size_t at_once_ = 0;
  mutable Mutex mutex_;
  std::deque<Entry> entries_ GUARDED_BY(mutex_);
  std::size_t bytes_ GUARDED_BY(mutex_) = 0;
  bool is_closed_ GUARDED_BY(mutex_) = false;
};

// The counter of spans that are lost for this reason.
[[nodiscard]] Counter& dropped_spans(Metrics& metrics, const char* reason);

}  // namespace hearth::server

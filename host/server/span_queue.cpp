#include "server/span_queue.hpp"

#include <utility>

namespace hearth::server {

Counter& dropped_spans(Metrics& metrics, const char* reason) {
  return metrics.counter("hearth_spans_dropped_total",
                         "Spans that no collector has got: the queue was full, the collector has "
                         "refused them or was unreachable, or the server stopped.",
                         {{"reason", reason}});
}

SpanQueue::SpanQueue(const Clock& clock, double ratio, Metrics& metrics)
    : SpanLog(clock, ratio),
      full_(dropped_spans(metrics, "queue_full")),
      late_(dropped_spans(metrics, "shutdown")) {}

void SpanQueue::on_spans(std::function<void()> came, std::size_t at_once) {
  came_ = std::move(came);
  at_once_ = at_once;
}

void SpanQueue::record(extensions::SpanRecord record) {
  const std::size_t bytes = record.bytes();
  bool tells = false;
  {
    const MutexLock lock(mutex_);
    if (is_closed_) return late_.add();
    if (entries_.size() >= kMostSpans || bytes > kMostBytes - bytes_) return full_.add();
    bytes_ += bytes;
    entries_.push_back({std::move(record), clock().steady_now()});
    tells = entries_.size() == 1 || entries_.size() == at_once_;
  }
  if (tells && came_) came_();
}

std::vector<extensions::SpanRecord> SpanQueue::take(std::size_t most) {
  std::vector<extensions::SpanRecord> taken;
  const MutexLock lock(mutex_);
  while (!entries_.empty() && taken.size() < most) {
    bytes_ -= entries_.front().record.bytes();
    taken.push_back(std::move(entries_.front().record));
    entries_.pop_front();
  }
  return taken;
}

SpanQueue::Waiting SpanQueue::waiting() const {
  const MutexLock lock(mutex_);
  if (entries_.empty()) return {};
  return {.spans = entries_.size(), .since = entries_.front().came};
}

void SpanQueue::close() {
  const MutexLock lock(mutex_);
  is_closed_ = true;
  late_.add(entries_.size());
  entries_.clear();
  bytes_ = 0;
}

}  // namespace hearth::server

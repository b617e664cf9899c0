#pragma once
// Sends the spans of a server to a collector: OTLP/HTTP with JSON.

#include "base/error.hpp"
#include "base/logger.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "net/outbound_http.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/loop_timer.hpp"
#include "server/span_batcher.hpp"
#include "server/span_queue.hpp"
#include "telemetry/metrics.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::server {

// It has a thread of its own: the shards only put a span into the queue.
//
// Promises
//  P1 Bounded  One request at a time, for kRequestTime at most, and one batch besides the queue.
//  P2 Counted  Each span is counted in hearth_spans_exported_total or hearth_spans_dropped_total.
//  P3 Stop     stop() takes at most kFlushTime.
//
// Secrets   The files of TracingConfig::headers are read before each request. Their content goes
//           to the collector only.
// Log       tracing.failing when the collector begins to fail, tracing.recovered when it takes
//           spans again.
// Threads   The queue from any thread; the rest, and destruction, on one thread that is not its
//           own.
// Lifetime  stop() before destruction. Its arguments outlive it.
class SpanExporter final : private net::OutboundListener {
 public:
  static constexpr std::chrono::milliseconds kRequestTime{10'000};
  static constexpr std::chrono::milliseconds kFlushTime{2'000};

  struct Parts {
    const config::TracingConfig& settings;
    const config::EgressConfig& egress;  // authorities
    const Clock& clock;
    Random& random;
    Metrics& metrics;
    Logger& logger;
  };
  // Fails if the file of authorities cannot be read.
  static Result<std::unique_ptr<SpanExporter>> start(const Parts& parts);
  ~SpanExporter() override;

  [[nodiscard]] extensions::SpanLog& log() { return queue_; }
  // Sends what waits if the collector takes it at once, and drops the rest.
  void stop();

 private:
  explicit SpanExporter(const Parts& parts);

  // ---- on its loop ----
  void look();
  void send();
  void answered(int status, std::string_view reason);
  void tell(bool works, std::string_view reason);
  void on_head(net::OutboundHead head) override;
  void on_body(std::string_view piece) override { body_ += piece; }
  void on_end(std::optional<net::OutboundFailure> failure) override;

  const Parts parts_;
  Counter& exported_;
  Counter& refused_;
  Counter& unreachable_;
  Counter& late_;
  SpanQueue queue_;
  runtime::AsioLoop loop_;
  std::unique_ptr<net::OutboundHttp> http_;
  std::unique_ptr<net::OutboundExchange> exchange_;

  SpanBatcher batcher_;
  runtime::LoopTimer timer_;
  std::size_t batch_ = 0;  // spans in `request_`
  std::string request_;
  SpanBatcher::Answer answer_;
  std::string body_;
  bool is_failing_ = false;
  bool is_stopping_ = false;
  bool is_flushed_ = false;
  bool is_stopped_ = false;
  std::promise<void> flushed_;
};

}  // namespace hearth::server

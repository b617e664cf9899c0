#include "server/span_exporter.hpp"

#include "base/files.hpp"
#include "extensions/fetch.hpp"
#include "server/otlp_json.hpp"
#include "server/outbound_port.hpp"

#include <charconv>
#include <span>
#include <utility>

namespace hearth::server {
namespace {

constexpr std::size_t kMostAnswer = std::size_t{64} << 10;

// Of the two forms of Retry-After the number of seconds.
std::optional<std::chrono::seconds> retry_after(const net::HttpHeaders& headers) {
  const auto text = net::find_header(headers, "Retry-After");
  if (!text) return std::nullopt;
  std::uint32_t seconds = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return std::chrono::seconds(seconds);
}

}  // namespace

SpanExporter::SpanExporter(const Parts& parts)
    : parts_(parts),
      exported_(parts.metrics.counter("hearth_spans_exported_total",
                                      "Spans that the collector has taken.")),
      refused_(dropped_spans(parts.metrics, "refused")),
      unreachable_(dropped_spans(parts.metrics, "unreachable")),
      late_(dropped_spans(parts.metrics, "shutdown")),
      queue_(parts.clock, parts.settings.sample, parts.metrics),
      loop_(parts.clock) {
  queue_.on_spans([this] { loop_.post([this] { look(); }); }, SpanBatcher::kBatch);
}

Result<std::unique_ptr<SpanExporter>> SpanExporter::start(const Parts& parts) {
  std::unique_ptr<SpanExporter> exporter(new SpanExporter(parts));
  auto made =
      net::OutboundHttp::make(exporter->loop_.context(),
                              {.max_exchanges = 1, .extra_ca_file = parts.egress.ca_file.native()});
  if (!made) {
    exporter->is_stopped_ = true;
    return Error{made.error().code, "egress.ca_file: " + made.error().message};
  }
  exporter->http_ = *std::move(made);
  exporter->loop_.start();
  return exporter;
}

SpanExporter::~SpanExporter() {
  stop();
}

void SpanExporter::stop() {
  if (std::exchange(is_stopped_, true)) return;
  auto flushed = flushed_.get_future();
  loop_.post([this] {
    is_stopping_ = true;
    look();
  });
  flushed.wait_for(kFlushTime);
  loop_.stop();
  exchange_.reset();
  http_.reset();
  late_.add(batch_);
  queue_.close();
}

// ---- on its loop --------------------------------------------------------------------------------

void SpanExporter::look() {
  timer_.cancel();
  const auto due = batcher_.due(queue_.waiting());
  if (is_stopping_ && (!due || batcher_.keeps_batch())) {
    // A batch that is kept: the collector is away.
    if (exchange_ == nullptr && !std::exchange(is_flushed_, true)) flushed_.set_value();
    return;
  }
  if (!due) return;
  if (is_stopping_ || *due <= parts_.clock.steady_now()) return send();
  timer_ = runtime::LoopTimer(loop_, *due, [this] { look(); });
}

void SpanExporter::send() {
  if (batch_ == 0) {
    const auto spans = queue_.take(SpanBatcher::kBatch);
    batch_ = spans.size();
    request_ = otlp_json(parts_.settings.service_name, spans);
  }
  batcher_.sends();
  answer_ = {};
  body_.clear();
  net::OutboundRequest request;
  request.method = "POST";
  request.url = parts_.settings.endpoint;
  request.headers = {{"Content-Type", "application/json"}};
  for (const auto& file : parts_.settings.headers) {
    const auto text = read_file(file, extensions::kMaxCredentialBytes);
    auto header = text ? extensions::credential_header(*text) : text.error();
    if (!header) return answered(0, "a file of tracing.headers cannot be used");
    request.secret_headers.push_back({std::move(header->first), std::move(header->second)});
  }
  request.body = request_;
  request.total_timeout = kRequestTime;
  request.max_body = kMostAnswer;
  request.credit = kMostAnswer;
  request.rules = everywhere();
  auto started = http_->start(std::move(request), *this);
  if (!started) return answered(0, started.error().message);
  exchange_ = *std::move(started);
}

void SpanExporter::on_head(net::OutboundHead head) {
  answer_.status = head.status;
  answer_.retry_after = retry_after(head.headers);
}

void SpanExporter::on_end(std::optional<net::OutboundFailure> failure) {
  exchange_.reset();
  if (failure) return answered(0, failure->message);
  answered(answer_.status, "the collector answers " + std::to_string(answer_.status));
}

void SpanExporter::answered(int status, std::string_view reason) {
  using Verdict = SpanBatcher::Verdict;
  answer_.status = status;
  std::uint32_t random = 0;
  parts_.random.fill(std::as_writable_bytes(std::span(&random, 1)));
  const double share = static_cast<double>(random) / 0x1p32;
  const Verdict verdict = batcher_.answered(answer_, share, parts_.clock.steady_now());
  if (verdict == Verdict::kTaken) {
    const std::size_t rejected = std::min<std::uint64_t>(rejected_spans(body_), batch_);
    refused_.add(rejected);
    exported_.add(batch_ - rejected);
  } else if (verdict == Verdict::kRefused) {
    refused_.add(batch_);
  } else if (verdict == Verdict::kGivenUp) {
    unreachable_.add(batch_);
  }
  tell(verdict == Verdict::kTaken, reason);
  if (verdict != Verdict::kAgain) {
    batch_ = 0;
    request_.clear();
  }
  look();
}

void SpanExporter::tell(bool works, std::string_view reason) {
  if (works != std::exchange(is_failing_, !works)) return;
  if (works) {
    parts_.logger.write_limited(LogLevel::kInfo, "tracing.recovered", {}, {});
  } else {
    parts_.logger.write_limited(LogLevel::kWarn, "tracing.failing", {}, {{"reason", reason}});
  }
}

}  // namespace hearth::server

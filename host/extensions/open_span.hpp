#pragma once
// Spans that are recorded for a collector of traces (OpenTelemetry). An event, a run of a
// fiber, a call of another agent, a request to another server and an operation of the ledger are a
// span each.

#include "base/clock.hpp"
#include "extensions/trace.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hearth::extensions {

// With the numbers of OTLP.
enum class SpanKind : std::uint8_t { kInternal = 1, kServer = 2, kClient = 3 };

using SpanValue = std::variant<std::string, std::int64_t, double, bool>;

// A span that has ended.
struct SpanRecord {
  Span span;
  SpanKind kind = SpanKind::kInternal;
  std::string name;
  WallTime began{};
  std::chrono::nanoseconds length{0};
  std::vector<std::pair<std::string, SpanValue>> attributes;
  std::string error;  // a word such as "timeout"; empty: it has not failed

  // About the memory that it takes.
  [[nodiscard]] std::size_t bytes() const;
};

// Whether a trace with this id is one of the `ratio` of all traces that are recorded. The same for
// each server with this ratio; a trace that a lower ratio takes, a higher one takes too.
[[nodiscard]] bool is_sampled(const std::array<std::uint64_t, 2>& trace, double ratio);

// Takes the spans that have ended.
//
// Threads   Any.
class SpanLog {
 public:
  // `ratio`: of the traces that begin here. A trace from outside is recorded as its flag says.
  SpanLog(const Clock& clock, double ratio) : clock_(clock), ratio_(ratio) {}
  virtual ~SpanLog() = default;
  SpanLog(const SpanLog&) = delete;
  SpanLog& operator=(const SpanLog&) = delete;

  virtual void record(SpanRecord record) = 0;
  [[nodiscard]] const Clock& clock() const { return clock_; }
  [[nodiscard]] double ratio() const { return ratio_; }

 private:
  const Clock& clock_;
  const double ratio_;
};

// A span in progress; an empty one does nothing. One that is destroyed before end() has failed as
// "cancelled".
//
// Threads   One at a time.
class OpenSpan {
 public:
  OpenSpan() = default;
  // Empty if there is no log, or the trace is not recorded.
  OpenSpan(SpanLog* log, const Span& span, SpanKind kind);
  OpenSpan(OpenSpan&& other) noexcept = default;
  OpenSpan& operator=(OpenSpan&& other) noexcept;
  ~OpenSpan();

  [[nodiscard]] bool is_open() const { return open_ != nullptr; }
  [[nodiscard]] Span span() const { return open_ ? open_->record.span : Span(); }
  void name(std::string name);
  // In place of an earlier value.
  void set(std::string_view key, SpanValue value);
  void fail(std::string_view error);
  void end();

 private:
  struct Open {
    SpanLog& log;
    SteadyTime began;
    SpanRecord record;
  };
  std::unique_ptr<Open> open_;
};

}  // namespace hearth::extensions

#include "telemetry/stderr_logger.hpp"

#include "base/log_line.hpp"
#include "telemetry/log_queue.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

namespace hearth {
namespace {

// spdlog's own sink for stderr does not say whether it could write.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  [[nodiscard]] DroppedLines dropped() const {
    return {.lines = lost_lines_, .bytes = lost_bytes_};
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const std::size_t written = std::fwrite(line.data(), 1, line.size(), stderr);
    if (std::fflush(stderr) != 0 || written < line.size()) {
      ++lost_lines_;
      lost_bytes_ += written < line.size() ? line.size() - written : line.size();
      std::clearerr(stderr);  // the next line may find room again
    }
  }
  void flush_() override {}

 private:
  std::atomic<std::uint64_t> lost_lines_ = 0;
  std::atomic<std::uint64_t> lost_bytes_ = 0;
};

std::string render_line(bool json, LogLevel level, std::string_view event,
                        std::span<const LogField> fields) {
  const LogEvent one{
      .time = std::chrono::system_clock::now(), .level = level, .name = event, .fields = fields};
  return json ? render_json_line(one) : render_human_line(one);
}

// One event as a line of text.
class LineLogger : public Logger {
 public:
  LineLogger(LogLevel level, LogFormat format)
      : level_(level),
        json_(format == LogFormat::kJson ||
              (format == LogFormat::kAuto && ::isatty(STDERR_FILENO) == 0)) {}

  [[nodiscard]] bool enabled(LogLevel level) const override { return level >= level_; }

  void write(LogLevel level, std::string_view event, std::span<const LogField> fields) override {
    if (enabled(level)) put(render_line(json_, level, event, fields));
  }

 protected:
  [[nodiscard]] bool json() const { return json_; }

 private:
  virtual void put(std::string text) = 0;

  const LogLevel level_;
  const bool json_;
};

// spdlog locks and writes. The text is rendered here, so that it is known to be one line. The level
// is checked here too, so the level of spdlog stays open.
class StderrLogger final : public LineLogger {
 public:
  StderrLogger(LogLevel level, LogFormat format)
      : LineLogger(level, format),
        stderr_(std::make_shared<StderrSink>()),
        sink_("hearth", stderr_) {
    sink_.set_formatter(std::make_unique<spdlog::pattern_formatter>("%v"));
    sink_.set_level(spdlog::level::trace);
    // By default spdlog reports a failed write on stderr in its own format. Here the line is
    // dropped and counted.
    sink_.set_error_handler([](const std::string&) {});
  }

  [[nodiscard]] DroppedLines dropped() const override { return stderr_->dropped(); }

 private:
  void put(std::string text) override {
    sink_.log(spdlog::level::info, spdlog::string_view_t(text));
  }

  const std::shared_ptr<StderrSink> stderr_;  // spdlog shares it
  spdlog::logger sink_;
};

class QueuedStderrLogger final : public LineLogger {
 public:
  using LineLogger::LineLogger;

  [[nodiscard]] DroppedLines dropped() const override { return queue_.dropped(); }

 private:
  void put(std::string text) override {
    text += '\n';
    queue_.put(std::move(text));
  }

  LogQueue queue_{STDERR_FILENO, [json = json()](DroppedLines dropped) {
                    const std::array fields = {LogField{"lines", dropped.lines},
                                               LogField{"bytes", dropped.bytes}};
                    return render_line(json, LogLevel::kWarn, "log.lines_dropped", fields) + '\n';
                  }};
};

}  // namespace

std::unique_ptr<Logger> make_stderr_logger(LogLevel level, LogFormat format) {
  return std::make_unique<StderrLogger>(level, format);
}

std::unique_ptr<Logger> make_queued_stderr_logger(LogLevel level, LogFormat format) {
  return std::make_unique<QueuedStderrLogger>(level, format);
}

}  // namespace hearth

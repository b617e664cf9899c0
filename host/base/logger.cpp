#include "base/logger.hpp"

#include "base/clock.hpp"
#include "base/log_line.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
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
  [[nodiscard]] std::uint64_t lost_bytes() const { return lost_bytes_; }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const std::size_t written = std::fwrite(line.data(), 1, line.size(), stderr);
    if (std::fflush(stderr) != 0 || written < line.size()) {
      lost_bytes_ += written < line.size() ? line.size() - written : line.size();
      std::clearerr(stderr);  // the next line may find room again
    }
  }
  void flush_() override {}

 private:
  std::atomic<std::uint64_t> lost_bytes_ = 0;
};

// spdlog does the locking and the writing; the text is ours, because only then is it known to be one
// line. The level is checked here, so spdlog's own stays open.
class StderrLogger final : public Logger {
 public:
  StderrLogger(LogLevel level, LogFormat format)
      : level_(level),
        json_(format == LogFormat::kJson ||
              (format == LogFormat::kAuto && ::isatty(STDERR_FILENO) == 0)),
        stderr_(std::make_shared<StderrSink>()),
        sink_("hearth", stderr_) {
    sink_.set_formatter(std::make_unique<spdlog::pattern_formatter>("%v"));
    sink_.set_level(spdlog::level::trace);
    // By default spdlog reports a failed write on stderr, in its own format: there a line is lost.
    sink_.set_error_handler([](const std::string&) {});
  }

  [[nodiscard]] bool enabled(LogLevel level) const override { return level >= level_; }
  [[nodiscard]] std::uint64_t lost_bytes() const override { return stderr_->lost_bytes(); }

  void write(LogLevel level, std::string_view event, std::span<const LogField> fields) override {
    if (!enabled(level)) return;
    const LogEvent line{
        .time = std::chrono::system_clock::now(), .level = level, .name = event, .fields = fields};
    const std::string text = json_ ? render_json_line(line) : render_human_line(line);
    sink_.log(spdlog::level::info, spdlog::string_view_t(text));
  }

 private:
  const LogLevel level_;
  const bool json_;
  const std::shared_ptr<StderrSink> stderr_;  // spdlog shares it
  spdlog::logger sink_;
};

class NullLogger final : public Logger {
 public:
  [[nodiscard]] bool enabled(LogLevel) const override { return false; }
  void write(LogLevel, std::string_view, std::span<const LogField>) override {}
};

}  // namespace

std::unique_ptr<Logger> make_stderr_logger(LogLevel level, LogFormat format) {
  return std::make_unique<StderrLogger>(level, format);
}

std::unique_ptr<Logger> make_null_logger() {
  return std::make_unique<NullLogger>();
}

}  // namespace hearth

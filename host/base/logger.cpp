#include "base/logger.hpp"

#include "base/clock.hpp"
#include "base/log_line.hpp"

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace hearth {
namespace {

// spdlog does the locking and the writing; the text is ours, because only then is it known to be one
// line. The level is checked here, so spdlog's own stays open.
class StderrLogger final : public Logger {
 public:
  StderrLogger(LogLevel level, LogFormat format)
      : level_(level),
        json_(format == LogFormat::kJson ||
              (format == LogFormat::kAuto && ::isatty(STDERR_FILENO) == 0)),
        sink_("hearth", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    sink_.set_formatter(std::make_unique<spdlog::pattern_formatter>("%v"));
    sink_.set_level(spdlog::level::trace);
    // By default spdlog reports a failed write on stderr, in its own format: there a line is lost.
    sink_.set_error_handler([](const std::string&) {});
  }

  [[nodiscard]] bool enabled(LogLevel level) const override { return level >= level_; }

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

#include "base/logger.hpp"

#include "base/log_line.hpp"

#include <string>
#include <vector>

namespace hearth {
namespace {

class NullLogger final : public Logger {
 public:
  [[nodiscard]] bool enabled(LogLevel) const override { return false; }
  void write(LogLevel, std::string_view, std::span<const LogField>) override {}
};

// The fields, and the number of lines that were suppressed before this one, if any.
std::vector<LogField> with_suppressed(std::span<const LogField> fields, std::uint64_t suppressed) {
  std::vector<LogField> more(fields.begin(), fields.end());
  if (suppressed > 0) more.emplace_back("suppressed", suppressed);
  return more;
}

std::string whole_kind(std::string_view level, std::string_view event,
                       std::initializer_list<std::string_view> kind) {
  std::string whole(level);
  whole.append(" ").append(event);
  for (const std::string_view part : kind) whole.append(" ").append(part);
  return whole;
}

}  // namespace

std::optional<std::uint64_t> Logger::admit(const std::string& kind, LogLimit limit) {
  if (!limits_lines()) return 0;
  return rate_.admit(kind, limit, BootClock::now());
}

bool Logger::record_limited(LogLevel level, std::string_view event,
                            std::initializer_list<std::string_view> kind,
                            std::initializer_list<LogField> fields, LogLimit limit) {
  const auto suppressed = admit(whole_kind("record", event, kind), limit);
  if (!suppressed) return false;
  const std::vector<LogField> all = with_suppressed({fields.begin(), fields.end()}, *suppressed);
  keep(event, all);
  if (enabled(level)) write(level, event, std::span<const LogField>(all));
  return true;
}

void Logger::write_limited(LogLevel level, std::string_view event,
                           std::initializer_list<std::string_view> kind,
                           std::span<const LogField> fields, LogLimit limit) {
  if (!enabled(level)) return;
  const auto suppressed = admit(whole_kind(to_string(level), event, kind), limit);
  if (!suppressed) return;
  write(level, event, std::span<const LogField>(with_suppressed(fields, *suppressed)));
}

void Logger::keep(std::string_view, std::span<const LogField>) {}

std::unique_ptr<Logger> make_null_logger() {
  return std::make_unique<NullLogger>();
}

}  // namespace hearth

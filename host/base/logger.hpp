#pragma once
// Structured log events: one name, some fields.
//
//   logger.write(LogLevel::kWarn, "plugin.refused", {{"file", path}, {"reason", why}});
//
// The event name is stable, because operators search for it: lower-case words and dots.

#include "base/log_rate.hpp"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace hearth {

// Lines that a logger could not write.
struct DroppedLines {
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;
};

enum class LogLevel { kTrace, kDebug, kInfo, kWarn, kError };

// One `key=value` of an event. Views are borrowed for the call.
struct LogField {
  // All types with a sensible text form; no value is narrowed at the call.
  using Value = std::variant<std::string_view, std::int64_t, double, bool>;

  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, bool v) : key(k), value(v) {}
  LogField(std::string_view k, double v) : key(k), value(v) {}
  template <class Integer>
    requires(std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>)
  LogField(std::string_view k, Integer v) : key(k), value(static_cast<std::int64_t>(v)) {}

  std::string_view key;
  Value value;
};

// Threads   All members are safe to call from any thread.
// Failure   A call never fails; a line that cannot be written is lost, and counted.
// Safety    Text from outside is escaped: one event is one line, whatever the fields hold.
class Logger {
 public:
  Logger() = default;
  virtual ~Logger() = default;
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  [[nodiscard]] virtual bool enabled(LogLevel level) const = 0;
  virtual void write(LogLevel level, std::string_view event, std::span<const LogField> fields) = 0;
  // The lines that could not be written so far.
  [[nodiscard]] virtual DroppedLines dropped() const { return {}; }

  void write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {}) {
    if (enabled(level)) write(level, event, std::span(fields.begin(), fields.size()));
  }

  // An event for the audit log (server/audit_log.hpp). A logger with an audit log keeps an entry,
  // whatever the log's level; every logger writes a line if `level` is enabled. The audit log calls
  // "object.created" ObjectCreated.
  void record(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
    keep(event, std::span(fields.begin(), fields.size()));
    write(level, event, fields);
  }

  // As record(), but at most as often as `limit` allows for a kind: the event and `kind`, as in
  // write_limited(). False: no entry and no line was written. The next entry of the kind has
  // `suppressed=N`, the number of entries left out.
  [[nodiscard]] bool record_limited(LogLevel level, std::string_view event,
                                    std::initializer_list<std::string_view> kind,
                                    std::initializer_list<LogField> fields, LogLimit limit);

  // For lines that clients can cause as often as they like: written at most as often as `limit`
  // allows for a kind. A kind is the level, the event and `kind` (a class, a class and an error's
  // code ...; never text that a client chooses). The next line of the kind has `suppressed=N`, the
  // number of lines left out.
  void write_limited(LogLevel level, std::string_view event,
                     std::initializer_list<std::string_view> kind, std::span<const LogField> fields,
                     LogLimit limit = kClientLimit);
  void write_limited(LogLevel level, std::string_view event,
                     std::initializer_list<std::string_view> kind,
                     std::initializer_list<LogField> fields, LogLimit limit = kClientLimit) {
    write_limited(level, event, kind, std::span(fields.begin(), fields.size()), limit);
  }

  // For clients' mistakes, and for failures that clients meet.
  static constexpr LogLimit kClientLimit{.burst = 10, .per_second = 1};
  // For plugins' own lines, and for durable work.
  static constexpr LogLimit kWorkLimit{.burst = 100, .per_second = 20};

 protected:
  virtual void keep(std::string_view event, std::span<const LogField> fields);
  // False: write_limited() and record_limited() leave nothing out.
  [[nodiscard]] virtual bool limits_lines() const { return true; }

 private:
  // How many of the kind were left out since the last one; nothing: this one is left out, too.
  [[nodiscard]] std::optional<std::uint64_t> admit(const std::string& kind, LogLimit limit);

  LogRate rate_;
};

// For tests and tools that want silence.
std::unique_ptr<Logger> make_null_logger();

}  // namespace hearth

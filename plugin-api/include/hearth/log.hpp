#pragma once
// Lines in the server's log, marked with their agent.

#include <hearth/detail/activation.hpp>
#include <hearth/json.hpp>

#include <concepts>
#include <string>
#include <string_view>

namespace hearth {

// The name of an event: a literal of 1 to 64 of a-z 0-9 : _, so that no input becomes one.
class EventName {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a name is given as it is
  consteval EventName(const char* text) : text_(text) {
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789:_";
    if (text_.empty() || text_.size() > 64 ||
        text_.find_first_not_of(kAllowed) != std::string_view::npos)
      throw "the name of an event has 1 to 64 of a-z 0-9 : _";
  }
  [[nodiscard]] constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

// log.info("saved ", count, " rows for ", name): the parts are written one after the other.
// log.event(HEARTH_LOG_INFO, "order:shipped", "order=", id): the line "order:shipped order=7". The
//           server counts the event too, in hearth_agent_events_total{class,event}: at most 64
//           names of a class, the others as "other".
// Parts     text, characters, bool, numbers, Json.
// Bounded   8 KiB a line; control characters are escaped. Never fails.
class Log {
 public:
  explicit Log(const detail::Activation* activation) noexcept : activation_(activation) {}

  template <class... Parts>
  void debug(const Parts&... parts) const {
    write(HEARTH_LOG_DEBUG, parts...);
  }
  template <class... Parts>
  void info(const Parts&... parts) const {
    write(HEARTH_LOG_INFO, parts...);
  }
  template <class... Parts>
  void warn(const Parts&... parts) const {
    write(HEARTH_LOG_WARN, parts...);
  }
  template <class... Parts>
  void error(const Parts&... parts) const {
    write(HEARTH_LOG_ERROR, parts...);
  }
  template <class... Parts>
  void event(int level, EventName name, const Parts&... parts) const {
    write(level | HEARTH_LOG_EVENT, name.text(), ' ', parts...);
  }

 private:
  template <class... Parts>
  void write(int level, const Parts&... parts) const {
    if (!activation_) return;
    std::string line;
    (append(line, parts), ...);
    activation_->log(level, line);
  }
  template <class Part>
  static void append(std::string& line, const Part& part) {
    if constexpr (std::same_as<Part, Json>)
      append_json(line, part);
    else if constexpr (std::convertible_to<const Part&, std::string_view>)
      line.append(std::string_view(part));
    else if constexpr (std::same_as<Part, bool>)
      line.append(part ? "true" : "false");
    else if constexpr (std::same_as<Part, char>)
      line.push_back(part);
    else if constexpr (std::floating_point<Part>)
      detail::append_double(line, static_cast<double>(part));
    else
      detail::append_number(line, part);
  }

  const detail::Activation* activation_;
};

}  // namespace hearth

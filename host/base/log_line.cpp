#include "base/log_line.hpp"

#include "base/escape.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace hearth {
namespace {

void append_quoted(std::string& out, std::string_view text, EscapeStyle style) {
  const std::string_view shown = cut_text(text, kMaxLogValueBytes);
  out += '"';
  append_escaped(out, shown, style);
  if (shown.size() < text.size()) {
    out += "... (";
    out += std::to_string(text.size() - shown.size());
    out += " bytes more)";
  }
  out += '"';
}

bool may_stand_bare(std::string_view text) {
  if (text.empty() || text.size() > kMaxLogValueBytes) return false;
  while (!text.empty()) {
    const auto [c, length] = first_utf8_character(text);
    if (length == 0 || c == U' ' || c == U'"' || c == U'=' || c == U'\\' || needs_escape(c)) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

void append_number(std::string& out, double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  out.append(text.data(), end);
}

struct ValueWriter {
  std::string& out;
  EscapeStyle style;

  void operator()(std::string_view value) const {
    if (style == EscapeStyle::kHuman && may_stand_bare(value)) {
      out += value;
    } else {
      append_quoted(out, value, style);
    }
  }
  void operator()(std::int64_t value) const { out += std::to_string(value); }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(double value) const {
    const bool quoted = style == EscapeStyle::kJson && !std::isfinite(value);
    if (quoted) out += '"';
    append_number(out, value);
    if (quoted) out += '"';
  }
};

void append_padded(std::string& out, std::int64_t value, std::size_t width) {
  const std::string digits = std::to_string(value);
  if (digits.size() < width) out.append(width - digits.size(), '0');
  out += digits;
}

// The keys of the fields, where `k` is `k_2` if the line has `k` already.
std::vector<std::string> unique_keys(std::span<const LogField> fields) {
  constexpr std::string_view kOfTheLine[] = {"time", "level", "event"};
  std::vector<std::string> keys;
  keys.reserve(fields.size());
  const auto is_taken = [&](const std::string& key) {
    return std::ranges::find(kOfTheLine, key) != std::end(kOfTheLine) ||
           std::ranges::find(keys, key) != keys.end();
  };
  for (const LogField& field : fields) {
    std::string key(field.key);
    for (int number = 2; is_taken(key); ++number)
      key = std::string(field.key) + "_" + std::to_string(number);
    keys.push_back(std::move(key));
  }
  return keys;
}

// 12:00:00.000
void append_clock(std::string& out, std::int64_t hours, std::int64_t minutes, std::int64_t seconds,
                  std::int64_t milliseconds) {
  append_padded(out, hours, 2);
  out += ':';
  append_padded(out, minutes, 2);
  out += ':';
  append_padded(out, seconds, 2);
  out += '.';
  append_padded(out, milliseconds, 3);
}

std::int64_t millis_of_second(WallTime time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  return std::chrono::floor<std::chrono::milliseconds>(time - second).count();
}

void append_utc(std::string& out, WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{std::chrono::floor<std::chrono::seconds>(time - day)};
  append_padded(out, static_cast<int>(date.year()), 4);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.month()), 2);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.day()), 2);
  out += 'T';
  append_clock(out, clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
               millis_of_second(time));
  out += 'Z';
}

void append_local(std::string& out, WallTime time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  const std::time_t seconds = second.time_since_epoch().count();
  std::tm local{};
  ::localtime_r(&seconds, &local);
  append_clock(out, local.tm_hour, local.tm_min, local.tm_sec, millis_of_second(time));
}

// Five columns, so that the names after it align.
std::string level_column(LogLevel level) {
  std::string column(to_string(level));
  for (char& c : column) c = static_cast<char>(c - 'a' + 'A');
  column.resize(5, ' ');
  return column;
}

}  // namespace

std::string_view to_string(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::kTrace: return "trace";
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarn: return "warn";
    case LogLevel::kError: return "error";
  }
  return "error";
}

std::string render_human_line(const LogEvent& event) {
  std::string line;
  append_local(line, event.time);
  line += ' ';
  line += level_column(event.level);
  line += ' ';
  append_escaped(line, event.name, EscapeStyle::kHuman);
  const std::vector<std::string> keys = unique_keys(event.fields);
  for (std::size_t at = 0; at < keys.size(); ++at) {
    line += ' ';
    append_escaped(line, keys[at], EscapeStyle::kHuman);
    line += '=';
    std::visit(ValueWriter{line, EscapeStyle::kHuman}, event.fields[at].value);
  }
  return line;
}

std::string render_json_line(const LogEvent& event) {
  std::string line = R"({"time":")";
  append_utc(line, event.time);
  line += R"(","level":")";
  line += to_string(event.level);
  line += R"(","event":)";
  append_quoted(line, event.name, EscapeStyle::kJson);
  const std::vector<std::string> keys = unique_keys(event.fields);
  for (std::size_t at = 0; at < keys.size(); ++at) {
    line += ',';
    append_quoted(line, keys[at], EscapeStyle::kJson);
    line += ':';
    std::visit(ValueWriter{line, EscapeStyle::kJson}, event.fields[at].value);
  }
  line += '}';
  return line;
}

}  // namespace hearth

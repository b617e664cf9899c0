#include "protocol/rfc3339.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>

namespace hearth::protocol {
namespace {

constexpr std::int64_t kLastMs = 253'402'300'799'999;  // of the year 9999

using std::chrono::milliseconds;
using std::chrono::sys_days;
using std::chrono::year_month_day;

// Reads a time from the front of a text.
class TimeReader {
 public:
  explicit TimeReader(std::string_view text) : text_(text) {}

  // A number of exactly `digits` digits, from `least` to `most`.
  int number(std::size_t digits, int least, int most) {
    int value = 0;
    const std::string_view part = text_.substr(0, digits);
    const auto read = std::from_chars(part.data(), part.data() + part.size(), value);
    if (part.size() != digits || read.ptr != part.data() + digits || part[0] == '-' ||
        value < least || value > most)
      failed_ = true;
    text_.remove_prefix(part.size());
    return value;
  }
  // One of these characters, or 0.
  char any_of(std::string_view these) {
    if (text_.empty() || these.find(text_.front()) == std::string_view::npos) return '\0';
    const char found = text_.front();
    text_.remove_prefix(1);
    return found;
  }
  void want(std::string_view these) {
    if (any_of(these) == '\0') failed_ = true;
  }
  int fraction_ms() {
    if (any_of(".") == '\0') return 0;
    int ms = 0;
    int weight = 100;
    want_digit();
    while (const char digit = any_of("0123456789")) {
      ms += weight * (digit - '0');
      weight /= 10;
    }
    return ms;
  }
  [[nodiscard]] bool is_over() const { return !failed_ && text_.empty(); }

 private:
  void want_digit() {
    if (text_.empty() || text_.front() < '0' || text_.front() > '9') failed_ = true;
  }

  std::string_view text_;
  bool failed_ = false;
};

}  // namespace

std::string rfc3339(std::int64_t unix_ms) {
  const std::chrono::sys_time<milliseconds> time{milliseconds(unix_ms)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", int{date.year()},
                unsigned{date.month()}, unsigned{date.day()},
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()),
                static_cast<int>(clock.subseconds().count()));
  return text.data();
}

std::optional<std::int64_t> parse_rfc3339(std::string_view text) {
  TimeReader in(text);
  const int year = in.number(4, 1970, 9999);
  in.want("-");
  const int month = in.number(2, 1, 12);
  in.want("-");
  const int day = in.number(2, 1, 31);
  in.want("Tt ");
  const int hour = in.number(2, 0, 23);
  in.want(":");
  const int minute = in.number(2, 0, 59);
  in.want(":");
  const int second = in.number(2, 0, 60);
  const int ms = in.fraction_ms();
  int offset = 0;  // minutes
  if (in.any_of("Zz") == '\0') {
    const int sign = in.any_of("-") != '\0' ? -1 : 1;
    if (sign > 0) in.want("+");
    offset = in.number(2, 0, 23) * 60;
    in.want(":");
    offset = sign * (offset + in.number(2, 0, 59));
  }
  const year_month_day date{std::chrono::year(year),
                            std::chrono::month(static_cast<unsigned>(month)),
                            std::chrono::day(static_cast<unsigned>(day))};
  if (!in.is_over() || !date.ok()) return std::nullopt;
  const auto time = sys_days(date) + std::chrono::hours(hour) +
                    std::chrono::minutes(minute - offset) + std::chrono::seconds(second) +
                    milliseconds(ms);
  const std::int64_t unix_ms = time.time_since_epoch().count();
  if (unix_ms < 0 || unix_ms > kLastMs) return std::nullopt;
  return unix_ms;
}

}  // namespace hearth::protocol

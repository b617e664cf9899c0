#include "net/http_date.hpp"

#include <array>
#include <cstdio>

namespace hearth::net {

std::string http_date(std::chrono::sys_seconds at) {
  constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  std::array<char, 64> text;
  const int length = std::snprintf(
      text.data(), text.size(), "%s, %02u %s %04d %02d:%02d:%02d GMT",
      kDays[std::chrono::weekday(day).c_encoding()], static_cast<unsigned>(date.day()),
      kMonths[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
      static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
      static_cast<int>(time.seconds().count()));
  return {text.data(), static_cast<std::size_t>(length)};
}

const std::string& HttpDate::now() {
  const auto at = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  if (at != at_ || text_.empty()) {
    at_ = at;
    text_ = http_date(at);
  }
  return text_;
}

}  // namespace hearth::net

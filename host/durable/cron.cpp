#include "durable/cron.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hearth::durable {
namespace {

using std::chrono::days;
using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr std::size_t kMaxBytes = 512;

struct Field {
  std::string_view name;
  int first;
  int last;
  std::span<const std::string_view> names{};  // of first, first + 1, ...
};

constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                   "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays{"sun", "mon", "tue", "wed",
                                                    "thu", "fri", "sat"};

constexpr Field kSecond{"second", 0, 59};
constexpr Field kMinute{"minute", 0, 59};
constexpr Field kHour{"hour", 0, 23};
constexpr Field kDay{"day", 1, 31};
constexpr Field kMonth{"month", 1, 12, kMonths};
constexpr Field kWeekday{"weekday", 0, 7, kWeekdays};

constexpr std::uint64_t bits(int first, int last) {
  std::uint64_t set = 0;
  for (int value = first; value <= last; ++value) set |= std::uint64_t{1} << value;
  return set;
}
constexpr bool has(std::uint64_t set, unsigned value) {
  return ((set >> value) & 1U) != 0;
}

constexpr std::uint64_t kAllDays = bits(1, 31);
constexpr std::uint64_t kAllWeekdays = bits(0, 6);

Error bad_expression(const std::string& why) {
  return Error{Errc::kInvalidArgument, "cron: " + why};
}

Error bad_item(const Field& field, std::string_view item, std::string_view why) {
  return bad_expression(std::string(field.name) + " \"" + std::string(item) +
                        "\": " + std::string(why));
}

std::optional<int> parse_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // from_chars would accept a sign.
  const bool digits = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (text.empty() || !digits || error != std::errc() || end != text.data() + text.size())
    return {};
  return value;
}

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::optional<int> value_of(const Field& field, std::string_view text) {
  for (std::size_t i = 0; i < field.names.size(); ++i) {
    if (same_word(field.names[i], text)) return field.first + static_cast<int>(i);
  }
  return parse_number(text);
}

// L, W and # have a meaning in other schedulers, so they get an error of their own.
bool is_foreign(std::string_view text) {
  if (text.find('#') != std::string_view::npos) return true;
  const char last = text.empty() ? '\0' : text.back();
  const char first = text.empty() ? '\0' : text.front();
  const auto is_special = [](char c) { return c == 'L' || c == 'l' || c == 'W' || c == 'w'; };
  const bool numbered = std::isdigit(static_cast<unsigned char>(first)) != 0;
  return (text.size() <= 2 || numbered) && (is_special(last) || is_special(first));
}

Result<int> parse_value(const Field& field, std::string_view item, std::string_view text) {
  const std::optional<int> value = value_of(field, text);
  if (!value) {
    return bad_item(field, item,
                    is_foreign(text)
                        ? "L, W and # are not supported"
                        : (field.names.empty() ? "is no number" : "is no number and no name"));
  }
  if (*value < field.first || *value > field.last) {
    return bad_item(field, item,
                    "must be " + std::to_string(field.first) + " to " + std::to_string(field.last));
  }
  return *value;
}

struct Range {
  int first = 0;
  int last = 0;
};

// The last value of a field. 7 is a second name of Sunday, so the weekdays end with Saturday.
int end_of(const Field& field) {
  return &field == &kWeekday ? 6 : field.last;
}

// The part of an item before the step.
Result<Range> parse_range(const Field& field, std::string_view item, std::string_view base) {
  if (base == "*" || base == "?") return Range{field.first, end_of(field)};
  const std::size_t dash = base.find('-');
  const Result<int> first = parse_value(field, item, base.substr(0, dash));
  if (!first) return first.error();
  if (dash == std::string_view::npos) return Range{*first, *first};
  const Result<int> last = parse_value(field, item, base.substr(dash + 1));
  if (!last) return last.error();
  Range range{*first, *last};
  // Sunday by name may also end a range: fri-sun.
  if (&field == &kWeekday && range.last == 0 && range.first > 0 &&
      !parse_number(base.substr(dash + 1)))
    range.last = 7;
  if (range.first > range.last) return bad_item(field, item, "the range is reversed");
  return range;
}

Result<int> parse_step(const Field& field, std::string_view item, std::string_view base,
                       std::string_view text) {
  const std::optional<int> step = parse_number(text);
  if (!step) return bad_item(field, item, "the step is no number");
  if (*step == 0) return bad_item(field, item, "the step may not be 0");
  if (base != "*" && base != "?" && base.find('-') == std::string_view::npos) {
    return bad_item(field, item,
                    "a step needs a range: " + std::string(base) + "-" +
                        std::to_string(end_of(field)) + "/" + std::string(text));
  }
  return *step;
}

Result<std::uint64_t> parse_item(const Field& field, std::string_view item) {
  const std::size_t slash = item.find('/');
  const std::string_view base = item.substr(0, slash);
  const Result<Range> range = parse_range(field, item, base);
  if (!range) return range.error();
  std::int64_t step = 1;
  if (slash != std::string_view::npos) {
    const Result<int> given = parse_step(field, item, base, item.substr(slash + 1));
    if (!given) return given.error();
    step = *given;
  }
  std::uint64_t set = 0;
  for (std::int64_t value = range->first; value <= range->last; value += step)
    set |= std::uint64_t{1} << value;
  return set;
}

Result<std::uint64_t> parse_field(const Field& field, std::string_view text) {
  std::uint64_t set = 0;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    if (item.empty()) return bad_item(field, text, "an item is empty");
    const Result<std::uint64_t> found = parse_item(field, item);
    if (!found) return found.error();
    set |= *found;
    if (comma == std::string_view::npos) return set;
    text.remove_prefix(comma + 1);
  }
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t from = text.find_first_not_of(" \t", i);
    if (from == std::string_view::npos) break;
    const std::size_t to = std::min(text.find_first_of(" \t", from), text.size());
    words.push_back(text.substr(from, to - from));
    i = to;
  }
  return words;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kNicknames{{
    {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"},
    {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"},
    {"@daily", "0 0 * * *"},
    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
    {"@minutely", "* * * * *"},
}};

// The smallest value of the set that is at least `from`; -1: none.
int at_least(std::uint64_t set, int from) {
  const std::uint64_t rest = from > 63 ? 0 : (set >> from) << from;
  return rest == 0 ? -1 : std::countr_zero(rest);
}

}  // namespace

// ---- reading ------------------------------------------------------------------------------------

Result<Cron> Cron::parse(std::string_view text) {
  if (text.size() > kMaxBytes) return bad_expression("the expression is longer than 512 bytes");
  if (!std::ranges::all_of(text, [](char c) { return c == '\t' || (c >= ' ' && c < '\x7f'); }))
    return bad_expression("the expression has characters that are not ASCII");
  Cron cron;
  const Result<void> parsed = cron.parse_fields(text);
  if (!parsed) return parsed.error();
  if (!cron.can_ever_match()) return bad_expression("no month of the expression has such a day");
  return cron;
}

Result<void> Cron::parse_fields(std::string_view text) {
  std::vector<std::string_view> words = split(text);
  if (words.size() == 1 && words[0].starts_with('@')) {
    const auto* const found = std::ranges::find_if(
        kNicknames, [&](const auto& each) { return same_word(each.first, words[0]); });
    if (found == kNicknames.end())
      return bad_expression("\"" + std::string(words[0]) + "\" is not known");
    words = split(found->second);
  }
  if (words.size() != 5 && words.size() != 6) {
    return bad_expression(
        "5 fields (minute hour day month weekday) or 6 (with seconds before them) are needed, "
        "not " +
        std::to_string(words.size()));
  }
  const std::string_view hour = words[words.size() - 4];
  follows_real_time_ =
      (hour.starts_with('*') || hour.starts_with('?')) && hour.find(',') == std::string_view::npos;
  const std::array<std::pair<const Field*, std::uint64_t*>, 6> targets{{{&kSecond, &seconds_},
                                                                        {&kMinute, &minutes_},
                                                                        {&kHour, &hours_},
                                                                        {&kDay, &days_},
                                                                        {&kMonth, &months_},
                                                                        {&kWeekday, &weekdays_}}};
  const std::size_t skipped = targets.size() - words.size();
  for (std::size_t i = skipped; i < targets.size(); ++i) {
    const Result<std::uint64_t> set = parse_field(*targets[i].first, words[i - skipped]);
    if (!set) return set.error();
    *targets[i].second = *set;
  }
  if (has(weekdays_, 7)) weekdays_ = (weekdays_ | 1U) & kAllWeekdays;
  return {};
}

bool Cron::can_ever_match() const {
  if (weekdays_ != kAllWeekdays) return true;  // every month has every weekday
  constexpr std::array<int, 12> kLongest{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const int first_day = at_least(days_, 1);
  for (unsigned month = 1; month <= 12; ++month) {
    if (has(months_, month) && first_day <= kLongest[month - 1]) return true;
  }
  return false;
}

// ---- searching ----------------------------------------------------------------------------------

bool Cron::matches(sys_days day) const {
  const bool on_day = has(days_, static_cast<unsigned>(year_month_day(day).day()));
  const bool on_weekday = has(weekdays_, std::chrono::weekday(day).c_encoding());
  const bool either = days_ != kAllDays && weekdays_ != kAllWeekdays;
  return either ? on_day || on_weekday : on_day && on_weekday;
}

// The first matching second of a matching day, at or after `from`; -1: none.
int Cron::second_of_day(int from) const {
  const int from_hour = from / 3600;
  for (int hour = at_least(hours_, from_hour); hour >= 0; hour = at_least(hours_, hour + 1)) {
    const int rest = hour > from_hour ? 0 : from % 3600;
    const int from_minute = rest / 60;
    for (int minute = at_least(minutes_, from_minute); minute >= 0;
         minute = at_least(minutes_, minute + 1)) {
      const int second = at_least(seconds_, minute > from_minute ? 0 : rest % 60);
      if (second >= 0) return hour * 3600 + minute * 60 + second;
    }
  }
  return -1;
}

// The first match after a local time. Advances the largest field that does not match.
std::optional<std::int64_t> Cron::next_local(std::int64_t after) const {
  // 29 February is absent for eight years around 2100; nothing is rarer.
  constexpr std::chrono::years kFarthest{9};
  const auto start = std::chrono::sys_seconds(std::chrono::seconds(after + 1));
  sys_days day = std::chrono::floor<days>(start);
  int from = static_cast<int>((start - day).count());
  const std::chrono::year last =
      std::min(year_month_day(day).year() + kFarthest, std::chrono::year(9999));
  while (true) {
    const year_month_day date(day);
    if (date.year() > last) return std::nullopt;
    if (!has(months_, static_cast<unsigned>(date.month()))) {
      day = sys_days(date.year() / date.month() / 1 + std::chrono::months(1));
    } else {
      const int second = matches(day) ? second_of_day(from) : -1;
      if (second >= 0) return (day.time_since_epoch() + std::chrono::seconds(second)).count();
      day += days(1);
    }
    from = 0;
  }
}

// Within a stretch the clock is not changed, so local time is real time there.
std::optional<std::int64_t> Cron::next_real(std::int64_t after, const TimeZone& zone) const {
  while (true) {
    const TimeZone::Stretch stretch = zone.stretch(after);
    const std::optional<std::int64_t> local = next_local(after + stretch.offset);
    if (!local) return std::nullopt;
    if (*local - stretch.offset < stretch.until) return *local - stretch.offset;
    // No match before the change of the clock. The instant of the change itself may match.
    const TimeZone::Stretch following = zone.stretch(stretch.until);
    const std::optional<std::int64_t> there = next_local(stretch.until + following.offset - 1);
    if (!there) return std::nullopt;
    if (*there - following.offset < following.until) return *there - following.offset;
    after = following.until - 1;
  }
}

std::optional<std::int64_t> Cron::next_fixed(std::int64_t after, const TimeZone& zone) const {
  std::int64_t local = after + zone.stretch(after).offset;
  while (true) {
    const std::optional<std::int64_t> found = next_local(local);
    if (!found) return std::nullopt;
    const std::int64_t instant = zone.instant(*found);
    if (instant > after) return instant;
    // This local time comes a second time, and its matches counted the first time. Go on after the
    // repeated hour.
    const TimeZone::Stretch before = zone.stretch(instant);
    local = std::max(*found, before.until + before.offset - 1);
  }
}

std::optional<std::int64_t> Cron::next(std::int64_t after_ms, const TimeZone& zone) const {
  constexpr std::int64_t kEarliest = -62'135'596'800'000;  // the year 1
  constexpr std::int64_t kLatest = 253'402'300'799'999;    // the end of 9999
  if (after_ms < kEarliest || after_ms > kLatest) return std::nullopt;
  const std::int64_t after = after_ms >= 0 ? after_ms / 1000 : -((-after_ms + 999) / 1000);
  const std::optional<std::int64_t> found =
      follows_real_time_ ? next_real(after, zone) : next_fixed(after, zone);
  if (!found) return std::nullopt;
  return *found * 1000;
}

}  // namespace hearth::durable

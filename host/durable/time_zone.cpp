#include "durable/time_zone.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <string>

#include <date/tz.h>

namespace hearth::durable {
namespace {

using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;

constexpr std::size_t kMaxZoneNameBytes = 64;
constexpr year kLastListedYear{2037};
constexpr year kFirstModelYear{
    2010};  // 28 years hold every kind of year: its length, its first weekday

std::int64_t first_second(year of) {
  return sys_seconds(sys_days(of / 1 / 1)).time_since_epoch().count();
}

year year_of(std::int64_t second) {
  const sys_days day = std::chrono::floor<std::chrono::days>(sys_seconds(seconds(second)));
  return std::chrono::year_month_day(day).year();
}

// The last listed year whose days fall on the same weekdays: rules such as "the last Sunday in
// March" give the same dates.
year model_of(year late) {
  const std::chrono::weekday first{sys_days(late / 1 / 1)};
  for (year model = kLastListedYear; model > kFirstModelYear; --model) {
    if (model.is_leap() == late.is_leap() && std::chrono::weekday(sys_days(model / 1 / 1)) == first)
      return model;
  }
  return kFirstModelYear;
}

TimeZone::Stretch stretch_of(const date::sys_info& info) {
  return {info.begin.time_since_epoch().count(), info.end.time_since_epoch().count(),
          info.offset.count()};
}

date::sys_info info_at(const date::time_zone& zone, std::int64_t instant) {
  return zone.get_info(date::sys_seconds(seconds(instant)));
}

// How far back to look up a moment of an unlisted year; 0 in listed years.
std::int64_t seconds_to_model(const date::time_zone& zone, std::int64_t second) {
  const year late = year_of(second);
  if (late <= kLastListedYear) return 0;
  // A zone that changes its clock no more stays so: an earlier model year may have changes that
  // were abolished.
  const date::sys_info last = info_at(zone, first_second(kLastListedYear) + 24 * 3600);
  const bool rests =
      last.end.time_since_epoch().count() >= first_second(kLastListedYear + std::chrono::years(1));
  return first_second(late) - first_second(rests ? kLastListedYear : model_of(late));
}

// The database, read once. The static is here, although the library has one, so that
// ThreadSanitizer sees that the read comes before any use.
const date::tzdb& database() {
  static const date::tzdb& read = date::get_tzdb();
  return read;
}

}  // namespace

Result<TimeZone> TimeZone::find(std::string_view name) {
  if (name.empty() || name == "UTC") return TimeZone();
  const auto unknown = [&] {
    const bool printable = std::ranges::all_of(name, [](char c) { return c > ' ' && c < '\x7f'; });
    return Error{Errc::kInvalidArgument,
                 name.size() <= kMaxZoneNameBytes && printable
                     ? "there is no time zone \"" + std::string(name) + "\""
                     : "this is no name of a time zone: names are like Europe/Berlin"};
  };
  if (name.size() > kMaxZoneNameBytes) return unknown();
  // The library throws, and reads a zone's file only when it is first asked for an instant.
  const auto no_database = [] {
    return Error{Errc::kUnavailable,
                 "this machine has no time zone database (is tzdata installed?)"};
  };
  try {
    if (database().zones.empty()) return no_database();
  } catch (const std::exception&) {
    return no_database();
  }
  const date::time_zone* zone = nullptr;
  try {
    zone = date::locate_zone(name);
  } catch (const std::exception&) {
    return unknown();
  }
  try {
    (void)info_at(*zone, 0);
  } catch (const std::exception&) {
    return Error{Errc::kUnavailable,
                 "the time zone \"" + std::string(name) + "\" cannot be read on this machine"};
  }
  return TimeZone(*zone);
}

TimeZone::Stretch TimeZone::stretch(std::int64_t instant) const {
  constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max() / 2;
  if (zone_ == nullptr) return {-kEver, kEver, 0};
  const std::int64_t back = seconds_to_model(*zone_, instant);
  Stretch found = stretch_of(info_at(*zone_, instant - back));
  if (back == 0) {
    // The list is not reliable for the time after its end.
    found.until = std::min(found.until, first_second(kLastListedYear + std::chrono::years(1)));
    return found;
  }
  const year of = year_of(instant);
  found.from = std::max(found.from + back, first_second(of));
  found.until = std::min(found.until + back, first_second(of + std::chrono::years(1)));
  return found;
}

std::int64_t TimeZone::instant(std::int64_t local) const {
  if (zone_ == nullptr) return local;
  const std::int64_t back = seconds_to_model(*zone_, local);
  const date::local_info info = zone_->get_info(date::local_seconds(seconds(local - back)));
  if (info.result == date::local_info::nonexistent)
    return info.second.begin.time_since_epoch().count() + back;
  return local - info.first.offset.count();
}

}  // namespace hearth::durable

#pragma once
// Points in time as the host keeps them: Unix milliseconds.

#include <hearth/error.hpp>
#include <hearth/json.hpp>
#include <hearth/words.hpp>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

// The type of now(). Time(std::chrono::milliseconds(n)) has the Unix time of n ms.
using Time = std::chrono::sys_time<std::chrono::milliseconds>;

namespace detail {

// Whole milliseconds, never less than the given time. Rejects what is no number or does not fit:
// the conversions of <chrono> would give any value for it.
template <class Rep, class Period>
std::int64_t to_milliseconds(std::chrono::duration<Rep, Period> time, const char* what) {
  const double estimate = std::chrono::duration<double, std::milli>(time).count();
  if (!(std::fabs(estimate) <= 8.64e15))  // JavaScript's limit for a Date
    throw Error(HEARTH_E_INVALID, std::string(what) + ": not a time");
  return std::chrono::ceil<std::chrono::duration<std::int64_t, std::milli>>(time).count();
}

// ---- members of the host's records

inline Time read_time(const Json& milliseconds) {
  return Time(std::chrono::milliseconds(milliseconds.get<std::int64_t>()));
}
std::optional<Time> find_time(const Json& record, const char* name);
std::optional<std::string> find_text(const Json& record, const char* name);
// Null if there is none.
Json find_json(const Json& record, const char* name);
template <class Number>
Number find_number(const Json& record, const char* name, Number otherwise) {
  const auto found = record.find(name);
  return found == record.end() || found->is_null() ? otherwise : found->get<Number>();
}

inline Json to_json_time(const std::optional<Time>& time) {
  return time ? Json(time->time_since_epoch().count()) : Json();
}
inline Json to_json_text(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json();
}

// Not parse_json(): the host wraps values that may already have the full allowed depth.
Json parse_record(std::string_view text);

}  // namespace detail

}  // namespace hearth

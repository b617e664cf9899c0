#include "durable/schedule_rules.hpp"

#include "base/sha256.hpp"
#include "base/utf8.hpp"
#include "json/json.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace hearth::durable {
namespace {

constexpr std::size_t kMaxScheduleCallbackBytes = 256;
constexpr std::int64_t kEndOfTime = 253'402'300'799'999;  // of the year 9999
constexpr std::int64_t kLongestInterval = 366LL * 24 * 3'600'000;
constexpr std::uint32_t kDefaultMisfireLimit = 10;
constexpr std::uint32_t kMaxMisfireLimit = 1'000;

Error invalid(std::string why) {
  return Error{Errc::kInvalidArgument, std::move(why)};
}

// One blank between the fields, so that expressions with other blanks are equal.
std::string tidy(std::string_view expression) {
  std::string out;
  bool blank = false;
  for (const char c : expression) {
    if (c == ' ' || c == '\t') {
      blank = !out.empty();
      continue;
    }
    if (blank) out += ' ';
    blank = false;
    out += c;
  }
  return out;
}

Result<void> check_choices(const ScheduleRequest& request) {
  if (request.type < ScheduleType::kDelay || request.type > ScheduleType::kInterval)
    return invalid("a schedule is of type delay, at, cron or interval");
  if (request.idempotent > Idempotent::kNo) return invalid("idempotent has no such value");
  if (request.misfire > Misfire::kAll) return invalid("misfire is once, skip or all");
  if (request.overlap > Overlap::kAllow) return invalid("overlap is skip, queue or allow");
  if (request.misfire_limit > kMaxMisfireLimit) return invalid("misfire_limit is at most 1,000");
  if (request.fixed_rate && request.type != ScheduleType::kInterval)
    return invalid("only an interval has a fixed rate");
  const bool has_cron = !request.cron.empty() || !request.time_zone.empty();
  if (has_cron && request.type != ScheduleType::kCron)
    return invalid("an expression and a time zone belong to the type cron");
  if (request.callback.empty() || request.callback.size() > kMaxScheduleCallbackBytes ||
      !is_valid_utf8(request.callback)) {
    return invalid("a schedule's callback is 1 to 256 bytes of UTF-8");
  }
  return {};
}

Result<std::int64_t> first_time(const ScheduleRequest& request, const ScheduleRow& row,
                                const ScheduleSettings& settings, std::int64_t now_ms) {
  switch (request.type) {
    case ScheduleType::kDelay:
      if (request.when_ms < 0) return invalid("a delay is 0 ms or more");
      if (request.when_ms > kEndOfTime - now_ms)
        return invalid("the delay ends after the year 9999");
      return now_ms + request.when_ms;
    case ScheduleType::kAt:
      if (request.when_ms < 0 || request.when_ms > kEndOfTime)
        return invalid("the time must lie between the years 1970 and 9999, in milliseconds");
      return request.when_ms;
    case ScheduleType::kInterval:
      if (request.when_ms < 1 || request.when_ms > kLongestInterval)
        return invalid("an interval is 1 ms to 366 days");
      return now_ms + request.when_ms;
    case ScheduleType::kCron: break;
  }
  const Result<Recurrence> recurrence = recurrence_of(row, settings);
  if (!recurrence) return recurrence.error();
  const std::optional<std::int64_t> at = recurrence->next(now_ms);
  if (!at) return invalid("cron: the expression is never due");
  return *at;
}

// Equal only for requests that are alike. The times of one-shot schedules are not compared.
std::string likeness_of(const ScheduleRow& row, const Json& payload) {
  std::string text = row.type.value_or("");
  const auto add = [&text](std::string_view part) {
    text += '\0';
    text += part;
  };
  add(row.name);
  add(row.cron);
  add(row.time_zone);
  add(row.is(ScheduleType::kInterval) ? std::to_string(row.length_ms) : "");
  add(dump_json(payload));  // members in one order, no blanks
  return sha256_hex(text);
}

}  // namespace

bool is_idempotent(const ScheduleRequest& request) {
  if (request.idempotent != Idempotent::kByType) return request.idempotent == Idempotent::kYes;
  return request.type == ScheduleType::kCron || request.type == ScheduleType::kInterval;
}

Result<Recurrence> recurrence_of(const ScheduleRow& row, const ScheduleSettings& settings) {
  if (row.is(ScheduleType::kCron))
    return Recurrence::cron(row.cron, row.time_zone, settings.find_zone);
  return Recurrence::every(row.length_ms, row.scheduled_for);
}

Result<ScheduleRow> checked_schedule(const ScheduleRequest& request,
                                     const ScheduleSettings& settings, std::int64_t now_ms) {
  if (const Result<void> choices = check_choices(request); !choices) return choices.error();
  const Result<RetryPolicy> retry =
      checked_retry(request.max_attempts, request.retry_base_ms, request.retry_max_ms);
  if (!retry) return retry.error();
  if (request.payload.size() > settings.max_payload_bytes) {
    return Error{Errc::kLimitExceeded, "the payload is larger than " +
                                           std::to_string(settings.max_payload_bytes) + " bytes"};
  }
  const Result<Json> payload = parse_json(request.payload.empty() ? "null" : request.payload);
  if (!payload) return invalid("the payload is no JSON: " + payload.error().message);

  ScheduleRow row;
  row.type = to_string(request.type);
  row.name = request.callback;
  row.fixed_rate = request.fixed_rate;
  row.retry = *retry;
  row.misfire = request.misfire;
  row.misfire_limit = request.misfire_limit == 0 ? kDefaultMisfireLimit : request.misfire_limit;
  row.overlap = request.overlap;
  if (row.is(ScheduleType::kCron)) {
    row.cron = tidy(request.cron);
    row.time_zone = request.time_zone.empty() ? "UTC" : request.time_zone;
  }
  if (row.is(ScheduleType::kDelay) || row.is(ScheduleType::kInterval))
    row.length_ms = request.when_ms;
  const Result<std::int64_t> time = first_time(request, row, settings, now_ms);
  if (!time) return time.error();
  row.next_at_ms = std::max<std::int64_t>(*time, 1);  // 0 means never
  row.scheduled_for = *time;
  row.set_at_ms = now_ms;
  row.created_at_ms = now_ms;
  row.key = likeness_of(row, *payload);
  return row;
}

// ---- when a row is due --------------------------------------------------------------------------

void bound_wait(ScheduleRow& row, std::int64_t now) {
  const std::int64_t latest = now + std::max<std::int64_t>(0, row.next_at_ms - row.set_at_ms);
  if (row.next_at_ms <= latest) return;
  row.next_at_ms = latest;
  row.scheduled_for = std::min(row.scheduled_for, latest);
}

void reckon_anew(ScheduleRow& row, std::int64_t last, std::int64_t now,
                 const ScheduleSettings& settings) {
  const Result<Recurrence> recurrence = recurrence_of(row, settings);
  if (!recurrence) return;  // reported when the row is due
  const auto at = recurrence->next(recurrence->search_from(last, now));
  if (at && *at < row.next_at_ms) row.next_at_ms = row.scheduled_for = *at;
}

Result<std::uint32_t> reckon_absence(ScheduleRow& row, std::int64_t from, std::int64_t now,
                                     const ScheduleSettings& settings) {
  const Result<Recurrence> recurrence = recurrence_of(row, settings);
  if (!recurrence) {
    if (recurrence.error().code == Errc::kUnavailable) return recurrence.error();
    return 0U;  // reported after the run
  }
  const std::uint32_t others = recurrence->count(std::max(row.scheduled_for, from), now);
  if (others == 0) return 0U;
  if (row.misfire == Misfire::kAll) {
    row.catch_up_until = now;
    return 0U;
  }
  row.missed = std::min(kMostCounted, row.missed + others);
  return others;
}

std::optional<std::int64_t> following(const ScheduleRow& row, const Recurrence& recurrence,
                                      std::int64_t now) {
  const auto at = recurrence.next(recurrence.search_from(row.scheduled_for, now));
  // P4: no interval waits longer than its length, even if the clock was set back.
  if (at && row.fixed_rate) return std::min(*at, now + row.length_ms);
  return at;
}

bool set_next(ScheduleRow& row, std::optional<std::int64_t> at, std::int64_t now) {
  row.attempts = 0;
  row.missed = 0;
  row.owed = false;
  row.over = false;
  row.begun_at = 0;
  row.set_at_ms = now;
  row.next_at_ms = at.value_or(0);
  if (at) {
    row.scheduled_for = *at;
    return true;
  }
  row.dead = true;
  row.last_error = "it is never due again";
  return false;
}

bool catch_up(ScheduleRow& row, const Recurrence& recurrence, std::int64_t now) {
  if (row.catch_up_until <= row.scheduled_for) return false;
  const auto at =
      recurrence.first_of_last(row.misfire_limit, row.scheduled_for, row.catch_up_until);
  if (!at) return false;
  set_next(row, at, now);
  row.owed = true;
  return true;
}

}  // namespace hearth::durable

#include "api/object_alarms.hpp"

#include "api/object_answer.hpp"
#include "api/query_words.hpp"
#include "json/json.hpp"
#include "protocol/object_address.hpp"
#include "protocol/rfc3339.hpp"

#include <cmath>
#include <string>
#include <utility>

namespace hearth::api {
namespace {

constexpr double kMaxDelaySeconds = 10.0 * 366 * 24 * 3600;

// `record` is one of durable/alarms.hpp.
Json alarm_json(Json record) {
  record["fire_at"] = protocol::rfc3339(record.value("fire_at", std::int64_t{0}));
  return record;
}

// Does not check the method and its arguments: the server does.
Result<ObjectAlarm> read_alarm(std::string_view body, const Clock& clock) {
  const auto wrong = [](const char* why) { return Error{Errc::kInvalidArgument, why}; };
  const auto parsed = parse_client_json(body);
  if (!parsed || !parsed->is_object()) return wrong("the body must be a JSON object");
  ObjectAlarm alarm;
  alarm.method = text_member(*parsed, "method");
  const auto args = parsed->find("args");
  alarm.arguments =
      protocol::positional_arguments(args == parsed->end() ? std::string() : dump_json(*args));
  const auto fire_at = parsed->find("fire_at");
  const auto delay = parsed->find("delay_seconds");
  if ((fire_at == parsed->end()) == (delay == parsed->end()))
    return wrong("one of `fire_at` and `delay_seconds` must say when");
  if (fire_at != parsed->end()) {
    const auto at = protocol::parse_rfc3339(text_member(*parsed, "fire_at"));
    if (!at) return wrong("`fire_at` must be a time of RFC 3339, such as 2026-02-16T00:00:00Z");
    alarm.at_ms = *at;
    return alarm;
  }
  const double seconds = delay->is_number() ? delay->get<double>() : -1;
  if (!(seconds >= 0 && seconds <= kMaxDelaySeconds))
    return wrong("`delay_seconds` must be a number from 0 to ten years");
  alarm.at_ms = unix_millis(clock.wall_now()) + std::llround(seconds * 1000);
  return alarm;
}

}  // namespace

void ObjectAlarms::add_routes(Routes& routes) {
  struct Row {
    std::string_view method, pattern, summary;
    void (ObjectAlarms::*answer)(const RouteCall&);
    RouteShape shape;
  };
  static constexpr Row kRows[] = {
      {"POST",
       "/objects/{class}/{id}/alarms",
       "Sets an alarm: a call of a method at a time.",
       &ObjectAlarms::set,
       {.body = "NewAlarm", .status = 201, .answer = "AlarmAnswer"}},
      {"GET",
       "/objects/{class}/{id}/alarms",
       "A page of the alarms of an object.",
       &ObjectAlarms::list,
       {.query = "limit cursor", .answer = "AlarmPage"}},
      {"DELETE",
       "/objects/{class}/{id}/alarms/{alarm}",
       "Removes an alarm.",
       &ObjectAlarms::cancel,
       {.answer = "Done"}},
  };
  for (const Row& row : kRows) {
    routes.add({row.method, row.pattern, Access::kUser, row.summary,
                [this, answer = row.answer](const RouteCall& call) { (this->*answer)(call); },
                row.shape});
  }
}

std::optional<ObjectAddress> ObjectAlarms::find(const RouteCall& call) const {
  auto found = object_at(classes_, readiness_, call.values[0], call.values[1], max_name_bytes_);
  if (auto* object = std::get_if<ObjectAddress>(&found)) return std::move(*object);
  call.exchange->respond(std::get<net::HttpResponse>(std::move(found)));
  return std::nullopt;
}

void ObjectAlarms::set(const RouteCall& call) {
  auto object = find(call);
  if (!object) return;
  const net::HttpRequest& request = call.exchange->request();
  auto alarm = read_alarm(request.body, clock_);
  if (!alarm) return call.exchange->respond(object_error(alarm.error()));
  alarm->setter = request.address;
  alarm->actor = actor_of(*call.exchange);
  actions_.set_alarm(
      *std::move(object), *std::move(alarm),
      [exchange = call.exchange](const Result<std::string>& set) {
        if (!set) return exchange->respond(object_refusal(set.error()));
        auto record = parse_host_json(*set);
        if (!record) return exchange->respond(object_error(record.error()));
        exchange->respond(object_data(dump_json(alarm_json(*std::move(record))), 201));
      });
}

void ObjectAlarms::list(const RouteCall& call) {
  auto object = find(call);
  if (!object) return;
  const auto limit = page_limit(call.query);
  if (!limit) return call.exchange->respond(object_error(limit.error()));
  AlarmPageRequest wanted{.after = {}, .limit = *limit};
  if (const auto read = read_words(call.query, {{"cursor", &wanted.after}}); !read)
    return call.exchange->respond(object_error(read.error()));
  actions_.alarms(*std::move(object), std::move(wanted),
                  [exchange = call.exchange](const Result<std::string>& listed) {
                    if (!listed) return exchange->respond(object_refusal(listed.error()));
                    auto page = parse_host_json(*listed);
                    if (!page) return exchange->respond(object_error(page.error()));
                    for (Json& record : (*page)["alarms"]) record = alarm_json(std::move(record));
                    exchange->respond(object_data(dump_json(*page)));
                  });
}

void ObjectAlarms::cancel(const RouteCall& call) {
  auto object = find(call);
  if (!object) return;
  actions_.cancel_alarm(
      *std::move(object), std::string(call.values[2]), actor_of(*call.exchange),
      [exchange = call.exchange](const Result<std::string>& done) {
        exchange->respond(done ? object_data("null") : object_refusal(done.error()));
      });
}

}  // namespace hearth::api

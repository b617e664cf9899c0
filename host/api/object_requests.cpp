#include "api/object_requests.hpp"

#include "api/query_words.hpp"
#include "json/json.hpp"
#include "protocol/agent_address.hpp"
#include "protocol/object_address.hpp"
#include "protocol/rfc3339.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

namespace hearth::api {
namespace {

constexpr double kMaxDelaySeconds = 10.0 * 366 * 24 * 3600;

Error wrong_request(std::string_view why) {
  return {Errc::kInvalidArgument, std::string(why)};
}

}  // namespace

Result<ObjectPageRequest> read_object_page(std::string_view query) {
  QueryReader in(query);
  ObjectPageRequest request;
  request.agent_class = in.word("class");
  request.after = in.word("cursor");
  std::string status = in.word("status");
  std::ranges::transform(status, status.begin(), [](unsigned char c) { return std::tolower(c); });
  if (!in.wrong() && !status.empty() && status != "active" && status != "hibernating")
    return wrong_request("`status` must be Active or Hibernating");
  if (!status.empty()) request.is_active = status == "active";
  request.limit = in.limit();
  return in.result(std::move(request));
}

Result<PageRequest> read_page(std::string_view query, std::string_view cursor) {
  QueryReader in(query);
  const std::size_t limit = in.limit();
  return in.result(PageRequest{.after = in.word(cursor), .limit = limit});
}

Result<NewObject> read_new_object(std::string_view text, std::size_t max_name_bytes) {
  const auto body = parse_client_json(text);
  if (!body || !body->is_object()) return wrong_request("the body must be a JSON object");
  NewObject object{text_member(*body, "class"), text_member(*body, "object_id"), {}};
  if (object.agent_class.empty() || object.name.empty())
    return wrong_request("`class` and `object_id` must be texts");
  // It is a text, not a part of a path: its percent signs stand for themselves.
  object.name = protocol::object_name_of_text(object.name);
  if (const auto problem = protocol::name_problem(object.name, max_name_bytes); !problem.empty())
    return wrong_request(problem);
  const auto storage = body->find("storage");
  if (storage == body->end() || storage->is_null()) return object;
  if (!storage->is_object()) return wrong_request("`storage` must be a JSON object");
  object.patch = dump_json(*storage);
  return object;
}

Result<std::string> read_storage_member(std::string_view text) {
  const auto body = parse_client_json(text);
  if (!body || !body->is_object() || !body->contains("storage") || !(*body)["storage"].is_object())
    return wrong_request("the body must be a JSON object with an object `storage`");
  if (body->size() != 1) return wrong_request("nothing but `storage` can be changed");
  return dump_json((*body)["storage"]);
}

Result<AlarmRequest> read_alarm(std::string_view text, const Clock& clock) {
  const auto body = parse_client_json(text);
  if (!body || !body->is_object()) return wrong_request("the body must be a JSON object");
  AlarmRequest alarm;
  alarm.method = text_member(*body, "method");
  const auto args = body->find("args");
  alarm.arguments =
      protocol::positional_arguments(args == body->end() ? std::string() : dump_json(*args));
  const auto fire_at = body->find("fire_at");
  const auto delay = body->find("delay_seconds");
  if ((fire_at == body->end()) == (delay == body->end()))
    return wrong_request("one of `fire_at` and `delay_seconds` must say when");
  if (fire_at != body->end()) {
    const auto at = protocol::parse_rfc3339(text_member(*body, "fire_at"));
    if (!at)
      return wrong_request("`fire_at` must be a time of RFC 3339, such as 2026-02-16T00:00:00Z");
    alarm.at_ms = *at;
    return alarm;
  }
  const double seconds = delay->is_number() ? delay->get<double>() : -1;
  if (!(seconds >= 0 && seconds <= kMaxDelaySeconds))
    return wrong_request("`delay_seconds` must be a number from 0 to ten years");
  alarm.at_ms = unix_millis(clock.wall_now()) + std::llround(seconds * 1000);
  return alarm;
}

}  // namespace hearth::api

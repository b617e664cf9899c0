#include "extensions/alarms.hpp"

#include "extensions/abi_call.hpp"
#include "extensions/durable_work.hpp"
#include "json/json.hpp"
#include "json/json_object_text.hpp"

#include <utility>

namespace hearth::extensions {
namespace {

static_assert(HEARTH_ALARMS_DEFAULT == durable::AlarmSettings().max_alarms);

// Neither a client nor an alarm may call a method whose name begins with this.
constexpr std::string_view kReservedMethods = "__";

}  // namespace

Result<durable::AlarmRequest> checked_alarm(std::string_view method, std::string_view arguments,
                                            std::int64_t at_ms, std::size_t max_bytes) {
  const auto wrong = [](const char* why) { return Error{Errc::kInvalidArgument, why}; };
  if (method.empty() || method.size() > HEARTH_ALARM_METHOD_MAX ||
      method.starts_with(kReservedMethods))
    return wrong("an alarm calls a method: a name of 1 to 256 bytes that does not begin with __");
  if (arguments.size() > max_bytes)
    return Error{Errc::kTooLarge, "the arguments of an alarm are larger than limits.max_value"};
  durable::AlarmRequest request{.method = std::string(method), .arguments = "[]", .at_ms = at_ms};
  if (arguments.empty()) return request;
  const auto parsed = parse_json(arguments);
  if (!parsed || !parsed->is_array()) return wrong("the arguments of an alarm are a JSON array");
  request.arguments = arguments;
  return request;
}

Result<std::string> set_alarm(AgentContext& agent, const durable::AlarmRequest& request) {
  auto set = agent.work().alarms().set(request);
  if (!set) return set.error();
  agent.work().reports().add(DurableEvent::kAlarmSet, set->id, request.method);
  set->record.pop_back();
  return set->record + (set->replaced ? R"(,"replaced":true})" : R"(,"replaced":false})");
}

Result<std::string> alarm_page(AgentContext& agent, std::string_view after, std::size_t limit) {
  auto page = agent.work().alarms().page(after, limit);
  if (!page) return page.error();
  JsonObjectText json;
  json.json("alarms", page->records);
  return (page->next.empty() ? json.json("next", "null") : json.text("next", page->next)).take();
}

// ---- its C functions ----------------------------------------------------------------------------

namespace {

Result<std::string> set_agents_alarm(AgentContext& it, const hearth_alarm_request& request) {
  const auto texts = texts_of({request.method, request.arguments});
  if (!texts) return bad_slice();
  if (const auto refusal = it.work_refusal()) return *refusal;
  const auto& [method, arguments] = *texts;
  const auto wanted =
      checked_alarm(method, arguments, request.at_ms, it.settings().sql.max_value_bytes);
  if (!wanted) return wanted.error();
  return set_alarm(it, *wanted);
}

Result<std::string> list_alarms(AgentContext& it) {
  return it.work().alarms().list();
}

Result<void> cancel_alarm(AgentContext& it, std::string_view id) {
  return it.work().alarms().remove(id);
}

}  // namespace

constexpr hearth_alarms_v1 kAlarmsTable = {.set = kDoor<set_agents_alarm>,
                                           .list = kDoor<list_alarms>,
                                           .cancel = kDoor<cancel_alarm, DoorKind::kWork>};

}  // namespace hearth::extensions

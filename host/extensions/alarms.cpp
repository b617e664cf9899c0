#include "extensions/alarms.hpp"

#include "extensions/abi_request.hpp"
#include "extensions/durable_work.hpp"
#include "json/json.hpp"

#include <utility>

namespace hearth::extensions {
namespace {

static_assert(HEARTH_ALARMS_DEFAULT == durable::AlarmSettings().max_alarms);

// No client and no alarm calls a method whose name begins so.
constexpr std::string_view kReservedMethods = "__";

Result<durable::AlarmRequest> read_alarm_request(const AgentContext& agent, std::string_view method,
                                                 std::string_view arguments) {
  const auto wrong = [](const char* why) { return Error{Errc::kInvalidArgument, why}; };
  if (method.empty() || method.size() > HEARTH_ALARM_METHOD_MAX ||
      method.starts_with(kReservedMethods))
    return wrong("an alarm calls a method: a name of 1 to 256 bytes that does not begin with __");
  if (arguments.size() > agent.settings().sql.max_value_bytes)
    return Error{Errc::kLimitExceeded,
                 "the arguments of an alarm are larger than limits.max_value"};
  durable::AlarmRequest request{.method = std::string(method), .arguments = "[]"};
  if (arguments.empty()) return request;
  const auto parsed = parse_json(arguments);
  if (!parsed || !parsed->is_array()) return wrong("the arguments of an alarm are a JSON array");
  request.arguments = arguments;
  return request;
}

hearth_status set_alarm(const hearth_host* host, hearth_agent agent,
                        const hearth_alarm_request* request, hearth_bytes* record) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    const auto given = read_struct(request);
    if (!given) return bad_struct(it);
    const auto method = text_of(given->method);
    const auto arguments = text_of(given->arguments);
    if (!method || !arguments) return bad_slice(it);
    if (const auto refusal = it.work_refusal()) return fail(it, *refusal);
    auto wanted = read_alarm_request(it, *method, *arguments);
    if (!wanted) return fail(it, wanted.error());
    wanted->at_ms = given->at_ms;
    auto set = it.work().alarms().set(*wanted);
    if (!set) return fail(it, set.error());
    it.work().report(DurableEvent::kAlarmSet, set->id, *method);
    lend(it, durable::with_replaced(*std::move(set)), record);
    return kOk;
  });
}

hearth_status list_alarms(const hearth_host* host, hearth_agent agent,
                          hearth_bytes* records) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    lend(it, it.work().alarms().list(), records);
    return kOk;
  });
}

hearth_status cancel_alarm(const hearth_host* host, hearth_agent agent, hearth_bytes id) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    const auto text = text_of(id);
    if (!text) return bad_slice(it);
    if (const auto refusal = it.work_refusal()) return fail(it, *refusal);
    return status_of(it, it.work().alarms().remove(*text));
  });
}

constexpr hearth_alarms_v1 kAlarms = {
    .set = set_alarm, .list = list_alarms, .cancel = cancel_alarm};

}  // namespace

const hearth_alarms_v1& alarms_extension() noexcept {
  return kAlarms;
}

}  // namespace hearth::extensions

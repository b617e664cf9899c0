#include "extensions/call.hpp"

#include "extensions/abi_call.hpp"
#include "extensions/callee.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/trace.hpp"
#include "json/json_object_text.hpp"
#include "json/json_scanner.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <utility>

namespace hearth::extensions {
namespace {

static_assert(kCallBegan == HEARTH_CALL_BEGAN && kMaxCallDepth == HEARTH_CALL_MAX_DEPTH);

constexpr std::size_t kMaxCalledMethodBytes = 256;
constexpr std::uint64_t kUsualCallWindow = std::uint64_t{256} << 10;
constexpr std::uint64_t kLongestCallTimeout = std::uint64_t{24} * 3600 * 1000;
constexpr std::size_t kNoticesListedByDefault = 100;
constexpr std::size_t kMostNoticesListed = 1000;

Error bad_call(const char* why) {
  return Error{Errc::kInvalidArgument, why};
}

bool is_json_array(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '[' && is_json(text);
}

Result<void> check_call(const CallRequest& request, std::uint32_t known_flags) {
  if ((request.flags & ~known_flags) != 0)
    return Error{Errc::kUnsupported, "the call has a flag that this server does not know"};
  if (request.method.empty() || request.method.size() > kMaxCalledMethodBytes)
    return bad_call("a method's name is 1 to 256 bytes of UTF-8");
  if (!request.arguments.empty() && !is_json_array(request.arguments))
    return bad_call("the arguments of a call are a JSON array");
  return {};
}

std::string arguments_of(const CallRequest& request) {
  return std::string(request.arguments.empty() ? std::string_view("[]") : request.arguments);
}

// For a host that has no other agents.
class NoWay final : public RemoteOperation {
 public:
  void start(RemoteListener& listener) override {
    listener.end(Error{Errc::kUnavailable, "this host has no other agents"}, 0);
  }
  void credit(std::uint64_t /*bytes*/) override {}
};

}  // namespace

// ---- what it does -------------------------------------------------------------------------------

CallOrigin CallExtension::event_of(const CallRequest& request) {
  CallOrigin event = agent_.calls().origin(request.call);
  if (event.trace.empty()) event.trace = agent_.calls().trace();
  if (event.trace.empty()) event.trace = new_trace(agent_.work().random());
  return event;
}

Result<storage::AgentKey> CallExtension::callee(const CallRequest& request,
                                                const CallOrigin& event) {
  const bool is_of_agent = event.origin && event.origin->is_agent();
  return callee_of(
      {.key = agent_.key(),
       .asked_by = is_of_agent ? &event.origin->agent : nullptr,
       .router = agent_.ports().agents},
      {.flags = request.flags, .agent_class = request.agent_class, .name = request.name});
}

AgentCall CallExtension::call_to(storage::AgentKey callee, const CallRequest& request,
                                 const CallOrigin& event) {
  auto origin = std::make_shared<Origin>();
  origin->agent = agent_.key();
  if (event.origin) {
    origin->depth = event.origin->depth;
    origin->waiting = event.origin->waiting;
  }
  OpenSpan span = agent_.ports().open_span(event.trace, SpanKind::kClient);
  origin->trace = span.is_open() ? span.span().text() : event.trace;
  ++origin->depth;
  if (event.holds_calls) origin->waiting.push_back({origin->agent, event.runs_alone});
  const bool must_exist =
      (request.flags & HEARTH_CALL_NO_CREATE) != 0 || must_exist_already(agent_.key(), callee);
  AgentCall call{.agent_class = std::move(callee.agent_class),
                 .name = std::move(callee.name),
                 .method = std::string(request.method),
                 .arguments = arguments_of(request),
                 .origin = std::move(origin),
                 .window = request.window == 0 ? kUsualCallWindow : request.window,
                 .must_exist = must_exist,
                 .span = std::move(span)};
  if (call.span.is_open()) {
    call.span.set("hearth.agent.class", agent_.key().agent_class);
    call.span.set("hearth.agent.name", agent_.key().name);
  }
  if (request.timeout_ms != 0) {
    call.timeout = std::chrono::milliseconds(std::min(request.timeout_ms, kLongestCallTimeout));
  } else if (event.due) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*event.due - agent_.clock().steady_now());
    call.timeout = std::max(left, std::chrono::milliseconds(1));
  }
  return call;
}

Result<OperationId> CallExtension::start(const CallRequest& request, std::uint64_t token) {
  constexpr std::uint32_t kFlags = HEARTH_CALL_NO_CREATE | HEARTH_CALL_BELOW | HEARTH_CALL_ABOVE;
  if (auto checked = check_call(request, kFlags); !checked) return checked.error();
  const CallOrigin event = event_of(request);
  auto wanted = callee(request, event);
  if (!wanted) return wanted.error();
  AgentRouter* const router = agent_.ports().agents;
  std::unique_ptr<RemoteOperation> remote;
  if (router == nullptr) {
    remote = std::make_unique<NoWay>();
  } else {
    remote = router->call(call_to(*std::move(wanted), request, event));
  }
  auto submitted = agent_.calls().submit(HEARTH_OP_CALL, std::move(remote), token);
  if (submitted) agent_.work().sent_elsewhere();
  return submitted;
}

Result<std::string> CallExtension::notify(const CallRequest& request) {
  constexpr std::uint32_t kFlags = HEARTH_CALL_BELOW | HEARTH_CALL_ABOVE;
  if (auto checked = check_call(request, kFlags); !checked) return checked.error();
  const CallOrigin event = event_of(request);
  auto wanted = callee(request, event);
  if (!wanted) return wanted.error();
  if (agent_.phase() == AgentPhase::kMigrating)
    return Error{Errc::kForbidden, "nothing leaves an agent while its data are migrated"};
  if (agent_.in_transaction())
    return Error{Errc::kConflict, "not while a transaction of the agent's own is open"};
  const std::string its_class = wanted->agent_class;
  auto id = agent_.work().notices().push({.agent_class = std::move(wanted->agent_class),
                                          .name = std::move(wanted->name),
                                          .method = std::string(request.method),
                                          .arguments = arguments_of(request),
                                          .trace = event.trace});
  if (id) {
    agent_.work().sent_elsewhere();
    agent_.work().reports().add(DurableEvent::kNotifyCreate, *id,
                                its_class + " " + std::string(request.method));
  }
  return id;
}

Result<std::string> CallExtension::caller(CallId call) {
  const OriginPtr origin = agent_.calls().origin(call).origin;
  if (!origin || !origin->is_agent())
    return Error{Errc::kNotFound, "this event comes from no agent"};
  JsonObjectText json;
  json.text("class", origin->agent.agent_class).text("name", origin->agent.name);
  if (!origin->notification.empty()) json.text("notification", origin->notification);
  return json.take();
}

Result<void> CallExtension::remove(std::string_view id) {
  if (agent_.in_transaction())
    return Error{Errc::kConflict, "not while a transaction of the agent's own is open"};
  return agent_.work().notices().remove(id);
}

AgentCall call_of(const storage::AgentKey& caller, durable::NoticeDelivery delivery) {
  auto origin = std::make_shared<Origin>();
  if (!delivery.is_alarm) {  // a client may have set the alarm, so the call is not the agent's
    origin->agent = caller;
    origin->notification = std::move(delivery.id);
  }
  origin->work = {delivery.row, delivery.is_alarm ? 0 : caller.digest()};
  origin->depth = 1;
  origin->trace = std::move(delivery.notice.trace);
  const bool must_exist =
      must_exist_already(caller, {delivery.notice.agent_class, delivery.notice.name});
  return {.agent_class = std::move(delivery.notice.agent_class),
          .name = std::move(delivery.notice.name),
          .method = std::move(delivery.notice.method),
          .arguments = std::move(delivery.notice.arguments),
          .origin = std::move(origin),
          .timeout = delivery.timeout,
          .window = std::numeric_limits<std::uint64_t>::max(),  // no code reads the answer
          .must_exist = must_exist};
}

durable::NoticeOutcome notice_outcome(const Result<std::string>& outcome, std::uint32_t flags) {
  if (outcome) return {.delivered = true, .error = {}};
  const Error& error = outcome.error();
  const bool began = (flags & HEARTH_CALL_BEGAN) != 0;
  const bool is_answer = error.code != Errc::kUnavailable && error.code != Errc::kTimeout &&
                         error.code != Errc::kClosing && error.code != Errc::kInternal &&
                         error.code != Errc::kUnreadable;
  // A repetition of the call would get the same answer.
  const bool is_final = error.code == Errc::kFinal || error.code == Errc::kInvalidArgument ||
                        error.code == Errc::kNotFound || error.code == Errc::kUnsupported ||
                        error.code == Errc::kForbidden;
  return {.delivered = began && is_answer,
          .error = error.message,
          .is_final = began && is_final,
          .needs_code = began && error.code == Errc::kUnreadable};
}

// ---- its C functions ----------------------------------------------------------------------------

namespace {

// The views of the result point into the plugin's memory.
Result<CallRequest> read_call(const hearth_call_request& given) {
  const auto texts = texts_of({given.agent_class, given.name, given.method, given.arguments});
  if (!texts) return bad_slice();
  const auto& [agent_class, name, method, arguments] = *texts;
  return CallRequest{.flags = given.flags,
                     .agent_class = agent_class,
                     .name = name,
                     .method = method,
                     .arguments = arguments,
                     .call = given.call,
                     .timeout_ms = given.timeout_ms,
                     .window = given.window};
}

Result<OperationId> start_call(AgentContext& it, const hearth_call_request& request,
                               std::uint64_t token) {
  const auto wanted = read_call(request);
  if (!wanted) return wanted.error();
  return CallExtension(it).start(*wanted, token);
}

Result<std::string> notify_agent(AgentContext& it, const hearth_call_request& request) {
  const auto wanted = read_call(request);
  if (!wanted) return wanted.error();
  return CallExtension(it).notify(*wanted);
}

Result<std::string> list_notices(AgentContext& it, std::string_view after, std::uint32_t limit) {
  const auto most = read_limit(limit, kNoticesListedByDefault, kMostNoticesListed);
  if (!most) return Error{Errc::kInvalidArgument, "at most 1000 notifications are listed at once"};
  return it.work().notices().list(after, *most);
}

}  // namespace

constexpr hearth_call_v1 kCallTable{kDoor<start_call>, kDoor<notify_agent>,
                                    kDoor<&CallExtension::caller>, kDoor<list_notices>,
                                    kDoor<&CallExtension::remove>};

}  // namespace hearth::extensions

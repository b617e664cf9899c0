#include "api/objects_endpoint.hpp"

#include "api/edge_rules.hpp"
#include "api/object_answer.hpp"
#include "api/sub_agent_gate.hpp"
#include "base/sha256.hpp"
#include "base/utf8.hpp"
#include "json/json.hpp"
#include "json/json_scanner.hpp"
#include "json/json_text.hpp"
#include "protocol/object_address.hpp"
#include "protocol/request_query.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace hearth::api {
namespace {

constexpr std::string_view kReserved = "__";

bool is_printable_key(std::string_view key) {
  return !key.empty() && key.size() <= extensions::CallKey::kMaxBytes &&
         std::ranges::all_of(key, [](char c) { return c > ' ' && c <= '~'; });
}

runtime::Headers trace_headers(const net::HttpHeaders& headers) {
  runtime::Headers trace;
  for (const std::string_view name : {"traceparent", "tracestate"}) {
    if (const auto value = net::find_header(headers, name)) trace.emplace_back(name, *value);
  }
  return trace;
}

// The client that a stored answer belongs to: the call of another client is no retry. Not all
// claims count: a renewed token has another `exp`.
std::string subject_of(const std::string& claims) {
  if (claims.empty()) return {};
  const auto json = parse_json(claims);
  return json ? '\0' + claim_text(*json, "sub").value_or("") : std::string();
}

// Equal for calls that are the same request: the agent gets the same values, in the same order.
std::string fingerprint(std::string_view method, std::string_view arguments,
                        const std::string& claims) {
  std::string text;
  append_json_string(text, method);
  return sha256_hex(text + json_in_one_spelling(arguments) + subject_of(claims));
}

}  // namespace

void ObjectsEndpoint::add_routes(Routes& routes) {
  routes.add({"POST",
              "/objects/{class}/{id}/call",
              Access::kUser,
              "Calls a method of an object, which is made and woken if need be.",
              [this](const RouteCall& request) { call(request); },
              {.body = "Call", .answer = "CallResult"}});
  routes.add({"POST",
              "/objects/{class}/{id}/call/{method}",
              Access::kUser,
              "Calls the method of an object with the body as its arguments.",
              [this](const RouteCall& request) { call_method(request); },
              {.body = "Anything", .answer = "CallResult"}});
}

void ObjectsEndpoint::call(const RouteCall& call) {
  auto read = protocol::read_object_call(call.exchange->request().body);
  if (!read) return call.exchange->respond(object_error(read.error()));
  deliver(call, std::move(read->method), std::move(read->arguments));
}

void ObjectsEndpoint::call_method(const RouteCall& call) {
  auto arguments = protocol::read_object_arguments(call.exchange->request().body);
  if (!arguments) return call.exchange->respond(object_error(arguments.error()));
  std::string method = protocol::percent_decode(call.values[2]);
  if (!is_valid_utf8(method))
    return call.exchange->respond(
        object_error(400, "invalid_argument", "the method's name is not valid UTF-8"));
  deliver(call, std::move(method), *std::move(arguments));
}

void ObjectsEndpoint::deliver(const RouteCall& asked, std::string method, std::string arguments) {
  const Exchange& exchange = asked.exchange;
  if (method.starts_with(kReserved))
    return exchange->respond(
        object_error(404, "invalid_method", "names of methods do not begin with __"));
  runtime::Shard::AgentCallIn call;
  call.key = asked.object.key;
  call.segment = asked.object.served->segment;
  call.method = std::move(method);
  call.arguments = std::move(arguments);
  call.timeout = asked.object.served->settings.object_call_timeout;
  call.is_of_client = true;
  const net::HttpRequest& request = exchange->request();
  if (const auto key = net::find_header(request.headers, "Idempotency-Key")) {
    if (!is_printable_key(*key))
      return exchange->respond(
          object_error(400, "invalid_argument",
                       "an Idempotency-Key is 1 to 255 printable characters without a space"));
    call.retry_key = {std::string(*key), fingerprint(call.method, call.arguments, asked.claims)};
  }
  call.origin = runtime::traced_origin(trace_headers(request.headers), asked.claims);
  const unsigned index = runtime_.shard_index(call.key);
  const auto deliver_here =
      [&runtime = runtime_, index, exchange,
       call = std::make_shared<const runtime::Shard::AgentCallIn>(std::move(call))] {
        runtime::Shard& shard = runtime.shard(index);
        if (makes_too_many(shard, exchange->request().address.get(), call->key))
          return exchange->respond(
              object_error(429, "limit_exceeded", net::too_many_reason(kNewAgents)));
        shard.call(*call, make_object_answer(exchange, runtime.classes(),
                                             {.segment = call->segment,
                                              .method = call->method,
                                              .has_key = call->retry_key.has_value()}));
      };
  runtime::ShardLoop& loop = runtime_.loop(index);
  if (loop.on_this_thread()) {
    deliver_here();
  } else {
    loop.post(deliver_here);
  }
}

}  // namespace hearth::api

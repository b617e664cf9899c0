#pragma once
// The mock host's C functions: hearth_host and every extension, in memory.

#include <hearth/testing/caller.hpp>
#include <hearth/testing/durable_tables.hpp>
#include <hearth/testing/kv_table.hpp>
#include <hearth/testing/recovery.hpp>
#include <hearth/testing/savepoints.hpp>
#include <hearth/testing/sql_table.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::testing::detail {

// ---- hearth_host --------------------------------------------------------------------------------

inline hearth_status complete(const hearth_host* host, hearth_agent agent, std::uint64_t id,
                              hearth_status status, hearth_bytes body) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (id == 0 && status < 0) {  // the text of what create or a synchronous event returns
    caller.agent->refusal = view(body);
    return HEARTH_OK;
  }
  const auto call = caller.call(id);
  if (!call) return HEARTH_E_GONE;
  const bool is_durable =
      is_event_kind(call->kind) && event_rule(call->kind).sender == EventSender::kWork;
  if (is_durable && caller.in_transaction()) return caller.fail_in_transaction();
  caller.agent->calls.erase(id);
  const std::string_view text = view(body);
  if (status == HEARTH_OK && call->kind == HEARTH_EVENT_CALL && !text.empty() && !is_json(text)) {
    caller.engine.finish(*call, HEARTH_E_PLUGIN, "the result is not JSON");
    return HEARTH_E_INVALID;
  }
  caller.engine.finish(*call, status, text);
  return HEARTH_OK;
}

inline hearth_status emit(const hearth_host* host, hearth_agent agent, std::uint64_t id,
                          hearth_bytes part) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  const auto call = caller.call(id);
  if (!call) return HEARTH_E_GONE;
  if (call->kind != HEARTH_EVENT_CALL && call->kind != HEARTH_EVENT_REQUEST)
    return HEARTH_E_UNSUPPORTED;
  if (const auto client = caller.client(call->connection);
      call->connection != 0 && (!client || !client->open))
    return HEARTH_E_GONE;
  if (call->kind == HEARTH_EVENT_CALL && !is_json(view(part))) return HEARTH_E_INVALID;
  call->parts.emplace_back(view(part));
  return HEARTH_OK;
}

inline hearth_status submit(const hearth_host* host, hearth_agent agent, std::uint32_t kind,
                            hearth_bytes request, std::uint64_t token, std::uint64_t* id) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (caller.engine.submit_status != HEARTH_OK)
    return caller.fail(caller.engine.submit_status, "submit fails in this test");
  OperationRecord operation;
  operation.kind = kind;
  operation.token = token;
  std::uint64_t number = 0;  // both requests of version 1 are one number
  if (kind != HEARTH_OP_SLEEP && kind != HEARTH_OP_OFFLOAD) return HEARTH_E_UNSUPPORTED;
  if (request.len != sizeof number) return HEARTH_E_INVALID;
  std::memcpy(&number, request.ptr, sizeof number);
  if (kind == HEARTH_OP_SLEEP) {
    if (number > std::uint64_t{366} * 24 * 3600 * 1000)
      return caller.fail(HEARTH_E_INVALID, "a sleep is at most 366 days long");
    operation.due_ns = caller.engine.steady_ns + number * 1'000'000;
  } else {
    const hearth_class* const definition = caller.agent->definition;
    if (!definition->get_extension || !definition->get_extension(definition, HEARTH_EXT_OFFLOAD))
      return HEARTH_E_UNSUPPORTED;
    operation.job = number;
  }
  return caller.engine.submit(*caller.agent, operation, *id);
}

inline hearth_status cancel(const hearth_host* host, hearth_agent agent, std::uint64_t id) {
  const Caller caller(host, agent, true);
  return caller.bad() ? caller.status : caller.engine.cancel_operation(agent, id);
}

inline hearth_status last_error(const hearth_host* host, hearth_agent agent, hearth_bytes* text) {
  const Caller caller(host, agent, true);
  if (caller.bad()) return caller.status;
  return caller.lend(std::exchange(caller.agent->last_error, {}), text);
}

inline hearth_status post(const hearth_host* host, hearth_agent agent, std::uint64_t token) {
  return Engine::of(host).post(agent, token);
}

// ---- log, clock, random, agent ------------------------------------------------------------------

inline void write_log(const hearth_host* host, hearth_agent, std::int32_t level,
                      hearth_bytes text) {
  constexpr std::string_view kLevels[] = {"", "debug ", "info ", "warn ", "error "};
  const std::string_view name = level >= 1 && level <= 4 ? kLevels[level] : "log ";
  Engine::of(host).write_log(std::string(name) + std::string(view(text)));
}
inline std::int64_t wall_ms(const hearth_host* host) {
  return Engine::of(host).wall_ms;
}
inline std::uint64_t steady_ns(const hearth_host* host) {
  return Engine::of(host).steady_ns;
}
inline hearth_status fill(const hearth_host* host, void* out, std::size_t size) {
  if (size > 1024 * 1024) return HEARTH_E_INVALID;
  Engine::of(host).fill_random(static_cast<char*>(out), size);
  return HEARTH_OK;
}
inline hearth_status evict(const hearth_host* host, hearth_agent agent) {
  const Caller caller(host, agent);
  if (!caller.bad()) caller.agent->evict_requested = true;
  return caller.status;
}
inline hearth_status destroy(const hearth_host* host, hearth_agent agent) {
  const Caller caller(host, agent);
  if (!caller.bad()) caller.agent->destroy_requested = true;
  return caller.status;
}

// ---- state --------------------------------------------------------------------------------------

inline hearth_status get_state(const hearth_host* host, hearth_agent agent, hearth_bytes* json) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  const auto& text = caller.agent->state ? caller.agent->state : caller.agent->default_state;
  return text ? caller.lend(*text, json) : HEARTH_E_NOT_FOUND;
}
inline hearth_status set_state(const hearth_host* host, hearth_agent agent, std::uint64_t on_behalf,
                               hearth_bytes json) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  const auto client = caller.client(on_behalf);
  if (client && (client->flags & HEARTH_CONNECTION_READONLY) != 0)
    return caller.fail(HEARTH_E_FORBIDDEN, "Connection is readonly");
  if (!is_json(view(json))) return caller.fail(HEARTH_E_INVALID, "the state is not JSON");
  if (json.len > 2 * 1024 * 1024) return caller.fail(HEARTH_E_LIMIT, "the state is too large");
  if (!caller.engine.may_change_state())
    return caller.fail(
        HEARTH_E_LIMIT,
        "on_state_changed has changed the state 100 times after one change: does it ever end?");
  put_state(caller.engine, *caller.agent, view(json));
  return HEARTH_OK;
}
inline hearth_status set_default_state(const hearth_host* host, hearth_agent agent,
                                       hearth_bytes json) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (!is_json(view(json))) return caller.fail(HEARTH_E_INVALID, "the state is not JSON");
  caller.agent->default_state = std::string(view(json));
  return HEARTH_OK;
}

// ---- connections --------------------------------------------------------------------------------

inline bool has_tag(const ClientRecord& client, std::string_view tag) {
  return tag.empty() || std::find(client.tags.begin(), client.tags.end(), tag) != client.tags.end();
}
inline hearth_status next_connection(const hearth_host* host, hearth_agent agent,
                                     std::uint64_t after, hearth_bytes tag, std::uint64_t* number) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  for (auto it = caller.agent->clients.upper_bound(after); it != caller.agent->clients.end();
       ++it) {
    if (!it->second->open || it->second->connecting || !has_tag(*it->second, view(tag))) continue;
    *number = it->first;
    return HEARTH_OK;
  }
  return HEARTH_E_NOT_FOUND;
}

// Finds the client, then does `use` with it.
template <class Use>
hearth_status with_client(const hearth_host* host, hearth_agent agent, std::uint64_t number,
                          Use use) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  const auto client = caller.client(number);
  return client ? use(caller, *client) : HEARTH_E_GONE;
}
inline hearth_status connection_id(const hearth_host* host, hearth_agent agent,
                                   std::uint64_t number, hearth_bytes* id) {
  return with_client(host, agent, number, [&](const Caller& caller, ClientRecord& client) {
    return caller.lend(client.id, id);
  });
}
inline hearth_status connection_target(const hearth_host* host, hearth_agent agent,
                                       std::uint64_t number, hearth_bytes* target) {
  return with_client(host, agent, number, [&](const Caller& caller, ClientRecord& client) {
    return caller.lend(client.target, target);
  });
}
inline hearth_status connection_header(const hearth_host* host, hearth_agent agent,
                                       std::uint64_t number, hearth_bytes name,
                                       hearth_bytes* value) {
  return with_client(host, agent, number, [&](const Caller& caller, ClientRecord& client) {
    const std::string* const found =
        client.greeted ? nullptr : find_header(client.headers, view(name));
    return found ? caller.lend(*found, value) : HEARTH_E_NOT_FOUND;
  });
}
inline hearth_status add_tag(const hearth_host* host, hearth_agent agent, std::uint64_t number,
                             hearth_bytes tag) {
  return with_client(host, agent, number, [&](const Caller& caller, ClientRecord& client) {
    if (!client.connecting)
      return caller.fail(HEARTH_E_FORBIDDEN, "tags are given while a client connects");
    if (tag.len == 0 || tag.len > 256 || !is_utf8(view(tag)))
      return caller.fail(HEARTH_E_INVALID, "a tag is 1 to 256 bytes of UTF-8");
    if (client.tags.size() >= 10)
      return caller.fail(HEARTH_E_LIMIT, "a connection has at most 10 tags");
    client.tags.emplace_back(view(tag));
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status connection_tag(const hearth_host* host, hearth_agent agent,
                                    std::uint64_t number, std::uint32_t index, hearth_bytes* tag) {
  return with_client(host, agent, number, [&](const Caller& caller, ClientRecord& client) {
    return index < client.tags.size() ? caller.lend(client.tags[index], tag) : HEARTH_E_NOT_FOUND;
  });
}
inline hearth_status connection_flags(const hearth_host* host, hearth_agent agent,
                                      std::uint64_t number, std::uint32_t* flags) {
  return with_client(host, agent, number, [&](const Caller&, ClientRecord& client) {
    *flags = client.flags;
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status set_connection_flags(const hearth_host* host, hearth_agent agent,
                                          std::uint64_t number, std::uint32_t flags) {
  return with_client(host, agent, number, [&](const Caller& caller, ClientRecord& client) {
    if (((flags ^ client.flags) & HEARTH_CONNECTION_NO_PROTOCOL) != 0 && !client.connecting) {
      return caller.fail(HEARTH_E_FORBIDDEN, "the protocol is chosen while a client connects");
    }
    client.flags = flags;
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status attachment(const hearth_host* host, hearth_agent agent, std::uint64_t number,
                                hearth_bytes* bytes) {
  return with_client(host, agent, number, [&](const Caller& caller, ClientRecord& client) {
    return caller.lend(client.attachment, bytes);
  });
}
inline hearth_status set_attachment(const hearth_host* host, hearth_agent agent,
                                    std::uint64_t number, hearth_bytes bytes) {
  return with_client(host, agent, number, [&](const Caller& caller, ClientRecord& client) {
    if (bytes.len > 16 * 1024)
      return caller.fail(HEARTH_E_LIMIT, "an attachment has at most 16 KiB");
    client.attachment = std::string(view(bytes));
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status send_frame(const hearth_host* host, hearth_agent agent, std::uint64_t number,
                                std::uint32_t kind, hearth_bytes payload) {
  return with_client(host, agent, number, [&](const Caller& caller, ClientRecord& client) {
    if (kind == HEARTH_SEND_TEXT && !is_utf8(view(payload)))
      return caller.fail(HEARTH_E_INVALID, "text must be UTF-8");
    if (!client.open) return hearth_status{HEARTH_E_GONE};
    client.received.push_back({std::string(view(payload)), kind == HEARTH_SEND_BINARY});
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status broadcast(const hearth_host* host, hearth_agent agent, std::uint32_t kind,
                               hearth_bytes payload, hearth_bytes tag, const std::uint64_t* except,
                               std::size_t except_count) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (kind == HEARTH_SEND_TEXT && !is_utf8(view(payload)))
    return caller.fail(HEARTH_E_INVALID, "text must be UTF-8");
  for (const auto& [number, client] : caller.agent->clients) {
    if (!client->open || client->connecting || !has_tag(*client, view(tag))) continue;
    if (std::find(except, except + except_count, number) != except + except_count) continue;
    client->received.push_back({std::string(view(payload)), kind == HEARTH_SEND_BINARY});
  }
  return HEARTH_OK;
}
inline hearth_status close_connection(const hearth_host* host, hearth_agent agent,
                                      std::uint64_t number, std::uint32_t code,
                                      hearth_bytes reason) {
  return with_client(host, agent, number, [&](const Caller& caller, ClientRecord& client) {
    const bool allowed = code == 1000 || code == 1001 || code == 1008 ||
                         (code >= 1011 && code <= 1013) || (code >= 3000 && code <= 4999);
    if (!allowed || reason.len > 123)
      return caller.fail(HEARTH_E_INVALID, "close code or reason not allowed");
    if (!client.open) return hearth_status{HEARTH_E_GONE};
    client.open = false;
    client.close_code = code;
    client.close_reason = std::string(view(reason));
    return hearth_status{HEARTH_OK};
  });
}

// ---- http ---------------------------------------------------------------------------------------

template <class Use>
hearth_status with_request(const hearth_host* host, hearth_agent agent, std::uint64_t id, Use use) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  const auto call = caller.call(id, HEARTH_EVENT_REQUEST);
  return call ? use(caller, *call) : HEARTH_E_GONE;
}
inline hearth_status request_target(const hearth_host* host, hearth_agent agent, std::uint64_t id,
                                    hearth_bytes* target) {
  return with_request(host, agent, id, [&](const Caller& caller, CallRecord& call) {
    return caller.lend(call.target, target);
  });
}
inline hearth_status request_header(const hearth_host* host, hearth_agent agent, std::uint64_t id,
                                    hearth_bytes name, hearth_bytes* value) {
  return with_request(host, agent, id, [&](const Caller& caller, CallRecord& call) {
    const std::string* const found = find_header(call.request_headers, view(name));
    return found ? caller.lend(*found, value) : HEARTH_E_NOT_FOUND;
  });
}
inline hearth_status request_header_at(const hearth_host* host, hearth_agent agent,
                                       std::uint64_t id, std::uint32_t index, hearth_bytes* name,
                                       hearth_bytes* value) {
  return with_request(host, agent, id, [&](const Caller& caller, CallRecord& call) {
    if (index >= call.request_headers.size()) return hearth_status{HEARTH_E_NOT_FOUND};
    caller.lend(call.request_headers[index].first, name);
    return caller.lend(call.request_headers[index].second, value);
  });
}
inline hearth_status set_http_status(const hearth_host* host, hearth_agent agent, std::uint64_t id,
                                     std::uint32_t status) {
  return with_request(host, agent, id, [&](const Caller& caller, CallRecord& call) {
    if (!call.parts.empty())
      return caller.fail(HEARTH_E_FORBIDDEN, "the head of the response has left");
    if (status < 200 || status > 599)
      return caller.fail(HEARTH_E_INVALID, "a status is 200 to 599");
    call.http_status = status;
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status add_header(const hearth_host* host, hearth_agent agent, std::uint64_t id,
                                hearth_bytes name, hearth_bytes value) {
  return with_request(host, agent, id, [&](const Caller& caller, CallRecord& call) {
    if (!call.parts.empty())
      return caller.fail(HEARTH_E_FORBIDDEN, "the head of the response has left");
    for (const std::string_view taken :
         {"Connection", "Content-Length", "Date", "Keep-Alive", "Proxy-Connection", "TE", "Trailer",
          "Transfer-Encoding", "Upgrade"}) {
      if (same_name(view(name), taken))
        return caller.fail(HEARTH_E_INVALID, "the server sets this header");
    }
    if (name.len == 0 || view(value).find_first_of("\r\n") != std::string_view::npos)
      return caller.fail(HEARTH_E_INVALID, "not a header");
    if (call.response_headers.size() >= 64)
      return caller.fail(HEARTH_E_LIMIT, "at most 64 headers");
    call.response_headers.emplace_back(view(name), view(value));
    return hearth_status{HEARTH_OK};
  });
}

inline constexpr hearth_log_v1 kLog = {&write_log};
inline constexpr hearth_clock_v1 kClock = {&wall_ms, &steady_ns};
inline constexpr hearth_random_v1 kRandom = {&fill};
inline constexpr hearth_agent_v1 kAgent = {&evict, &destroy};
inline constexpr hearth_state_v1 kState = {&get_state, &set_state, &set_default_state};
inline constexpr hearth_connections_v1 kConnections = {
    &next_connection, &connection_id,    &connection_target,    &connection_header, &add_tag,
    &connection_tag,  &connection_flags, &set_connection_flags, &attachment,        &set_attachment,
    &send_frame,      &broadcast,        &close_connection};
inline constexpr hearth_http_v1 kHttp = {&request_target, &request_header, &request_header_at,
                                         &set_http_status, &add_header};

inline const void* get_extension(const hearth_host*, const char* id) {
  const std::string_view name = id;
  if (name == HEARTH_EXT_AGENT) return &kAgent;
  if (name == HEARTH_EXT_CLOCK) return &kClock;
  if (name == HEARTH_EXT_CONNECTIONS) return &kConnections;
  if (name == HEARTH_EXT_FIBERS) return &kFibers;
  if (name == HEARTH_EXT_HTTP) return &kHttp;
  if (name == HEARTH_EXT_KEEP_ALIVE) return &kKeepAlive;
  if (name == HEARTH_EXT_KV) return &kKv;
  if (name == HEARTH_EXT_LOG) return &kLog;
  if (name == HEARTH_EXT_MANAGED_FIBERS) return &kManagedFibers;
  if (name == HEARTH_EXT_QUEUE) return &kQueue;
  if (name == HEARTH_EXT_RANDOM) return &kRandom;
  if (name == HEARTH_EXT_SCHEDULE) return &kSchedule;
  if (name == HEARTH_EXT_SQL) return &sql_table();
  if (name == HEARTH_EXT_STATE) return &kState;
  return nullptr;
}

inline Engine::Engine()
    : table_{{sizeof(hearth_host), HEARTH_ABI_MAJOR, HEARTH_ABI_MINOR, 0, 0, &get_extension,
              &detail::complete, &detail::emit, &detail::submit, &detail::cancel,
              &detail::last_error, &detail::post},
             this} {}

}  // namespace hearth::testing::detail

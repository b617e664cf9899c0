// hearth.connections/1 over runtime::AgentHost.

#include "plugins/generation/abi_call.hpp"
#include "plugins/generation/abi_extensions.hpp"
#include "runtime/connection.hpp"

#include <string>
#include <type_traits>

namespace hearth::plugins {
namespace {

using runtime::AgentHost;
using runtime::Connection;
using runtime::FrameKind;

static_assert(Connection::kReadonly == HEARTH_CONNECTION_READONLY);
static_assert(Connection::kNoProtocol == HEARTH_CONNECTION_NO_PROTOCOL);
static_assert(static_cast<int>(FrameKind::kText) == HEARTH_SEND_TEXT);
static_assert(static_cast<int>(FrameKind::kBinary) == HEARTH_SEND_BINARY);
static_assert(std::is_same_v<runtime::ConnectionId, std::uint64_t>);

hearth_status client_gone(AgentHost& agent) {
  return fail(agent, HEARTH_E_GONE, "the client has left");
}

// Runs `body(AgentHost&, Connection&)` on a client of the agent.
template <class Body>
hearth_status for_connection(const hearth_host* host, hearth_agent agent, std::uint64_t connection,
                             const Body& body) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    Connection* const client = it.find_connection(connection);
    return client == nullptr ? client_gone(it) : body(it, *client);
  });
}

hearth_status next(const hearth_host* host, hearth_agent agent, std::uint64_t after,
                   hearth_bytes tag, std::uint64_t* connection) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    const auto wanted = text_of(tag);
    if (!wanted) return bad_slice(it);
    if (connection == nullptr) return no_place(it);
    const auto found = it.next_connection(after, *wanted);
    // The end of a loop is no failure: last_error stays as it is.
    if (found == 0) return hearth_status{HEARTH_E_NOT_FOUND};
    *connection = found;
    return kOk;
  });
}

hearth_status id(const hearth_host* host, hearth_agent agent, std::uint64_t connection,
                 hearth_bytes* out) noexcept {
  return for_connection(host, agent, connection, [&](AgentHost& it, Connection& client) {
    if (out == nullptr) return no_place(it);
    *out = slice_of(client.client_id);
    return kOk;
  });
}

hearth_status client_target(const hearth_host* host, hearth_agent agent, std::uint64_t connection,
                            hearth_bytes* out) noexcept {
  return for_connection(host, agent, connection, [&](AgentHost& it, Connection& client) {
    if (out == nullptr) return no_place(it);
    *out = slice_of(client.target);
    return kOk;
  });
}

hearth_status client_header(const hearth_host* host, hearth_agent agent, std::uint64_t connection,
                            hearth_bytes name, hearth_bytes* value) noexcept {
  return for_connection(host, agent, connection, [&](AgentHost& it, Connection& client) {
    const auto wanted = bytes_of(name);
    if (!wanted) return bad_slice(it);
    if (value == nullptr) return no_place(it);
    const std::string* const found = runtime::find_header(client.headers, *wanted);
    if (found == nullptr) return hearth_status{HEARTH_E_NOT_FOUND};
    *value = slice_of(*found);
    return kOk;
  });
}

hearth_status add_tag(const hearth_host* host, hearth_agent agent, std::uint64_t connection,
                      hearth_bytes tag) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    const auto text = text_of(tag);
    if (!text) return bad_slice(it);
    return status_of(it, it.add_tag(connection, *text), HEARTH_E_GONE);
  });
}

hearth_status tag_at(const hearth_host* host, hearth_agent agent, std::uint64_t connection,
                     std::uint32_t index, hearth_bytes* out) noexcept {
  return for_connection(host, agent, connection, [&](AgentHost& it, Connection& client) {
    if (out == nullptr) return no_place(it);
    if (index > client.tags.size()) return hearth_status{HEARTH_E_NOT_FOUND};
    *out = slice_of(index == 0 ? client.client_id : client.tags[index - 1]);
    return kOk;
  });
}

hearth_status flags(const hearth_host* host, hearth_agent agent, std::uint64_t connection,
                    std::uint32_t* out) noexcept {
  return for_connection(host, agent, connection, [&](AgentHost& it, Connection& client) {
    if (out == nullptr) return no_place(it);
    *out = client.flags;
    return kOk;
  });
}

hearth_status set_flags(const hearth_host* host, hearth_agent agent, std::uint64_t connection,
                        std::uint32_t value) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    return status_of(it, it.set_flags(connection, value), HEARTH_E_GONE);
  });
}

hearth_status attachment(const hearth_host* host, hearth_agent agent, std::uint64_t connection,
                         hearth_bytes* out) noexcept {
  return for_connection(host, agent, connection, [&](AgentHost& it, Connection& client) {
    if (out == nullptr) return no_place(it);
    *out = slice_of(client.attachment);
    return kOk;
  });
}

hearth_status set_attachment(const hearth_host* host, hearth_agent agent, std::uint64_t connection,
                             hearth_bytes value) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    const auto bytes = bytes_of(value);
    if (!bytes) return bad_slice(it);
    return status_of(it, it.set_attachment(connection, *bytes), HEARTH_E_GONE);
  });
}

// A frame's payload: text must be UTF-8, or the client would drop the connection.
std::optional<std::string_view> payload_of(std::uint32_t kind, hearth_bytes payload) {
  return kind == HEARTH_SEND_TEXT ? text_of(payload) : bytes_of(payload);
}

bool is_kind(std::uint32_t kind) {
  return kind == HEARTH_SEND_TEXT || kind == HEARTH_SEND_BINARY;
}

hearth_status send(const hearth_host* host, hearth_agent agent, std::uint64_t connection,
                   std::uint32_t kind, hearth_bytes payload) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    if (!is_kind(kind)) return fail(it, HEARTH_E_UNSUPPORTED, "unknown kind of frame");
    const auto bytes = payload_of(kind, payload);
    if (!bytes) return bad_slice(it);
    return status_of(it, it.send(connection, FrameKind{kind}, *bytes), HEARTH_E_GONE);
  });
}

hearth_status broadcast(const hearth_host* host, hearth_agent agent, std::uint32_t kind,
                        hearth_bytes payload, hearth_bytes tag, const std::uint64_t* except,
                        std::size_t except_count) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    if (!is_kind(kind)) return fail(it, HEARTH_E_UNSUPPORTED, "unknown kind of frame");
    const auto bytes = payload_of(kind, payload);
    const auto wanted = text_of(tag);
    if (!bytes || !wanted || (except == nullptr && except_count != 0)) return bad_slice(it);
    const std::span<const std::uint64_t> left_out(except, except_count);
    return status_of(it, it.broadcast(FrameKind{kind}, *bytes, *wanted, left_out));
  });
}

hearth_status close(const hearth_host* host, hearth_agent agent, std::uint64_t connection,
                    std::uint32_t code, hearth_bytes reason) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    const auto text = text_of(reason);
    if (!text) return bad_slice(it);
    return status_of(it, it.close(connection, code, *text), HEARTH_E_GONE);
  });
}

constexpr hearth_connections_v1 kConnections = {.next = next,
                                                .id = id,
                                                .target = client_target,
                                                .header = client_header,
                                                .add_tag = add_tag,
                                                .tag = tag_at,
                                                .flags = flags,
                                                .set_flags = set_flags,
                                                .attachment = attachment,
                                                .set_attachment = set_attachment,
                                                .send = send,
                                                .broadcast = broadcast,
                                                .close = close};

}  // namespace

const hearth_connections_v1& connections_extension() noexcept {
  return kConnections;
}

}  // namespace hearth::plugins

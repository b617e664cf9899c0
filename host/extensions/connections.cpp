#include "extensions/connections.hpp"

#include "base/close_codes.hpp"
#include "base/utf8.hpp"
#include "extensions/abi_call.hpp"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

namespace hearth::extensions {
namespace {

Error no_client() {
  return Error{Errc::kNotFound, "no such connection"};
}

}  // namespace

// ---- what it does -------------------------------------------------------------------------------

ConnectionId ConnectionExtension::next(ConnectionId after, std::string_view tag) {
  const std::vector<ConnectionId>& all = agent_.clients().all();
  auto at = all.begin();
  if (after != 0) {
    // A walk through all clients calls this once for each: begin where the last call ended.
    const bool goes_on = last_place_ < all.size() && all[last_place_] == after;
    at = goes_on ? all.begin() + static_cast<std::ptrdiff_t>(last_place_)
                 : std::ranges::find(all, after);
    if (at != all.end()) ++at;
  }
  for (; at != all.end(); ++at) {
    const Client* const client = agent_.clients().find(*at);
    if (!client->is_open() || (!tag.empty() && !client->has_tag(tag))) continue;
    last_place_ = static_cast<std::size_t>(at - all.begin());
    return *at;
  }
  return 0;
}

Result<void> ConnectionExtension::add_tag(ConnectionId id, std::string_view tag) {
  Client* const client = agent_.clients().find(id);
  if (client == nullptr) return no_client();
  if (!client->deciding) return Error{Errc::kForbidden, "tags are set while a client connects"};
  if (tag.empty() || tag.size() > Client::kMaxTagBytes || !is_valid_utf8(tag)) {
    return Error{Errc::kInvalidArgument, "a tag is 1 to 256 bytes of UTF-8"};
  }
  if (client->has_tag(tag)) return {};
  if (client->tags.size() + 1 >= Client::kMaxTags) {
    return Error{Errc::kLimitExceeded, "a connection has at most 10 tags, its id included"};
  }
  client->tags.emplace_back(tag);
  return {};
}

Result<void> ConnectionExtension::set_flags(ConnectionId id, std::uint32_t flags) {
  Client* const client = agent_.clients().find(id);
  if (client == nullptr) return no_client();
  if ((flags & ~(Client::kReadonly | Client::kNoProtocol)) != 0) {
    return Error{Errc::kUnsupported, "unknown flag"};
  }
  const bool protocol_changes = ((client->flags ^ flags) & Client::kNoProtocol) != 0;
  if (protocol_changes && !client->deciding) {
    return Error{Errc::kForbidden, "the protocol is switched off while a client connects"};
  }
  client->flags = flags;
  return {};
}

Result<void> ConnectionExtension::set_attachment(ConnectionId id, std::string_view bytes) {
  Client* const client = agent_.clients().find(id);
  if (client == nullptr) return no_client();
  if (bytes.size() > Client::kMaxAttachmentBytes) {
    return Error{Errc::kLimitExceeded, "an attachment has at most 16 KiB"};
  }
  client->attachment = bytes;
  return {};
}

Result<void> ConnectionExtension::check_frame(FrameKind kind, std::string_view payload) const {
  if (payload.size() > agent_.clients().max_frame_bytes()) {
    return Error{Errc::kLimitExceeded, "the frame is too large"};
  }
  if (kind == FrameKind::kText && !is_valid_utf8(payload)) {
    return Error{Errc::kInvalidArgument, "a text frame must be UTF-8"};
  }
  return {};
}

Result<void> ConnectionExtension::send(ConnectionId id, FrameKind kind, std::string_view payload) {
  Client* const client = agent_.clients().find(id);
  if (client == nullptr || client->closing || client->state == ConnectionState::kClosed) {
    return no_client();
  }
  if (client->state == ConnectionState::kWaiting) {
    return Error{Errc::kForbidden, "the client is not connected yet: its handshake comes first"};
  }
  if (Result<void> fit = check_frame(kind, payload); fit.has_error()) return fit;
  agent_.clients().send(*client, kind, payload);
  return {};
}

Result<void> ConnectionExtension::broadcast(FrameKind kind, std::string_view payload,
                                            std::string_view tag,
                                            std::span<const ConnectionId> except) {
  if (Result<void> fit = check_frame(kind, payload); fit.has_error()) return fit;
  std::vector<ConnectionId> to;
  for (const ConnectionId id : agent_.clients().all()) {
    const Client* const client = agent_.clients().find(id);
    if (client->is_open() && (tag.empty() || client->has_tag(tag)) &&
        std::ranges::find(except, id) == except.end()) {
      to.push_back(id);
    }
  }
  if (!to.empty()) agent_.clients().send_to_many(std::move(to), kind, payload);
  return {};
}

Result<void> ConnectionExtension::close(ConnectionId id, std::uint32_t code,
                                        std::string_view reason) {
  Client* const client = agent_.clients().find(id);
  if (client == nullptr || client->closing) return no_client();
  if (!is_agents_close_code(code)) {
    return Error{Errc::kInvalidArgument,
                 "not a close code that may be sent: " + std::to_string(code)};
  }
  if (reason.size() > kMaxCloseReason || !is_valid_utf8(reason)) {
    return Error{Errc::kInvalidArgument, "a close reason is at most 123 bytes of UTF-8"};
  }
  client->closing = true;
  agent_.clients().close(*client, static_cast<std::uint16_t>(code), reason);
  return {};
}

// ---- its C functions ----------------------------------------------------------------------------

namespace {

static_assert(Client::kReadonly == HEARTH_CONNECTION_READONLY);
static_assert(Client::kNoProtocol == HEARTH_CONNECTION_NO_PROTOCOL);
static_assert(static_cast<int>(FrameKind::kText) == HEARTH_SEND_TEXT);
static_assert(static_cast<int>(FrameKind::kBinary) == HEARTH_SEND_BINARY);
static_assert(std::is_same_v<ConnectionId, std::uint64_t>);

hearth_status next(AgentContext& it, std::uint64_t after, std::string_view tag,
                   std::uint64_t& connection) {
  const auto found = it.of<ConnectionExtension>().next(after, tag);
  // The end of a walk is no failure: last_error stays as it is.
  if (found == 0) return HEARTH_E_NOT_FOUND;
  connection = found;
  return HEARTH_OK;
}

// A text of the client.
template <std::string Client::* kText>
void text(AgentContext& /*it*/, Client& client, hearth_bytes& out) {
  out = slice_of(client.*kText);
}

hearth_status client_header(AgentContext& /*it*/, Client& client, AnyBytes name,
                            hearth_bytes& value) {
  const std::string* const found = find_header(client.headers, name.bytes);
  if (found == nullptr) return HEARTH_E_NOT_FOUND;
  value = slice_of(*found);
  return HEARTH_OK;
}

hearth_status tag_at(AgentContext& /*it*/, Client& client, std::uint32_t index, hearth_bytes& out) {
  if (index > client.tags.size()) return HEARTH_E_NOT_FOUND;
  out = slice_of(index == 0 ? client.client_id : client.tags[index - 1]);
  return HEARTH_OK;
}

void flags(AgentContext& /*it*/, Client& client, std::uint32_t& out) {
  out = client.flags;
}

Result<void> set_attachment(AgentContext& it, std::uint64_t connection, AnyBytes value) {
  return it.of<ConnectionExtension>().set_attachment(connection, value.bytes);
}

// A frame's payload: text must be UTF-8, or the client would drop the connection.
Result<std::string_view> payload_of(std::uint32_t kind, hearth_bytes payload) {
  if (kind != HEARTH_SEND_TEXT && kind != HEARTH_SEND_BINARY)
    return Error{Errc::kUnsupported, "unknown kind of frame"};
  const auto bytes = kind == HEARTH_SEND_TEXT ? text_of(payload) : bytes_of(payload);
  if (!bytes) return bad_slice();
  return *bytes;
}

Result<void> send(AgentContext& it, std::uint64_t connection, std::uint32_t kind,
                  hearth_bytes payload) {
  const auto bytes = payload_of(kind, payload);
  if (!bytes) return bytes.error();
  return it.of<ConnectionExtension>().send(connection, FrameKind{kind}, *bytes);
}

Result<void> broadcast(AgentContext& it, std::uint32_t kind, hearth_bytes payload,
                       std::string_view tag, const std::uint64_t* except,
                       std::size_t except_count) {
  const auto bytes = payload_of(kind, payload);
  if (!bytes) return bytes.error();
  if (except == nullptr && except_count != 0) return bad_slice();
  const std::span<const std::uint64_t> left_out(except, except_count);
  return it.of<ConnectionExtension>().broadcast(FrameKind{kind}, *bytes, tag, left_out);
}

hearth_status give_claims(std::string_view claims, hearth_bytes& json) {
  if (claims.empty()) return HEARTH_E_NOT_FOUND;
  json = slice_of(claims);
  return HEARTH_OK;
}

hearth_status client_claims(AgentContext& /*it*/, Client& client, hearth_bytes& json) {
  return give_claims(client.claims(), json);
}

hearth_status request_claims(AgentContext& it, std::uint64_t call, hearth_bytes& json) {
  const auto request = it.calls().request(call);
  if (request) return give_claims(request->claims, json);
  const CallOrigin event = it.calls().origin(call);
  if (!event.is_in_progress) return fail(it, request.error(), HEARTH_E_GONE);
  // The event in progress shares the origin, and outlives the lent bytes.
  return give_claims(event.origin == nullptr ? std::string_view() : event.origin->claims, json);
}

}  // namespace

constexpr hearth_connections_v1 kConnectionsTable = {
    .next = kDoor<next>,
    .id = kGoneDoor<text<&Client::client_id>>,
    .target = kGoneDoor<text<&Client::target>>,
    .header = kGoneDoor<client_header>,
    .add_tag = kGoneDoor<&ConnectionExtension::add_tag>,
    .tag = kGoneDoor<tag_at>,
    .flags = kGoneDoor<flags>,
    .set_flags = kGoneDoor<&ConnectionExtension::set_flags>,
    .attachment = kGoneDoor<text<&Client::attachment>>,
    .set_attachment = kGoneDoor<set_attachment>,
    .send = kGoneDoor<send>,
    .broadcast = kDoor<broadcast>,
    .close = kGoneDoor<&ConnectionExtension::close>,
    .claims = kGoneDoor<client_claims>,
    .request_claims = kDoor<request_claims>};

}  // namespace hearth::extensions

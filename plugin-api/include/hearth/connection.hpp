#pragma once
// The agent's WebSocket clients, and their frames.

#include <hearth/detail/activation.hpp>
#include <hearth/fields.hpp>
#include <hearth/operation.hpp>
#include <hearth/url.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

// A frame from a client that is no frame of the protocol. It owns its payload, so it may be kept
// across waits.
class Message {
 public:
  Message(std::string payload, bool binary) : payload_(std::move(payload)), binary_(binary) {}

  [[nodiscard]] bool is_text() const noexcept { return !binary_; }
  [[nodiscard]] bool is_binary() const noexcept { return binary_; }
  // The payload, text or binary.
  [[nodiscard]] const std::string& text() const noexcept { return payload_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return std::as_bytes(std::span(payload_));
  }
  // Failure   Error(INVALID) if it is not JSON.
  [[nodiscard]] Json json() const { return parse_json(payload_); }

 private:
  std::string payload_;
  bool binary_;
};

namespace detail {

// A frame to send: text, bytes, JSON, a struct with HEARTH_FIELDS, or a message as it came.
struct Outgoing {
  // NOLINTBEGIN(google-explicit-constructor): send() takes any of these as it is
  Outgoing(std::string_view text) : payload(slice(text)) {}
  Outgoing(const std::string& text) : payload(slice(text)) {}
  Outgoing(const char* text) : payload(slice(std::string_view(text))) {}
  Outgoing(std::span<const std::byte> bytes) : payload(slice(bytes)), kind(HEARTH_SEND_BINARY) {}
  Outgoing(const std::vector<std::byte>& bytes) : Outgoing(std::span(bytes)) {}
  Outgoing(const Message& message)
      : payload(slice(message.text())),
        kind(message.is_binary() ? HEARTH_SEND_BINARY : HEARTH_SEND_TEXT) {}
  // Written in braces: {{"type", "x"}}.
  Outgoing(Json::initializer_list_t json)
      : owned(to_text(Json(json))), payload(slice(std::string_view(owned))) {}
  template <class T>
    requires std::same_as<T, Json> || HasFields<T>
  Outgoing(const T& value) : owned(to_text(Json(value))), payload(slice(std::string_view(owned))) {}
  template <MakesNoJson T>
    requires(!std::convertible_to<const T&, std::span<const std::byte>>)
  Outgoing(const T& /*value*/) {
    need_json<T>();
  }
  // NOLINTEND(google-explicit-constructor)
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;

  std::string owned;
  hearth_bytes payload;
  std::uint32_t kind = HEARTH_SEND_TEXT;
};

}  // namespace detail

// One client. A number with its agent: cheap to copy, but valid only as long as the agent lives in
// memory. To keep it for longer, keep id(), or use the attachment.
//
// The client may leave at any time: then send() and close() return false, and the other functions
// throw HostError(GONE).
class Connection {
 public:
  Connection(detail::Activation& activation, std::uint64_t number) noexcept
      : activation_(&activation), number_(number) {}

  // The id that the client chose: unique only if clients behave. number() is unique in this agent.
  [[nodiscard]] std::string id() const { return text(table().id, "connection id"); }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

  // The request that opened it: "/agents/counter/a?x=1", a value of its query, and (only until
  // on_connect has ended) a header.
  [[nodiscard]] std::string target() const { return text(table().target, "connection target"); }
  [[nodiscard]] std::optional<std::string> query(std::string_view name) const {
    return url_query(target(), name);
  }
  [[nodiscard]] std::optional<std::string> header(std::string_view name) const;

  // The claims of the token that the client has connected with, verified by the server. They stay
  // with the connection. null: the client has no claims.
  [[nodiscard]] Json claims() const;

  // The first is the id.
  [[nodiscard]] std::vector<std::string> tags() const;

  // A JSON value kept with the socket, also while the agent is not in memory. null if none was set.
  // Bounded   16 KiB of JSON text: HostError(LIMIT). Nested at most as deep as attachment() can
  //           read: Error(INVALID).
  [[nodiscard]] Json attachment() const;
  void set_attachment(const Json& value) const;

  // A readonly client may not change the state, neither directly nor through a method that it
  // calls.
  [[nodiscard]] bool readonly() const { return (flags() & HEARTH_CONNECTION_READONLY) != 0; }
  [[nodiscard]] bool no_protocol() const { return (flags() & HEARTH_CONNECTION_NO_PROTOCOL) != 0; }
  void set_readonly(bool on = true) const { set_flag(HEARTH_CONNECTION_READONLY, on); }

  // Sends one frame: text, std::span<const std::byte>, Blob, Json, a struct with HEARTH_FIELDS, a
  // Message. It leaves when the earlier writes are durable. False: the client has left.
  bool send(const detail::Outgoing& frame) const {
    return arrived(table().send(host(), agent(), number_, frame.kind, frame.payload), "send");
  }

  // Closes after the frames sent before. The client of the npm package does not reconnect after
  // 1008 and 4000 to 4999. False: it has left already.
  bool close(unsigned code = 1000, std::string_view reason = {}) const {
    return arrived(table().close(host(), agent(), number_, code, detail::slice(reason)), "close");
  }

  // Waits until the client has taken most of the frames that it was sent. Without the wait, a
  // client that lags by more than limits.send_queue is disconnected. False: it has left, or is
  // being closed.
  [[nodiscard]] Drained drained() const {
    return {*activation_, number_, false, HEARTH_OP_DRAIN_CLIENT};
  }

  friend bool operator==(const Connection& a, const Connection& b) noexcept {
    return a.number_ == b.number_;
  }

 protected:
  [[nodiscard]] const hearth_connections_v1& table() const {
    return detail::need(activation_->tables().connections, HEARTH_EXT_CONNECTIONS);
  }
  [[nodiscard]] const hearth_host* host() const noexcept { return activation_->host(); }
  [[nodiscard]] hearth_agent agent() const noexcept { return activation_->id(); }
  [[nodiscard]] detail::Activation& activation() const noexcept { return *activation_; }

  void set_flag(std::uint32_t flag, bool on) const;

 private:
  template <class Getter>
  std::string text(Getter getter, std::string_view doing) const {
    hearth_bytes value = {nullptr, 0};
    activation_->check(getter(host(), agent(), number_, &value), doing);
    return std::string(detail::view(value));
  }
  [[nodiscard]] std::uint32_t flags() const;
  [[nodiscard]] bool arrived(hearth_status status, std::string_view doing) const;

  detail::Activation* activation_;
  std::uint64_t number_;
};

// A client that asks to connect, with the decisions that can only be made now.
class Connecting : public Connection {
 public:
  using Connection::Connection;

  // At most 9 besides the id, each 1 to 256 bytes.
  void add_tag(std::string_view tag) const {
    activation().check(table().add_tag(host(), agent(), number(), detail::slice(tag)), "add tag");
  }
  // The client gets no identity, state or other frames of the protocol, only frames that the agent
  // sends.
  void set_no_protocol() const { set_flag(HEARTH_CONNECTION_NO_PROTOCOL, true); }
  // on_connect is not called. With 1008 or 4000 to 4999 the client does not try again.
  void refuse(unsigned code = 4403, std::string_view reason = "refused") const {
    close(code, reason);
  }
};

}  // namespace hearth

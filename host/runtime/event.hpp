#pragma once
// One event of an agent, on its whole way: from a client, the host or an earlier instance, through
// the queue, to the code.

#include "base/client_memory.hpp"
#include "base/clock.hpp"
#include "extensions/origin.hpp"
#include "extensions/remote_operation.hpp"
#include "extensions/types.hpp"
#include "runtime/types.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::runtime {

class CallSink;

// The parts of an HTTP request that an agent may look at while it answers.
struct RequestHead {
  std::string target;
  Headers headers;
  std::string claims = {};             // as extensions::Client::claims
  std::optional<HeldBytes> held = {};  // for all texts above, from Shard::request() on
  // Empty: the event has the body, or the body is already read. Only for a class that reads_bodies.
  extensions::BodyReader body = {};
};

// How often an event was begun and then cut off by an eviction.
struct Interruptions {
  // After so many interruptions an event is not delivered again. Otherwise an agent whose own event
  // evicts it each time would never come to rest.
  static constexpr unsigned kMost = 32;

  unsigned count = 0;
  // When the event times out: counted from its first delivery, or as its caller said. The beginning
  // of time: no limit yet, possible only while count == 0.
  SteadyTime due{};
  // Limit until the end or the next part of the answer, as its caller said; 0: limits.call_timeout.
  std::chrono::milliseconds timeout{0};
  // `due` holds for the whole answer: the caller reads no parts.
  bool reads_no_parts = false;

  [[nodiscard]] bool has_due() const { return due != SteadyTime{}; }
};

// What the agent's code sees of an event. hearth/abi.h describes the kinds.
template <class Text>
struct EventContent {
  EventKind kind{};
  CallId call = 0;  // 0: synchronous, over when on_event returns
  ConnectionId connection = 0;
  Text name;
  Text body;
  std::uint64_t deadline_ms = 0;
  std::uint32_t flags = 0;
};

// What the runtime keeps with an event, hidden from the agent's code.
struct EventFreight {
  std::shared_ptr<CallSink> sink;        // kCall, kRequest, kStateCheck; else null
  std::unique_ptr<RequestHead> request;  // kRequest only
  Interruptions interruptions;           // kConnect, kCall: an earlier delivery, or a time limit
  extensions::OriginPtr origin;          // null: the event has none
  std::optional<extensions::CallKey> retry_key;  // kCall: the caller may retry under this key
  std::uint64_t state_write = 0;                 // kStateChanged: the number of the write
  // kStateChanged: how many changes this handler and the handlers of its changes have made. Shared
  // by all events of one such chain; null in its first event.
  std::shared_ptr<unsigned> state_chain;
};

template <class Text>
struct BasicEvent : EventContent<Text>, EventFreight {};

using AgentEvent = EventContent<std::string_view>;
using Event = BasicEvent<std::string_view>;  // borrowed: its texts live as long as the call
using OwnedEvent = BasicEvent<std::string>;  // for an event that waits

// The same event with texts of its own.
[[nodiscard]] inline OwnedEvent own(Event event) {
  const AgentEvent& from = event;
  OwnedEvent owned;
  static_cast<EventContent<std::string>&>(owned) = {
      from.kind,        from.call, from.connection, std::string(from.name), std::string(from.body),
      from.deadline_ms, from.flags};
  static_cast<EventFreight&>(owned) = std::move(event);
  return owned;
}

// The same event, with texts that stay in `owned`. The rest moves out of `owned`.
[[nodiscard]] inline Event lend(OwnedEvent& owned) {
  Event event;
  static_cast<AgentEvent&>(event) = {owned.kind, owned.call,        owned.connection, owned.name,
                                     owned.body, owned.deadline_ms, owned.flags};
  static_cast<EventFreight&>(event) = std::move(static_cast<EventFreight&>(owned));
  return event;
}

// The origin of an event from outside that has a valid header `traceparent` or its client's claims
// (extensions::Origin); else null.
[[nodiscard]] extensions::OriginPtr traced_origin(const Headers& headers, std::string claims = {});

// Bytes of its texts, which a waiting event counts for. The claims of a connected client count with
// the connection.
template <class Text>
[[nodiscard]] std::size_t text_bytes(const BasicEvent<Text>& event) {
  const bool has_claims = event.connection == 0 && event.origin != nullptr;
  return event.name.size() + event.body.size() + (has_claims ? event.origin->claims.size() : 0);
}
[[nodiscard]] inline std::size_t text_bytes(const Headers& headers) {
  std::size_t bytes = headers.size() * sizeof(Headers::value_type);
  for (const auto& [name, value] : headers) bytes += name.size() + value.size();
  return bytes;
}
[[nodiscard]] inline std::size_t text_bytes(const RequestHead& head) {
  return head.target.size() + head.claims.size() + text_bytes(head.headers);
}

}  // namespace hearth::runtime

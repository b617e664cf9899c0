#pragma once
// One open WebSocket, as the layers above see it. Production: Beast, in beast_web_socket.cpp.

#include "base/client_memory.hpp"
#include "base/close_codes.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace hearth::net {

// What the owner of a WebSocket hears of it.
//
// Threads   On the socket's loop. Never from inside one of the socket's own members.
// Failure   The members must not throw.
class WebSocketListener {
 public:
  WebSocketListener() = default;
  virtual ~WebSocketListener() = default;
  WebSocketListener(const WebSocketListener&) = delete;
  WebSocketListener& operator=(const WebSocketListener&) = delete;

  // One whole message, valid UTF-8 if it is text. The bytes are borrowed for the call. Messages
  // come in the order in which the peer sent them, none after close() was called on our side.
  virtual void on_message(std::string_view payload, bool is_text) = 0;

  // The conversation is over; called exactly once, and last. `was_clean` says that both sides
  // exchanged close frames, and then code and reason are the peer's (kCloseNoCode without a code).
  // Otherwise they say why we ended it: 1002, 1007, 1009, 1013, or 1006 for a connection that was
  // lost. The listener may forget the socket here.
  virtual void on_close(CloseCode code, std::string_view reason, bool was_clean) = 0;
};

// Order     Frames leave in the order sent. Those sent within one turn of the loop leave together.
// Bounded   At most NetOptions::send_queue bytes, and one message more, wait for the peer. A
//           message that would have to wait past that ends the connection with 1013 "client reads
//           too slowly": what was queued still leaves if it can within a short time. While half of
//           that waits the peer is not read from. A peer that takes or sends less than
//           NetOptions::min_rate, and one that would need memory while the account of client memory
//           is overdrawn, is ended with 1013.
// Threads   All members on the socket's loop only.
// Lifetime  The network keeps an open socket alive, and the socket its listener until on_close()
//           has returned: the two may hold each other. Afterwards every member is safe and does
//           nothing.
class WebSocket {
 public:
  WebSocket() = default;
  virtual ~WebSocket() = default;
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  // Queues one message; copies it. Text must be valid UTF-8 (the caller's promise). Does nothing
  // once the connection is closing.
  virtual void send(std::string_view payload, bool is_text) = 0;
  // The same without a copy, for a message that goes to many.
  virtual void send(SharedBytes payload, bool is_text) = 0;

  // Starts the closing handshake; frames sent before leave first. on_close() follows when the peer
  // has answered, or after NetOptions::close_timeout. A code that must not be sent (RFC 6455 7.4)
  // becomes 1011; a reason longer than 123 bytes is cut at a character. The first call counts.
  virtual void close(CloseCode code, std::string_view reason) = 0;

  // Cuts the connection. on_close(1006) follows.
  virtual void abort() = 0;

  // Between the two no message is delivered, and soon the peer cannot send any more: that is how a
  // reader that cannot keep up slows its peer down. A peer is not dropped for silence meanwhile;
  // one that ends the connection is noticed, and on_close() follows soon. Messages that it sent
  // before and that are still held back are lost unless reading is resumed within the time-outs for
  // silence.
  virtual void pause_reading() = 0;
  virtual void resume_reading() = 0;

  // Calls `notice` once, when no more than a quarter of NetOptions::send_queue waits for the peer,
  // or the connection is gone.
  virtual void when_drained(std::function<void()> notice) = 0;

  // Bytes that wait for the peer.
  [[nodiscard]] virtual std::size_t buffered() const = 0;
  // From the end of the opening handshake until either side starts to close.
  [[nodiscard]] virtual bool is_open() const = 0;
  // How many sends to the system the frames have taken so far.
  [[nodiscard]] virtual std::uint64_t sends() const = 0;
};

}  // namespace hearth::net

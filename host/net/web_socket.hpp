#pragma once
// One open WebSocket, for the layers above. beast_web_socket.cpp implements it with Beast.

#include "base/client_memory.hpp"
#include "base/clock.hpp"
#include "base/close_codes.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace hearth::net {

// Receives the events of a WebSocket.
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
  // come in the order in which the peer sent them, and none after WebSocket::close().
  virtual void on_message(std::string_view payload, bool is_text) = 0;

  // The connection is over; called exactly once, and last. `was_clean`: both sides exchanged close
  // frames, and code and reason are the peer's (kCloseNoCode without a code). Otherwise they say
  // why this side ended it: 1002, 1007, 1009, 1013, or 1006 for a lost connection. The listener may
  // release the socket here.
  virtual void on_close(CloseCode code, std::string_view reason, bool was_clean) = 0;
};

// Order     Frames leave in the order sent. Frames of one turn of the loop leave together.
// Bounded   At most NetOptions::send_queue bytes, plus one message of any size, wait for the peer,
//           in any order. One more message ends the connection with 1013 "client reads too
//           slowly"; queued messages still leave if they can within a short time. While more than
//           half of send_queue waits, nothing is read from the peer. 1013 also ends a peer that
//           reads or sends less than NetOptions::min_rate, and a peer that needs memory while
//           client memory is above its limit.
// Threads   All members on the socket's loop only.
// Lifetime  The network keeps an open socket alive, and the socket keeps its listener until
//           on_close() has returned, so the two may hold each other. Afterwards every member is
//           safe and does nothing.
class WebSocket {
 public:
  WebSocket() = default;
  virtual ~WebSocket() = default;
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  // Queues a copy of one message. The caller ensures that text is valid UTF-8. Does nothing while
  // the connection is closing.
  virtual void send(std::string_view payload, bool is_text) = 0;
  // The same without a copy, for a message to many sockets.
  virtual void send(SharedBytes payload, bool is_text) = 0;

  // Starts the closing handshake; earlier frames leave first. on_close() follows when the peer has
  // answered, or after NetOptions::close_timeout. A code that must not be sent (RFC 6455 7.4)
  // becomes 1011; a reason longer than 123 bytes is cut at a character. Later calls do nothing.
  virtual void close(CloseCode code, std::string_view reason) = 0;

  // Cuts the connection. on_close(1006) follows.
  virtual void abort() = 0;

  // After pause_reading() the listener gets no message, and soon the peer cannot send. So a slow
  // listener slows its peer down. Until resume_reading() the peer is not dropped for silence. If
  // the peer ends the connection, on_close() follows soon. Its earlier messages that are still held
  // back are lost, unless reading is resumed within the timeouts for silence.
  virtual void pause_reading() = 0;
  virtual void resume_reading() = 0;

  // Calls `notice` once, when at most a quarter of NetOptions::send_queue waits for the peer, or
  // either side starts to close.
  virtual void when_drained(std::function<void()> notice) = 0;

  // Bytes that wait for the peer.
  [[nodiscard]] virtual std::size_t buffered() const = 0;
  // Since the peer, or the system for it, last took some. None: they do not wait.
  [[nodiscard]] virtual std::optional<SteadyTime> behind_since() const { return std::nullopt; }
  // From the end of the opening handshake until either side starts to close.
  [[nodiscard]] virtual bool is_open() const = 0;
  // The number of sends to the system so far.
  [[nodiscard]] virtual std::uint64_t sends() const = 0;
};

}  // namespace hearth::net

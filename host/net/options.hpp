#pragma once
// Every limit and time-out of the network layer, with its default and why it is that.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace hearth::net {

// A value; the server keeps one copy, and nothing in it changes while it runs.
struct NetOptions {
  // Where to listen. A name is resolved once, at the start; port 0 lets the system choose.
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;

  // Open connections of any kind. One more gets a 503 and is closed.
  std::size_t max_connections = 65'536;

  // ---- HTTP ---------------------------------------------------------------------------------------
  // Request line and header fields together, and the request target alone. Targets that are too long for what
  // they name must still fit: only a client that is upgraded can be told to stop trying.
  std::size_t max_header = 16 * 1024;
  std::size_t max_target = 12 * 1024;
  // A request's body. A longer one is refused with 413 before memory is taken.
  std::size_t max_body = 4 * 1024 * 1024;
  // From the first byte that is expected of a request to the end of its head.
  std::chrono::milliseconds handshake_timeout{10'000};
  // How long a connection may stay open between two requests.
  std::chrono::milliseconds keep_alive_timeout{60'000};

  // ---- WebSocket ----------------------------------------------------------------------------------
  // One message, all its fragments together. A longer one ends the connection with 1009.
  std::size_t max_frame = 1024 * 1024;
  // Silence after which a ping is sent. Proxies cut idle connections at 60 s and more.
  std::chrono::milliseconds ping_interval{30'000};
  // Silence after a ping, after which the peer is taken for dead.
  std::chrono::milliseconds ping_timeout{15'000};

  // ---- both ---------------------------------------------------------------------------------------
  // Bytes that may wait for a peer that reads slowly. Past half of it nothing more is read from the peer,
  // past the whole the connection is ended.
  std::size_t send_queue = 4 * 1024 * 1024;
  // How long a closing connection may take to say goodbye before it is cut.
  std::chrono::milliseconds close_timeout{5'000};
  // Bytes a second that a peer must move, either way, while a body or message of its is incomplete or bytes
  // wait for it; looked at over each span of `rate_window`. Slower than any network that people use.
  std::size_t min_rate = 1024;
  std::chrono::milliseconds rate_window{10'000};
};

}  // namespace hearth::net

#pragma once
// Every limit and time-out of the network layer, with its default and why it is that.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hearth::net {

// Sockets' time stands still while the machine is suspended: a silence that the suspension has
// caused ends no connection.
using SocketTime = std::chrono::steady_clock::time_point;

enum class TlsVersion { k12, k13 };

// PEM files. tls_context.hpp says what they must be like, and what is spoken.
struct TlsOptions {
  std::filesystem::path certificate;  // empty: plain HTTP
  std::filesystem::path key;
  // Clients of the last ten years speak 1.2, those of the last six 1.3.
  TlsVersion min_version = TlsVersion::k12;

  [[nodiscard]] bool is_used() const { return !certificate.empty(); }
};

// permessage-deflate for clients that offer it. deflate_terms.hpp has what is agreed on.
enum class Compression {
  kNone,
  kNoContextTakeover,  // each message by itself: an open connection costs next to no memory
  kContextTakeover,    // a message may refer to those before it
};

// What the clients of one address may use together; 0: as much as they like. Rates may be exceeded
// for a moment: what counts is the mean over ten seconds (of new agents: over a minute).
// address_limits.hpp keeps them. No header is believed (X-Forwarded-For): anybody can write one.
struct AddressLimits {
  // A tenth of max_connections: an office behind one address.
  std::uint32_t connections = 1'000;
  // A second. A handshake of TLS takes a millisecond of the thread that does them all.
  std::uint32_t new_connections = 100;
  // WebSocket frames and HTTP requests a second, and the bytes that are read, with what TLS adds:
  // what a busy server of somebody else's sends, and a fraction of what one loop can take. Frames,
  // because a ping or a fragment costs about what a message does.
  std::uint32_t messages = 10'000;
  std::size_t bytes = std::size_t{32} << 20;
  // Agents a minute that do not exist yet: each may become a file.
  std::uint32_t new_agents = 600;
  // Addresses and networks without these limits: proxies, which have many clients each, and this
  // machine, where tests and tools are.
  std::vector<std::string> exempt = {"127.0.0.0/8", "::1"};
};

// What all clients that are not exempt may use together, by the same measures. 0, and so by default
// no limit: what a machine takes depends on its agents. Connections have max_connections.
struct TotalLimits {
  std::uint32_t new_connections = 0;
  std::uint32_t messages = 0;
  std::size_t bytes = 0;
  std::uint32_t new_agents = 0;
};

// A value; the server keeps one copy, and nothing in it changes while it runs.
struct NetOptions {
  // Where to listen. A name is resolved once, at the start; port 0 lets the system choose.
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  TlsOptions tls = {};

  // Open connections of any kind; one more gets a 503 and is closed. Each is a file descriptor and
  // some 16 KiB.
  std::size_t max_connections = 10'000;
  AddressLimits per_address = {};
  TotalLimits in_total = {};

  // ---- HTTP -------------------------------------------------------------------------------------
  // Request line and header fields together, and the request target alone. A name that is too long
  // must get as far as the endpoint that refuses it, because only a client that is upgraded can be
  // told to stop trying. So a target has room for ten times the longest name, percent-encoded.
  std::size_t max_header = 32 * 1024;
  std::size_t max_target = 16 * 1024;
  // A request's body. A longer one is refused with 413 before memory is taken.
  std::size_t max_body = 4 * 1024 * 1024;
  // From the first byte that is expected of a request to the end of its head, the TLS handshake of
  // a new connection included.
  std::chrono::milliseconds handshake_timeout{10'000};
  // How long a connection may stay open between two requests.
  std::chrono::milliseconds http_idle_timeout{60'000};

  // ---- WebSocket --------------------------------------------------------------------------------
  // One message, all its fragments together. A longer one ends the connection with 1009. 4 MiB is
  // past any sensible message of an agent, and what a hundred hostile clients hold fits in memory.
  std::size_t max_frame = 4 * 1024 * 1024;
  // None: it costs time of the loop, and what is in a message with a secret shows in its length.
  Compression compression = Compression::kNone;
  // Silence after which a ping is sent; 0: none is. Proxies cut idle connections at 60 s and more.
  std::chrono::milliseconds ping_interval{30'000};
  // Silence after a ping, after which the peer is taken for dead.
  std::chrono::milliseconds ping_timeout{10'000};

  // ---- both -------------------------------------------------------------------------------------
  // Bytes that may wait for a peer that reads slowly. Past half of it nothing more is read from the
  // peer, past the whole the connection is ended.
  std::size_t send_queue = 4 * 1024 * 1024;
  // How long a closing connection may take to say goodbye before it is cut.
  std::chrono::milliseconds close_timeout{5'000};
  // Bytes a second that a peer must move, either way, while a body or message of its is incomplete
  // or bytes wait for it; looked at over each span of `rate_window`. Slower than any network that
  // people use.
  std::size_t min_rate = 1024;
  std::chrono::milliseconds rate_window{10'000};
};

}  // namespace hearth::net

#pragma once
// Every limit and timeout of the network layer, with its default and the reason for it.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hearth::net {

// The clock for sockets stops while the machine is suspended, so that no connection ends because of
// a suspension.
using SocketTime = std::chrono::steady_clock::time_point;

enum class TlsVersion { k12, k13 };

// PEM files. tls_context.hpp has the rules for them, and the versions and ciphers.
struct TlsOptions {
  std::filesystem::path certificate;  // empty: plain HTTP
  std::filesystem::path key;
  // Clients of the last ten years speak 1.2, those of the last six 1.3.
  TlsVersion min_version = TlsVersion::k12;

  [[nodiscard]] bool is_used() const { return !certificate.empty(); }
};

// permessage-deflate for clients that offer it. deflate_terms.hpp negotiates it.
enum class Compression {
  kNone,
  kNoContextTakeover,  // each message alone: an open connection needs nearly no memory
  kContextTakeover,    // a message may refer to earlier messages
};

// Limits for all clients of one address together; 0: no limit. A rate is the mean over ten seconds
// (for new agents over a minute), so it may be exceeded for a moment. address_limits.hpp enforces
// the limits. They ignore headers such as X-Forwarded-For, because every client can write one.
struct AddressLimits {
  // A tenth of max_connections: an office behind one address.
  std::uint32_t connections = 1'000;
  // A second. A TLS handshake takes a millisecond, and one thread does them all.
  std::uint32_t new_connections = 100;
  // WebSocket frames and HTTP requests a second, and bytes that are read, with those of TLS. Enough
  // for a busy server as a client, and a fraction of what one loop can handle. Frames, because a
  // ping or a fragment costs about as much as a message.
  std::uint32_t messages = 10'000;
  std::size_t bytes = std::size_t{32} << 20;
  // Agents a minute that do not exist yet: each may become a file.
  std::uint32_t new_agents = 600;
  // Addresses and networks without these limits: proxies, which have many clients, and this
  // machine, for tests and tools.
  std::vector<std::string> exempt = {"127.0.0.0/8", "::1"};
};

// The same limits for all clients together that are not exempt. 0: no limit. That is the default,
// because the load that a machine can handle depends on its agents. For connections there is
// max_connections.
struct TotalLimits {
  std::uint32_t new_connections = 0;
  std::uint32_t messages = 0;
  std::size_t bytes = 0;
  std::uint32_t new_agents = 0;
};

// A value. The server keeps one copy, which does not change while it runs.
struct NetOptions {
  // Where to listen. A name is resolved once, at the start; port 0 lets the system choose.
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  TlsOptions tls = {};

  // Open connections of any kind; one more gets a 503 and is closed. Each needs a file descriptor
  // and some 16 KiB.
  std::size_t max_connections = 10'000;
  AddressLimits per_address = {};
  TotalLimits in_total = {};

  // ---- HTTP -------------------------------------------------------------------------------------
  // Request line and header fields together, and the request target alone. A target with a name
  // that is too long must reach the endpoint that refuses it, because only a client that is
  // upgraded can be told to stop. So a target has room for ten times the longest name,
  // percent-encoded.
  std::size_t max_header = 32 * 1024;
  std::size_t max_target = 16 * 1024;
  // Header fields of a request: a short one takes fifty times its bytes in memory.
  std::size_t max_fields = 128;
  // A request's body. A longer body gets 413 before memory is taken.
  std::size_t max_body = 4 * 1024 * 1024;
  // From the start of a request to the end of its head. For a new connection it includes the TLS
  // handshake.
  std::chrono::milliseconds handshake_timeout{10'000};
  // How long a connection may stay open between two requests.
  std::chrono::milliseconds http_idle_timeout{60'000};

  // ---- WebSocket --------------------------------------------------------------------------------
  // One message, all its fragments together. A longer message ends the connection with 1009. 4 MiB
  // is more than agents' messages need, and memory is enough for a hundred hostile clients.
  std::size_t max_frame = 4 * 1024 * 1024;
  // None: compression takes time of the loop, and the length of a message with a secret would leak
  // its content.
  Compression compression = Compression::kNone;
  // Silence after which a ping is sent; 0: no pings. Proxies cut idle connections at 60 s and more.
  std::chrono::milliseconds ping_interval{30'000};
  // Silence after a ping, after which the connection is cut.
  std::chrono::milliseconds ping_timeout{10'000};

  // ---- both -------------------------------------------------------------------------------------
  // Bytes that may wait for a peer that reads slowly. Above half of it nothing more is read from
  // the peer; above all of it the connection is ended.
  std::size_t send_queue = 4 * 1024 * 1024;
  // How long a closing connection may take before it is cut.
  std::chrono::milliseconds close_timeout{5'000};
  // Bytes a second that a peer must send while its body or message is incomplete, and must read
  // while bytes wait for it. Measured over each span of `rate_window`. Slower than any network that
  // people use.
  std::size_t min_rate = 1024;
  std::chrono::milliseconds rate_window{10'000};
};

}  // namespace hearth::net

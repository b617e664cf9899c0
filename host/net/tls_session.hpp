#pragma once
// TLS over one descriptor, without a loop. Streams and handshakes use it.

#include "net/tls_context.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

struct ssl_st;  // OpenSSL's SSL

namespace hearth::net {

// Reads from the descriptor and writes to it, and never closes it. Never raises SIGPIPE.
//
// Bounded   One record (16 KiB) each way while a record is incomplete, and none while the
//           connection is idle. During a handshake its state, for which OpenSSL accepts at most 128
//           KiB from the peer.
// Threads   One at a time; it may move between threads.
// Lifetime  The descriptor outlives its use.
class TlsSession {
 public:
  enum class Outcome {
    kDone,
    kReads,      // call again when the descriptor is readable
    kWrites,     // call again when the descriptor is writable
    kEnded,      // the peer has ended its side (close_notify)
    kPlainHttp,  // in a handshake: the peer speaks HTTP without TLS
    kFailed,     // the connection is broken, or the peer breaks the rules; failure() says why
  };
  struct Moved {
    Outcome outcome = Outcome::kDone;
    std::size_t bytes = 0;  // more than zero with kDone, otherwise zero
  };

  TlsSession(std::shared_ptr<const TlsContext> context, int descriptor);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Continues the handshake.
  Outcome handshake();
  Moved read(std::span<char> into);
  // Takes at most one record. After kWrites the next call must begin with the same bytes.
  Moved write(std::string_view bytes);
  // Sends close_notify: no more bytes follow. kDone also if it cannot be sent.
  Outcome end();

  // Whether read() may return bytes without new bytes on the descriptor.
  [[nodiscard]] bool has_more() const;
  // Bytes that were written to the descriptor.
  [[nodiscard]] std::uint64_t written() const { return wire_.written; }
  // Bytes that were read from the descriptor since the last call, or since the beginning.
  [[nodiscard]] std::size_t take_received() { return std::exchange(wire_.received, 0); }
  // The reason of a failure, for the log: OpenSSL's text.
  [[nodiscard]] const std::string& failure() const { return failure_; }

  static constexpr std::size_t kRecord = std::size_t{16} << 10;

  // OpenSSL reads from it and writes to it.
  struct Wire {
    int descriptor = -1;
    std::uint64_t written = 0;
    std::size_t received = 0;
  };

 private:
  struct Free {
    void operator()(ssl_st* ssl) const;
  };
  Outcome outcome_of(int result);

  const std::shared_ptr<const TlsContext> context_;  // shared with the context's other connections
  Wire wire_;
  std::unique_ptr<ssl_st, Free> ssl_;  // uses wire_
  std::string failure_;
  bool failed_ = false;
};

}  // namespace hearth::net

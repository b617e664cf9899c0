#pragma once
// Bytes to and from one peer: the interface below HTTP and WebSocket. tcp_stream.cpp implements it
// over plain TCP, and tls_stream.cpp over TLS.

#include "base/client_memory.hpp"
#include "base/clock.hpp"
#include "base/turn_end.hpp"
#include "net/buffer_pool.hpp"
#include "net/outgoing_queue.hpp"
#include "net/tls_session.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::net {

namespace asio = boost::asio;
using error_code = boost::system::error_code;

// What to wait for before a stream closes.
enum class Linger {
  kUntilSent,  // until all is sent, for a peer that sends nothing more: later bytes from it would
               // cause a reset, which may destroy bytes that it has not read yet
  kUntilPeerEnds,  // reads and drops further bytes, until the peer ends its side too or has sent
                   // more than kMostDrained
  kBriefly,        // the same up to kMostDrainedBriefly, for a peer that has used too much
};

// A connected socket that belongs to no loop, to move a connection to another loop.
struct LooseSocket {
  int descriptor = -1;
  bool is_v6 = false;
  std::string unsent;               // gathered by the stream, not sent yet
  std::unique_ptr<TlsSession> tls;  // null: plain TCP
};

// A stream that gathers outgoing bytes. append() puts bytes into a queue. One send takes all of the
// queue: at the end of the loop's turn (flush_soon()), or earlier if the stream must wait for bytes
// from the peer. So answers to a burst of requests leave together, and a single answer leaves at
// once.
//
// Order     Bytes leave in the order appended, each append() in one piece.
// Failure   A failed send closes the stream: a pending read completes with an error, is_open() is
//           false, and later appended bytes are dropped.
// Bounded   While more bytes wait than hold_reads_above() allows, the stream does not read: a peer
//           that does not take its answers cannot send more requests. The caller bounds the rest
//           with buffered(); the stream refuses no bytes. Bytes that wait for room in the system
//           count as client memory.
// Threads   One loop's thread only, completions included.
// Lifetime  Shared by its owner and its pending operations. The owner ends it with finish(),
//           abort() or release(); soon after that no operation is left.
class ByteStream : public std::enable_shared_from_this<ByteStream> {
 public:
  using Executor = asio::io_context::executor_type;
  using ReadHandler = asio::any_completion_handler<void(error_code, std::size_t)>;
  // One piece, or two if the reader's buffer is a ring. The second may be empty.
  using ReadBuffers = std::array<asio::mutable_buffer, 2>;

  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  [[nodiscard]] const Executor& executor() const { return executor_; }
  [[nodiscard]] bool is_open() const { return open_; }

  // ---- reading ----------------------------------------------------------------------------------
  // Reads at least one byte, or completes with the error (asio::error::eof if the peer has ended
  // its side). Never completes inside the call. One read at a time. Appended bytes are sent first,
  // except if the peer has already sent more, so that more answers will follow.
  void async_read_some(ReadBuffers into, ReadHandler handler);
  // Bytes that were already read from the socket: the next reads return them first. Call it only
  // before the first read.
  void preload(std::string bytes) { preloaded_ = std::move(bytes); }
  // Whether a read is pending.
  [[nodiscard]] bool reading() const { return reading_; }
  // From now on no read begins while more than `bytes` wait to leave; at first there is no bound.
  void hold_reads_above(std::size_t bytes) { most_unread_ = bytes; }
  [[nodiscard]] bool backed_up() const { return buffered() > most_unread_; }
  // Calls `ready` once, as soon as the stream is no longer backed up, or is closed. Never inside
  // the call. One `ready` at a time, and only while no read is pending.
  void when_room(std::function<void()> ready);
  // Whether the peer has ended its side or the connection is broken, for a caller that does not
  // read at the moment. Earlier bytes of the peer may still be unread.
  [[nodiscard]] bool peer_has_left() { return !open_ || wire_has_ended(); }
  // Whether bytes have arrived since the last call: cheaper than a time stamp for each read.
  [[nodiscard]] bool take_heard() { return std::exchange(heard_, false); }
  // The bytes that have arrived over the wire since the last call, to charge the client's address.
  // Preloaded bytes do not count. Over TLS the bytes of records and of the handshake count. Bytes
  // may arrive without a read that completes.
  [[nodiscard]] virtual std::size_t take_arrived() { return std::exchange(arrived_, 0); }

  // ---- writing ----------------------------------------------------------------------------------
  // Copies the bytes, or shares them, and does not send: call flush_soon() or flush() afterwards.
  void append(std::string_view bytes);
  void append(std::string_view head, SharedBytes bytes);
  // Sends at the end of the loop's turn. While more bytes are appended in each turn it sends later,
  // at most TurnEnd::kMostTurns turns later, and at once above kMostGathered bytes.
  void flush_soon();
  // Sends now all that the system takes, and the rest when the system has room.
  void flush();
  // Calls `drained` once, as soon as at most `bytes` wait to leave, or the stream is closed. Never
  // inside the call.
  void when_drained(std::size_t bytes, std::function<void()> drained);
  // Calls all that wait in when_drained().
  void end_drains();
  // Appended bytes that the system has not taken yet.
  [[nodiscard]] std::size_t buffered() const { return outgoing_.size(); }
  // Whether the waiting bytes are more than client memory allows: then the caller ends the
  // connection.
  [[nodiscard]] bool refused_memory() const {
    return waiting_for_room_ && pool_.memory().refuses(outgoing_.size());
  }
  // The number of sends to the system: for tests and metrics.
  [[nodiscard]] std::uint64_t sends() const { return sends_; }
  // Whether bytes wait because the system has no room, so that the peer must read.
  [[nodiscard]] bool waits_for_peer() const { return waiting_for_room_; }
  // Since the system last took some. None: it has room.
  [[nodiscard]] std::optional<SteadyTime> waits_for_peer_since() const {
    return waiting_for_room_ ? std::optional(waits_since_) : std::nullopt;
  }
  // Bytes that have reached the peer, to detect a peer that reads too slowly.
  [[nodiscard]] std::uint64_t bytes_taken() { return bytes_sent_ - (open_ ? on_the_way() : 0); }

  // ---- the end ----------------------------------------------------------------------------------
  // Called with the number of bytes that were read and dropped; false: read no more.
  using MaySay = std::function<bool(std::size_t bytes)>;

  // Sends the waiting bytes, ends this side, lingers, closes, and calls `closed`. A pending read
  // completes with an error. A peer that sends more than `linger` allows is cut off, and bytes that
  // it has not taken are dropped. There is no time limit: a caller that wants one calls abort(),
  // and `closed` is called then too.
  // `may_say`: with kUntilPeerEnds, it is called to charge the peer's address for bytes that are
  // read and dropped, and for earlier bytes that were not charged yet.
  void finish(Linger linger, std::function<void()> closed, MaySay may_say = nullptr);
  // Closes now and drops the waiting bytes. A pending read completes with an error.
  void abort();
  // Detaches the socket, with no operation pending on it. Nothing if this kind of stream cannot.
  // Only while no read is pending.
  [[nodiscard]] virtual std::optional<LooseSocket> release() { return std::nullopt; }

  static constexpr std::size_t kMostGathered = 64 * 1024;
  static constexpr int kMostReadsGathered = 16;
  // The most bytes that are read and dropped so that a peer can read the last answer. Many clients
  // read an answer only after they have sent their body: a body of twice the default `max_body`
  // still gets its 413. Without a bound a peer could make the server read until the time limit.
  static constexpr std::size_t kMostDrained = std::size_t{8} * 1024 * 1024;
  // A client that is refused because it has used too much may use only little more.
  static constexpr std::size_t kMostDrainedBriefly = std::size_t{256} * 1024;

 protected:
  // `turn_end`: of the executor's loop. It and the pool outlive the stream.
  ByteStream(Executor executor, BufferPool& pool, TurnEnd& turn_end)
      : executor_(std::move(executor)),
        pool_(pool),
        turn_end_(turn_end),
        outgoing_(pool),
        held_(pool.memory()) {}

  // Implemented by each kind of stream. When a read or wait has completed, it calls read_done() or
  // writable() on the loop's thread.
  virtual void start_read(ReadBuffers into, ReadHandler handler) = 0;
  // Without blocking; zero if there are no bytes, or an error.
  virtual std::size_t read_now(ReadBuffers into, error_code& error) = 0;
  // Without blocking; asio::error::would_block if the system has no room.
  virtual std::size_t send_now(std::span<const asio::const_buffer> bytes, error_code& error) = 0;
  // Bytes that the system has taken and the peer has not.
  [[nodiscard]] virtual std::size_t on_the_way() = 0;
  virtual void start_wait_writable() = 0;
  // Without reading or blocking.
  [[nodiscard]] virtual bool wire_has_ended() = 0;
  // False: there is no room for the stream's own last bytes (TLS has some). It is called again when
  // there is room.
  [[nodiscard]] virtual bool try_shutdown_send() = 0;
  // Completes pending operations with an error; close_wire() also closes the socket.
  virtual void cancel_wire() = 0;
  virtual void close_wire() = 0;

  void read_done(ReadHandler handler, error_code error, std::size_t bytes);
  // For a read that gets bytes but returns none (TLS): whether the peer has sent more than finish()
  // allows. The read then completes with an error.
  [[nodiscard]] bool has_drained_enough();
  void writable(error_code error);
  // For release(): the stream is closed from here on. Returns the bytes that were not sent.
  std::string give_up();

 private:
  struct HeldRead {
    ReadBuffers into;
    ReadHandler handler;
  };
  [[nodiscard]] bool leave(bool is_last);
  void wait_for_room();
  void resume_reading();
  void tell_drained();
  void drain();
  void everything_sent();
  void close();
  std::size_t take_preloaded(ReadBuffers into);
  std::size_t read_on(ReadBuffers into);
  void complete_read(ReadHandler handler, std::size_t bytes);
  void give(ReadHandler handler, error_code error, std::size_t bytes);

  const Executor executor_;
  BufferPool& pool_;
  TurnEnd& turn_end_;
  OutgoingQueue outgoing_;
  HeldBytes held_;  // of outgoing_, while the system takes no more
  std::string preloaded_;
  std::size_t most_unread_ = std::numeric_limits<std::size_t>::max();
  std::unique_ptr<HeldRead> held_read_;  // waits until the stream is not backed up
  std::function<void()> room_notice_;    // of when_room()
  std::vector<std::pair<std::size_t, std::function<void()>>> drain_notices_;
  std::uint64_t appended_ = 0;
  std::uint64_t appended_before_ = 0;  // appended_ at the last flush_soon() or leave()
  std::uint64_t sends_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t sent_before_wait_ = std::numeric_limits<std::uint64_t>::max();
  SteadyTime waits_since_{};
  std::function<void()> closed_;
  MaySay may_say_;
  std::size_t room_ = 0;     // of the pending read
  std::size_t arrived_ = 0;  // since take_arrived()
  std::size_t drained_ = 0;
  std::size_t most_drained_ = kMostDrained;
  int reads_gathered_ = 0;
  bool filled_ = false;  // the last read used all its room, so more bytes may wait
  bool open_ = true;
  bool reading_ = false;
  bool heard_ = false;
  bool leaves_soon_ = false;  // leave() is called at the end of the turn
  bool waiting_for_room_ = false;
  bool finishing_ = false;   // no more append(); everything_sent() ends this side
  bool send_ended_ = false;  // try_shutdown_send() has done so
  bool peer_ended_ = false;  // no more bytes are expected from the peer
};

}  // namespace hearth::net

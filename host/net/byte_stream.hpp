#pragma once
// Bytes to and from one peer. The seam below HTTP and WebSocket: tcp_stream.cpp implements it over
// plain TCP, and tls_stream.cpp over TLS.

#include "base/client_memory.hpp"
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
  kUntilSent,  // for a peer that has nothing more to say: what it said later would be answered with
               // a reset, which may take our last words with it
  kUntilPeerEnds,  // reads and drops what the peer still says, until it ends its side too or has
                   // said more than kMostDrained
  kBriefly,        // the same for a peer that is refused for what it uses: kMostDrainedBriefly
};

// A connected socket that belongs to no loop: how a connection moves to another one.
struct LooseSocket {
  int descriptor = -1;
  bool is_v6 = false;
  std::string unsent;               // what the stream had gathered and not sent
  std::unique_ptr<TlsSession> tls;  // none: plain TCP
};

// A stream that gathers what is written. append() puts it into a queue, and what is in the queue
// leaves with one send: at the end of the loop's turn (flush_soon()), or before the stream waits
// for bytes that the peer has still to send, whichever comes first. So answers to a burst of
// requests leave together, and a single answer leaves at once.
//
// Order     Bytes leave in the order appended, each append() in one piece.
// Failure   A send that fails closes the stream: a pending read completes with an error, is_open()
//           is false, and what is appended from then on is dropped.
// Bounded   While more than the bound of hold_reads_above() has not left, nothing is read: a peer
//           that asks without taking the answers is not heard until it does. Beyond that by the
//           caller, who looks at buffered(); the stream itself refuses nothing. What waits because
//           the system takes no more is on the account of client memory.
// Threads   One loop's thread only, completions included.
// Lifetime  Shared by its owner and its own operations in flight. Whoever opens one ends it with
//           finish(), abort() or release(); then no operation is left soon after.
class ByteStream : public std::enable_shared_from_this<ByteStream> {
 public:
  using Executor = asio::io_context::executor_type;
  using ReadHandler = asio::any_completion_handler<void(error_code, std::size_t)>;
  // One piece, or two when the reader's buffer is a ring. The second may be empty.
  using ReadBuffers = std::array<asio::mutable_buffer, 2>;

  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  [[nodiscard]] const Executor& executor() const { return executor_; }
  [[nodiscard]] bool is_open() const { return open_; }

  // ---- reading ----------------------------------------------------------------------------------
  // Reads at least one byte, or completes with the error (asio::error::eof when the peer has ended
  // its side). Never completes inside the call. One read at a time. What was appended leaves first,
  // unless the peer has sent so much already that more answers will follow.
  void async_read_some(ReadBuffers into, ReadHandler handler);
  // Bytes that somebody read from the socket before: they are read first. Only before any read.
  void preload(std::string bytes) { preloaded_ = std::move(bytes); }
  // A read is waiting for the peer.
  [[nodiscard]] bool reading() const { return reading_; }
  // From now on no read begins while more than `bytes` wait to leave; at first there is no bound.
  void hold_reads_above(std::size_t bytes) { most_unread_ = bytes; }
  [[nodiscard]] bool backed_up() const { return buffered() > most_unread_; }
  // Calls `ready` once, as soon as the stream is not backed up any more, or is closed. One at a
  // time, and not beside a read. Never inside the call.
  void when_room(std::function<void()> ready);
  // Whether the peer has ended its side or the connection is broken, for whoever does not read just
  // now. What it said before may still be there to be read.
  [[nodiscard]] bool peer_has_left() { return !open_ || wire_has_ended(); }
  // Whether bytes have come in since the last call: cheaper than a time stamp for each read.
  [[nodiscard]] bool take_heard() { return std::exchange(heard_, false); }
  // How many bytes have come over the wire since the last call, for whoever is charged for them.
  // That is what was read, without what was preloaded; over TLS it is what the records took,
  // whatever they held, and the handshake's. They may have come without a read that completes.
  [[nodiscard]] virtual std::size_t take_arrived() { return std::exchange(arrived_, 0); }

  // ---- writing ----------------------------------------------------------------------------------
  // Copies the bytes, or shares them, and arranges nothing: flush_soon() or flush() must follow.
  void append(std::string_view bytes);
  void append(std::string_view head, SharedBytes bytes);
  // Sends at the end of the loop's turn; later while more is being appended, but never more than
  // TurnEnd::kMostTurns turns later, nor with more than kMostGathered bytes gathered.
  void flush_soon();
  // Sends now what the system takes, and the rest as the peer makes room.
  void flush();
  // Calls `drained` once, as soon as at most `bytes` wait to leave, or the stream is closed. Never
  // inside the call.
  void when_drained(std::size_t bytes, std::function<void()> drained);
  // Bytes appended that the system has not taken yet.
  [[nodiscard]] std::size_t buffered() const { return outgoing_.size(); }
  // Whether what waits is more than the account of client memory allows: then the peer must go.
  [[nodiscard]] bool refused_memory() const {
    return waiting_for_room_ && pool_.memory().refuses(outgoing_.size());
  }
  // How many times the stream has handed bytes to the system: for tests and metrics.
  [[nodiscard]] std::uint64_t sends() const { return sends_; }
  // The system has no room for what waits, so that it is the peer's turn.
  [[nodiscard]] bool waits_for_peer() const { return waiting_for_room_; }
  // Bytes that have reached the peer, for noticing one that takes too few.
  [[nodiscard]] std::uint64_t bytes_taken() { return bytes_sent_ - (open_ ? on_the_way() : 0); }

  // ---- the end ----------------------------------------------------------------------------------
  // Asked about bytes over the wire that are read and dropped; false: no more of them.
  using MaySay = std::function<bool(std::size_t bytes)>;

  // Sends what is left, ends our side, lingers, closes, and calls `closed`. A pending read
  // completes with an error. A peer that goes on talking past what `linger` allows is cut off, and
  // what it has not taken is dropped. There is no time limit in here: whoever wants one calls
  // abort(), and `closed` is called then too.
  // `may_say`: with kUntilPeerEnds, whether the peer may have said so much more. It is charged for
  // it, and for what came before and nobody took.
  void finish(Linger linger, std::function<void()> closed, MaySay may_say = nullptr);
  // Closes now and drops what is left. A pending read completes with an error.
  void abort();
  // Gives the socket away, with no operation pending on it. Nothing if the kind of stream cannot.
  // Only while no read is pending.
  [[nodiscard]] virtual std::optional<LooseSocket> release() { return std::nullopt; }

  static constexpr std::size_t kMostGathered = 64 * 1024;
  static constexpr int kMostReadsGathered = 16;
  // Bytes over the wire that are read and dropped for a peer to hear our last words. Many clients
  // look for an answer only when their body is sent: one of twice the default `max_body` still
  // gets its 413. A peer that never stops would have the server read for as long as it lingers.
  static constexpr std::size_t kMostDrained = std::size_t{8} * 1024 * 1024;
  // What is refused because its client has used too much is no free way to use more.
  static constexpr std::size_t kMostDrainedBriefly = std::size_t{256} * 1024;

 protected:
  // `turn_end`: of the loop that the executor is of. It and the pool outlive the stream.
  ByteStream(Executor executor, BufferPool& pool, TurnEnd& turn_end)
      : executor_(std::move(executor)),
        pool_(pool),
        turn_end_(turn_end),
        outgoing_(pool),
        held_(pool.memory()) {}

  // The seam. A read or wait that has completed calls read_done() or writable() on the loop's
  // thread.
  virtual void start_read(ReadBuffers into, ReadHandler handler) = 0;
  // Without blocking; zero when there is nothing, or an error.
  virtual std::size_t read_now(ReadBuffers into, error_code& error) = 0;
  // Without blocking; asio::error::would_block when the system has no room.
  virtual std::size_t send_now(std::span<const asio::const_buffer> bytes, error_code& error) = 0;
  // Bytes that the system has taken and the peer has not.
  [[nodiscard]] virtual std::size_t on_the_way() = 0;
  virtual void start_wait_writable() = 0;
  // Without reading or blocking.
  [[nodiscard]] virtual bool wire_has_ended() = 0;
  // False: there is no room for the last words of the stream's own (TLS has some). It is called
  // again once there is.
  [[nodiscard]] virtual bool try_shutdown_send() = 0;
  // Completes pending operations with an error; close_wire() closes the socket besides.
  virtual void cancel_wire() = 0;
  virtual void close_wire() = 0;

  void read_done(ReadHandler handler, error_code error, std::size_t bytes);
  // For a read that gets bytes and nothing to give: whether the peer has had its time to end. The
  // read completes with an error then.
  [[nodiscard]] bool has_drained_enough();
  void writable(error_code error);
  // For release(): the stream is closed from here on; returns what had not left yet.
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
  std::unique_ptr<HeldRead> held_read_;  // waits until less is backed up
  std::function<void()> room_notice_;    // of when_room()
  std::vector<std::pair<std::size_t, std::function<void()>>> drain_notices_;
  std::uint64_t appended_ = 0;
  std::uint64_t appended_before_ = 0;  // when leave() was last arranged, or looked
  std::uint64_t sends_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::function<void()> closed_;
  MaySay may_say_;
  std::size_t room_ = 0;     // of the read that is pending
  std::size_t arrived_ = 0;  // since take_arrived()
  std::size_t drained_ = 0;
  std::size_t most_drained_ = kMostDrained;
  int reads_gathered_ = 0;
  bool filled_ = false;  // the last read used all its room, so more may be waiting
  bool open_ = true;
  bool reading_ = false;
  bool heard_ = false;
  bool leaves_soon_ = false;  // leave() comes at the end of the turn
  bool waiting_for_room_ = false;
  bool finishing_ = false;   // no more append(); everything_sent() ends our side
  bool send_ended_ = false;  // try_shutdown_send() has done so
  bool peer_ended_ = false;  // nothing more is expected of the peer
  bool has_said_enough_ = false;
};

}  // namespace hearth::net

#include "net/byte_stream.hpp"

#include "base/assert.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <utility>

namespace hearth::net {

// ---- reading ------------------------------------------------------------------------------------

void ByteStream::async_read_some(ReadBuffers into, ReadHandler handler) {
  HEARTH_DEBUG_ASSERT(!reading_, "two reads at a time");
  reading_ = true;
  room_ = into[0].size() + into[1].size();
  if (const std::size_t bytes = take_preloaded(into)) {
    return complete_read(std::move(handler), bytes);
  }
  if (buffered() != 0) {
    // The reader has handled all earlier bytes, so the answers are sent now. But if the last read
    // left bytes in the socket, more answers will follow at once: then this reads first.
    if (const std::size_t bytes = read_on(into)) {
      complete_read(std::move(handler), bytes);
      return flush_soon();  // in case the reader stops here
    }
    flush();
  }
  if (open_ && backed_up()) {
    held_read_ = std::make_unique<HeldRead>(into, std::move(handler));
    return;
  }
  start_read(into, std::move(handler));
}

void ByteStream::when_room(std::function<void()> ready) {
  HEARTH_DEBUG_ASSERT(!room_notice_ && !reading_, "when_room() called twice, or beside a read");
  room_notice_ = std::move(ready);
  resume_reading();
}

// Continues a read or a notice that waited while the stream was backed up.
void ByteStream::resume_reading() {
  if (open_ && !finishing_ && backed_up()) return;
  if (room_notice_) asio::post(executor_, std::exchange(room_notice_, nullptr));
  if (held_read_ == nullptr) return;
  const std::unique_ptr<HeldRead> held = std::move(held_read_);
  if (open_ && !finishing_) return start_read(held->into, std::move(held->handler));
  asio::post(executor_, [self = shared_from_this(), handler = std::move(held->handler)]() mutable {
    self->read_done(std::move(handler), asio::error::operation_aborted, 0);
  });
}

std::size_t ByteStream::take_preloaded(ReadBuffers into) {
  if (preloaded_.empty()) return 0;
  const std::size_t bytes = asio::buffer_copy(into, asio::buffer(preloaded_));
  preloaded_.erase(0, bytes);
  if (preloaded_.empty()) preloaded_ = std::string();
  return bytes;
}

std::size_t ByteStream::read_on(ReadBuffers into) {
  if (!filled_ || !open_ || buffered() >= kMostGathered || ++reads_gathered_ > kMostReadsGathered) {
    reads_gathered_ = 0;
    return 0;
  }
  error_code error;  // start_read() meets it again, and reports it
  const std::size_t bytes = read_now(into, error);
  arrived_ += bytes;
  return bytes;
}

void ByteStream::complete_read(ReadHandler handler, std::size_t bytes) {
  asio::post(executor_, [self = shared_from_this(), handler = std::move(handler), bytes]() mutable {
    self->give(std::move(handler), error_code(), bytes);
  });
}

void ByteStream::read_done(ReadHandler handler, error_code error, std::size_t bytes) {
  arrived_ += bytes;
  give(std::move(handler), error, bytes);
}

void ByteStream::give(ReadHandler handler, error_code error, std::size_t bytes) {
  reading_ = false;
  filled_ = bytes == room_;
  if (bytes != 0) heard_ = true;
  std::move(handler)(error, bytes);
  // finish() had to wait until the reader's buffer was no longer in use.
  if (finishing_ && open_ && !reading_ && !peer_ended_) drain();
}

// ---- writing ------------------------------------------------------------------------------------

void ByteStream::append(std::string_view bytes) {
  if (!open_ || finishing_) return;
  outgoing_.append(bytes);
  appended_ += bytes.size();
  if (waiting_for_room_) held_.set(outgoing_.own());
}

void ByteStream::append(std::string_view head, SharedBytes bytes) {
  if (!open_ || finishing_) return;
  appended_ += head.size() + bytes.view().size();
  outgoing_.append(head, std::move(bytes));
  if (waiting_for_room_) held_.set(outgoing_.own());
}

void ByteStream::flush_soon() {
  if (waiting_for_room_ || buffered() == 0 || std::exchange(leaves_soon_, true)) return;
  appended_before_ = appended_;
  turn_end_.add(TurnEnd::Phase::kSend,
                [self = shared_from_this()](bool is_last) { return self->leave(is_last); });
}

// False: more bytes are being appended.
bool ByteStream::leave(bool is_last) {
  const bool is_growing = std::exchange(appended_before_, appended_) != appended_;
  if (is_growing && !is_last && buffered() != 0 && buffered() < kMostGathered) return false;
  leaves_soon_ = false;
  flush();
  return true;
}

void ByteStream::flush() {
  if (open_ && !waiting_for_room_ && buffered() != 0) {
    OutgoingQueue::Buffers place;
    std::size_t offered = 0;
    std::size_t taken = 0;
    do {
      const auto pieces = outgoing_.front(place);
      offered = asio::buffer_size(pieces);
      error_code error;
      taken = send_now(pieces, error);
      ++sends_;
      if (error && error != asio::error::would_block) return abort();
      outgoing_.drop(taken);
      bytes_sent_ += taken;
    } while (taken == offered && buffered() != 0);
    if (buffered() != 0) wait_for_room();
    resume_reading();
    tell_drained();
  }
  if (buffered() == 0) everything_sent();
}

void ByteStream::when_drained(std::size_t bytes, std::function<void()> drained) {
  drain_notices_.emplace_back(bytes, std::move(drained));
  tell_drained();
}

void ByteStream::tell_drained() {
  std::erase_if(drain_notices_, [this](auto& each) {
    if (open_ && buffered() > each.first) return false;
    asio::post(executor_, std::move(each.second));
    return true;
  });
}

void ByteStream::end_drains() {
  for (auto& each : std::exchange(drain_notices_, {}))
    asio::post(executor_, std::move(each.second));
}

// The system has no room: another attempt now would fail.
void ByteStream::wait_for_room() {
  held_.set(outgoing_.own());
  waiting_for_room_ = true;
  if (std::exchange(sent_before_wait_, bytes_sent_) != bytes_sent_) waits_since_ = BootClock::now();
  start_wait_writable();
}

void ByteStream::everything_sent() {
  held_.set(0);
  if (!finishing_ || !open_ || waiting_for_room_) return;
  if (!send_ended_) {
    send_ended_ = try_shutdown_send();
    if (!send_ended_) return wait_for_room();
  }
  if (peer_ended_) close();
}

void ByteStream::writable(error_code) {
  // The next send meets an error again, and handles it. A cancelled wait is started again.
  waiting_for_room_ = false;
  if (open_) flush();
}

// ---- the end ------------------------------------------------------------------------------------

void ByteStream::finish(Linger linger, std::function<void()> closed, MaySay may_say) {
  HEARTH_ASSERT(!finishing_, "finish() called twice");
  finishing_ = true;
  const std::size_t unpaid = take_arrived();
  closed_ = std::move(closed);
  peer_ended_ = linger == Linger::kUntilSent;
  if (linger == Linger::kBriefly) most_drained_ = kMostDrainedBriefly;
  if (linger == Linger::kUntilPeerEnds && may_say) {
    if (unpaid != 0) (void)may_say(unpaid);  // earlier bytes: charged, never refused
    may_say_ = std::move(may_say);
  }
  if (!open_) return close();
  flush();
  if (!open_) return;  // all is sent and no peer is awaited, or the send has failed
  if (held_read_ != nullptr) {
    resume_reading();
  } else if (reading_) {
    cancel_wire();
  } else if (!peer_ended_) {
    drain();
  }
}

void ByteStream::drain() {
  reading_ = true;
  const std::span<char> scratch = pool_.scratch();
  const ReadBuffers into{asio::buffer(scratch.data(), scratch.size()), asio::mutable_buffer()};
  start_read(into, [self = shared_from_this()](error_code error, std::size_t) {
    if (self->has_drained_enough()) return self->abort();
    // give() starts the next read, unless this was the last one.
    if (!error) return;
    self->peer_ended_ = true;
    if (error != asio::error::eof || self->buffered() == 0) self->close();
  });
}

bool ByteStream::has_drained_enough() {
  if (!finishing_) return false;
  const std::size_t bytes = take_arrived();
  drained_ += bytes;
  if (drained_ <= most_drained_ && bytes != 0 && may_say_ && !may_say_(bytes)) most_drained_ = 0;
  return drained_ > most_drained_;
}

void ByteStream::abort() {
  outgoing_.clear();
  held_.set(0);
  close();
}

std::string ByteStream::give_up() {
  open_ = false;
  held_.set(0);
  return outgoing_.take_all();
}

void ByteStream::close() {
  if (open_) {
    open_ = false;
    close_wire();
    resume_reading();
    end_drains();
  }
  may_say_ = nullptr;  // it may hold the stream's owner
  // Posted, because callers of abort() and finish() do not expect a callback inside the call.
  if (closed_) asio::post(executor_, std::exchange(closed_, nullptr));
}

}  // namespace hearth::net

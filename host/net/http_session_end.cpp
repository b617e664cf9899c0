// The deadlines of a session, and its end.
#include "net/http_session.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace hearth::net {

void HttpSession::end(Linger linger) {
  if (is_ending()) return;
  state_ = State::kEnding;
  set_deadline(share_.options.close_timeout);
  if (has_sent_too_much_ && linger == Linger::kUntilPeerEnds) linger = Linger::kBriefly;
  if (body_) end_body(Error{Errc::kNotFound, "the request is over"});
  const std::shared_ptr<HttpSession> self = shared_from_this();
  stream_->finish(
      linger, [self] { self->gone(); },
      [self](std::size_t bytes) { return self->may_send(0, bytes); });
  // Posted: this may run inside a write() of the exchange's holder.
  if (abort_notice_) asio::post(stream_->executor(), std::exchange(abort_notice_, nullptr));
}

void HttpSession::lost() {
  if (body_) end_body(Error{Errc::kNotFound, "the client has left"});
  end();
  stream_->abort();
}

void HttpSession::drop(DropReason reason) {
  share_.note_drop(reason);
  lost();
}

void HttpSession::gone() {
  const std::shared_ptr<HttpSession> self = shared_from_this();
  state_ = State::kGone;
  share_.table.remove(*this);
  share_.connection_ended();
}

void HttpSession::wind_down() {
  keep_alive_ = false;
  if (state_ == State::kIdle) end(Linger::kUntilSent);
}

void HttpSession::cut() {
  if (state_ < State::kMoved) lost();
}

void HttpSession::on_sweep(SocketTime now) {
  if (state_ >= State::kMoved) return;
  if (!is_ending() && !stream_->is_open()) return lost();  // a send has failed without a read
  const bool takes = stream_->waits_for_peer();
  if (rate_out_.too_slow(share_.options, takes, takes ? stream_->bytes_taken() : 0, now)) {
    return drop(DropReason::kReadsSlowly);
  }
  const bool sends = (state_ == State::kBody || wants_body()) && !stream_->backed_up();
  const std::uint64_t sent = body_ ? body_->received : sends ? parser().body_size() : 0;
  if (rate_in_.too_slow(share_.options, sends, sent, now)) {
    share_.note_drop(DropReason::kSendsSlowly);
    if (body_) return end_body(Error{Errc::kTimeout, "the request's body came too slowly"});
    return refuse(error_response(408, "timeout", "the request's body came too slowly"));
  }
  // TLS may read many bytes without any to parse, also while half a head waits. Bytes that wait
  // behind an answer are charged when they are parsed.
  if (!is_ending() && (state_ <= State::kBody || incoming_.empty()) && !may_have_sent())
    return state_ <= State::kBody ? refuse_too_many() : lost();
  if (now < deadline_) return;
  // A long answer has no deadline while the client continues to read.
  if (takes && is_ending()) return set_deadline(share_.options.close_timeout);
  if (takes && state_ == State::kIdle) return set_deadline(share_.options.http_idle_timeout);
  if (state_ == State::kHead) return drop(DropReason::kSilent);
  lost();
}

}  // namespace hearth::net

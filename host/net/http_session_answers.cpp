// Answers of a session go out.
#include "net/http_session.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace hearth::net {
namespace {

// An answer of at least this size is moved into the stream, not copied.
constexpr std::size_t kLargeAnswer = std::size_t{16} << 10;

}  // namespace

void HttpSession::respond(std::uint64_t number, HttpResponse response) {
  if (state_ == State::kAnswering && answering(number)) answer(std::move(response));
}

void HttpSession::answer(HttpResponse response) {
  if (header_has_token(response.headers, "Connection", "close")) keep_alive_ = false;
  if (share_.table.stopping() || body_) keep_alive_ = false;
  ResponseHead head;
  head.keep_alive = keep_alive_;
  head.date = share_.date.now();
  head.length = response.body.size();
  if (response.status == 204 || response.status == 304) head.framing = BodyFraming::kNone;
  std::string text;
  if (!append_head(text, response, head)) {
    services_.logger.write_limited(LogLevel::kError, "net.response_invalid", {},
                                   {{"status", response.status}});
    response = replacement_for(response);
    head = ResponseHead{BodyFraming::kLength, response.body.size(), keep_alive_, head.date};
    (void)append_head(text, response, head);
  }
  if (is_head_ || head.framing != BodyFraming::kLength) {
    stream_->append(text);
  } else if (response.body.size() < kLargeAnswer) {
    stream_->append(text.append(response.body));
  } else {
    stream_->append(text, SharedBytes(share_.buffers.memory(), std::move(response.body)));
  }
  answered();
}

void HttpSession::start(std::uint64_t number, HttpResponse response) {
  if (state_ != State::kAnswering || !answering(number)) return;
  if (header_has_token(response.headers, "Connection", "close")) keep_alive_ = false;
  if (share_.table.stopping() || body_ || framing_ == BodyFraming::kToEnd) keep_alive_ = false;
  if (response.status == 204 || response.status == 304) framing_ = BodyFraming::kNone;
  std::string text;
  if (!append_head(text, response, ResponseHead{framing_, 0, keep_alive_, share_.date.now()})) {
    return answer(std::move(response));  // which refuses it for the same reason
  }
  state_ = State::kStreaming;
  stream_->append(text);
  stream_->flush_soon();
  write(number, response.body);
}

void HttpSession::write(std::uint64_t number, std::string_view part) {
  if (state_ != State::kStreaming || !answering(number)) return;
  if (is_head_ || framing_ == BodyFraming::kNone) return;
  if (framing_ == BodyFraming::kChunked) {
    std::string chunk;
    append_chunk(chunk, part);
    stream_->append(chunk);
  } else {
    stream_->append(part);
  }
  if (stream_->buffered() > share_.options.send_queue || stream_->refused_memory()) {
    stream_->flush();
    if (stream_->buffered() > share_.options.send_queue) return drop(DropReason::kSendQueue);
    if (stream_->refused_memory()) return drop(DropReason::kMemory);
  }
  stream_->flush_soon();
}

void HttpSession::finish(std::uint64_t number) {
  if (state_ != State::kStreaming || !answering(number)) return;
  if (framing_ == BodyFraming::kChunked && !is_head_) stream_->append(kLastChunk);
  answered();
}

void HttpSession::abandon(std::uint64_t number, const HttpRequest& request) {
  if (!answering(number)) return;
  if (state_ == State::kStreaming) return lost();
  HttpResponse response = error_response(500, "internal", "the request was not answered");
  services_.handler.on_refusal(request, response);
  answer(std::move(response));
}

void HttpSession::when_drained(std::uint64_t number, std::function<void()> notice) {
  if (state_ != State::kStreaming || !answering(number)) return notice();
  stream_->when_drained(share_.options.send_queue / 4, std::move(notice));
}

void HttpSession::on_abort(std::uint64_t number, std::function<void()> notice) {
  if (answering(number)) {
    abort_notice_ = std::move(notice);
  } else if (number == number_ && (state_ == State::kEnding || state_ == State::kGone)) {
    notice();
  }
}

void HttpSession::answered() {
  abort_notice_ = nullptr;
  if (!keep_alive_) return end();
  if (stream_->buffered() > ByteStream::kMostGathered) {
    stream_->flush();
    if (stream_->refused_memory()) return drop(DropReason::kMemory);
  }
  stream_->flush_soon();
  wait_for_request(share_.options.http_idle_timeout);
  // Posted, because many requests sent ahead would otherwise nest ever deeper on this stack. A
  // pending read parses when it completes.
  asio::post(stream_->executor(), [self = shared_from_this()] {
    if (self->state_ == State::kIdle && !self->reading_) self->parse();
  });
}

void HttpSession::refuse(const HttpResponse& response) {
  HttpResponse copy = response;  // may be the parser's
  if (const auto head = parser().head()) services_.handler.on_refusal(*head, copy);
  refuse_all(std::move(copy));
}

void HttpSession::refuse(const HttpRequest& request, HttpResponse response) {
  services_.handler.on_refusal(request, response);
  refuse_all(std::move(response));
}

void HttpSession::refuse_all(HttpResponse response) {
  keep_alive_ = false;
  state_ = State::kAnswering;
  is_head_ = false;
  parser_.emplace(share_.options);
  incoming_ = {};  // not clear(): its memory goes, too
  held_.set(0);
  answer(std::move(response));
}

}  // namespace hearth::net

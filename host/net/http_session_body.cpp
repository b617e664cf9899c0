// The body of a request whose handler reads it as it arrives.
#include "net/http_session.hpp"

#include <boost/asio/post.hpp>

#include <exception>
#include <utility>

namespace hearth::net {

bool HttpSession::handler_reads_body() {
  if (!parser().has_body()) return false;
  const std::optional<HttpRequest> head = parser().head();
  if (!head || find_header(head->headers, "Upgrade")) return false;
  try {
    return services_.handler.reads_body(*head);
  } catch (const std::exception& failure) {
    services_.logger.write_limited(LogLevel::kError, "net.request_failed", {},
                                   {{"reason", failure.what()}});
    return false;  // on_request() decides what becomes of it
  }
}

void HttpSession::dispatch_head() {
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): the head is complete
  HttpRequest request = *parser().head();
  begin_request(request);
  if (!may_send(1, 0)) {
    has_sent_too_much_ = true;
    return refuse(request, too_many_response("requests"));
  }
  request.peer = arrival_.peer;
  request.address = arrival_.address;
  request.has_unread_body = true;
  body_.emplace();
  held_.set(0);
  ask_handler(make_exchange(shared_from_this(), stream_->executor(), number_, std::move(request)));
}

void HttpSession::read_body(std::uint64_t number, std::size_t bytes, BodyListener listener) {
  if (!answering(number) || !body_) {
    if (!listener) return;  // it has got the end
    return asio::post(stream_->executor(), [listener = std::move(listener)] {
      listener({.is_end = true, .failure = Error{Errc::kNotFound, "the client has left"}});
    });
  }
  if (listener) body_->listener = std::move(listener);
  body_->credit += static_cast<std::int64_t>(bytes);
  asio::post(stream_->executor(), [self = shared_from_this()] { self->continue_body(); });
}

void HttpSession::continue_body() {
  if (!wants_body()) return;
  if (parser().expects_continue() && incoming_.empty() && !continued_ && body_->received == 0 &&
      state_ == State::kAnswering) {
    continued_ = true;
    stream_->append("HTTP/1.1 100 Continue\r\n\r\n");
    stream_->flush_soon();
  }
  if (!reading_) parse();
}

// The parser has taken the next bytes of the body.
void HttpSession::pass_body(HttpParser::Step step) {
  std::string bytes = parser().take_body();
  body_->received += bytes.size();
  body_->credit -= static_cast<std::int64_t>(bytes.size());
  if (!bytes.empty()) {
    asio::post(stream_->executor(),
               [listener = body_->listener, bytes = std::move(bytes)]() mutable {
                 listener({.bytes = std::move(bytes)});
               });
  }
  if (!may_have_sent()) {
    has_sent_too_much_ = true;
    return end_body(Error{Errc::kLimitExceeded, "the client's address has sent too many bytes"});
  }
  if (step == HttpParser::Step::kDone) return end_body(std::nullopt);
  if (step != HttpParser::Step::kRefused) return;
  if (parser().refusal().status == 413)
    return end_body(Error{Errc::kTooLarge, "the request's body is too large"});
  end_body(Error{Errc::kInvalidArgument, "the request's body is not valid HTTP"});
}

// No bytes behind an incomplete body can be parsed.
void HttpSession::end_body(std::optional<Error> failure) {
  if (failure) keep_alive_ = false;
  const BodyListener listener = std::move(body_->listener);
  body_.reset();
  if (!listener) return;
  asio::post(stream_->executor(), [listener, failure = std::move(failure)] {
    listener({.is_end = true, .failure = failure});
  });
}

}  // namespace hearth::net

#include "net/http_session.hpp"

#include "base/http_token.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <exception>
#include <utility>

namespace hearth::net {

void HttpSession::run() {
  if (is_ending()) return;  // the server stops
  wait_for_request(share_.options.handshake_timeout);
  deadline_ = arrival_.since + share_.options.handshake_timeout;
  read();
}

void HttpSession::wait_for_request(std::chrono::milliseconds first_byte_within) {
  state_ = State::kIdle;
  parser_.emplace(share_.options);
  continued_ = false;
  head_size_ = 0;
  rate_in_ = MinimumRate();
  held_.set(0);
  set_deadline(first_byte_within);
}

void HttpSession::read() {
  if (reading_) return;
  reading_ = true;
  stream_->async_read_some({asio::buffer(chunk_), asio::mutable_buffer()},
                           [self = shared_from_this()](error_code error, std::size_t bytes) {
                             self->on_read(error, bytes);
                           });
}

void HttpSession::on_read(error_code error, std::size_t bytes) {
  reading_ = false;
  if (is_ending()) return;
  if (error == asio::error::eof) return on_peer_ended();
  if (error) return lost();
  incoming_.append(chunk_.data(), bytes);
  parse();
}

void HttpSession::on_peer_ended() {
  switch (state_) {
    case State::kHead:
    case State::kBody:
      return refuse(error_response(400, "bad_request", "the request is not complete"));
    case State::kAnswering:  // the client may still wait for the answer
      keep_alive_ = false;
      if (body_) end_body(Error{Errc::kNotFound, "the client has ended the body too early"});
      return;
    case State::kStreaming: return lost();  // it is unknown whether the client still reads
    default: return end(Linger::kUntilSent);
  }
}

// Never called while a read is pending, so that an upgrade finds the socket without operations.
void HttpSession::parse() {
  if (stream_->backed_up()) return parse_when_room();
  if (state_ == State::kIdle && skip_empty_lines() && !may_have_sent()) return refuse_too_many();
  bool more = !incoming_.empty() && incoming_ != "\r";  // the parser may continue without new bytes
  bool starved = !more;
  while (more && (state_ <= State::kBody || wants_body())) {
    if (state_ == State::kIdle) {
      state_ = State::kHead;
      set_deadline(share_.options.handshake_timeout);
    }
    std::size_t used = 0;
    const HttpParser::Step step = parser().feed(incoming_, used);
    incoming_.erase(0, used);
    if (state_ == State::kHead) head_size_ += used;
    if (body_) {
      pass_body(step);
      starved = step == HttpParser::Step::kMore;
      more = !starved && step != HttpParser::Step::kDone;
      continue;
    }
    if (!may_have_sent()) return refuse_too_many();  // on_refusal() gets the head, if there is one
    switch (step) {
      case HttpParser::Step::kMore:
        want_more();
        starved = true;
        more = false;
        break;
      case HttpParser::Step::kHeadDone:
        state_ = State::kBody;
        if (handler_reads_body()) dispatch_head();
        break;  // the body may be empty: feed again
      case HttpParser::Step::kDone:
        dispatch();
        more = false;
        break;
      case HttpParser::Step::kRefused: return refuse(parser().refusal());
    }
  }
  // While an answer is due, a read detects that the client leaves. Bytes that it sends meanwhile
  // wait in incoming_. While incoming_ has bytes, nothing more is read, which bounds it.
  if (!is_ending() && (starved || incoming_.empty())) read();
}

// RFC 9112 section 2.2: some clients send an empty line after a body. Returns whether there was
// one.
bool HttpSession::skip_empty_lines() {
  std::size_t end = 0;
  while (incoming_.compare(end, 2, "\r\n") == 0) end += 2;
  incoming_.erase(0, end);
  return end != 0;
}

// A client that does not take its answers must take some before the next request is parsed.
void HttpSession::parse_when_room() {
  reading_ = true;
  stream_->when_room([self = shared_from_this()] {
    self->reading_ = false;
    if (!self->is_ending()) self->parse();
  });
}

void HttpSession::want_more() {
  held_.set(incoming_.size() + head_size_ + parser().body_size());
  if (held_.refused()) {
    share_.note_drop(DropReason::kMemory);
    return refuse(busy_response());
  }
  if (state_ != State::kBody) return;
  deadline_ = SocketTime::max();  // from here on the rate counts
  if (parser().expects_continue() && incoming_.empty() && !continued_) {
    continued_ = true;
    stream_->append("HTTP/1.1 100 Continue\r\n\r\n");  // read() sends it
  }
}

void HttpSession::dispatch() {
  HttpRequest request = parser().take();
  begin_request(request);
  if (!may_send(1, 0)) {
    has_sent_too_much_ = true;
    return refuse(request, too_many_response("requests"));
  }
  request.peer = arrival_.peer;
  request.address = arrival_.address;
  const auto wanted = find_header(request.headers, "Upgrade");
  if (wanted && equal_ignoring_case(*wanted, "websocket")) return upgrade(std::move(request));
  ask_handler(make_exchange(shared_from_this(), stream_->executor(), number_, std::move(request)));
}

void HttpSession::begin_request(const HttpRequest& head) {
  const bool is_1_0 = parser().is_http_1_0();
  keep_alive_ = parser().keep_alive() && !share_.table.stopping();
  framing_ = is_1_0 ? BodyFraming::kToEnd : BodyFraming::kChunked;
  is_head_ = head.method == "HEAD";
  ++number_;
  deadline_ = SocketTime::max();  // the handler takes the time it needs
  state_ = State::kAnswering;
}

void HttpSession::ask_handler(std::shared_ptr<HttpExchange> exchange) {
  try {
    services_.handler.on_request(std::move(exchange));
  } catch (const std::exception& failure) {  // its destruction answers 500
    services_.logger.write_limited(LogLevel::kError, "net.request_failed", {},
                                   {{"reason", failure.what()}});
  }
}

void HttpSession::upgrade(HttpRequest request) {
  if (auto fault = upgrade_fault(request)) return refuse(request, *std::move(fault));
  if (parser().is_http_1_0()) {
    return refuse(request, error_response(400, "bad_request", "a WebSocket handshake is HTTP/1.1"));
  }
  UpgradePlan plan;
  try {
    plan = services_.handler.on_upgrade(request);
  } catch (const std::exception& failure) {
    services_.logger.write_limited(LogLevel::kError, "net.upgrade_failed", {},
                                   {{"reason", failure.what()}});
    plan.refusal = error_response(500, "internal", "the request failed");
    services_.handler.on_refusal(request, *plan.refusal);
  }
  if (plan.refusal) return answer(std::move(*plan.refusal));

  const std::shared_ptr<HttpSession> self = shared_from_this();
  state_ = State::kMoved;
  asio::post(stream_->executor(), [self] { self->share_.table.remove(*self); });
  services_.hand_over(share_, std::exchange(stream_, nullptr), std::exchange(incoming_, {}),
                      std::move(request), std::move(plan));
}

void start_http_session(LoopShare& share, std::shared_ptr<ByteStream> stream, Arrival arrival,
                        const HttpServices& services) {
  const auto session =
      std::make_shared<HttpSession>(share, std::move(stream), std::move(arrival), services);
  share.table.add(session);
  session->run();
}

}  // namespace hearth::net

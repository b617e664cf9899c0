#include "net/http_session.hpp"

#include "base/credit.hpp"
#include "base/http_token.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace hearth::net {
namespace {

// An answer of at least this size is moved into the stream, not copied.
constexpr std::size_t kLargeAnswer = std::size_t{16} << 10;

constexpr std::chrono::seconds kLeastTimeToRead{1};

// The exchange that a handler holds on any thread.
class LoopExchange final : public HttpExchange {
 public:
  LoopExchange(std::shared_ptr<HttpSession> session, asio::io_context::executor_type executor,
               std::uint64_t number, HttpRequest request)
      : session_(std::move(session)),
        executor_(std::move(executor)),
        number_(number),
        request_(std::move(request)) {}
  ~LoopExchange() override {
    if (!complete_) call(&HttpSession::abandon, std::move(request_));
  }

  [[nodiscard]] const HttpRequest& request() const override { return request_; }
  void respond(HttpResponse response) override {
    if (!std::exchange(complete_, true)) call(&HttpSession::respond, std::move(response));
  }
  void start(HttpResponse response) override {
    if (!complete_) call(&HttpSession::start, std::move(response));
  }
  void write(std::string part) override {
    if (!complete_) call(&HttpSession::write, std::move(part));
  }
  void finish() override {
    if (!std::exchange(complete_, true)) call(&HttpSession::finish);
  }
  void when_drained(std::function<void()> notice) override {
    call(&HttpSession::when_drained, std::move(notice));
  }
  void read_body(std::size_t bytes, BodyListener listener) override {
    call(&HttpSession::read_body, bytes, std::move(listener));
  }
  void on_abort(std::function<void()> notice) override {
    call(&HttpSession::on_abort, std::move(notice));
  }

 private:
  // Directly on the loop's thread, with a post from other threads.
  template <class Method, class... Values>
  void call(Method method, Values... values) {
    auto task = [session = session_, number = number_, method,
                 ... values = std::move(values)]() mutable {
      ((*session).*method)(number, std::move(values)...);
    };
    if (executor_.running_in_this_thread()) {
      task();
    } else {
      asio::post(executor_, std::move(task));
    }
  }

  const std::shared_ptr<HttpSession> session_;
  const asio::io_context::executor_type executor_;
  const std::uint64_t number_;
  HttpRequest request_;
  bool complete_ = false;
};

}  // namespace

// ---- requests come in ---------------------------------------------------------------------------

void HttpSession::run() {
  if (is_ending()) return;  // the server stops
  wait_for_request(share_.options.handshake_timeout);
  // After a TLS handshake the rest of the time. But the loop may have stood still for so long: what
  // has come meanwhile is read first.
  deadline_ = std::max(arrival_.since + share_.options.handshake_timeout,
                       std::chrono::steady_clock::now() + kLeastTimeToRead);
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
  if (!begin_request(request)) return;
  const auto wanted = find_header(request.headers, "Upgrade");
  if (wanted && equal_ignoring_case(*wanted, "websocket")) return upgrade(std::move(request));
  ask_handler(std::move(request));
}

// False: the client's address has sent too many requests.
bool HttpSession::begin_request(HttpRequest& request) {
  const bool is_1_0 = parser().is_http_1_0();
  keep_alive_ = parser().keep_alive() && !share_.table.stopping();
  framing_ = is_1_0 ? BodyFraming::kToEnd : BodyFraming::kChunked;
  is_head_ = request.method == "HEAD";
  ++number_;
  deadline_ = SocketTime::max();  // the handler takes the time it needs
  state_ = State::kAnswering;
  if (!may_send(1, 0)) {
    has_sent_too_much_ = true;
    refuse(request, too_many_response("requests"));
    return false;
  }
  request.peer = arrival_.peer;
  request.address = arrival_.address;
  return true;
}

void HttpSession::ask_handler(HttpRequest request) {
  try {
    services_.handler.on_request(std::make_shared<LoopExchange>(
        shared_from_this(), stream_->executor(), number_, std::move(request)));
  } catch (const std::exception& failure) {  // its destruction answers 500
    share_.logger.write_limited(LogLevel::kError, "net.request_failed", {},
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
    share_.logger.write_limited(LogLevel::kError, "net.upgrade_failed", {},
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

// ---- a body that the handler reads as it arrives ------------------------------------------------

bool HttpSession::handler_reads_body() {
  if (!parser().has_body()) return false;
  const std::optional<HttpRequest> head = parser().head();
  if (!head || find_header(head->headers, "Upgrade")) return false;
  try {
    return services_.handler.reads_body(*head);
  } catch (const std::exception& failure) {
    share_.logger.write_limited(LogLevel::kError, "net.request_failed", {},
                                {{"reason", failure.what()}});
    return false;  // on_request() decides what becomes of it
  }
}

void HttpSession::dispatch_head() {
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): the head is complete
  HttpRequest request = *parser().head();
  if (!begin_request(request)) return;
  request.has_unread_body = true;
  body_.emplace();
  held_.set(0);
  ask_handler(std::move(request));
}

void HttpSession::read_body(std::uint64_t number, std::size_t bytes, BodyListener listener) {
  if (!answering(number) || !body_) {
    if (!listener) return;  // it has got the end
    return asio::post(stream_->executor(), [listener = std::move(listener)] {
      listener({.is_end = true, .failure = Error{Errc::kNotFound, "the client has left"}});
    });
  }
  if (listener) body_->listener = std::move(listener);
  raise_credit(body_->credit, bytes);
  asio::post(stream_->executor(), [self = shared_from_this()] { self->continue_body(); });
}

void HttpSession::continue_body() {
  if (!wants_body()) return;
  if (parser().expects_continue() && incoming_.empty() && !continued_ && body().received == 0 &&
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
  body().received += bytes.size();
  body().credit -= static_cast<std::int64_t>(bytes.size());
  if (!bytes.empty()) {
    asio::post(stream_->executor(),
               [listener = body().listener, bytes = std::move(bytes)]() mutable {
                 listener({.bytes = std::move(bytes)});
               });
  }
  if (!may_have_sent()) {
    has_sent_too_much_ = true;
    return refuse_body({Errc::kLimitExceeded, "the client's address has sent too many bytes"},
                       too_many_response("requests"));
  }
  if (step == HttpParser::Step::kDone) return end_body(std::nullopt);
  if (step != HttpParser::Step::kRefused) return;
  const HttpResponse refusal = parser().refusal();
  if (refusal.status == 413)
    return refuse_body({Errc::kTooLarge, "the request's body is too large"}, refusal);
  refuse_body({Errc::kInvalidArgument, "the request's body is not valid HTTP"}, refusal);
}

// As a body that is not read as it arrives, unless the answer has begun.
void HttpSession::refuse_body(Error failure, const HttpResponse& refusal) {
  end_body(std::move(failure));
  if (state_ == State::kAnswering) refuse(refusal);
}

// No bytes behind an incomplete body can be parsed.
void HttpSession::end_body(std::optional<Error> failure) {
  if (failure) keep_alive_ = false;
  const BodyListener listener = std::move(body().listener);
  body_.reset();
  if (!listener) return;
  asio::post(stream_->executor(), [listener, failure = std::move(failure)] {
    listener({.is_end = true, .failure = failure});
  });
}

// ---- answers go out -----------------------------------------------------------------------------

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
    share_.logger.write_limited(LogLevel::kError, "net.response_invalid", {},
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
  // A part of any size may follow those that the client has taken.
  const bool is_drained = stream_->buffered() <= share_.options.send_queue / 4;
  if (framing_ == BodyFraming::kChunked) {
    std::string chunk;
    append_chunk(chunk, part);
    stream_->append(chunk);
  } else {
    stream_->append(part);
  }
  if (stream_->buffered() > share_.options.send_queue || stream_->refused_memory()) {
    stream_->flush();
    if (!is_drained && stream_->buffered() > share_.options.send_queue)
      return drop(DropReason::kSendQueue);
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
  if (stream_->buffered() > ByteStream::kMostGathered) {
    stream_->flush();
    if (stream_->refused_memory()) return drop(DropReason::kMemory);
  }
  if (!keep_alive_) return end();
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

// ---- deadlines and the end ----------------------------------------------------------------------

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

bool HttpSession::has_lost_client() const {
  if (is_ending()) return false;
  if (!stream_->is_open()) return true;  // a send has failed without a read
  // No read is pending while bytes wait behind the request.
  return state_ == State::kStreaming && !reading_ && stream_->peer_has_left();
}

void HttpSession::on_sweep(SocketTime now) {
  if (state_ >= State::kMoved) return;
  if (has_lost_client()) return lost();
  const bool takes = stream_->waits_for_peer();
  if (rate_out_.too_slow(share_.options, takes, takes ? stream_->bytes_taken() : 0, now)) {
    return drop(DropReason::kReadsSlowly);
  }
  const bool sends = (state_ == State::kBody || wants_body()) && !stream_->backed_up();
  const std::uint64_t sent = body_ ? body_->received : sends ? parser().body_size() : 0;
  if (rate_in_.too_slow(share_.options, sends, sent, now)) {
    share_.note_drop(DropReason::kSendsSlowly);
    const HttpResponse refusal =
        error_response(408, "timeout", "the request's body came too slowly");
    if (!body_) return refuse(refusal);
    return refuse_body({Errc::kTimeout, "the request's body came too slowly"}, refusal);
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

void start_http_session(LoopShare& share, std::shared_ptr<ByteStream> stream, Arrival arrival,
                        const HttpServices& services) {
  const auto session =
      std::make_shared<HttpSession>(share, std::move(stream), std::move(arrival), services);
  share.table.add(session);
  session->run();
}

}  // namespace hearth::net

// The one source that instantiates Beast's WebSocket.

#include "net/beast_web_socket.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "net/any_stream.ipp"
#include "net/http_text.hpp"
#include "net/incoming_frames.hpp"
#include "net/message_packing.hpp"
#include "net/minimum_rate.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/error.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace hearth::net {
namespace {

namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;

// Room that an idle socket keeps for its next message. Most messages fit into it.
constexpr std::size_t kFirstRead = 512;
// A reader that has grown past this for a big message frees the memory afterwards.
constexpr std::size_t kKeptRead = 4096;
// Answers to at most this many messages of one burst are sent together. A burst is the messages
// that one read of the socket returned.
constexpr int kMostAnswersGathered = 128;
// Below this a copy takes no more memory than a reference, and is sent in one piece with the bytes
// before it.
constexpr std::size_t kSmallestShared = 256;
constexpr std::string_view kBadText = "text is not valid UTF-8";
constexpr std::string_view kTooSlow = "client reads too slowly";
constexpr std::string_view kTooTrickling = "client sends too slowly";
constexpr std::string_view kTooMany = "too many messages: try again later";
// The head of a close frame with 1013 and the reason kTooMany.
constexpr std::string_view kTooManyHead = "\x88\x24\x03\xF5";
static_assert(kTooManyHead[1] == static_cast<char>(2 + kTooMany.size()));
constexpr std::string_view kNoMemory = "the server is short of memory: try again later";

websocket::close_reason make_reason(std::uint16_t code, std::string_view reason) {
  const std::string_view fitting = cut_text(reason, kMaxCloseReason);
  return {static_cast<websocket::close_code>(is_sendable(code) ? code : kCloseInternalError),
          beast::string_view(fitting.data(), fitting.size())};
}

// The close code and the reason for Beast's error of reading.
std::pair<std::uint16_t, std::string_view> fault_of(const error_code& error) {
  if (error == websocket::error::message_too_big) return {kCloseTooBig, kTooBig};
  if (error == websocket::error::bad_frame_payload) {
    return {kCloseInvalidText, kBadText};
  }
  if (error == websocket::condition::protocol_violation) {
    return {kCloseProtocolError, "protocol error"};
  }
  return {kCloseAbnormal, "connection lost"};
}

// The same for a message that could not be unpacked.
std::pair<std::uint16_t, std::string_view> fault_of(Unpacked outcome) {
  switch (outcome) {
    case Unpacked::kTooLong: return {kCloseTooBig, kTooBig};
    case Unpacked::kNotText: return {kCloseInvalidText, kBadText};
    default: return {kCloseInvalidText, "the message is not deflate data"};
  }
}

// Whether a text that Beast has accepted ends inside a character. Beast of Boost 1.81 does not
// check this if the last fragment of a message is empty.
bool ends_within_character(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80) continue;
    const std::size_t length = byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    return length > back;
  }
  return false;
}

// The head of an unmasked, unfragmented message (RFC 6455 5.2), or of a compressed message (RFC
// 7692 6).
std::string_view frame_head(std::size_t length, bool is_text, bool is_packed,
                            std::array<char, 10>& into) {
  into[0] = is_text ? '\x81' : '\x82';
  if (is_packed) into[0] = static_cast<char>(into[0] | 0x40);
  if (length < 126) {
    into[1] = static_cast<char>(length);
    return {into.data(), 2};
  }
  const std::size_t bytes = length <= 0xFFFF ? 2 : 8;
  into[1] = bytes == 2 ? '\x7E' : '\x7F';
  for (std::size_t i = 0; i < bytes; ++i) {
    into[2 + i] = static_cast<char>(length >> (8 * (bytes - 1 - i)) & 0xFF);
  }
  return {into.data(), 2 + bytes};
}

class BeastWebSocket final : public WebSocket,
                             public Session,
                             public std::enable_shared_from_this<BeastWebSocket> {
 public:
  BeastWebSocket(LoopShare& share, std::shared_ptr<ByteStream> stream,
                 std::shared_ptr<const ClientAddress> address, std::size_t max_frame,
                 std::unique_ptr<MessagePacking> packing)
      : share_(share),
        max_frame_(max_frame == 0 ? share.options.max_frame : max_frame),
        address_(std::move(address)),
        packing_(std::move(packing)),
        frames_(
            std::make_shared<IncomingFrames>(address_, packing_ ? packing_->frames() : nullptr)),
        stream_(std::move(stream)),
        beast_(std::in_place, AnyStream(stream_, frames_)),
        held_bytes_(share.buffers.memory()) {
    beast_->read_message_max(max_frame_);
    stream_->hold_reads_above(share.options.send_queue / 2);
  }

  // `extensions`: the value of the header Sec-WebSocket-Extensions; empty: no header.
  [[nodiscard]] bool accept(const HttpRequest& request, const std::string& subprotocol,
                            const std::string& extensions);
  // Call it instead of run() if accept() has refused.
  void leave();
  void run(std::shared_ptr<WebSocketListener> listener);

  void send(std::string_view payload, bool is_text) override;
  void send(SharedBytes payload, bool is_text) override;
  void close(std::uint16_t code, std::string_view reason) override;
  void abort() override;
  void pause_reading() override { paused_ = true; }
  void resume_reading() override;
  void when_drained(std::function<void()> notice) override {
    if (!is_open()) return notice();
    stream_->when_drained(share_.options.send_queue / 4, std::move(notice));
  }
  [[nodiscard]] std::size_t buffered() const override { return stream_ ? stream_->buffered() : 0; }
  [[nodiscard]] std::optional<SteadyTime> behind_since() const override {
    return stream_ ? stream_->waits_for_peer_since() : std::nullopt;
  }
  [[nodiscard]] bool is_open() const override {
    return state_ == State::kOpen && beast_ && beast_->is_open();
  }
  [[nodiscard]] std::uint64_t sends() const override { return stream_ ? stream_->sends() : 0; }

  void on_sweep(SocketTime now) override;
  void wind_down() override { close(kCloseGoingAway, "server is stopping"); }
  [[nodiscard]] bool comes_back() const override { return true; }
  void cut() override;

 private:
  enum class State {
    kOpen,     // messages go both ways
    kClosing,  // a close frame is queued, and the peer's is awaited
    kEnding,   // no more messages, TCP is being closed; on_close() was called
    kGone,     // out of the table; only this empty object is left
  };
  enum class Next {  // what becomes of the next message of the peer
    kNotAsked,       // nothing is read
    kReading,        // an async_read is pending in Beast
    kHeld,           // a whole one waits in incoming_ for resume_reading()
    kDelivering,     // on_message() is on the stack
  };

  websocket::stream<AnyStream, false>& socket() {
    HEARTH_ASSERT(beast_, "a WebSocket is used after its end");
    return *beast_;
  }
  void read();
  void on_read(error_code error, std::size_t bytes);
  void deliver();
  void on_read_failed(error_code error);
  [[nodiscard]] bool tell(const ReceivedMessage& message, std::size_t arrived);
  void queued(std::size_t waited, std::size_t length);
  void overflow(DropReason why, std::string_view reason);
  void give_up(std::uint16_t code, std::string_view reason);
  void sent_too_much();
  // How long a peer may take to read the close frame if its answer is not needed.
  [[nodiscard]] std::chrono::milliseconds time_to_give_up() const {
    return std::min<std::chrono::milliseconds>(share_.options.close_timeout,
                                               std::chrono::seconds(1));
  }
  [[nodiscard]] bool keeps_the_rates(SocketTime now);
  void start_close(std::uint16_t code, std::string_view reason, std::chrono::milliseconds limit);
  void end_as_peer_says();
  void end(std::uint16_t code, std::string_view reason, Linger linger = Linger::kUntilPeerEnds);
  void report(std::uint16_t code, std::string_view reason, bool was_clean);
  void gone();
  void watch_paused(SocketTime now);

  LoopShare& share_;
  const std::size_t max_frame_;
  std::shared_ptr<const ClientAddress> address_;  // until gone(); null: it has no limits
  std::unique_ptr<MessagePacking> packing_;       // until gone(); null: no compression
  std::shared_ptr<IncomingFrames> frames_;        // until gone(); shared with Beast's stream
  std::shared_ptr<ByteStream> stream_;            // both are freed in gone()
  std::optional<websocket::stream<AnyStream, false>> beast_;
  std::shared_ptr<WebSocketListener> listener_;  // until on_close()
  beast::flat_buffer incoming_;
  HeldBytes held_bytes_;        // of incoming_, while a message in it is incomplete or waits
  MinimumRate rate_in_;         // of a message
  MinimumRate rate_of_frames_;  // of control frames, and of frames' heads
  MinimumRate rate_out_;
  SocketTime heard_at_ = std::chrono::steady_clock::now();
  SocketTime deadline_ = SocketTime::max();  // for kClosing and kEnding
  std::size_t oversized_ = 0;  // the largest message over send_queue since nothing waited
  int burst_ = 0;
  State state_ = State::kOpen;
  Next next_ = Next::kNotAsked;
  bool paused_ = false;
  bool pinged_ = false;  // a ping was sent at heard_at_, and no byte has arrived since
};

// ---- opening ------------------------------------------------------------------------------------

bool BeastWebSocket::accept(const HttpRequest& request, const std::string& subprotocol,
                            const std::string& extensions) {
  namespace http = beast::http;
  // A new request with the values that upgrade_fault() has checked. Beast reads lists and repeated
  // headers more narrowly, and the two readings must not differ.
  http::request<http::empty_body> handshake(http::verb::get, request.target, 11);
  handshake.set(http::field::host, find_header(request.headers, "Host").value_or(""));
  handshake.set(http::field::upgrade, "websocket");
  handshake.set(http::field::connection, "upgrade");
  handshake.set(http::field::sec_websocket_version, "13");
  handshake.set(http::field::sec_websocket_key,
                find_header(request.headers, "Sec-WebSocket-Key").value_or(""));
  const bool is_chosen = !subprotocol.empty() &&
                         header_has_token(request.headers, "Sec-WebSocket-Protocol", subprotocol);
  socket().set_option(websocket::stream_base::decorator([chosen = is_chosen ? subprotocol : "",
                                                         extensions, date = share_.date.now()](
                                                            websocket::response_type& response) {
    response.set(http::field::server, beast::string_view(kServerName.data(), kServerName.size()));
    response.set(http::field::date, date);
    if (!chosen.empty()) response.set(http::field::sec_websocket_protocol, chosen);
    if (!extensions.empty()) response.set(http::field::sec_websocket_extensions, extensions);
  }));
  error_code error;
  socket().accept(handshake, error);  // appends to the stream, and does not block
  return !error;
}

void BeastWebSocket::leave() {
  end(kCloseAbnormal, "handshake refused");
}

void BeastWebSocket::run(std::shared_ptr<WebSocketListener> listener) {
  listener_ = std::move(listener);
  if (state_ == State::kOpen && listener_ == nullptr) close(kCloseInternalError, "");
  if (state_ == State::kOpen && !paused_) read();
  stream_->flush_soon();
}

// ---- reading ------------------------------------------------------------------------------------

void BeastWebSocket::read() {
  next_ = Next::kReading;
  // While a message is incomplete, the hint is the number of bytes that its frame still lacks.
  const auto room = incoming_.prepare(socket().read_size_hint(kFirstRead));
  socket().async_read_some(room, [self = shared_from_this()](error_code error, std::size_t bytes) {
    self->on_read(error, bytes);
  });
}

void BeastWebSocket::on_read(error_code error, std::size_t bytes) {
  next_ = Next::kNotAsked;
  incoming_.commit(bytes);
  if (error) return on_read_failed(error);
  if (state_ != State::kOpen) return;
  if (!socket().is_message_done()) {
    held_bytes_.set(incoming_.size());
    if (held_bytes_.refused()) return overflow(DropReason::kMemory, kNoMemory);
    return read();
  }
  if (paused_) {
    next_ = Next::kHeld;
    held_bytes_.set(incoming_.size());
    stream_->flush_soon();  // the answers to earlier messages
    return;
  }
  deliver();
}

void BeastWebSocket::deliver() {
  const auto arrived = incoming_.cdata();
  const std::string_view bytes(static_cast<const char*>(arrived.data()), arrived.size());
  ReceivedMessage message{.payload = bytes, .is_text = socket().got_text()};
  if (packing_) message = packing_->receive(bytes, max_frame_);
  if (socket().got_text() && ends_within_character(bytes)) message.outcome = Unpacked::kNotText;
  const bool is_told = tell(message, bytes.size());
  if (packing_) packing_->done();
  if (!is_told) return;

  held_bytes_.set(0);
  rate_in_ = MinimumRate();  // each message starts new windows
  incoming_.consume(incoming_.size());
  if (incoming_.capacity() > kKeptRead) incoming_.shrink_to_fit();

  // When Beast has used up its bytes, the read of the next message makes it read the stream, and
  // that sends the gathered answers. So the answers to a burst are sent together, and a single
  // answer is sent now.
  if (state_ == State::kOpen && !paused_) read();
  const bool beast_has_more = next_ == Next::kReading && !stream_->reading();
  if (!beast_has_more) burst_ = 0;
  if (stream_->reading()) return;
  if (beast_has_more && ++burst_ < kMostAnswersGathered &&
      stream_->buffered() < ByteStream::kMostGathered) {
    return;
  }
  burst_ = 0;
  stream_->flush();
}

// `arrived`: the size of the message in its frames. False: the connection ends instead.
bool BeastWebSocket::tell(const ReceivedMessage& message, std::size_t arrived) {
  if (message.outcome == Unpacked::kNoMemory) {
    overflow(DropReason::kMemory, kNoMemory);
    return false;
  }
  if (message.outcome != Unpacked::kWhole) {
    const auto [code, reason] = fault_of(message.outcome);
    give_up(code, reason);
    return false;
  }
  // The bytes in the frames were charged when they were read. This charges the bytes that unpacking
  // adds.
  const std::size_t length = message.payload.size();
  if (address_ && length > arrived && !address_->may_send(0, length - arrived)) {
    sent_too_much();
    return false;
  }
  next_ = Next::kDelivering;
  listener_->on_message(message.payload, message.is_text);
  next_ = Next::kNotAsked;
  return true;
}

void BeastWebSocket::resume_reading() {
  if (!paused_) return;
  paused_ = false;
  heard_at_ = std::chrono::steady_clock::now();  // the pause is not the peer's silence
  pinged_ = false;
  if (state_ != State::kOpen || listener_ == nullptr) return;
  if (next_ == Next::kHeld) {
    // Posted: a listener is never called from inside its own call.
    asio::post(stream_->executor(), [self = shared_from_this()] {
      if (self->next_ != Next::kHeld || self->paused_ || self->state_ != State::kOpen) return;
      self->next_ = Next::kNotAsked;
      self->deliver();
    });
  } else if (next_ == Next::kNotAsked) {
    read();
  }
}

void BeastWebSocket::on_read_failed(error_code error) {
  if (error == websocket::error::closed) return end_as_peer_says();
  if (state_ == State::kOpen && frames_->has_refused()) return sent_too_much();
  // Beast's close now does the reading, and its handler follows.
  if (state_ == State::kClosing && error == asio::error::operation_aborted && stream_->is_open()) {
    return;
  }
  const auto [code, reason] = fault_of(error);
  end(code, reason);
}

// ---- writing ------------------------------------------------------------------------------------

// Does not use Beast: it appends a whole message at once, as Beast does with its pong and close
// frames.
void BeastWebSocket::send(std::string_view payload, bool is_text) {
  if (!is_open()) return;
  const std::size_t waited = stream_->buffered();
  const auto packed = packing_ ? packing_->pack(payload) : std::nullopt;
  const std::string_view bytes = packed.value_or(payload);
  std::array<char, 10> head;
  stream_->append(frame_head(bytes.size(), is_text, packed.has_value(), head));
  stream_->append(bytes);
  queued(waited, bytes.size());
}

void BeastWebSocket::send(SharedBytes payload, bool is_text) {
  const std::size_t length = payload.view().size();
  // A compressed message cannot be shared with other connections.
  if (length < kSmallestShared || (packing_ && length <= MessagePacking::kLargest)) {
    return send(payload.view(), is_text);
  }
  if (!is_open()) return;
  const std::size_t waited = stream_->buffered();
  std::array<char, 10> head;
  stream_->append(frame_head(length, is_text, false, head), std::move(payload));
  queued(waited, length);
}

void BeastWebSocket::queued(std::size_t waited, std::size_t length) {
  const std::size_t limit = share_.options.send_queue;
  oversized_ = std::max<std::size_t>(waited == 0 ? 0 : oversized_, length > limit ? length : 0);
  if (stream_->buffered() > limit || stream_->refused_memory()) {
    stream_->flush();
    if (waited != 0 && stream_->buffered() > limit + oversized_)
      return overflow(DropReason::kSendQueue, kTooSlow);
    if (stream_->refused_memory()) return overflow(DropReason::kMemory, kNoMemory);
  }
  if (next_ != Next::kDelivering) stream_->flush_soon();
}

void BeastWebSocket::overflow(DropReason why, std::string_view reason) {
  share_.note_drop(why);
  give_up(kCloseTryAgainLater, reason);
}

// Ends the connection of a peer whose answer is not needed.
void BeastWebSocket::give_up(std::uint16_t code, std::string_view reason) {
  // The close frame is behind everything that is queued: it arrives only if the peer starts to
  // read. So it gets less time than a normal close.
  start_close(code, reason, time_to_give_up());
  asio::post(stream_->executor(),
             [self = shared_from_this(), code, reason] { self->report(code, reason, false); });
}

// Does not use Beast's close, which would parse all further bytes of the peer: from here on they
// are only read and dropped.
void BeastWebSocket::sent_too_much() {
  stream_->append(kTooManyHead);
  stream_->append(kTooMany);
  end(kCloseTryAgainLater, kTooMany, Linger::kBriefly);
  deadline_ = std::chrono::steady_clock::now() + time_to_give_up();
}

void BeastWebSocket::close(std::uint16_t code, std::string_view reason) {
  if (is_open()) start_close(code, reason, share_.options.close_timeout);
}

void BeastWebSocket::start_close(std::uint16_t code, std::string_view reason,
                                 std::chrono::milliseconds limit) {
  state_ = State::kClosing;
  stream_->end_drains();
  held_bytes_.set(0);
  if (packing_) packing_->frames()->stop();
  if (next_ == Next::kNotAsked || next_ == Next::kHeld) incoming_ = beast::flat_buffer();
  deadline_ = std::chrono::steady_clock::now() + limit;
  socket().async_close(make_reason(code, reason), [self = shared_from_this()](error_code error) {
    if (error) return self->end(kCloseAbnormal, "connection lost");
    self->end_as_peer_says();
  });
}

// ---- the end ------------------------------------------------------------------------------------

// Both sides have exchanged close frames.
void BeastWebSocket::end_as_peer_says() {
  const websocket::close_reason& peers = socket().reason();
  const std::uint16_t code = peers.code == 0 ? kCloseNoCode : peers.code;
  end(code, {peers.reason.data(), peers.reason.size()}, Linger::kUntilSent);
}

void BeastWebSocket::abort() {
  if (state_ == State::kGone || state_ == State::kEnding) return;
  asio::post(stream_->executor(), [self = shared_from_this()] { self->cut(); });
}

void BeastWebSocket::cut() {
  if (state_ == State::kGone) return;
  end(kCloseAbnormal, "connection cut");
  stream_->abort();
}

// kUntilSent: the end was clean, and a peer that has sent a close frame sends nothing more.
void BeastWebSocket::end(std::uint16_t code, std::string_view reason, Linger linger) {
  if (state_ == State::kEnding || state_ == State::kGone) return;
  state_ = State::kEnding;
  stream_->end_drains();
  deadline_ = std::chrono::steady_clock::now() + share_.options.close_timeout;
  const std::shared_ptr<BeastWebSocket> self = shared_from_this();
  stream_->finish(
      linger, [self] { self->gone(); },
      [self](std::size_t bytes) { return !self->address_ || self->address_->may_send(0, bytes); });
  report(code, reason, linger == Linger::kUntilSent);
}

void BeastWebSocket::report(std::uint16_t code, std::string_view reason, bool was_clean) {
  const std::shared_ptr<WebSocketListener> listener = std::exchange(listener_, nullptr);
  if (listener != nullptr) listener->on_close(code, reason, was_clean);
}

void BeastWebSocket::gone() {
  const std::shared_ptr<BeastWebSocket> self = shared_from_this();
  state_ = State::kGone;
  share_.table.remove(*this);
  // This destroys Beast's suspended operations too. A listener that still holds the socket holds an
  // empty object, which may outlive the loop.
  beast_.reset();
  stream_.reset();
  frames_.reset();
  address_.reset();
  packing_.reset();
  incoming_ = beast::flat_buffer();
  held_bytes_.set(0);
  share_.connection_ended();
}

void BeastWebSocket::on_sweep(SocketTime now) {
  if (state_ == State::kGone) return;
  if (state_ == State::kClosing || state_ == State::kEnding) {
    if (now >= deadline_) cut();
    return;
  }
  if (!stream_->is_open()) return cut();  // a send has failed while no read was pending
  if (!keeps_the_rates(now)) return;
  // TLS may read many bytes without any for Beast.
  if (address_ && !address_->may_send(0, stream_->take_arrived())) return sent_too_much();
  if (paused_ || stream_->backed_up()) return watch_paused(now);
  if (stream_->take_heard()) {
    heard_at_ = now;
    pinged_ = false;
    return;
  }
  const auto silence = now - heard_at_;
  if (pinged_ && silence >= share_.options.ping_timeout) {
    share_.note_drop(DropReason::kSilent);
    end(kCloseAbnormal, "no answer to a ping");
    return stream_->abort();
  }
  if (!pinged_ && silence >= share_.options.ping_interval) {
    error_code error;
    socket().ping({}, error);
    stream_->flush();
    pinged_ = true;
    heard_at_ = now;
  }
}

bool BeastWebSocket::keeps_the_rates(SocketTime now) {
  const bool takes = stream_->waits_for_peer();
  if (rate_out_.too_slow(share_.options, takes, takes ? stream_->bytes_taken() : 0, now)) {
    share_.note_drop(DropReason::kReadsSlowly);
    end(kCloseTryAgainLater, kTooSlow);
    stream_->abort();  // a close frame would be behind bytes that the peer does not take
    return false;
  }
  // A complete message leaves incoming_ at once, or waits there for resume_reading().
  const bool reads = next_ != Next::kHeld && !paused_ && !stream_->backed_up();
  const bool sends = incoming_.size() != 0;
  const bool trickles =
      rate_in_.too_slow(share_.options, reads && sends, incoming_.size(), now) ||
      rate_of_frames_.too_slow(share_.options, reads && !sends && frames_->inside_frame(),
                               frames_->passed(), now);
  if (trickles) overflow(DropReason::kSendsSlowly, kTooTrickling);
  return !trickles;
}

// A pause keeps the peer silent, so the peer is not dropped for silence. Without a read the end of
// the connection would not be noticed, so this checks for it.
void BeastWebSocket::watch_paused(SocketTime now) {
  pinged_ = false;
  if (!stream_->peer_has_left()) {
    heard_at_ = now;
    return;
  }
  // The read finds the peer's last messages, or its end. One message is held back, as in any pause.
  // The others wait no longer than the timeout of a silent peer.
  if (next_ == Next::kNotAsked) return read();
  if (now - heard_at_ >= share_.options.ping_interval + share_.options.ping_timeout) {
    end(kCloseAbnormal, "connection lost");
    stream_->abort();
  }
}

}  // namespace

void open_web_socket(LoopShare& share, std::shared_ptr<ByteStream> stream,
                     const HttpRequest& request, const UpgradePlan& plan) {
  const auto terms = choose_deflate(request.headers, share.options.compression);
  auto packing =
      terms ? std::make_unique<MessagePacking>(*terms, share.packing, share.buffers.memory())
            : nullptr;
  const auto socket = std::make_shared<BeastWebSocket>(share, stream, request.address,
                                                       plan.max_frame, std::move(packing));
  const bool accepted =
      socket->accept(request, plan.subprotocol, terms ? deflate_answer(*terms) : "");
  share.table.add(socket);
  if (!accepted) return socket->leave();
  socket->run(share.table.stopping() ? nullptr : plan.opened(socket));
}

}  // namespace hearth::net

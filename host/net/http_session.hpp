#pragma once
// One HTTP connection of the server: reads requests and sends answers, until the connection closes
// or becomes a WebSocket.

#include "base/assert.hpp"
#include "base/client_memory.hpp"
#include "net/byte_stream.hpp"
#include "net/http.hpp"
#include "net/http_parser.hpp"
#include "net/http_text.hpp"
#include "net/loop_share.hpp"
#include "net/minimum_rate.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::net {

// Data of a connection from when it was accepted.
struct Arrival {
  std::string peer;                                        // "127.0.0.1:50312"
  SocketTime since;                                        // when
  std::shared_ptr<const ClientAddress> address = nullptr;  // null: it has no limits
};

// What a session needs from its server.
//
// Lifetime  Outlives every session.
struct HttpServices {
  HttpHandler& handler;
  // Moves the connection to the loop that the plan names, and opens the WebSocket there.
  // `leftover`: bytes that the client has sent after its handshake. From here on the session does
  // not own the connection: the WebSocket reports its end.
  std::function<void(LoopShare& from, std::shared_ptr<ByteStream> stream, std::string leftover,
                     HttpRequest request, UpgradePlan plan)>
      hand_over;
};

// A body that the handler reads, until its end.
struct UnreadBody {
  BodyListener listener;  // null: nothing was asked for yet
  std::int64_t credit = 0;
  std::uint64_t received = 0;
};

// Bounded   Of a body that the handler reads, at most one read from the socket waits here.
//
// Threads   The connection's loop.
class HttpSession final : public Session, public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(LoopShare& share, std::shared_ptr<ByteStream> stream, Arrival arrival,
              const HttpServices& services)
      : share_(share),
        stream_(std::move(stream)),
        arrival_(std::move(arrival)),
        services_(services),
        held_(share.buffers.memory()) {
    stream_->hold_reads_above(share.options.send_queue / 2);
  }

  void run();

  void on_sweep(SocketTime now) override;
  void wind_down() override;
  void cut() override;

  // The calls of an exchange. `number` identifies its request: calls for a request that is over do
  // nothing.
  void respond(std::uint64_t number, HttpResponse response);
  void start(std::uint64_t number, HttpResponse response);
  void write(std::uint64_t number, std::string_view part);
  void finish(std::uint64_t number);
  // The exchange was dropped before its answer to `request` was complete.
  void abandon(std::uint64_t number, const HttpRequest& request);
  void when_drained(std::uint64_t number, std::function<void()> notice);
  void read_body(std::uint64_t number, std::size_t bytes, BodyListener listener);
  void on_abort(std::uint64_t number, std::function<void()> notice);

 private:
  // wait_for_request: kIdle -> kHead -> kBody -> kAnswering -> kIdle again, or kEnding.
  enum class State {
    kIdle,       // between requests, nothing of the next one has arrived
    kHead,       // a head has begun
    kBody,       // the head is complete, the body is not
    kAnswering,  // the handler must answer
    kStreaming,  // the handler has begun a streamed answer
    kEnding,     // no more requests: the last bytes leave, TCP is being closed
    kMoved,      // handed over: this object is empty
    kGone,       // out of the table
  };

  void wait_for_request(std::chrono::milliseconds first_byte_within);
  void read();
  void on_read(error_code error, std::size_t bytes);
  void parse();
  void parse_when_room();
  [[nodiscard]] bool skip_empty_lines();
  [[nodiscard]] bool may_send(std::size_t requests, std::size_t bytes) const {
    return !arrival_.address || arrival_.address->may_send(requests, bytes);
  }
  // Charges the bytes that have arrived since the last call, because a body may never end. Bytes
  // that are read while an answer is due are charged afterwards, with the next request.
  [[nodiscard]] bool may_have_sent() { return may_send(0, stream_->take_arrived()); }
  void on_peer_ended();
  void want_more();
  void dispatch();
  void dispatch_head();
  [[nodiscard]] bool begin_request(HttpRequest& request);
  [[nodiscard]] bool handler_reads_body();
  [[nodiscard]] bool wants_body() const { return body_ && body_->credit > 0; }
  void pass_body(HttpParser::Step step);
  void end_body(std::optional<Error> failure);
  void refuse_body(Error failure, const HttpResponse& refusal);
  void continue_body();
  void ask_handler(HttpRequest request);
  void upgrade(HttpRequest request);
  void answer(HttpResponse response);
  void refuse(const HttpResponse& response);
  void refuse(const HttpRequest& request, HttpResponse response);
  void refuse_too_many() {
    has_sent_too_much_ = true;
    refuse(too_many_response("requests"));
  }
  void refuse_all(HttpResponse response);
  void answered();
  void drop(DropReason reason);
  void end(Linger linger = Linger::kUntilPeerEnds);
  void lost();
  void gone();
  [[nodiscard]] bool answering(std::uint64_t number) const {
    return number == number_ && (state_ == State::kAnswering || state_ == State::kStreaming);
  }
  [[nodiscard]] bool is_ending() const { return state_ >= State::kEnding; }
  // Without a read or a write that tells so.
  [[nodiscard]] bool has_lost_client() const;
  HttpParser& parser() {
    HEARTH_ASSERT(parser_, "a session parses before it has run");
    return *parser_;
  }
  UnreadBody& body() {
    HEARTH_ASSERT(body_, "there is no body that the handler reads");
    return *body_;
  }
  void set_deadline(std::chrono::milliseconds from_now) {
    deadline_ = std::chrono::steady_clock::now() + from_now;
  }

  LoopShare& share_;
  std::shared_ptr<ByteStream> stream_;
  const Arrival arrival_;
  const HttpServices& services_;
  HeldBytes held_;  // of the request, until it is answered
  std::optional<HttpParser> parser_;
  std::string incoming_;       // read, but not used up by the parser
  std::size_t head_size_ = 0;  // what the parser has used of the head
  std::array<char, 8192> chunk_;
  std::function<void()> abort_notice_;
  std::optional<UnreadBody> body_;  // while kAnswering or kStreaming
  SocketTime deadline_ = SocketTime::max();
  MinimumRate rate_in_;       // of the request's body
  MinimumRate rate_out_;      // of answers
  std::uint64_t number_ = 0;  // of the request being answered: late calls of older ones miss
  State state_ = State::kIdle;
  BodyFraming framing_ = BodyFraming::kLength;  // of the streamed answer
  bool reading_ = false;                        // or waits until the client has taken answers
  bool keep_alive_ = true;
  bool is_head_ = false;    // the method is HEAD
  bool continued_ = false;  // 100 Continue was sent for this request
  bool has_sent_too_much_ = false;
};

// Starts a session on a new connection. It is in `share.table` from then on, and reports its end to
// `share.connection_ended`, unless it is handed over.
//
// Order     Requests are answered one after the other, however many the client sends ahead.
// Limits    NetOptions::handshake_timeout from `arrival.since` to the end of the first head. If its
//           address has sent too many requests or bytes, the answer is 429.
// Threads   On the share's loop.
void start_http_session(LoopShare& share, std::shared_ptr<ByteStream> stream, Arrival arrival,
                        const HttpServices& services);

}  // namespace hearth::net

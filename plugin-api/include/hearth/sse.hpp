#pragma once
// Server-sent events, as a browser's EventSource reads them. The format is defined in the HTML
// standard, chapter "Server-sent events".

#include <hearth/fetch.hpp>
#include <hearth/http.hpp>
#include <hearth/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

namespace detail {

// "name: value" and a line feed.
void append_sse_field(std::string& out, std::string_view name, std::string_view value);

// A field for each line, with any kind of line end.
void append_sse_data(std::string& out, std::string_view data);

}  // namespace detail

// The whole part of a stream of events that was cut off.
struct WholeEvents {
  std::size_t bytes = 0;  // up to the end of the last whole event
  std::string last_id;    // the last id in this part: for Last-Event-ID
};
[[nodiscard]] WholeEvents whole_events(std::string_view stream);

// One event. Absent fields are left out.
struct ServerSentEvent {
  std::string data;
  std::string event = {};  // its type; "message" if empty (SseReader gives the word)
  std::string id = {};     // a client that reconnects sends it as Last-Event-ID
};

// The whole events of a part, such as PartialAnswer::body: those in whole_events().bytes.
[[nodiscard]] std::vector<ServerSentEvent> read_events(std::string_view stream);

// An answer that is a stream of events, as long as on_request runs:
//
//     hearth::EventStream events(request);
//     while (co_await events.send(next_token())) co_await sleep(50ms);
//     co_return events.end();
//
// Failure, lifetime  as ResponseStream.
class EventStream {
 public:
  explicit EventStream(const Request& request) : out_(request.stream(head())) {}

  // co_await waits until the client has taken most of what was sent. False: the client has left.
  // Failure   Error(INVALID) for a type or id of more than one line.
  [[nodiscard]] Drained send(const ServerSentEvent& event) {
    std::string text;
    if (!event.event.empty()) detail::append_sse_field(text, "event", event.event);
    if (!event.id.empty()) detail::append_sse_field(text, "id", event.id);
    detail::append_sse_data(text, event.data);
    return out_.write(text += "\n");
  }
  [[nodiscard]] Drained send(std::string_view data) {
    std::string text;
    detail::append_sse_data(text, data);
    return out_.write(text += "\n");
  }
  [[nodiscard]] Drained send(const Json& data) { return send(to_text(data)); }
  [[nodiscard]] Drained send(const char* data) { return send(std::string_view(data)); }
  [[nodiscard]] Drained send(const std::string& data) { return send(std::string_view(data)); }
  // Keeps proxies from closing an idle stream.
  [[nodiscard]] Drained keep_open() { return out_.write(":\n\n"); }

  [[nodiscard]] Response end() const { return out_.end(); }

 private:
  static Response head() {
    Response response;
    response.add_header("Content-Type", "text/event-stream");
    response.add_header("Cache-Control", "no-cache");
    return response;
  }

  ResponseStream out_;
};

// Makes events from bytes, cut anywhere, by the HTML standard. An event without data is none.
//
// Bounded   A line, and the data of an event, have at most `max_bytes`.
class SseParser {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

  explicit SseParser(std::size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  // Failure   Error(LIMIT); the parser must not be used after that.
  void feed(std::string_view bytes);
  // The oldest complete event that was not taken yet. Bytes after the last empty line are no event.
  [[nodiscard]] std::optional<ServerSentEvent> take();
  // How long a client should wait before it reconnects, if the stream has said so.
  [[nodiscard]] std::optional<std::chrono::milliseconds> retry() const noexcept { return retry_; }

 private:
  void take_line();
  void take_field(std::string_view name, std::string_view value);
  void take_retry(std::string_view value);
  void dispatch();

  std::size_t max_bytes_;
  std::string line_;
  bool first_line_ = true;
  bool after_cr_ = false;
  std::string data_;
  std::string type_;
  std::string id_;  // stays for the next events
  std::optional<std::chrono::milliseconds> retry_;
  std::deque<ServerSentEvent> events_;
};

// What shows that a stream of events is whole.
struct SseEnd {
  // The last event: one with this data, such as "[DONE]", which next() does not give; or one of
  // this type, such as "message_stop", which it gives. Empty: there is none.
  std::string last = {};
  // Without `last`: take the end of any answer for the end of the stream, also one that ends when
  // the connection is closed (FetchResponse::until_close()).
  bool may_close = false;
};

// The events of an answer:
//
//     hearth::SseReader events(response, {.last = "[DONE]"});
//     while (auto event = co_await events.next()) use(event->data);
//
// Lifetime  The response outlives it.
class SseReader {
 public:
  explicit SseReader(FetchResponse& response, std::size_t max_bytes = SseParser::kMaxBytes)
      : response_(response), parser_(max_bytes) {}
  SseReader(FetchResponse& response, SseEnd end, std::size_t max_bytes = SseParser::kMaxBytes)
      : response_(response), end_(std::move(end)), parser_(max_bytes) {}

  // Nothing: the stream has ended, and is whole.
  // Failure   FetchError, as FetchResponse::next(), and BUSY if the answer has ended without what
  //           SseEnd asks for; Error(LIMIT).
  [[nodiscard]] Task<std::optional<ServerSentEvent>> next() {
    while (!has_ended_) {
      if (auto event = parser_.take()) {
        has_ended_ = is_last(*event);
        if (has_ended_ && event->data == end_.last) break;
        co_return event;
      }
      const auto piece = co_await response_.next();
      if (piece) {
        parser_.feed(*piece);
      } else {
        check_end();
        has_ended_ = true;
      }
    }
    co_return std::nullopt;
  }
  [[nodiscard]] std::optional<std::chrono::milliseconds> retry() const noexcept {
    return parser_.retry();
  }

 private:
  [[nodiscard]] bool is_last(const ServerSentEvent& event) const {
    return !end_.last.empty() && (event.data == end_.last || event.event == end_.last);
  }
  void check_end() const;

  FetchResponse& response_;
  SseEnd end_;
  SseParser parser_;
  bool has_ended_ = false;
};

}  // namespace hearth

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
  [[nodiscard]] detail::DrainAwaiter send(const ServerSentEvent& event) {
    std::string text;
    if (!event.event.empty()) detail::append_sse_field(text, "event", event.event);
    if (!event.id.empty()) detail::append_sse_field(text, "id", event.id);
    detail::append_sse_data(text, event.data);
    return out_.write(text += "\n");
  }
  [[nodiscard]] detail::DrainAwaiter send(std::string_view data) {
    std::string text;
    detail::append_sse_data(text, data);
    return out_.write(text += "\n");
  }
  [[nodiscard]] detail::DrainAwaiter send(const Json& data) { return send(to_text(data)); }
  [[nodiscard]] detail::DrainAwaiter send(const char* data) { return send(std::string_view(data)); }
  [[nodiscard]] detail::DrainAwaiter send(const std::string& data) {
    return send(std::string_view(data));
  }
  // Keeps proxies from closing an idle stream.
  [[nodiscard]] detail::DrainAwaiter keep_open() { return out_.write(":\n\n"); }

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

// The events of an answer:
//
//     hearth::SseReader events(response);
//     while (auto event = co_await events.next()) use(event->data);
//
// Lifetime  The response outlives it.
class SseReader {
 public:
  explicit SseReader(FetchResponse& response, std::size_t max_bytes = SseParser::kMaxBytes)
      : response_(response), parser_(max_bytes) {}

  // Nothing: the stream has ended.
  // Failure   FetchError, as FetchResponse::next(); Error(LIMIT).
  [[nodiscard]] Task<std::optional<ServerSentEvent>> next() {
    for (;;) {
      if (auto event = parser_.take()) co_return event;
      const auto piece = co_await response_.next();
      if (!piece) co_return std::nullopt;
      parser_.feed(*piece);
    }
  }
  [[nodiscard]] std::optional<std::chrono::milliseconds> retry() const noexcept {
    return parser_.retry();
  }

 private:
  FetchResponse& response_;
  SseParser parser_;
};

}  // namespace hearth

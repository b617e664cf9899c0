#pragma once
// Server-sent events: what a browser's EventSource reads. The format is that of the HTML standard,
// chapter "Server-sent events".

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
inline void append_sse_field(std::string& out, std::string_view name, std::string_view value) {
  if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos)
    throw Error(HEARTH_E_INVALID, "the " + std::string(name) + " of an event is one line");
  out.append(name).append(": ").append(value).append("\n");
}

// A field for each line, however they end.
inline void append_sse_data(std::string& out, std::string_view data) {
  for (;;) {
    const std::size_t end = data.find_first_of("\r\n");
    out.append("data: ").append(data.substr(0, end)).append("\n");
    if (end == std::string_view::npos) return;
    const bool both = data[end] == '\r' && end + 1 < data.size() && data[end + 1] == '\n';
    data.remove_prefix(end + (both ? 2 : 1));
  }
}

}  // namespace detail

// One event. Absent fields are left out.
struct ServerSentEvent {
  std::string data;
  std::string event = {};  // its type; "message" if empty (and of those that are read, in words)
  std::string id = {};     // what a client that comes back sends as Last-Event-ID
};

// An answer that is a stream of events, for as long as on_request goes on:
//
//     hearth::EventStream events(request);
//     while (co_await events.send(next_token())) co_await sleep(50ms);
//     co_return events.end();
//
// Failure, lifetime  as ResponseStream.
class EventStream {
 public:
  explicit EventStream(const Request& request) : out_(request.stream(head())) {}

  // co_await waits until the client has taken most of what was sent; false: nobody reads any more.
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
  // Keeps proxies from closing a stream that has nothing to say.
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

// From bytes, cut anywhere, to events, as the HTML standard says. An event without data is none.
//
// Bounded   A line, and the data of an event, have at most `max_bytes`.
class SseParser {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

  explicit SseParser(std::size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  // Failure   Error(LIMIT); the parser is of no use then.
  void feed(std::string_view bytes) {
    for (const char c : bytes) {
      const bool after_cr = std::exchange(after_cr_, c == '\r');
      if (c == '\r' || (c == '\n' && !after_cr)) {
        take_line();
      } else if (c != '\n') {
        if (line_.size() >= max_bytes_) throw Error(HEARTH_E_LIMIT, "a line of events is too long");
        line_ += c;
      }
    }
  }
  // The oldest event that is complete and was not taken yet. What follows the last empty line is
  // no event.
  [[nodiscard]] std::optional<ServerSentEvent> take() {
    if (events_.empty()) return std::nullopt;
    std::optional<ServerSentEvent> event(std::move(events_.front()));
    events_.pop_front();
    return event;
  }
  // How long a client should wait before it connects again, if the stream has said so.
  [[nodiscard]] std::optional<std::chrono::milliseconds> retry() const noexcept { return retry_; }

 private:
  void take_line() {
    std::string_view line = line_;
    if (std::exchange(first_line_, false) && line.substr(0, 3) == "\xef\xbb\xbf")
      line.remove_prefix(3);
    if (line.empty()) {
      dispatch();
    } else {
      const std::size_t colon = line.find(':');
      std::string_view value;
      if (colon != std::string_view::npos) value = line.substr(colon + 1);
      if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
      take_field(line.substr(0, colon), value);
    }
    line_.clear();
  }
  void take_field(std::string_view name, std::string_view value) {
    if (name == "data") {
      if (data_.size() + value.size() >= max_bytes_)
        throw Error(HEARTH_E_LIMIT, "the data of an event are too long");
      data_.append(value).append("\n");
    } else if (name == "event") {
      type_ = value;
    } else if (name == "id" && value.find('\0') == std::string_view::npos) {
      id_ = value;
    } else if (name == "retry") {
      take_retry(value);
    }
  }
  void take_retry(std::string_view value) {
    constexpr std::size_t kMostDigits = 15;
    if (value.empty() || value.size() > kMostDigits) return;
    std::int64_t time = 0;
    for (const char c : value) {
      if (c < '0' || c > '9') return;
      time = time * 10 + (c - '0');
    }
    retry_ = std::chrono::milliseconds(time);
  }
  void dispatch() {
    const std::string type = std::exchange(type_, {});
    std::string data = std::exchange(data_, {});
    if (data.empty()) return;
    data.pop_back();  // the last line feed
    events_.push_back({std::move(data), type.empty() ? "message" : type, id_});
  }

  std::size_t max_bytes_;
  std::string line_;
  bool first_line_ = true;
  bool after_cr_ = false;
  std::string data_;
  std::string type_;
  std::string id_;  // stays for the events that follow
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

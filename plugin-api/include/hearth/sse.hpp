#pragma once
// Server-sent events: what a browser's EventSource reads. The format is that of the HTML standard,
// chapter "Server-sent events".

#include <hearth/http.hpp>
#include <hearth/json.hpp>

#include <string>
#include <string_view>

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
  std::string event = {};  // its type; "message" if empty
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

}  // namespace hearth

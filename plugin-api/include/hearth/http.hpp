#pragma once
// HTTP requests to an agent, and their answers.

#include <hearth/detail/activation.hpp>
#include <hearth/json.hpp>
#include <hearth/operation.hpp>
#include <hearth/parts.hpp>
#include <hearth/url.hpp>

#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

class Response;

// An answer that is sent in parts. From Request::stream().
//
//     hearth::ResponseStream out = request.stream(hearth::Response::text(""));
//     for (const std::string& line : lines) {
//       if (!co_await out.write(line)) break;          // the client has left
//     }
//     co_return out.end();
//
// Failure   If the handler throws after the head was sent, or the agent is evicted, the server cuts
//           the connection, so that the client notices.
// Lifetime  Until on_request has ended.
class ResponseStream {
 public:
  ResponseStream(detail::Activation& activation, std::uint64_t call) noexcept
      : activation_(activation), call_(call) {}

  // Sends a piece of the body, after the earlier writes to storage. co_await waits until the client
  // has taken most of what was sent. False: the client has left, stop.
  [[nodiscard]] Drained write(std::string_view piece) {
    return {activation_, call_, !detail::emit_part(activation_, call_, piece, "response")};
  }

  // The end of the body: on_request returns it.
  [[nodiscard]] Response end() const;

 private:
  detail::Activation& activation_;
  std::uint64_t call_;
};

namespace detail {

// co_await gives the next piece of a request's body; nothing at its end.
class [[nodiscard]] NextBodyPiece {
 public:
  // `operation`: null: `whole` is the piece.
  NextBodyPiece(PartsOperation* operation, std::optional<std::string> whole)
      : whole_(std::move(whole)) {
    if (operation != nullptr) next_.emplace(*operation);
  }

  [[nodiscard]] bool await_ready() const noexcept { return !next_ || next_->await_ready(); }
  void await_suspend(std::coroutine_handle<> waiting) {
    if (next_) next_->await_suspend(waiting);  // else it is ready
  }
  std::optional<std::string> await_resume() {
    if (!next_) return std::move(whole_);
    Part part = next_->await_resume();
    if (!part.is_end()) return std::move(part.body);
    if (part.status != HEARTH_OK) throw HostError(part.status, part.body);
    return std::nullopt;
  }

 private:
  std::optional<std::string> whole_;
  std::optional<PartsOperation::Next> next_;
};

}  // namespace detail

// Lifetime  Until on_request has ended, waits included.
class Request {
 public:
  // `unread`: the body has not arrived.
  Request(detail::Activation& activation, std::uint64_t call, std::string_view method,
          std::string_view body, bool unread = false)
      : activation_(activation), call_(call), method_(method), body_(body), unread_(unread) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  [[nodiscard]] const std::string& method() const noexcept { return method_; }
  // The whole body. Empty in a class with kReadsBodies, if the request has a body: see next().
  [[nodiscard]] const std::string& body() const noexcept { return body_; }
  // Failure   Error(INVALID), which the client gets as 400.
  [[nodiscard]] Json json() const { return parse_json(body_); }

  // The next piece of the body. A class with `static constexpr bool kReadsBodies = true;` gets each
  // request when its head has arrived, and reads the body, as long as the server's limit allows:
  //
  //     while (auto piece = co_await request.next()) write(*piece);
  //
  // Pieces end anywhere. At most 256 KiB and one piece wait for it; more stay with the client. An
  // answer before the end closes the connection. In other classes it gives body() once. One
  // coroutine at a time.
  // Failure   HostError: GONE (the client has left), LIMIT (the body is too long), TIMEOUT (the
  //           client sends too slowly), INVALID (it is not HTTP).
  [[nodiscard]] detail::NextBodyPiece next() const;

  // As sent: "/agents/counter/a/sub?x=1". Then the same without the query; and a value of the
  // query, decoded.
  [[nodiscard]] std::string target() const;
  [[nodiscard]] std::string path() const { return std::string(url_path(target())); }
  [[nodiscard]] std::optional<std::string> query(std::string_view name) const {
    return url_query(target(), name);
  }

  // A header, its name in any case.
  [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> headers() const;

  // The claims of the token that came with the request, verified by the server. null: the client
  // has no claims.
  [[nodiscard]] Json claims() const;

  // Answers in parts: sends this head, and its body as the first piece.
  [[nodiscard]] ResponseStream stream(const Response& head) const;

 private:
  [[nodiscard]] const hearth_http_v1& table() const {
    return detail::need(activation_.tables().http, HEARTH_EXT_HTTP);
  }

  detail::Activation& activation_;
  std::uint64_t call_;
  std::string method_;
  std::string body_;
  bool unread_;
  mutable bool given_ = false;                               // the whole body, by next()
  mutable std::unique_ptr<detail::PartsOperation> reading_;  // from the first next() on
};

// The answer that on_request returns. The server adds Content-Length and Date.
class Response {
 public:
  explicit Response(unsigned status = 200, std::string body = {})
      : status_(status), body_(std::move(body)) {}

  [[nodiscard]] static Response json(const Json& value, unsigned status = 200);
  [[nodiscard]] static Response text(std::string text, unsigned status = 200);

  Response& add_header(std::string name, std::string value);

  [[nodiscard]] unsigned status() const noexcept { return status_; }
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& headers() const noexcept {
    return headers_;
  }
  [[nodiscard]] const std::string& body() const noexcept { return body_; }

  // Made by ResponseStream::end(): the head was sent before.
  [[nodiscard]] static Response end_of_stream() { return Response(0); }
  [[nodiscard]] bool ends_stream() const noexcept { return status_ == 0; }

 private:
  unsigned status_;
  std::string body_;
  std::vector<std::pair<std::string, std::string>> headers_;
};

namespace detail {

void set_head(const Activation& activation, std::uint64_t call, const Response& response);

// Owns the request for as long as the handler runs, and answers it.
class DeliverResponse {
 public:
  explicit DeliverResponse(std::unique_ptr<Request> request) : request_(std::move(request)) {}

  void operator()(Activation& activation, const Context& context, const Response& response) const {
    if (!response.ends_stream()) set_head(activation, context.call, response);
    activation.complete(context.call, HEARTH_OK, response.body());
  }

 private:
  std::unique_ptr<Request> request_;
};

}  // namespace detail

inline Response ResponseStream::end() const {
  return Response::end_of_stream();
}

}  // namespace hearth

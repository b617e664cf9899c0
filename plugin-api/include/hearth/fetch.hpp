#pragma once
// HTTP requests to other servers: co_await fetch(...) in a class that derives from hearth::Agent.
//
//     hearth::FetchResponse page = co_await fetch("https://example.com/");
//     if (page.ok()) remember(co_await page.text());
//
//     hearth::FetchRequest request{.method = "POST",
//                                  .url = "https://api.example.com/v1/items",
//                                  .json = {{"name", "a"}},
//                                  .timeout = std::chrono::seconds(30),
//                                  .credential = "example"};
//     auto response = co_await fetch(std::move(request));
//     if (!response.ok()) throw hearth::Error(HEARTH_E_BUSY, "the server refuses");
//     const hearth::Json item = co_await response.json();
//
// Give the request a name, as here: g++ 12 compiles braces inside a co_await expression wrongly.

#include <hearth/detail/activation.hpp>
#include <hearth/ext/fetch.h>
#include <hearth/json.hpp>
#include <hearth/parts.hpp>
#include <hearth/task.hpp>

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

struct PartialAnswer;
struct ResumedFetch;

using HeaderList = std::vector<std::pair<std::string, std::string>>;

// A request. 0 and empty values mean the defaults in the comments.
struct FetchRequest {
  std::string method = "GET";
  std::string url;  // http or https, without user and password
  HeaderList headers = {};
  Json json = nullptr;  // the body, with Content-Type application/json; null: `body` is sent
  std::string body = {};
  std::chrono::milliseconds timeout = {};          // for the whole request; 0: none
  std::chrono::milliseconds connect_timeout = {};  // until the connection is open; 0: 10 s
  std::chrono::milliseconds idle_timeout = {};     // no byte arrives, though one may; 0: 60 s
  std::string credential = {};    // a name under egress.secrets: the host adds that header
  bool follow_redirects = false;  // at most 10; not with a body to another origin
  bool http2 = false;             // if the class may; a slow reader may cost the server 32 MiB
  std::uint64_t max_bytes = 0;    // of the decoded answer; 0: 64 MiB
  std::uint64_t window = 0;       // bytes of the answer that wait for the reader; 0: 256 KiB
  // The id of the running operation that this request belongs to (OperationAttempt::id): see
  // operations.hpp.
  std::string op = {};
  // A stop, requested by code of this agent, ends the request and a wait for it: FetchError
  // (CANCELLED), which is final. So does the cancel of the fiber that has begun the request, unless
  // it has an `op`: the outcome of an operation should become known.
  std::stop_token stop = {};
  // With `op`: what this request, and not its kind, knows of its rest. OperationKind::resume may
  // call it.
  std::function<ResumedFetch(const PartialAnswer& answer)> rest = {};
};

// The part of the answer to an operation's request that the ledger has stored.
struct PartialAnswer {
  unsigned status = 0;  // 0: no answer had come
  std::string url;
  HeaderList headers;
  std::string body;          // as far as it is stored
  bool whole = false;        // it has ended, and all of it is stored
  bool until_close = false;  // see FetchResponse
};

// The request for the rest of an answer (OperationKind::resume).
struct ResumedFetch {
  // With a header Range ("bytes=500-") the answer must be a 206 whose Content-Range begins there;
  // without one, a status of 2xx. Anything else is a refusal: fetch() throws FetchError(BUSY), the
  // host does not ask for the rest again, and the kind's Effect decides.
  FetchRequest request;
  // Keeps so many bytes of the stored body; the answer to this request goes on behind them. For a
  // stream of events, that is the end of its last whole event: whole_events() of sse.hpp.
  std::size_t from = std::string::npos;
};

// Where a request has failed.
enum class FetchPhase : std::uint8_t {
  kRules = HEARTH_FETCH_PHASE_RULES,  // nothing was sent: the request is invalid, or the egress
                                      // rules or a limit forbid it
  kResolve = HEARTH_FETCH_PHASE_RESOLVE,
  kConnect = HEARTH_FETCH_PHASE_CONNECT,
  kTls = HEARTH_FETCH_PHASE_TLS,
  kSend = HEARTH_FETCH_PHASE_SEND,
  kHeaders = HEARTH_FETCH_PHASE_HEADERS,  // of the answer
  kBody = HEARTH_FETCH_PHASE_BODY,        // of the answer
};

// No answer came, or only a part. An answer with an error status (404, 500) is an answer. code():
// FORBIDDEN, LIMIT (final if egress.limits.bytes_per_day is used up), TIMEOUT, BUSY (retry later),
// INVALID, NOT_FOUND (no such credential), CANCELLED (FetchRequest::stop, or the fiber's cancel).
class FetchError : public HostError {
 public:
  FetchError(hearth_status code, const std::string& text, FetchPhase phase, bool sent)
      : FetchError(HostError(code, text), phase, sent) {}
  FetchError(const HostError& failure, FetchPhase phase, bool sent)
      : HostError(failure), phase_(phase), sent_(sent) {}

  [[nodiscard]] FetchPhase phase() const noexcept { return phase_; }
  // Whether the other server may have received a part of the request. False: it is safe to send it
  // again.
  [[nodiscard]] bool sent() const noexcept { return sent_; }

 private:
  FetchPhase phase_;
  bool sent_;
};

namespace detail {

inline constexpr std::string_view kFetchStopped = "the request was stopped";

// `reached`: the phase of a request that was stopped.
[[noreturn]] inline void throw_fetch_error(const Part& end, FetchPhase reached) {
  if (end.status == HEARTH_E_CANCELLED)
    throw FetchError(HostError(end.status, end.body, true), reached, true);
  const auto phase = std::max(HEARTH_FETCH_PHASE(end.flags), std::uint32_t{1});
  const HostError failure = (end.flags & HEARTH_FETCH_OF_DAY) != 0
                                ? HostError(end.status, end.body, true)
                                : HostError(end.status, end.body);
  throw FetchError(failure, static_cast<FetchPhase>(phase), (end.flags & HEARTH_FETCH_SENT) != 0);
}

bool same_header_name(std::string_view a, std::string_view b) noexcept;

// The stored part of an answer, and whether its rest can be asked for.
struct StoredAnswer {
  PartialAnswer answer;
  bool can_resume = false;
};
std::optional<StoredAnswer> find_stored_answer(const Activation& activation, std::string_view id);

// The stored answer that a request continues; if its rest is missing, `request` becomes the one for
// the rest. Nullopt: send the request as it is. Only the first request of a run can continue one.
std::optional<PartialAnswer> go_on_with_answer(Activation& activation, FetchRequest& request);
// Checks that a head fits an answer that is continued, and adds it. Failure: FetchError.
void check_resumed(const Activation& activation, std::string_view id, std::string_view head,
                   PartialAnswer& answer);

// co_await gives the next piece of a body; nothing at its end.
class [[nodiscard]] NextPiece {
 public:
  // `operation`: null if `stored` is all. The stored part comes first.
  NextPiece(PartsOperation* operation, std::string& stored) noexcept : stored_(stored) {
    if (operation != nullptr) next_.emplace(*operation);
  }
  [[nodiscard]] bool await_ready() const noexcept {
    return !stored_.empty() || !next_ || next_->await_ready();
  }
  void await_suspend(std::coroutine_handle<> waiting) {
    if (next_) next_->await_suspend(waiting);  // else it is ready
  }
  std::optional<std::string> await_resume() {
    if (!stored_.empty()) return std::exchange(stored_, {});
    if (!next_) return std::nullopt;
    Part part = next_->await_resume();
    if (!part.is_end()) return std::move(part.body);
    if (part.status < 0) throw_fetch_error(part, FetchPhase::kBody);
    return std::nullopt;
  }

 private:
  std::string& stored_;
  std::optional<PartsOperation::Next> next_;
};

}  // namespace detail

// The answer: its head, and its body piece by piece.
//
// Lifetime  If it is destroyed before the end of the body, the request ends. So it does at an
//           eviction.
// Bounded   At most `window` bytes of the body wait for the reader; then the other server waits.
class FetchResponse {
 public:
  // `head`: JSON, see hearth/ext/fetch.h.
  FetchResponse(std::unique_ptr<detail::PartsOperation> operation, std::string_view head);
  // A stored answer, and the operation for its rest; null: all of it is stored.
  FetchResponse(std::unique_ptr<detail::PartsOperation> operation, PartialAnswer stored) noexcept;

  [[nodiscard]] unsigned status() const noexcept { return status_; }
  // 200 to 299.
  [[nodiscard]] bool ok() const noexcept { return status_ >= 200 && status_ < 300; }
  // The URL that was answered: after redirects the last.
  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  [[nodiscard]] const HeaderList& headers() const noexcept { return headers_; }
  // The first header of this name, in any case.
  [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
  // The body has no length: it ends when the other server closes the connection. So if it was cut
  // off, next() gives its end; with any other body FetchError.
  [[nodiscard]] bool until_close() const noexcept { return until_close_; }

  // The next piece of the body. Pieces end anywhere. After the end it always gives nothing:
  //
  //     while (auto piece = co_await response.next()) use(*piece);
  //
  // Failure   FetchError: the rest does not come.
  [[nodiscard]] detail::NextPiece next() noexcept { return {operation_.get(), stored_}; }

  // The rest of the body: text, or any bytes.
  // Failure   as next()
  [[nodiscard]] Task<std::string> text();
  // The same as JSON, or as a type that read_json() takes.
  // Failure   also Error(INVALID): it is no JSON, or does not fit
  template <class T = Json>
  [[nodiscard]] Task<T> json() {
    const std::string body = co_await text();
    co_return read_json<T>(parse_json(body), "response");
  }

 private:
  std::unique_ptr<detail::PartsOperation> operation_;
  unsigned status_ = 0;
  std::string url_;
  HeaderList headers_;
  bool until_close_ = false;
  std::string stored_;
};

namespace detail {

// Submits the request when awaited, and gives the response when its head has arrived.
class [[nodiscard]] FetchAwaiter {
 public:
  FetchAwaiter(Activation& activation, FetchRequest request)
      : activation_(activation), request_(std::move(request)) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiting) {
    if (request_.stop.stop_requested()) {
      throw FetchError(HostError(HEARTH_E_CANCELLED, std::string(kFetchStopped), true),
                       FetchPhase::kRules, false);
    }
    if (!request_.op.empty()) stored_ = go_on_with_answer(activation_, request_);
    if (stored_ && stored_->whole) return false;
    submit();
    // A fiber that was cancelled before may still ask another server to stop its part.
    std::stop_token fiber = cancel_token(activation_);
    if (fiber.stop_requested() || !request_.op.empty()) fiber = {};
    operation_->stop_at(request_.stop, fiber, kFetchStopped);
    next_.emplace(*operation_);
    next_->await_suspend(waiting);
    return true;
  }
  FetchResponse await_resume() {
    if (stored_ && stored_->whole) return {nullptr, *std::move(stored_)};
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): await_suspend() has come before
    const Part head = next_->await_resume();
    next_.reset();
    if (head.is_end()) throw_fetch_error(head, FetchPhase::kHeaders);
    if ((head.flags & HEARTH_FETCH_HEAD) == 0) {  // else the body would be read as the head
      throw FetchError(HEARTH_E_BUSY, "a piece of the body came before the head of the answer",
                       FetchPhase::kHeaders, true);
    }
    if (!stored_) return {std::move(operation_), head.body};
    check_resumed(activation_, request_.op, head.body, *stored_);
    return {std::move(operation_), *std::move(stored_)};
  }

 private:
  void submit() {
    const hearth_fetch_v1& table = need(activation_.tables().fetch, HEARTH_EXT_FETCH);
    if (!request_.json.is_null()) {
      request_.body = to_text(request_.json);
      const auto is_type = [](const auto& each) {
        return same_header_name(each.first, "Content-Type");
      };
      if (std::none_of(request_.headers.begin(), request_.headers.end(), is_type))
        request_.headers.emplace_back("Content-Type", "application/json");
    }
    const std::string headers = to_text(Json(request_.headers));
    const auto begin = [&](std::uint64_t token, std::uint64_t* id) {
      const hearth_fetch_request given = abi_request(headers);
      return table.start(activation_.host(), activation_.id(), &given, token, id);
    };
    try {
      operation_ = std::make_unique<PartsOperation>(activation_, "fetch", begin);
    } catch (const HostError& error) {
      throw FetchError(error.code(), error.what(), FetchPhase::kRules, false);
    }
  }
  [[nodiscard]] hearth_fetch_request abi_request(const std::string& headers) const {
    const auto ms = [](std::chrono::milliseconds time) {
      return time.count() > 0 ? static_cast<std::uint64_t>(time.count()) : 0;
    };
    hearth_fetch_request given = {};
    given.struct_size = sizeof given;
    given.flags = (request_.follow_redirects ? std::uint32_t{HEARTH_FETCH_FOLLOW} : 0) |
                  (request_.http2 ? std::uint32_t{HEARTH_FETCH_HTTP2} : 0) |
                  (stored_ ? std::uint32_t{HEARTH_FETCH_RESUME} : 0);
    given.method = slice(request_.method);
    given.url = slice(request_.url);
    given.headers = slice(headers);
    given.body = slice(request_.body);
    given.credential = slice(request_.credential);
    given.connect_timeout_ms = ms(request_.connect_timeout);
    given.idle_timeout_ms = ms(request_.idle_timeout);
    given.total_timeout_ms = ms(request_.timeout);
    given.max_bytes = request_.max_bytes;
    given.window = request_.window;
    given.call = activation_.context().call;
    given.operation = slice(request_.op);
    given.resume_from = stored_ ? stored_->body.size() : 0;
    return given;
  }

  Activation& activation_;
  FetchRequest request_;
  std::optional<PartialAnswer> stored_;  // the answer that it continues
  std::unique_ptr<PartsOperation> operation_;
  std::optional<PartsOperation::Next> next_;
};

}  // namespace detail

}  // namespace hearth

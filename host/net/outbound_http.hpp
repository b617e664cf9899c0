#pragma once
// Requests from this server to other servers: HTTP/1.1 and HTTP/2, with streamed answers.
//
//   auto exchange =
//       http.start({.method = "GET", .url = "https://a.example/", .rules = rules}, listener);

#include "base/egress_rules.hpp"
#include "base/error.hpp"
#include "net/http.hpp"
#include "net/name_resolver.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::net {

namespace asio = boost::asio;

// One request, with its limits.
struct OutboundRequest {
  // A token of HTTP, sent unchanged: "GET". Not CONNECT, TRACE or TRACK
  // (is_forbidden_http_method()).
  std::string method;
  // http or https, without a user or password, the host in ASCII (international names in
  // punycode). A fragment is not sent.
  std::string url;
  // The client refuses those that it sets itself (is_host_owned_request_header()). A redirect to
  // another origin keeps only Accept, Accept-Language, Range and User-Agent: all others may say
  // something about the sender.
  HttpHeaders headers;
  // Sent after `headers`, only to the origin of `url`. A redirect to another origin drops them for
  // the rest of the exchange. They are never in a log or a message.
  HttpHeaders secret_headers;
  // Sent with its length. Empty: no body; POST, PUT and PATCH then send Content-Length: 0. It does
  // not go to another origin: such a redirect ends the exchange with kForbidden.
  std::string body;

  // Follows 301, 302, 303, 307 and 308, at most kMostRedirects times. `rules` check each URL. The
  // next request is a GET after 303, and after 301 or 302 to a POST; HEAD stays HEAD.
  bool follow_redirects = false;
  // HTTP/2 over TLS if the other side supports it; otherwise HTTP/1.1. Requests that run at the
  // same time use separate connections.
  bool http2 = false;
  // "http://[user:password@]host:port", or empty for none; the environment's proxies are never
  // used. The operator chooses the proxy, so `rules` do not check its name or address. They check
  // the name in the URL, but not the address that the proxy finds for it.
  std::string proxy;

  // For each URL: to find the address, connect, and finish the TLS handshake.
  std::chrono::milliseconds connect_timeout{10'000};
  // The longest time without a byte in either direction, after the connection is made. It does not
  // run while the body waits for credit.
  std::chrono::milliseconds idle_timeout{60'000};
  // From start() to the end, with redirects and waits for credit; 0: no limit.
  std::chrono::milliseconds total_timeout{0};
  // Bytes of the answer's body, decoded. A longer body is kLimitExceeded.
  std::size_t max_body = std::size_t{64} << 20;
  // Bytes of the body that may arrive before OutboundExchange::credit() is called.
  std::size_t credit = std::size_t{256} << 10;

  // Where the request may go. Shared by the requests of a class of agents. Not null.
  std::shared_ptr<const EgressRules> rules;
};

// The head of the final answer, not of a 1xx or a followed redirect.
struct OutboundHead {
  int status = 0;
  HttpHeaders headers;       // as received, with the other side's spelling of names
  std::string url;           // the URL that answered: the last of the redirects
  std::string http_version;  // "1.1" (also for HTTP/1.0's: "1.0"), "2"
  // Nothing but the end of the connection ends a body, so a cut looks like its end.
  bool until_close = false;
};

// A redirect that is followed.
struct OutboundRedirect {
  std::uint64_t received = 0;  // bytes of its body that have arrived and were dropped
  std::uint64_t to_send = 0;   // of the body of the next request
};

// How an exchange failed.
struct OutboundFailure {
  // What the exchange was doing. kRules: `rules` refuse the name or every address.
  enum class Phase : std::uint8_t { kRules, kResolve, kConnect, kTls, kSend, kHeaders, kBody };

  // kForbidden (rules), kTimeout, kLimitExceeded (body, head, redirects) or kUnavailable (others).
  Errc code = Errc::kUnavailable;
  Phase phase = Phase::kConnect;
  // False: no byte of the request has reached the other side, in this or an earlier hop. (A proxy
  // may have been asked for a tunnel.)
  bool sent = false;
  // One sentence, without secrets and without addresses that the resolver has found.
  std::string message;
  // Of the URL, with its port, if `rules` refuse it. A redirect may have chosen it.
  std::string host{};
};

// "rules", "resolve", "connect", "tls", "send", "headers", "body".
[[nodiscard]] std::string_view to_string(OutboundFailure::Phase phase) noexcept;

class OutboundExchange;

// Receives the events of an exchange.
//
// Promises  The order of the calls: on_redirect() for each redirect that is followed, on_head() at
//           most once, on_body() any number of times, on_end() once. After the exchange is
//           destroyed there are no calls, and each call may destroy it. There is no call inside
//           OutboundHttp::start(), or inside a member or the destructor of OutboundExchange.
// Threads   Called on the loop's thread.
// Lifetime  Outlives the exchange.
class OutboundListener {
 public:
  OutboundListener() = default;
  virtual ~OutboundListener() = default;
  OutboundListener(const OutboundListener&) = delete;
  OutboundListener& operator=(const OutboundListener&) = delete;

  // The next request waits for OutboundExchange::follow(). Meanwhile only total_timeout runs.
  virtual void on_redirect(OutboundRedirect redirect, OutboundExchange& exchange);
  virtual void on_head(OutboundHead head) = 0;
  // A part of the body, decoded, not empty. The view is valid during the call.
  virtual void on_body(std::string_view piece) = 0;
  // Nothing: the answer is complete.
  virtual void on_end(std::optional<OutboundFailure> failure) = 0;
};

// A request in progress. The destructor cancels it at once, without a call.
//
// Once      A request is sent once. GET, HEAD and OPTIONS are sent again if a kept connection ends
//           before the answer begins.
// Credit    Each byte of on_body() lowers the credit by one; one piece may make it negative. While
//           the credit is not positive, on_body() is not called, and the connection is read at most
//           to the next piece. on_end() may still be called if no byte is left.
// Threads   All members and the destructor on the loop's thread.
// Lifetime  Destroyed before the OutboundHttp.
class OutboundExchange {
 public:
  OutboundExchange() = default;
  virtual ~OutboundExchange() = default;
  OutboundExchange(const OutboundExchange&) = delete;
  OutboundExchange& operator=(const OutboundExchange&) = delete;

  // Raises the credit.
  virtual void credit(std::size_t bytes) = 0;
  // Makes the next request. Call it once after each on_redirect().
  virtual void follow() = 0;
  // What is in progress.
  [[nodiscard]] virtual OutboundFailure::Phase phase() const = 0;
};

inline void OutboundListener::on_redirect(OutboundRedirect /*redirect*/,
                                          OutboundExchange& exchange) {
  exchange.follow();
}

struct OutboundShare;  // outbound_exchange.hpp

struct OutboundOptions {
  // Exchanges that run at the same time; each needs a file descriptor.
  std::size_t max_exchanges = 2000;
  // PEM file with certificates of authorities to trust besides the system's; empty: none.
  std::string extra_ca_file;
};

// Makes requests on one loop. At most 32 idle connections are kept for later requests.
//
// Promises
//  P1 Rules    A request uses a connection to an address only if its rules allow the address.
//  P2 Names    Only `resolver` resolves names; no thread is made.
//  P3 TLS      Certificates and names are verified, TLS 1.2 or later.
//  P4 Nothing  of the environment or of other requests takes part: no cookies, no .netrc, no proxy
//              variables, no stored redirects.
//  P5 Bounded  A head has at most kMostHeadBytes.
//  P6 Whole    A body in gzip or deflate is decoded; a body with another coding or several, or that
//              is cut off or not valid in its coding, is a failure.
//
// P1: the rules are checked when the name is resolved, when a socket opens, and before the request
// is sent, also on a kept connection. With a proxy see OutboundRequest::proxy.
//
// P5: host/net/README.md has the memory of a body that waits for credit.
//
// P6: a request asks for gzip and deflate if it has no Range. A body without any byte is empty,
// whatever its coding.
//
// Threads   All members on the loop's thread, or while the loop does not run.
// Lifetime  Destroy it after its exchanges, before the loop's context, and not inside a listener's
//           call. Its remaining tasks on the loop do nothing.
class OutboundHttp {
 public:
  static constexpr int kMostRedirects = 10;
  static constexpr std::size_t kMostHeadBytes = std::size_t{64} << 10;

  // `resolver`: empty for make_name_resolver(). Fails if the file of authorities cannot be read.
  [[nodiscard]] static Result<std::unique_ptr<OutboundHttp>> make(asio::io_context& loop,
                                                                  const OutboundOptions& options,
                                                                  NameResolver resolver = {});
  ~OutboundHttp();
  OutboundHttp(const OutboundHttp&) = delete;
  OutboundHttp& operator=(const OutboundHttp&) = delete;

  // Begins a request. kInvalidArgument: the method, the URL, the proxy or a header is not valid for
  // OutboundRequest. kLimitExceeded: OutboundOptions::max_exchanges run. The listener gets all
  // other failures.
  [[nodiscard]] Result<std::unique_ptr<OutboundExchange>> start(OutboundRequest request,
                                                                OutboundListener& listener);

  // Exchanges that have not ended.
  [[nodiscard]] std::size_t running() const;

 private:
  OutboundHttp(const OutboundOptions& options, std::unique_ptr<OutboundShare> share);

  const OutboundOptions options_;
  const std::unique_ptr<OutboundShare> share_;
};

}  // namespace hearth::net

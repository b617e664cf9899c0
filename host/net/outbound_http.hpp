#pragma once
// Requests that this server makes of others: HTTP/1.1 and HTTP/2, with streamed answers.
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

// One request, with all that limits it.
struct OutboundRequest {
  // A token of HTTP, sent as it is: "GET". Not CONNECT; nor TRACE or TRACK, whose answer shows the
  // headers of the request.
  std::string method;
  // http or https, without a user or password, the host in ASCII (international names in
  // punycode). A fragment is not sent.
  std::string url;
  // `Host` replaces what the URL says. Refused are those that the client sets itself: Connection,
  // Content-Length, Transfer-Encoding, TE, Trailer, Upgrade, Expect, Keep-Alive, Accept-Encoding,
  // and all that begin with Proxy-. A redirect to another origin drops Host, Authorization and
  // Cookie.
  HttpHeaders headers;
  // Sent after `headers` to the origin of `url`. A redirect to another origin drops them for the
  // rest of the exchange. Never in a log or a message.
  HttpHeaders secret_headers;
  // Sent with its length. An empty one is no body; POST, PUT and PATCH then say so.
  std::string body;

  // Follows 301, 302, 303, 307 and 308, at most kMostRedirects times. Each URL is judged by
  // `rules`. 303 makes the next request a GET, and so do 301 and 302 after a POST; HEAD stays.
  bool follow_redirects = false;
  // HTTP/2 over TLS if the other side speaks it; else, and without this, HTTP/1.1. Requests that
  // run at the same time have a connection each.
  bool http2 = false;
  // "http://[user:password@]host:port", or empty for none; the environment's proxies are never
  // used. The proxy is the operator's choice, so `rules` judge neither its name nor its address.
  // They judge the name of the URL, but not the address that the proxy finds for it.
  std::string proxy;

  // For each URL: to find the address, connect, and finish the TLS handshake.
  std::chrono::milliseconds connect_timeout{10'000};
  // Without any byte in either direction, once the connection is there. Stands still while the body
  // waits for credit.
  std::chrono::milliseconds idle_timeout{60'000};
  // For everything from start() to the end, redirects and waits for credit included; 0: none.
  std::chrono::milliseconds total_timeout{0};
  // Bytes of the answer's body, decoded. A longer one is kLimitExceeded.
  std::size_t max_body = std::size_t{64} << 20;
  // Bytes of the body that may come before OutboundExchange::credit() is called.
  std::size_t credit = std::size_t{256} << 10;

  // Where the request may go. Shared by the requests of a class of agents. Not null.
  std::shared_ptr<const EgressRules> rules;
};

// The head of the final answer: no 1xx, and no redirect that was followed.
struct OutboundHead {
  int status = 0;
  HttpHeaders headers;       // as they came, names as the other side spells them
  std::string url;           // the one that was answered: the last of the redirects
  std::string http_version;  // "1.1" (also for HTTP/1.0's: "1.0"), "2"
};

// An answer that redirects, and is followed.
struct OutboundRedirect {
  std::uint64_t received = 0;  // bytes of its body that have come; they are given to nobody
  std::uint64_t to_send = 0;   // of the body of the next request
};

// How an exchange failed.
struct OutboundFailure {
  // What was going on. kRules: `rules` refuse the name or every address.
  enum class Phase : std::uint8_t { kRules, kResolve, kConnect, kTls, kSend, kHeaders, kBody };

  // kForbidden (rules), kTimeout, kLimitExceeded (body, head, redirects) or kUnavailable (others).
  Errc code = Errc::kUnavailable;
  Phase phase = Phase::kConnect;
  // False proves that no byte of the request has reached the other side, in this or an earlier hop.
  // A proxy may have been asked for a tunnel.
  bool sent = false;
  // One sentence. It holds neither secrets nor addresses that the resolver has found.
  std::string message;
};

// "rules", "resolve", "connect", "tls", "send", "headers", "body".
[[nodiscard]] std::string_view to_string(OutboundFailure::Phase phase) noexcept;

class OutboundExchange;

// Whom an exchange tells.
//
// Promises  on_redirect() for each redirect that is followed, on_head() at most once and after
//           them, on_body() any number of times after it, on_end() last and once, unless the
//           exchange is destroyed before. Nothing is called from inside OutboundHttp::start(), or a
//           member or the destructor of OutboundExchange.
//           The exchange may be destroyed inside each call; nothing follows then.
// Threads   Called on the loop's thread.
// Lifetime  Outlives the exchange.
class OutboundListener {
 public:
  OutboundListener() = default;
  virtual ~OutboundListener() = default;
  OutboundListener(const OutboundListener&) = delete;
  OutboundListener& operator=(const OutboundListener&) = delete;

  // The next request waits for OutboundExchange::follow(). Of the deadlines the one of the whole
  // exchange holds meanwhile.
  virtual void on_redirect(OutboundRedirect redirect, OutboundExchange& exchange);
  virtual void on_head(OutboundHead head) = 0;
  // A part of the body, decoded, not empty. The view holds for the call.
  virtual void on_body(std::string_view piece) = 0;
  // Nothing: the answer is complete.
  virtual void on_end(std::optional<OutboundFailure> failure) = 0;
};

// A request under way. Destroying it cancels the request, at once and without a call.
//
// Once      A request is sent once. GET, HEAD and OPTIONS are sent again if a kept connection ends
//           before the answer begins.
// Credit    Each byte that on_body() gets takes one from the credit, and one piece may overdraw it.
//           While it is not positive no piece comes, and the connection is not read from beyond the
//           next piece. The end may still come, if nothing is left to give.
// Threads   All members and the destructor on the loop's thread.
// Lifetime  Destroyed before the OutboundHttp.
class OutboundExchange {
 public:
  OutboundExchange() = default;
  virtual ~OutboundExchange() = default;
  OutboundExchange(const OutboundExchange&) = delete;
  OutboundExchange& operator=(const OutboundExchange&) = delete;

  // Lets more of the body come.
  virtual void credit(std::size_t bytes) = 0;
  // After on_redirect(), once: makes the next request.
  virtual void follow() = 0;
};

inline void OutboundListener::on_redirect(OutboundRedirect /*redirect*/,
                                          OutboundExchange& exchange) {
  exchange.follow();
}

struct OutboundOptions {
  // Exchanges that run at the same time; each has a descriptor of the process's limit.
  std::size_t max_exchanges = 2000;
  // PEM file with certificates of authorities that are trusted beside the system's; empty: none.
  std::string extra_ca_file;
};

// Makes requests on one loop. Connections are kept for the next request: 32 idle ones at most.
//
// Promises
//  P1 Rules    A request uses a connection to an address only if its rules allow the address. They
//              are asked when the name is resolved, when a socket opens, and before the request is
//              sent, on a kept connection too. With a proxy see OutboundRequest::proxy.
//  P2 Names    Names are resolved by `resolver` alone; no thread is made.
//  P3 TLS      Certificates and names are verified, TLS 1.2 or later.
//  P4 Nothing  of the environment or of other requests takes part: no cookies, no .netrc, no proxy
//              variables, no stored redirects.
//  P5 Bounded  A head has at most kMostHeadBytes. Memory for a body that waits for credit: see
//              host/net/README.md.
//  P6 Whole    gzip and deflate are asked for, but not of a part (Range), and undone. A body that
//              is not what its coding says, that ends before its coding does, or that has another
//              coding or several, is a failure. One without any byte is empty, whatever its coding.
//
// Threads   All members on the loop's thread, or while it does not run.
// Lifetime  Destroyed after its exchanges, before the loop's context, and not inside a listener's
//           call; tasks of it that are left on the loop do nothing.
class OutboundHttp {
 public:
  static constexpr int kMostRedirects = 10;
  static constexpr std::size_t kMostHeadBytes = std::size_t{64} << 10;

  // `resolver`: null for make_name_resolver(). Fails if the file of authorities cannot be read.
  [[nodiscard]] static Result<std::unique_ptr<OutboundHttp>> make(
      asio::io_context& loop, const OutboundOptions& options,
      std::unique_ptr<NameResolver> resolver = nullptr);

  OutboundHttp() = default;
  virtual ~OutboundHttp() = default;
  OutboundHttp(const OutboundHttp&) = delete;
  OutboundHttp& operator=(const OutboundHttp&) = delete;

  // Begins a request. kInvalidArgument: the method, the URL, the proxy or a header is not what
  // OutboundRequest says. kLimitExceeded: OutboundOptions::max_exchanges run. All else is told to
  // the listener.
  [[nodiscard]] virtual Result<std::unique_ptr<OutboundExchange>> start(
      OutboundRequest request, OutboundListener& listener) = 0;

  // Exchanges that have not ended.
  [[nodiscard]] virtual std::size_t running() const = 0;
};

}  // namespace hearth::net

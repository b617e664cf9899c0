#pragma once
// Bytes in, one HTTP/1.x request out. No I/O: the session feeds it.

#include "net/http.hpp"
#include "net/options.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::net {

// Parses one request; make a new one for the next. The only user of Beast's HTTP.
//
// Promises  The length of a request is unambiguous: the only Transfer-Encoding is one "chunked", in
//           HTTP/1.1 and without a Content-Length. Trailer fields are dropped: `headers` has only
//           the fields of the head. The target is in origin form, or "*", and ASCII. Host is a
//           valid authority, the target's if the target has one. CONNECT, TRACE, and lines of the
//           head, of chunks and of the trailer that end with a bare LF are refused.
// Bounded   Refuses a head, target or body over the limits of NetOptions as soon as the excess is
//           known; for a declared Content-Length, before it keeps a byte of the body. A chunk's
//           line and the trailer may be as long as a head.
// Threads   One at a time.
class HttpParser {
 public:
  enum class Step {
    kMore,      // more bytes are needed
    kHeadDone,  // reported once; feed the rest again
    kDone,      // call take(); unused bytes belong to the next request
    kRefused,   // answer refusal() and close: later bytes cannot be parsed
  };

  explicit HttpParser(const NetOptions& options);
  ~HttpParser();
  HttpParser(const HttpParser&) = delete;
  HttpParser& operator=(const HttpParser&) = delete;

  // Parses `bytes`, and sets `used` to the number of leading bytes that are used up. The caller
  // passes the others again, with new bytes behind them.
  Step feed(std::string_view bytes, std::size_t& used);

  [[nodiscard]] const HttpResponse& refusal() const { return refusal_; }

  // From kHeadDone on.
  // Whether the client wants the connection to stay open.
  [[nodiscard]] bool keep_alive() const { return keep_alive_; }
  // Whether it waits for "100 Continue" before it sends the body.
  [[nodiscard]] bool expects_continue() const { return expects_continue_; }
  [[nodiscard]] bool is_http_1_0() const;
  [[nodiscard]] bool has_body() const;  // of at least one byte, or chunked

  // Bytes of the body that were kept so far.
  [[nodiscard]] std::size_t body_size() const;
  // The bytes that were kept so far, which are not kept any longer.
  [[nodiscard]] std::string take_body();

  // The request without its body; nothing if the head is not complete or not valid.
  [[nodiscard]] std::optional<HttpRequest> head() const;
  // Once, after kDone. Without `peer`.
  [[nodiscard]] HttpRequest take();

 private:
  // Bytes that Beast does not use yet. After the head they are the line of a chunk or the trailer,
  // which would be kept until it is complete.
  Step judge_rest(std::string_view rest);
  Step check_head();
  Step refuse(HttpResponse answer);

  struct Parts;  // Beast's
  const NetOptions& options_;
  std::unique_ptr<Parts> parts_;
  HttpResponse refusal_;
  // The fields of the head. Beast adds trailer fields to its message later, and they must not count
  // as headers.
  HttpHeaders headers_;
  bool at_line_start_ = false;  // the used bytes of the head end a line
  bool head_reported_ = false;
  bool keep_alive_ = false;
  bool expects_continue_ = false;
};

}  // namespace hearth::net

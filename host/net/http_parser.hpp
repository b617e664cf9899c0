#pragma once
// Bytes in, one HTTP/1.x request out. No I/O: the session feeds it.

#include "net/http.hpp"
#include "net/options.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

namespace hearth::net {

// Parses one request; make a new one for the next. The only user of Beast's HTTP.
//
// Promises  What a request's length is, is beyond doubt: any Transfer-Encoding but one "chunked" in
//           HTTP/1.1 without a Content-Length is refused. Trailer fields are dropped: headers are
//           those of the head.
//           The target is in origin form, or "*", and ASCII; Host is a valid authority, that of the
//           target if it has one. CONNECT and TRACE are refused, and lines of the head that end
//           with a bare LF.
// Bounded   Refuses a head, target or body over the limits of NetOptions as soon as the excess is
//           known: a declared Content-Length before a byte of the body is kept. A chunk's line and
//           the trailer may be as long as a head.
// Threads   One at a time.
class HttpParser {
 public:
  enum class Step {
    kMore,      // everything usable was used: more bytes are needed
    kHeadDone,  // reported once; feed the rest again
    kDone,      // take() it; bytes not used belong to the next request
    kRefused,   // answer refusal() and close: what follows cannot be understood
  };

  explicit HttpParser(const NetOptions& options);
  ~HttpParser();
  HttpParser(const HttpParser&) = delete;
  HttpParser& operator=(const HttpParser&) = delete;

  // Looks at `bytes` and says how many leading ones are used up; the caller gives the others again,
  // with what has arrived since.
  Step feed(std::string_view bytes, std::size_t& used);

  [[nodiscard]] const HttpResponse& refusal() const;

  // From kHeadDone on.
  [[nodiscard]] bool keep_alive() const;        // the client wants the connection to stay open
  [[nodiscard]] bool expects_continue() const;  // waits for "100 Continue" before it sends the body
  [[nodiscard]] bool is_http_1_0() const;

  // Bytes of the body that have been kept so far.
  [[nodiscard]] std::size_t body_size() const;

  // The request as far as its head says; nothing while the head is not complete, or not valid.
  [[nodiscard]] std::optional<HttpRequest> head() const;
  // Once, after kDone. Without `peer`.
  [[nodiscard]] HttpRequest take();

 private:
  Step check_head();
  Step refuse(HttpResponse answer);

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace hearth::net

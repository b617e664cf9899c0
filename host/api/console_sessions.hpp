#pragma once
// Access to the console: one-time codes, and the sessions of browsers that have brought one.

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "net/http.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::api {

// A session proves what the administrators' token proves, for requests of the console's page alone:
// such a request has the session's cookie, and its key in the header kPageHeader. Browsers send the
// cookie to every port of the host. A page of another origin cannot send the header, because no
// preflight of its is answered. Pages of agents have the console's origin; but they do not get the
// key, which stays in the storage of the tab (sessionStorage), and in a tab with the console no
// page of an agent is opened.
//
// Promises  A code works once, and for kCodeLife. A session ends after kSessionLife, with the
//           process, or with end().
// Bounded   kMaxCodes and kMaxSessions: one more takes the place of the oldest.
// Threads   Any. The clock and the random bytes outlive it.
class ConsoleSessions {
 public:
  static constexpr std::chrono::seconds kCodeLife{60};
  static constexpr std::chrono::hours kSessionLife{12};
  static constexpr std::size_t kMaxCodes = 16;
  static constexpr std::size_t kMaxSessions = 16;
  static constexpr std::string_view kPageHeader = "X-Hearth-Console";

  ConsoleSessions(const Clock& clock, Random& random) : clock_(clock), random_(random) {}

  [[nodiscard]] std::string make_code();
  // Begins a session; absent: the code is not good (any more).
  struct Session {
    std::string cookie;
    std::string key;
  };
  [[nodiscard]] std::optional<Session> redeem(std::string_view code);

  // Whether the request has the cookie of a session.
  [[nodiscard]] bool has_cookie(const net::HttpRequest& request);
  // Whether the console's page has sent the request, in a session.
  [[nodiscard]] bool is_page(const net::HttpRequest& request);

  void end(const net::HttpRequest& request);

  // The values of Set-Cookie with which the answer to `request` gives a browser the session. The
  // cookie is not sent to agents: it has a path for the page and one for /admin. Its name has the
  // port of the request's Host, because browsers do not tell servers of one host apart. An empty
  // `cookie` takes the session from the browser.
  [[nodiscard]] static std::vector<std::string> cookies(const net::HttpRequest& request,
                                                        std::string_view cookie, bool over_tls);

 private:
  struct Secret {
    std::string text;
    std::string key;  // of a session
    SteadyTime until;
  };
  using Secrets = std::deque<Secret>;  // the oldest first

  Secret& add(Secrets& to, std::size_t most, SteadyTime until) REQUIRES(mutex_);
  [[nodiscard]] Secrets::iterator find(Secrets& in, std::string_view text) REQUIRES(mutex_);
  [[nodiscard]] Secrets::iterator find_session(const net::HttpRequest& request) REQUIRES(mutex_);

  const Clock& clock_;
  Random& random_;
  Mutex mutex_;
  Secrets codes_ GUARDED_BY(mutex_);
  Secrets sessions_ GUARDED_BY(mutex_);
};

}  // namespace hearth::api

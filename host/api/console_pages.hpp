#pragma once
// /console: the page for administrators, and the way into it.

#include "api/console_sessions.hpp"
#include "api/routes.hpp"
#include "base/logger.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace hearth::api {

// A file of the page (host/console), gzipped.
struct ConsoleFile {
  std::string_view path;  // "index.html"
  std::string_view gzip;
};
// Empty if the server was built without the console.
[[nodiscard]] std::span<const ConsoleFile> console_files();

//  POST /admin/console/link     {"url","valid_s"}: a link with a one-time code; not for a session
//  GET  /console/enter?code=    begins a session: a page with the cookies that goes on to
//                               /console#key=. Not for a look ahead (HEAD, prefetch): the code
//                               stays good
//  POST /console/leave          ends the session
//  GET  /console                the page, for a session; else 401 and how to get one
//  GET  /console/{file...}      its files, the same
//
// Promises   The page may load from this server alone (Content-Security-Policy), and no page may
//            frame it. Codes and sessions are in no log.
// Recorded   console.link, console.entered, console.left: the audit log has them.
// Lifetime   What it is given outlives it, and it outlives the rows.
class ConsolePages {
 public:
  ConsolePages(ConsoleSessions& sessions, Logger& logger, bool over_tls,
               std::span<const ConsoleFile> files = console_files())
      : sessions_(sessions), logger_(logger), over_tls_(over_tls), files_(files) {}

  void add_routes(std::vector<Route>& rows);

 private:
  void link(const RouteCall& call);
  void enter(const RouteCall& call);
  void leave(const RouteCall& call);
  void file(const RouteCall& call, std::string_view path);

  ConsoleSessions& sessions_;
  Logger& logger_;
  const bool over_tls_;
  const std::span<const ConsoleFile> files_;
};

}  // namespace hearth::api

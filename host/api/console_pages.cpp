#include "api/console_pages.hpp"

#include "api/admin_api.hpp"
#include "api/query_words.hpp"
#include "json/json.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace hearth::api {
namespace {

constexpr std::string_view kLeftOut =
    "this server was built without the console: install npm, configure the build with "
    "-DHEARTH_CONSOLE=ON where npm can fetch its packages, and build the server again";
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
constexpr std::size_t kMaxCodeBytes = 128;

std::string_view type_of(std::string_view path) {
  if (path.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (path.ends_with(".css")) return "text/css; charset=utf-8";
  if (path.ends_with(".svg")) return "image/svg+xml";
  return "text/html; charset=utf-8";
}

net::HttpResponse page_answer(int status, std::string_view type, std::string body) {
  net::HttpResponse response;
  response.status = status;
  response.headers = {{"Content-Type", std::string(type)},
                      {"Content-Security-Policy", std::string(kPolicy)},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cross-Origin-Resource-Policy", "same-origin"},
                      {"Cross-Origin-Opener-Policy", "same-origin"}};
  response.body = std::move(body);
  return admin_sealed(std::move(response));
}

// For a person without a session: a page without scripts and styles.
net::HttpResponse closed_answer(int status, std::string_view why) {
  return page_answer(
      status, "text/html; charset=utf-8",
      "<!doctype html><html lang=en><meta name=viewport content='width=device-width'>"
      "<title>Hearth console</title><h1>Hearth console</h1><p>" +
          std::string(why) + "</p></html>\n");
}

constexpr std::string_view kNoSession =
    "There is no session in this browser, or it is over. Run <code>hearth console</code> on the "
    "server's machine, and open the link that it prints.";
constexpr std::string_view kNotOpened =
    "Open this link itself: it begins a session once, and is kept until then.";
constexpr std::string_view kSpentCode =
    "This link was used already, or is older than a minute. Run <code>hearth console</code> again, "
    "and open the new link.";

// Whether the browser only looks ahead, or a program at what a link is.
bool is_preview(const net::HttpRequest& request) {
  const auto purpose = net::find_header(request.headers, "Sec-Purpose");
  return request.method == "HEAD" || (purpose && purpose->starts_with("prefetch"));
}

}  // namespace

void ConsolePages::add_routes(std::vector<Route>& rows) {
  rows.push_back({"POST",
                  "/admin/console/link",
                  Access::kAdministrator,
                  "Makes a one-time link to the console.",
                  [this](const RouteCall& call) { link(call); },
                  {.answer = "ConsoleLink"}});
  const auto add = [&rows](std::string_view method, std::string_view pattern,
                           std::string_view summary, std::function<void(const RouteCall&)> answer,
                           RouteShape shape = {}) {
    rows.push_back({method, pattern, Access::kAnybody, summary, std::move(answer), shape});
  };
  add("GET", "/console/enter", "Begins a session of the console.",
      [this](const RouteCall& call) { enter(call); }, {.query = "code"});
  add("POST", "/console/leave", "Ends the session.", [this](const RouteCall& call) { leave(call); },
      {.status = 204});
  add("GET", "/console", "The console's page, for a session.",
      [this](const RouteCall& call) { file(call, "index.html"); });
  add("GET", "/console/{file...}", "A file of the console, for a session.",
      [this](const RouteCall& call) { file(call, call.values[0]); });
}

void ConsolePages::link(const RouteCall& call) {
  if (files_.empty())
    return call.exchange->respond(admin_refusal({Errc::kUnsupported, std::string(kLeftOut)}));
  // Else a session could renew itself for ever.
  if (call.actor == "console")
    return call.exchange->respond(
        admin_refusal({Errc::kForbidden,
                       "a session makes no links: run `hearth console` on the server's machine"}));
  const net::HttpRequest& request = call.exchange->request();
  logger_.record(LogLevel::kInfo, "console.link", {{"actor", call.actor}, {"peer", request.peer}});
  const auto host = net::find_header(request.headers, "Host");
  call.exchange->respond(admin_answer(
      {{"url", std::string(over_tls_ ? "https://" : "http://") + std::string(host.value_or("")) +
                   "/console/enter?code=" + sessions_.make_code()},
       {"valid_s", ConsoleSessions::kCodeLife.count()}}));
}

void ConsolePages::enter(const RouteCall& call) {
  const net::HttpRequest& request = call.exchange->request();
  if (is_preview(request)) return call.exchange->respond(closed_answer(403, kNotOpened));
  const auto code = protocol::query_value(call.query, "code", kMaxCodeBytes);
  const auto session = code ? sessions_.redeem(*code) : std::nullopt;
  if (!session) return call.exchange->respond(closed_answer(401, kSpentCode));
  logger_.record(LogLevel::kInfo, "console.entered",
                 {{"actor", "console"}, {"peer", request.peer}});
  // A page that goes on by itself: after a redirect from a page of another site the browser would
  // not send the cookie. A fragment is sent to no server; the console takes it out of the address.
  net::HttpResponse answer =
      page_answer(200, "text/html; charset=utf-8",
                  "<!doctype html><html lang=en><title>Hearth console</title><link rel=icon "
                  "href=/console/icon.svg><meta http-equiv=refresh content='0;url=/console#key=" +
                      session->key + "'></html>\n");
  for (std::string& cookie : ConsoleSessions::cookies(request, session->cookie, over_tls_))
    answer.headers.push_back({"Set-Cookie", std::move(cookie)});
  call.exchange->respond(std::move(answer));
}

void ConsolePages::leave(const RouteCall& call) {
  const net::HttpRequest& request = call.exchange->request();
  if (!sessions_.is_page(request)) return call.exchange->respond(closed_answer(401, kNoSession));
  sessions_.end(request);
  logger_.record(LogLevel::kInfo, "console.left", {{"actor", "console"}, {"peer", request.peer}});
  net::HttpResponse answer = page_answer(204, "text/plain", "");
  for (std::string& cookie : ConsoleSessions::cookies(request, "", over_tls_))
    answer.headers.push_back({"Set-Cookie", std::move(cookie)});
  call.exchange->respond(std::move(answer));
}

void ConsolePages::file(const RouteCall& call, std::string_view path) {
  if (files_.empty()) return call.exchange->respond(closed_answer(404, kLeftOut));
  if (!sessions_.has_cookie(call.exchange->request()))
    return call.exchange->respond(closed_answer(401, kNoSession));
  const auto found = std::ranges::find(files_, path, &ConsoleFile::path);
  if (found == files_.end())
    return call.exchange->respond(closed_answer(404, "There is nothing at this path."));
  net::HttpResponse answer = page_answer(200, type_of(path), std::string(found->gzip));
  answer.headers.push_back({"Content-Encoding", "gzip"});
  call.exchange->respond(std::move(answer));
}

}  // namespace hearth::api

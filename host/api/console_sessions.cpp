#include "api/console_sessions.hpp"

#include "base/http_token.hpp"
#include "base/secret.hpp"

#include <algorithm>
#include <utility>

namespace hearth::api {
namespace {

std::string cookie_name(const net::HttpRequest& request) {
  const std::string_view host = net::find_header(request.headers, "Host").value_or("");
  const std::size_t colon = host.rfind(':');
  std::string name = "hearth_console";
  if (colon == std::string_view::npos) return name;
  const std::string_view port = host.substr(colon + 1);
  const bool is_port =
      !port.empty() && port.find_first_not_of("0123456789") == std::string_view::npos;
  return is_port ? name + "_" + std::string(port) : name;
}

// All of that name: a page of another port of the host can add one.
std::vector<std::string_view> cookies_of(const net::HttpRequest& request) {
  const std::string wanted = cookie_name(request) + "=";
  std::vector<std::string_view> values;
  for (const net::HttpHeader& header : request.headers) {
    if (!equal_ignoring_case(header.name, "Cookie")) continue;
    for (std::string_view rest = header.value; !rest.empty();) {
      const std::size_t end = std::min(rest.find(';'), rest.size());
      const std::string_view pair = trimmed(rest.substr(0, end));
      if (pair.starts_with(wanted)) values.push_back(pair.substr(wanted.size()));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return values;
}

}  // namespace

ConsoleSessions::Secret& ConsoleSessions::add(Secrets& to, std::size_t most, SteadyTime until) {
  if (to.size() >= most) to.pop_front();
  return to.emplace_back(make_secret(random_), make_secret(random_), until);
}

ConsoleSessions::Secrets::iterator ConsoleSessions::find(Secrets& in, std::string_view text) {
  const SteadyTime now = clock_.steady_now();
  std::erase_if(in, [now](const Secret& each) { return each.until <= now; });
  return std::ranges::find_if(
      in, [text](const Secret& each) { return is_same_secret(each.text, text); });
}

ConsoleSessions::Secrets::iterator ConsoleSessions::find_session(const net::HttpRequest& request) {
  for (const std::string_view each : cookies_of(request)) {
    if (const auto found = find(sessions_, each); found != sessions_.end()) return found;
  }
  return sessions_.end();
}

std::string ConsoleSessions::make_code() {
  const MutexLock lock(mutex_);
  return add(codes_, kMaxCodes, clock_.steady_now() + kCodeLife).text;
}

std::optional<ConsoleSessions::Session> ConsoleSessions::redeem(std::string_view code) {
  const MutexLock lock(mutex_);
  const auto found = find(codes_, code);
  if (found == codes_.end()) return std::nullopt;
  codes_.erase(found);
  const Secret& made = add(sessions_, kMaxSessions, clock_.steady_now() + kSessionLife);
  return Session{made.text, made.key};
}

bool ConsoleSessions::has_cookie(const net::HttpRequest& request) {
  const MutexLock lock(mutex_);
  return find_session(request) != sessions_.end();
}

bool ConsoleSessions::is_page(const net::HttpRequest& request) {
  const auto key = net::find_header(request.headers, kPageHeader);
  const MutexLock lock(mutex_);
  const auto found = find_session(request);
  return key && found != sessions_.end() && is_same_secret(found->key, *key);
}

void ConsoleSessions::end(const net::HttpRequest& request) {
  const MutexLock lock(mutex_);
  const auto found = find_session(request);
  if (found != sessions_.end()) sessions_.erase(found);
}

std::vector<std::string> ConsoleSessions::cookies(const net::HttpRequest& request,
                                                  std::string_view cookie, bool over_tls) {
  const std::chrono::seconds life = cookie.empty() ? std::chrono::seconds(0) : kSessionLife;
  std::vector<std::string> values;
  for (const std::string_view path : {"/console", "/admin"}) {
    values.push_back(cookie_name(request) + "=" + std::string(cookie) +
                     "; Path=" + std::string(path) + "; Max-Age=" + std::to_string(life.count()) +
                     "; HttpOnly; SameSite=Strict" + (over_tls ? "; Secure" : ""));
  }
  return values;
}

}  // namespace hearth::api

#include "base/authority.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace hearth {
namespace {

char lower_ascii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lowered(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), lower_ascii);
  return result;
}

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// RFC 3986 section 3.2.2: reg-name, which an IPv4 address is as well.
bool is_host_character(char c) {
  constexpr std::string_view kOthers = "-._~%!$&'()*+,;=";
  return is_alphanumeric(c) || kOthers.find(c) != std::string_view::npos;
}

bool is_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_ipv6(const std::string& text) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

}  // namespace

std::optional<Authority> parse_authority(std::string_view text) {
  Authority authority;
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    authority.host = lowered(text.substr(1, end - 1));
    if (!is_ipv6(authority.host)) return std::nullopt;
    rest = text.substr(end + 1);
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    authority.host = lowered(text.substr(0, colon));
    if (authority.host.empty() || !std::ranges::all_of(authority.host, is_host_character)) {
      return std::nullopt;
    }
    rest = text.substr(colon);
  }
  if (rest.empty()) return authority;
  if (!rest.starts_with(':')) return std::nullopt;
  rest.remove_prefix(1);
  if (!rest.empty() && !is_port(rest)) return std::nullopt;
  authority.port = rest;
  return authority;
}

std::optional<WebOrigin> parse_origin(std::string_view text) {
  const std::size_t end = text.find("://");
  if (end == 0 || end == std::string_view::npos) return std::nullopt;
  const std::string_view scheme = text.substr(0, end);
  const auto in_scheme = [](char c) {
    return is_alphanumeric(c) || c == '+' || c == '-' || c == '.';
  };
  if (!std::ranges::all_of(scheme, in_scheme)) return std::nullopt;
  auto authority = parse_authority(text.substr(end + 3));
  if (!authority) return std::nullopt;
  return WebOrigin{lowered(scheme), *std::move(authority)};
}

Authority without_default_port(Authority authority, std::string_view scheme) {
  const bool is_default = (authority.port == "80" && (scheme == "http" || scheme == "ws")) ||
                          (authority.port == "443" && (scheme == "https" || scheme == "wss"));
  if (is_default) authority.port.clear();
  return authority;
}

bool is_loopback_host(std::string_view host) {
  std::string name = lowered(host);
  if (name.ends_with('.')) name.pop_back();
  if (name == "localhost" || name.ends_with(".localhost")) return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, name.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, name.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace hearth

#include "config/units.hpp"

#include "base/escape.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <arpa/inet.h>

namespace hearth::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Larger first, so that formatting finds the shortest text.
constexpr std::array kDurations = {Unit{"h", 3'600'000}, Unit{"m", 60'000}, Unit{"s", 1000},
                                   Unit{"ms", 1}};
constexpr std::array kSizes = {Unit{"GiB", 1ULL << 30U}, Unit{"MiB", 1ULL << 20U},
                               Unit{"KiB", 1ULL << 10U}, Unit{"", 1}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

Error expected(std::string_view form, std::string_view found) {
  std::string message = "expected ";
  message += form;
  message += ", found ";
  message += found.empty() ? "nothing" : quote_text(found);
  return Error{Errc::kInvalidArgument, std::move(message)};
}

struct Quantity {
  std::uint64_t number;
  std::string_view unit;
};

// Digits and the rest of the text. Absent: there are no digits. A number beyond 64 bits becomes the
// largest one, which every limit refuses.
std::optional<Quantity> split(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  const std::string_view digits(text.begin(), end);
  if (digits.empty()) return std::nullopt;
  std::uint64_t number = 0;
  const char* const first = std::to_address(digits.begin());
  if (std::from_chars(first, std::to_address(digits.end()), number).ec != std::errc{}) {
    number = std::numeric_limits<std::uint64_t>::max();
  }
  return Quantity{number, text.substr(digits.size())};
}

// Saturates at `max`: the limit of the key then reports it as too large.
std::uint64_t scaled(std::uint64_t number, std::uint64_t factor, std::uint64_t max) {
  return number > max / factor ? max : number * factor;
}

std::string format(std::uint64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (value % unit.factor != 0 || value < unit.factor) continue;
    return std::to_string(value / unit.factor).append(unit.name);
  }
  return "0";
}

bool is_host_name(std::string_view host) {
  const auto allowed = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '.' || c == '_';
  };
  constexpr std::size_t kMaxHostName = 253;  // RFC 1035, as text
  return !host.empty() && host.size() <= kMaxHostName && std::ranges::all_of(host, allowed);
}

bool is_address(int family, std::string_view host) {
  std::array<unsigned char, sizeof(in6_addr)> ignored{};
  return ::inet_pton(family, std::string(host).c_str(), ignored.data()) == 1;
}

// Why the server cannot listen on the text before the port; empty: it can.
std::string_view host_mistake(std::string_view host, bool bracketed) {
  if (bracketed) {
    return is_address(AF_INET6, host) ? "" : "an IPv6 address in the brackets";
  }
  if (host.empty() || host == "*") return "a host before the colon (0.0.0.0 means all of IPv4)";
  if (host.find(':') != std::string_view::npos) return "brackets around the IPv6 address";
  const bool numeric = std::ranges::all_of(host, [](char c) { return is_digit(c) || c == '.'; });
  if (numeric) return is_address(AF_INET, host) ? "" : "an IPv4 address";
  return is_host_name(host) ? "" : "a host name";
}

}  // namespace

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto quantity = split(text);
  if (!quantity) return expected(kDurationForm, text);
  if (quantity->unit.empty()) {
    if (quantity->number == 0) return std::chrono::milliseconds(0);
    return expected("a duration with its unit, such as " + std::string(text) + "s", text);
  }
  for (const Unit& unit : kDurations) {
    if (unit.name != quantity->unit) continue;
    constexpr auto kMax = std::chrono::milliseconds::max().count();
    return std::chrono::milliseconds(scaled(quantity->number, unit.factor, kMax));
  }
  return expected(kDurationForm, text);
}

Result<std::uint64_t> parse_size(std::string_view text) {
  const auto quantity = split(text);
  if (!quantity) return expected(kSizeForm, text);
  for (const Unit& unit : kSizes) {
    if (unit.name != quantity->unit) continue;
    return scaled(quantity->number, unit.factor, std::numeric_limits<std::uint64_t>::max());
  }
  return expected(kSizeForm, text);
}

Result<std::uint64_t> parse_count(std::string_view text) {
  const auto quantity = split(text);
  if (!quantity || !quantity->unit.empty()) return expected(kCountForm, text);
  return quantity->number;
}

Result<ListenAddress> parse_listen_address(std::string_view text) {
  constexpr std::string_view kForm = "HOST:PORT, such as 127.0.0.1:8787 or [::1]:8787";
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return expected(kForm, text);

  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (const auto mistake = host_mistake(host, bracketed); !mistake.empty()) {
    return expected(mistake, text);
  }
  const auto port = split(text.substr(colon + 1));
  if (!port || !port->unit.empty() || port->number > 65535) {
    return expected("a port from 0 to 65535 after the colon", text);
  }
  return ListenAddress{.host = std::string(host), .port = static_cast<std::uint16_t>(port->number)};
}

std::string format_duration(std::chrono::milliseconds duration) {
  if (duration.count() <= 0) return "0s";
  return format(static_cast<std::uint64_t>(duration.count()), kDurations);
}

std::string format_size(std::uint64_t bytes) {
  return format(bytes, kSizes);
}

std::string to_string(const ListenAddress& address) {
  const bool ipv6 = address.host.find(':') != std::string::npos;
  const std::string host = ipv6 ? '[' + address.host + ']' : address.host;
  return host + ':' + std::to_string(address.port);
}

}  // namespace hearth::config

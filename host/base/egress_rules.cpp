#include "base/egress_rules.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace hearth {
namespace {

constexpr std::size_t kMostNameBytes = 253;  // what DNS can carry
constexpr std::size_t kMostLabelBytes = 63;

std::string lower_host(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  std::string lower(host);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool is_host_label(std::string_view label) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !label.empty() && label.size() <= kMostLabelBytes &&
         std::ranges::all_of(label, is_allowed);
}

// In lower case, without a dot at its end.
bool is_host_name(std::string_view name) {
  if (name.size() > kMostNameBytes || ends_in_number(name)) return false;
  while (true) {
    const std::size_t dot = name.find('.');
    if (!is_host_label(name.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    name.remove_prefix(dot + 1);
  }
}

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Error wrong(std::string why) {
  return {Errc::kInvalidArgument, std::move(why)};
}

struct HostAndPort {
  std::string_view host;
  std::uint16_t port = 0;
};

// Splits `host:port`, `[v6]:port`, and text without a port. Colons without brackets are IPv6.
Result<HostAndPort> split_port(std::string_view text) {
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return wrong("has a [ without a ]");
    host = text.substr(1, end - 1);
    const std::string_view rest = text.substr(end + 1);
    if (rest.empty()) return HostAndPort{.host = host};
    if (rest.front() != ':') return wrong("has something other than a port after ]");
    port = rest.substr(1);
  } else if (std::ranges::count(text, ':') == 1) {
    host = text.substr(0, text.find(':'));
    port = text.substr(text.find(':') + 1);
  } else {
    return HostAndPort{.host = host};
  }
  const std::optional<std::uint16_t> number = parse_whole<std::uint16_t>(port);
  if (!number || *number == 0) return wrong("has a port that is not a number from 1 to 65535");
  return HostAndPort{.host = host, .port = *number};
}

bool has_bits_after(const IpAddress& network, int prefix) {
  const int bits = network.is_v4 ? 32 : 128;
  for (int bit = prefix; bit < bits; ++bit) {
    if ((network.bytes[static_cast<std::size_t>(bit / 8)] >> (7 - bit % 8) & 1) != 0) return true;
  }
  return false;
}

struct Network {
  IpAddress first;
  int prefix = 0;
};

// `slash`: the text after the address, or nothing.
Result<Network> parse_network(const IpAddress& first, std::optional<std::string_view> slash) {
  const int bits = first.is_v4 ? 32 : 128;
  const std::optional<int> prefix = slash ? parse_whole<int>(*slash) : bits;
  if (!prefix || *prefix < 0 || *prefix > bits)
    return wrong("has a prefix that is not a number from 0 to " + std::to_string(bits));
  if (has_bits_after(first, *prefix))
    return wrong("has bits set after the first " + std::to_string(*prefix));
  return Network{.first = first, .prefix = *prefix};
}

}  // namespace

bool EgressRules::Pattern::has_name(std::string_view host, std::uint16_t asked) const {
  if (port != 0 && port != asked) return false;
  if (kind == Kind::kEverything) return true;
  if (kind == Kind::kName) return host == name;
  return kind == Kind::kBelow && host.size() > name.size() + 1 && host.ends_with(name) &&
         host[host.size() - name.size() - 1] == '.';
}

bool EgressRules::Pattern::has_address(const IpAddress& address, std::uint16_t asked) const {
  if (kind != Kind::kNetwork || (port != 0 && port != asked)) return false;
  const std::optional<IpAddress> v4 = embedded_v4(address);
  return is_in_network(address, network, prefix) || (v4 && is_in_network(*v4, network, prefix));
}

Result<EgressRules::Pattern> EgressRules::parse_pattern(std::string_view text) {
  const Result<HostAndPort> parts = split_port(text);
  if (!parts) return parts.error();
  Pattern pattern;
  pattern.port = parts->port;
  const std::size_t slash = parts->host.find('/');
  if (const auto address = parse_ip_address(parts->host.substr(0, slash))) {
    const bool has_slash = slash != std::string_view::npos;
    const auto network =
        parse_network(*address, has_slash ? std::optional(parts->host.substr(slash + 1))
                                          : std::optional<std::string_view>());
    if (!network) return network.error();
    pattern.kind = Pattern::Kind::kNetwork;
    pattern.network = network->first;
    pattern.prefix = network->prefix;
    return pattern;
  }
  if (parts->host == "*") {
    pattern.kind = Pattern::Kind::kEverything;
    return pattern;
  }
  pattern.kind = parts->host.starts_with("*.") ? Pattern::Kind::kBelow : Pattern::Kind::kName;
  pattern.name =
      lower_host(pattern.kind == Pattern::Kind::kBelow ? parts->host.substr(2) : parts->host);
  if (!is_host_name(pattern.name))
    return wrong("is neither a host's name in ASCII, nor an address or network");
  return pattern;
}

Result<std::vector<EgressRules::Pattern>> EgressRules::parse_list(
    std::string_view list, std::span<const std::string> texts) {
  std::vector<Pattern> patterns;
  for (const std::string& text : texts) {
    Result<Pattern> pattern = parse_pattern(text);
    if (!pattern) return wrong(std::string(list) + ": \"" + text + "\" " + pattern.error().message);
    patterns.push_back(std::move(pattern.value()));
  }
  return patterns;
}

Result<EgressRules> EgressRules::parse(std::span<const std::string> allow,
                                       std::span<const std::string> deny) {
  Result<std::vector<Pattern>> allowed = parse_list("allow", allow);
  if (!allowed) return allowed.error();
  Result<std::vector<Pattern>> denied = parse_list("deny", deny);
  if (!denied) return denied.error();
  EgressRules rules;
  rules.allow_ = std::move(allowed.value());
  rules.deny_ = std::move(denied.value());
  return rules;
}

bool EgressRules::has_everything(const std::vector<Pattern>& patterns, std::uint16_t port) {
  return std::ranges::any_of(patterns, [port](const Pattern& pattern) {
    return pattern.kind == Pattern::Kind::kEverything && pattern.has_name({}, port);
  });
}

bool EgressRules::has_address(const std::vector<Pattern>& patterns, const IpAddress& address,
                              std::uint16_t port) {
  return std::ranges::any_of(
      patterns, [&](const Pattern& pattern) { return pattern.has_address(address, port); });
}

bool EgressRules::may_ask(std::string_view host, std::uint16_t port) const {
  const std::string name = lower_host(host);
  if (const std::optional<IpAddress> address = parse_ip_host(name)) {
    const bool named =
        allow_.empty() || has_everything(allow_, port) || has_address(allow_, *address, port);
    return named && may_connect(*address, port);
  }
  if (!is_host_name(name)) return false;
  const auto has = [&](const Pattern& pattern) { return pattern.has_name(name, port); };
  return std::ranges::none_of(deny_, has) && (allow_.empty() || std::ranges::any_of(allow_, has));
}

bool EgressRules::may_connect(const IpAddress& address, std::uint16_t port) const {
  if (has_everything(deny_, port) || has_address(deny_, address, port)) return false;
  return is_public(address) || has_address(allow_, address, port);
}

}  // namespace hearth

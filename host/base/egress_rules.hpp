#pragma once
// Where requests of a class of agents may go. Pure rules: no name is resolved here.

#include "base/error.hpp"
#include "base/ip_address.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

// Made from two lists of patterns:
//
//   api.example.com    a host's name, in ASCII (international names in punycode)
//   *.example.com      every name below it, not itself
//   *                  every name, and every public address
//   10.0.0.1  ::1      an address
//   10.0.0.0/8  fd00::/8  a network
//
// Each may end in a port: `localhost:8080`, `10.0.0.0/8:443`, `[::1]:8080`, `[fd00::/8]:443`.
//
// Promises
//  P1 Default  Without `allow`, every name and every public address is allowed.
//  P2 Allow    With `allow`, only names and addresses that it has are allowed.
//  P3 Inside   A name leads to an address that is not public (base/ip_address.hpp) only if an
//              address or network of `allow` has that address.
//  P4 Deny     `deny` overrides `allow`.
//  P5 Forms    An IPv6 address that leads to an IPv4 address is matched as both.
//
// Threads   Immutable: any.
class EgressRules {
 public:
  // Without any pattern: P1.
  EgressRules() = default;

  // kInvalidArgument says which pattern is wrong, and how.
  [[nodiscard]] static Result<EgressRules> parse(std::span<const std::string> allow,
                                                 std::span<const std::string> deny);

  // Whether a URL may have this host: a name in any case, with or without a dot at its end, or an
  // address in any form that parse_ip_host() takes.
  [[nodiscard]] bool may_ask(std::string_view host, std::uint16_t port) const;

  // Whether a socket may connect to this address, for a host that may_ask() allows.
  [[nodiscard]] bool may_connect(const IpAddress& address, std::uint16_t port) const;

 private:
  struct Pattern {
    enum class Kind : std::uint8_t { kEverything, kName, kBelow, kNetwork } kind = Kind::kName;
    std::string name;        // kName, kBelow: lower case
    IpAddress network;       // kNetwork
    int prefix = 0;          // kNetwork: bits that count
    std::uint16_t port = 0;  // 0: every port

    [[nodiscard]] bool has_name(std::string_view host, std::uint16_t asked) const;
    [[nodiscard]] bool has_address(const IpAddress& address, std::uint16_t asked) const;
  };

  [[nodiscard]] static Result<Pattern> parse_pattern(std::string_view text);
  [[nodiscard]] static Result<std::vector<Pattern>> parse_list(std::string_view list,
                                                               std::span<const std::string> texts);
  // Whether one of the patterns is `*` for this port, or has this address.
  [[nodiscard]] static bool has_everything(const std::vector<Pattern>& patterns,
                                           std::uint16_t port);
  [[nodiscard]] static bool has_address(const std::vector<Pattern>& patterns,
                                        const IpAddress& address, std::uint16_t port);

  std::vector<Pattern> allow_;
  std::vector<Pattern> deny_;
};

}  // namespace hearth

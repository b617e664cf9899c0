#pragma once
// Resolves a host's name to its addresses, on a loop and without a thread.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/ip_address.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hearth::net {

// Threads   All on the loop's thread.
class NameResolver {
 public:
  // A query in progress. After it is destroyed, `done` is not called.
  // Lifetime  May outlive the resolver; `done` is not called then.
  class Query {
   public:
    Query() = default;
    virtual ~Query() = default;
    Query(const Query&) = delete;
    Query& operator=(const Query&) = delete;
  };
  // At least one address, in the order to try them; or kUnavailable.
  using Done = std::function<void(Result<std::vector<IpAddress>>)>;

  NameResolver() = default;
  virtual ~NameResolver() = default;
  NameResolver(const NameResolver&) = delete;
  NameResolver& operator=(const NameResolver&) = delete;

  // `done` is called once, never from inside this call. It may destroy the query.
  [[nodiscard]] virtual std::unique_ptr<Query> resolve(const std::string& name, Done done) = 0;
};

// Reads /etc/hosts, then asks the servers of /etc/resolv.conf, or `servers` instead
// ("127.0.0.1:5353,..."). A query ends after at most 14 seconds for each server.
//
// Kept      A server's answer is cached until the first time to live of its records is over, at
//           most for kLongestKept. Answers from /etc/hosts and failures are not cached. A cached
//           address is no permission: the caller checks the rules each time.
// Bounded   kMostKept cached names; the name that expires first makes room.
// `now`: the clock for the times to live.
inline constexpr std::chrono::seconds kLongestKept{60};
inline constexpr std::size_t kMostKept = 256;
[[nodiscard]] std::unique_ptr<NameResolver> make_name_resolver(
    boost::asio::io_context& loop, std::string servers = {},
    std::function<SteadyTime()> now = &BootClock::now);

}  // namespace hearth::net

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

// At least one address, in the order to try them; or kUnavailable.
using FoundAddresses = std::function<void(Result<std::vector<IpAddress>>)>;

// A question in progress, kept by the caller: after it is destroyed, `found` is not called.
//
// Lifetime  May outlive the resolver; `found` is not called then.
using NameQuery = std::shared_ptr<const FoundAddresses>;

// Finds the addresses of a name. `found` is called once, never from inside the call. It may destroy
// the query.
//
// Threads   All on the loop's thread.
using NameResolver = std::function<NameQuery(const std::string& name, FoundAddresses found)>;

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
[[nodiscard]] NameResolver make_name_resolver(boost::asio::io_context& loop,
                                              std::string servers = {},
                                              std::function<SteadyTime()> now = &BootClock::now);

}  // namespace hearth::net

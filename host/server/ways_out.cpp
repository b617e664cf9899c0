#include "server/ways_out.hpp"

#include <utility>

namespace hearth::server {

Result<std::unique_ptr<WaysOut>> WaysOut::open(
    const std::filesystem::path& file, const config::EgressConfig& settings,
    std::span<const std::unique_ptr<runtime::AsioLoop>> loops, const Clock& clock, Metrics& metrics,
    Logger& logger) {
  std::unique_ptr<WaysOut> ways;
  try {
    ways.reset(new WaysOut(file, clock, logger));
  } catch (const StorageError& failure) {  // start-up: the operator can do something about it
    return Error{Errc::kUnavailable,
                 "what classes have used of their limits, " + file.native() +
                     ", cannot be read: " + failure.what() +
                     ". Put it back from a backup, or remove it: then they begin anew"};
  }
  for (const auto& loop : loops) {
    auto made = net::OutboundHttp::make(
        loop->context(),
        {.max_exchanges = settings.max_requests, .extra_ca_file = settings.ca_file.native()});
    if (!made) return Error{made.error().code, "egress.ca_file: " + made.error().message};
    net::OutboundHttp& http = *ways->clients_.emplace_back(*std::move(made));
    ways->ports_.push_back(
        std::make_unique<OutboundPort>(OutboundPort::Parts{.loop = *loop,
                                                           .http = http,
                                                           .budget = ways->budget_,
                                                           .metrics = metrics,
                                                           .logger = logger}));
  }
  return ways;
}

}  // namespace hearth::server

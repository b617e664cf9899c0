#pragma once
// What the network is given by the server around it.

#include "base/client_memory.hpp"
#include "base/logger.hpp"
#include "telemetry/metrics.hpp"

namespace hearth::net {

// Lifetime  What it names outlives the network.
struct NetSupplies {
  Logger& logger;
  Metrics& metrics;
  ClientMemory& memory;
};

}  // namespace hearth::net

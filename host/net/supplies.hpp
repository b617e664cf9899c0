#pragma once
// What the server gives to the network layer.

#include "base/client_memory.hpp"
#include "base/logger.hpp"
#include "telemetry/metrics.hpp"

namespace hearth::net {

// Lifetime  All three outlive the network layer.
struct NetSupplies {
  Logger& logger;
  Metrics& metrics;
  ClientMemory& memory;
};

}  // namespace hearth::net

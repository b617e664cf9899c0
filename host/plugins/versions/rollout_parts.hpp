#pragma once
// What rollouts of code and of settings share.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "plugins/versions/class_configuration.hpp"
#include "plugins/versions/errands.hpp"
#include "plugins/versions/reload_board.hpp"
#include "plugins/versions/served_libraries.hpp"
#include "plugins/versions/shard_patience.hpp"
#include "runtime/runtime.hpp"

#include <chrono>

namespace hearth::plugins {

// Lifetime  All of it outlives who is given it.
struct RolloutParts {
  ServedLibraries& libraries;
  ClassConfiguration& configuration;
  ShardPatience& patience;
  ReloadBoard& board;  // what is refused or was taken back
  Errands& errands;    // stirred when there is something to drive
  runtime::Runtime& runtime;
  const Clock& clock;
  Logger& logger;
  // How long what has come in must hold until it is proven.
  std::chrono::milliseconds probation;
};

}  // namespace hearth::plugins

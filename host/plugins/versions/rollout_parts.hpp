#pragma once
// What rollouts of code and of settings share.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "plugins/versions/class_configuration.hpp"
#include "plugins/versions/errands.hpp"
#include "plugins/versions/plugin_loader.hpp"
#include "plugins/versions/served_libraries.hpp"
#include "plugins/versions/shard_patience.hpp"
#include "runtime/runtime.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <vector>

namespace hearth::plugins {

// The files that are there and not served as they are.
struct RefusedFiles {
  std::map<std::filesystem::path, Refusal> libraries;  // the last refusal of each
  std::vector<Refusal> class_files;                    // each mistake in them
};

// Lifetime  All parts outlive the objects that get them.
struct RolloutParts {
  ServedLibraries& libraries;
  ClassConfiguration& configuration;
  ShardPatience& patience;
  RefusedFiles& refused;
  Errands& errands;  // stirred when drive() has something to do
  runtime::Runtime& runtime;
  const Clock& clock;
  Logger& logger;
  // How long new code or settings must hold until they are proven.
  std::chrono::milliseconds probation;
};

}  // namespace hearth::plugins

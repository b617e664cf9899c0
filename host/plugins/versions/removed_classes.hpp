#pragma once
// Classes whose library is gone, while their clients wait for it to come back.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "plugins/versions/rollout.hpp"
#include "runtime/runtime.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hearth::plugins {

// New wakes are refused and live agents evicted at once; clients that are connected wait for the
// grace and are then closed (1012), unless the class is served again.
//
// Threads    One.
// Lifetime   Runtime, clock and logger outlive it.
class RemovedClasses {
 public:
  RemovedClasses(runtime::Runtime& runtime, const Clock& clock, Logger& logger,
                 std::chrono::milliseconds grace)
      : runtime_(runtime), clock_(clock), logger_(logger), grace_(grace) {}

  void remove(const std::filesystem::path& file, const ClassVersions& classes);
  // The library is back: whatever it serves now, nobody is sent away.
  void end(const std::filesystem::path& file) { removed_.erase(file); }
  // Gives up those whose grace is over.
  void drive();

  [[nodiscard]] bool any() const { return !removed_.empty(); }
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

 private:
  struct Removed {
    std::vector<std::string> segments;
    SteadyTime give_up_at;
  };
  runtime::Runtime& runtime_;
  const Clock& clock_;
  Logger& logger_;
  const std::chrono::milliseconds grace_;
  std::map<std::filesystem::path, Removed> removed_;
};

}  // namespace hearth::plugins

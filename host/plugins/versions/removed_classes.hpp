#pragma once
// Classes that lost their code, mostly because their library was removed, while their clients wait
// for it to come back.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "plugins/versions/rollout.hpp"
#include "runtime/runtime.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// New wakes are refused and live agents are evicted at once. Connected clients wait for the grace.
// Then they are closed (1012) unless the class is served again.
//
// Threads    One.
// Lifetime   Runtime, clock and logger outlive it.
class RemovedClasses {
 public:
  RemovedClasses(runtime::Runtime& runtime, const Clock& clock, Logger& logger,
                 std::chrono::milliseconds grace)
      : runtime_(runtime), clock_(clock), logger_(logger), grace_(grace) {}

  // `file`: that went, or in which `code` names no class of a served library any more.
  void remove(const std::filesystem::path& file, const ClassVersions& classes,
              std::string_view advice);
  // The library is back: clients of classes that it serves stay.
  void end(const std::filesystem::path& file);
  // Closes the clients of libraries whose grace is over.
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

#pragma once
// What is served of each library, what is on its way to be, and what has agents that nobody waits
// for.

#include "plugins/versions/class_configuration.hpp"
#include "plugins/versions/first_wakes.hpp"
#include "plugins/versions/rollout.hpp"
#include "runtime/class_registry.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace hearth::plugins {

// One library, by its file.
struct ServedLibrary {
  std::uint64_t generation = 0;
  std::string hash;                 // of what came in last
  ClassVersions classes;            // on their way or there
  std::unique_ptr<Rollout> coming;  // new code, while it comes in
  std::uint64_t generation_before = 0;
  // What came in last is on trial on disk: a version to go back to is kept.
  bool on_trial = false;
  FirstWakes first_wakes;
  // By segment: of the version that was taken back last. Other settings of these may mend it.
  std::set<std::string> failed_classes;
  // How many agents were on trial with what was put off or taken back a moment ago, and are to
  // judge what follows, by segment.
  std::map<std::string, std::size_t> awaited;

  [[nodiscard]] std::size_t awaited_of(const std::string& segment) const {
    const auto found = awaited.find(segment);
    return found == awaited.end() ? 0 : found->second;
  }
};

// Threads    One.
// Lifetime   The configuration outlives it.
class ServedLibraries {
 public:
  // A class of a library as it is to be served: its segment, and its settings as the configuration
  // has them.
  using Describe =
      std::function<runtime::ServedClass(const std::shared_ptr<const runtime::AgentClass>&)>;
  ServedLibraries(const ClassConfiguration& configuration, Describe describe);

  // A class with the settings that hold for it now.
  [[nodiscard]] ClassVersion version_of(
      const std::shared_ptr<const runtime::AgentClass>& agent_class) const;

  std::map<std::filesystem::path, ServedLibrary>& by_file() { return by_file_; }
  [[nodiscard]] const std::map<std::filesystem::path, ServedLibrary>& by_file() const {
    return by_file_;
  }

  // ---- versions that serve no more, until their last agent has left ----
  void leave(const std::filesystem::path& file, Served version) {
    leaving_[file].push_back(std::move(version));
  }
  // Those of a library that have other code than what it serves.
  [[nodiscard]] std::vector<Served> with_other_code(const std::filesystem::path& file) const;
  // Forgets those that no agent has.
  void forget_left();
  [[nodiscard]] bool has_leaving() const { return !leaving_.empty(); }

 private:
  const ClassConfiguration& configuration_;
  const Describe describe_;
  std::map<std::filesystem::path, ServedLibrary> by_file_;
  std::map<std::filesystem::path, std::vector<Served>> leaving_;
};

}  // namespace hearth::plugins

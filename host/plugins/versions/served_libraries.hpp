#pragma once
// For each library: what it serves, what comes in, and earlier versions that still have agents.

#include "base/clock.hpp"
#include "plugins/versions/class_configuration.hpp"
#include "plugins/versions/probation.hpp"
#include "plugins/versions/rollout.hpp"
#include "runtime/class_registry.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hearth::plugins {

// New code of a library, or new settings of one of its classes: its rollout, then its probation.
struct Coming {
  std::unique_ptr<Rollout> rollout;  // null: it has ended
  Probation probation = {};

  [[nodiscard]] std::optional<SteadyTime> next_deadline() const {
    return rollout ? rollout->next_deadline() : probation.ends();
  }
};

// One library, by its file.
struct ServedLibrary {
  std::uint64_t generation = 0;
  std::string hash;       // of the latest version
  ClassVersions classes;  // of the latest version, also while it comes in
  Coming code;
  std::map<std::string, Coming> settings;  // by segment; no rollouts while code comes in
  std::uint64_t generation_before = 0;
  // The ledger has the latest version on trial, and keeps a version to go back to.
  bool on_trial = false;
  // Whether `classes` are those that class files give its code. Otherwise the reloader looks again
  // when no version comes in.
  bool has_its_classes = true;
  // Segments of the version that was taken back last. Other settings of these may mend it.
  std::set<std::string> failed_classes;
  // By segment: how many agents tried what was put off or taken back a moment ago. They judge what
  // follows.
  std::map<std::string, std::size_t> awaited;

  // All its agents have the version. The agents that tried it and the first that wake judge it, if
  // it is on trial. `before`: what it replaced; empty: unknown.
  void begin_probation(SteadyTime ends, const ClassVersions& before);
};

// Threads    One.
// Lifetime   The configuration outlives it.
class ServedLibraries {
 public:
  // Makes what the registry gets for a class: its segment, and its settings from the configuration.
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

  // Of all classes that are served or come in.
  [[nodiscard]] std::set<std::string> segments() const;
  // The class is served from another file, or comes in there.
  [[nodiscard]] bool is_of_another(const std::string& segment,
                                   const std::filesystem::path& file) const;

  // ---- all that comes in ----
  // A rollout is in progress.
  [[nodiscard]] bool is_moving() const;
  // The names of classes whose agents move.
  [[nodiscard]] std::vector<std::string> moving() const;
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

  // ---- versions that are no longer served, until their last agent has left ----
  void leave(const std::filesystem::path& file, Served version) {
    leaving_[file].push_back(std::move(version));
  }
  // Those of the library whose code is not the code that it serves.
  [[nodiscard]] std::vector<Served> with_other_code(const std::filesystem::path& file) const;
  // Forgets those that have no agent.
  void forget_left();
  [[nodiscard]] bool has_leaving() const { return !leaving_.empty(); }

 private:
  [[nodiscard]] std::vector<const Coming*> coming() const;

  const ClassConfiguration& configuration_;
  const Describe describe_;
  std::map<std::filesystem::path, ServedLibrary> by_file_;
  std::map<std::filesystem::path, std::vector<Served>> leaving_;
};

}  // namespace hearth::plugins

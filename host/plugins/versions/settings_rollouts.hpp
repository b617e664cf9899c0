#pragma once
// Gives classes other settings while their code goes on.

#include "base/clock.hpp"
#include "config/diagnostic.hpp"
#include "plugins/versions/errands.hpp"
#include "plugins/versions/rollout.hpp"
#include "plugins/versions/rollout_parts.hpp"
#include "plugins/versions/served_libraries.hpp"
#include "telemetry/metrics.hpp"

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// Reads the class files and begins a rollout for each class whose settings have changed. While a
// library's code moves, the settings of its classes wait.
//
// Promises
//  P1 Told       Each step is logged (config.refused, config.changed, config.done, config.put_off,
//                config.taken_back); taken_back() has what was, until it holds again.
//  P2 Way back   Settings that replace others are on trial in the ledger before any agent has them,
//                and are proven after their probation.
//
// Threads    One.
// Lifetime   Everything it is given outlives it.
class SettingsRollouts {
 public:
  SettingsRollouts(const RolloutParts& parts, Metrics& metrics);
  SettingsRollouts(const SettingsRollouts&) = delete;
  SettingsRollouts& operator=(const SettingsRollouts&) = delete;

  // Takes over the settings that a start found on trial or taken back.
  void adopt();

  // Reads the files. Returns the segments of classes for which they say something new.
  std::set<std::string> read(const Errand& errand, ReloadOutcomes& outcomes);
  // Begins a rollout for each class that is not served with the settings that hold for it.
  void begin(ReloadOutcomes& outcomes);
  // Adds the rollouts in progress of the errand's classes that `outcomes` does not have yet.
  void tell(const Errand& errand, ReloadOutcomes& outcomes) const;
  // Moves on what is in progress.
  void drive();

  // The class files whose settings were taken back.
  [[nodiscard]] std::vector<Refusal> taken_back() const;

  // ---- for a version of the code ----
  // A version of the library comes in. Settings that agents still try are rolled back, and are
  // tried again together with the version.
  void put_off(const std::filesystem::path& file, ServedLibrary& library);
  // A newer version comes, or the library goes: rollouts of its settings end at once.
  // `only_segment`: of this class, which gets other code.
  void hurry(const std::filesystem::path& file, ServedLibrary& library,
             const std::string& only_segment = {});
  // Tells the ledger that `next` is about to replace `before`. Call it before any agent has `next`.
  void begin_trial(ServedLibrary& library, const ClassVersion& next, const ClassVersion& before);
  // All agents have the settings of `version`. Does nothing if those are not on trial.
  void begin_probation(ServedLibrary& library, const ClassVersion& version);

 private:
  // Whether a class is served that runs this code.
  [[nodiscard]] bool has_code(std::string_view code) const;
  // `before`: the rules by which clients were let in.
  void ask_clients_anew(const runtime::ClassRegistry::EntryTable& before);
  void refuse(const config::Diagnostics& mistakes, ReloadOutcomes& outcomes);
  void begin_one(ServedLibrary& library, const std::string& segment,
                 const std::vector<std::string>& keys, ReloadOutcomes& outcomes);
  // Log it. tell_done() also counts it.
  void tell_change(const ClassVersion& version, const std::vector<std::string>& keys,
                   std::size_t trying);
  void tell_done(const ClassVersion& version);
  // The next step of the settings of one class.
  void drive(const std::filesystem::path& file, ServedLibrary& library, Coming& coming,
             const ClassVersion& version);
  void take_back(const std::filesystem::path& file, ServedLibrary& library, const Rollout& failed);
  void tell_taken_back(std::string_view agent_class, const std::string& file,
                       const std::string& reason, std::string_view advice);
  void noted(const Result<void>& outcome);

  const RolloutParts parts_;
  Counter& changes_;
  Counter& refusals_;
  Counter& rollbacks_;
};

}  // namespace hearth::plugins

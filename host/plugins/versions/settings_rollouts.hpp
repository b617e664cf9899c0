#pragma once
// Classes get other settings while their code goes on.

#include "base/clock.hpp"
#include "config/diagnostic.hpp"
#include "plugins/versions/errands.hpp"
#include "plugins/versions/probation.hpp"
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

// Reads the class files, and brings what they say to the agents: a rollout for each class. Of a
// library whose code is on its way the settings wait until that is there.
//
// Promises
//  P1 Told       config.refused, config.changed, config.done, config.put_off, config.taken_back in
//                the log; what was taken back on the board until it holds again.
//  P2 Way back   Settings that replace others are on trial in the ledger before any agent has them,
//                and are proven when they have held for their probation.
//
// Threads    One.
// Lifetime   Everything it is given outlives it.
class SettingsRollouts {
 public:
  SettingsRollouts(const RolloutParts& parts, Metrics& metrics);
  SettingsRollouts(const SettingsRollouts&) = delete;
  SettingsRollouts& operator=(const SettingsRollouts&) = delete;

  // What a start found of settings that are on trial, or were taken back.
  void adopt();

  // Reads the files. Gives the segments of classes for which they say something else now.
  std::set<std::string> read(const Errand& errand, ReloadOutcomes& outcomes);
  // Begins a rollout for each class that is not served with the settings that hold for it.
  void begin(ReloadOutcomes& outcomes);
  // Of those that have begun before, of the classes that the errand is about, unless they are told.
  void tell(const Errand& errand, ReloadOutcomes& outcomes) const;
  // What is under way.
  void drive();

  [[nodiscard]] bool busy() const { return !moves_.empty(); }
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;
  // The names of classes that are on their way.
  void add_moving(std::vector<std::string>& names) const;
  // What was taken back, for the board.
  void publish();

  // ---- for a version of the code ----
  // It comes in: settings that are still on trial are not proven by that. The way back leads behind
  // them.
  void put_off(const std::filesystem::path& file, ServedLibrary& library);
  // Something newer comes, or the library goes: nobody is waited for any more.
  void hurry(const std::filesystem::path& file);
  // `next` is about to hold in place of `before`, with other code: the ledger knows it first.
  void begin_trial(const ClassVersion& next, const ClassVersion& before);
  // All agents have the settings that are on trial, if any are.
  void begin_probation(const std::string& segment, const ClassVersion& version);
  // The class is served no more.
  void end_probation(const std::string& segment) { probation_.end(segment); }

 private:
  struct Move {
    std::filesystem::path library;
    std::unique_ptr<Rollout> rollout;  // of one class
    [[nodiscard]] const ClassVersion& before() const { return rollout->before().begin()->second; }
    [[nodiscard]] const ClassVersion& next() const { return rollout->next().begin()->second; }
  };

  // `before`: the rules that clients were let in by.
  void ask_clients_anew(const runtime::ClassRegistry::EntryTable& before);
  void refuse(const config::Diagnostics& mistakes, ReloadOutcomes& outcomes);
  void begin_one(const std::filesystem::path& file, ServedLibrary& library,
                 const std::string& segment, const std::vector<std::string>& keys,
                 ReloadOutcomes& outcomes);
  // Log it; done is counted too.
  void tell_change(const ClassVersion& version, const std::vector<std::string>& keys,
                   std::size_t trying);
  void tell_done(const ClassVersion& version);
  void take_back(const std::string& segment, const Move& move);
  void tell_taken_back(std::string_view agent_class, const std::string& file,
                       const std::string& reason, std::string_view advice);
  void end_probations();
  void noted(const Result<void>& outcome);

  const RolloutParts parts_;
  Counter& changes_;
  Counter& refusals_;
  Counter& rollbacks_;
  std::map<std::string, Move> moves_;  // by segment
  Probation<std::string> probation_;   // by segment
};

}  // namespace hearth::plugins

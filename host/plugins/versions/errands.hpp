#pragma once
// What the reloader's thread is to look at, and what it waits for.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "plugins/versions/directory_watcher.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hearth::plugins {

// What came of one file that the reloader looked at. It tells of a class file only if it refuses
// the file or the file changes something, and of a rollout that is under way already as of a new
// one.
struct ReloadOutcome {
  enum class What { kUnchanged, kNewVersion, kNewSettings, kRefused, kRemoved };
  std::filesystem::path file;
  What what{};
  std::string version = {};            // of the new one, whose rollout is under way
  std::uint64_t generation = 0;        // of that version
  std::string reason = {};             // why it was refused
  std::string agent_class = {};        // whose settings are new
  std::vector<std::string> keys = {};  // of those settings: what is different
  std::string note = {};               // what else is to be known: that a shard does not answer
};
using ReloadOutcomes = std::vector<ReloadOutcome>;

struct Errand {
  FileChanges changes = {};
  bool all = false;          // all files there are, whatever changed
  std::string segment = {};  // not empty: of those only the one that serves this class
  // Not empty: hashes of what was in quarantine, with a class of this segment.
  std::vector<std::string> released = {};
  std::function<void(Result<ReloadOutcomes>)> answer = {};  // may be absent

  // Every change of a file is seen by it.
  [[nodiscard]] bool sees_all() const { return all && segment.empty(); }
};

// Errands come one after another; changes of files gather until there is time for them.
//
// Promises
//  P1 Once       An errand that sees all files takes the changes that were noticed before it with
//                it. One without `answer` that sees all is dropped if another such waits.
//  P2 Bounded    At most kMost errands wait.
//  P3 No ticks   The waiting thread sleeps until something comes, or its deadline.
//
// Threads   Any; next() and wait_for_news() one.
// Lifetime  The clock outlives it.
class Errands {
 public:
  static constexpr std::size_t kMost = 64;

  explicit Errands(const Clock& clock) : clock_(clock) {}
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  // False: too many wait, and its answer will never come.
  bool add(Errand errand);
  void notice(const FileChanges& changes);
  // What is under way is to be looked at once more.
  void stir();
  // next() and wait_for_news() end. Gives the errands that no thread will run: the caller answers
  // them.
  [[nodiscard]] std::deque<Errand> stop();

  // Waits until there is something to look at, or until `deadline`. An errand, which is empty if
  // only stir() or the deadline came. nullopt: stop() was called.
  [[nodiscard]] std::optional<Errand> next(std::optional<SteadyTime> deadline);
  // Waits for stir(). False: that time has come, or stop() was called.
  bool wait_for_news(SteadyTime until);

 private:
  bool wait(std::optional<SteadyTime> until) REQUIRES(mutex_);

  const Clock& clock_;
  Mutex mutex_;
  Condition news_;
  FileChanges noticed_ GUARDED_BY(mutex_);  // since next() gave the last
  std::deque<Errand> waiting_ GUARDED_BY(mutex_);
  bool is_stirred_ GUARDED_BY(mutex_) = true;  // what is there at the start is looked at once
  bool is_stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::plugins

#pragma once
// The reloader's queue: what its thread must look at, and what it waits for.

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

// The result for one file that the reloader looked at. There is none for a class file that is
// accepted and changes nothing. A rollout in progress is reported like a new one.
struct ReloadOutcome {
  enum class What { kUnchanged, kNewVersion, kNewSettings, kRefused, kRemoved };
  std::filesystem::path file;
  What what{};
  std::string version = {};            // the new one, whose rollout is in progress
  std::uint64_t generation = 0;        // of that version
  std::string reason = {};             // why it was refused
  std::string agent_class = {};        // whose settings are new
  std::vector<std::string> keys = {};  // the settings that are different
  std::string note = {};               // for the caller: a shard does not answer
};
using ReloadOutcomes = std::vector<ReloadOutcome>;

struct Errand {
  FileChanges changes = {};
  bool all = false;          // all files, changed or not
  std::string segment = {};  // not empty: only the file that serves this class
  bool takes_back = false;   // the new version of that file is not wanted
  // Not empty: hashes of libraries that have left quarantine with this class.
  std::vector<std::string> released = {};
  std::function<void(Result<ReloadOutcomes>)> answer = {};  // may be absent

  // It sees every change of a file.
  [[nodiscard]] bool sees_all() const { return all && segment.empty(); }
};

// The queue of errands. Changes of files are merged until the reloader's thread takes them.
//
// Promises
//  P1 Once       An errand that sees all files also takes the changes that were noticed before.
//  P2 Bounded    At most kMost errands wait, and one more that has no `answer`.
//  P3 No ticks   The waiting thread sleeps until something comes, or its deadline.
//
// P1: A second errand for all files is dropped if it has no `answer`.
//
// Threads   Any. One thread calls next() and wait_for_news().
// Lifetime  The clock outlives it.
class Errands {
 public:
  static constexpr std::size_t kMost = 64;

  explicit Errands(const Clock& clock) : clock_(clock) {}
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  // False: too many wait, and its `answer` is never called.
  bool add(Errand errand);
  void notice(const FileChanges& changes);
  // The thread must look once more at what is in progress.
  void stir();
  // Ends next() and wait_for_news(). Returns the errands that will not run: the caller answers
  // them.
  [[nodiscard]] std::deque<Errand> stop();

  // Waits until there is something to look at, or until `deadline`. After stir() or the deadline
  // alone the errand is empty. nullopt: stop() was called.
  [[nodiscard]] std::optional<Errand> next(std::optional<SteadyTime> deadline);
  // Waits for stir(). False: `until` has come, or stop() was called.
  bool wait_for_news(SteadyTime until);

 private:
  bool wait(std::optional<SteadyTime> until) REQUIRES(mutex_);

  const Clock& clock_;
  Mutex mutex_;
  Condition news_;
  FileChanges noticed_ GUARDED_BY(mutex_);  // not yet taken by next()
  std::deque<Errand> waiting_ GUARDED_BY(mutex_);
  bool is_stirred_ GUARDED_BY(mutex_) = true;  // so that the thread looks once at the start
  bool is_stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::plugins

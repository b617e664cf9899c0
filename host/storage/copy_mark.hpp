#pragma once
// The mark: the moment whose data a backup copies, of all agents, while they go on.

#include "base/mutex.hpp"
#include "storage/agent_key.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace hearth::storage {

// After the mark, the commits of an agent only lengthen its WAL. So its state at the mark is its
// file with the first pages of its WAL, until a checkpoint moves later commits into the file. A
// checkpoint of an agent that is not copied yet waits, and so does the removal of its files: both
// are tried again later, and the agent is copied early.
//
// Promise    Together the copies are what the disk would have had, if the process had been killed
//            at the mark. So what is true after kill -9 is true of them, for work that several
//            agents do together, too.
// Bounded    Memory: the keys of all agents to copy.
// Threads    Any. One backup at a time calls the first part, in this order.
class CopyMark {
 public:
  // ---- the backup ----
  // From now on no checkpoint begins. Waits for the end of those in progress.
  void hold();
  // The mark. No agent commits during this call.
  void set();
  // The agents to copy. The others get their checkpoints again.
  void wait_for(std::unordered_set<AgentKey> agents);
  // The next agent to copy; first those that something waits for. The one before is copied.
  // Nothing: none is left.
  [[nodiscard]] std::optional<AgentKey> next();
  // How many pages the WAL of the agent of next() had at the mark. Nothing: it was not written to
  // since, and no write of it begins before a later call says so.
  [[nodiscard]] std::optional<int> pages();
  void end();

  // ---- agents' databases ----
  // Right before a commit. `pages` says how many pages with commits the WAL has; it is asked once
  // after a mark. `seen`: 0 at first, and then of the same database.
  template <class Pages>
  void committing(const AgentKey& key, const Pages& pages, std::uint32_t& seen) {
    if (marks_.load(std::memory_order_acquire) != seen) note(key, pages(), seen);
  }
  // Whether the files of a condemned agent may be removed. Asked on its shard's loop: an agent that
  // was condemned before the mark is none of the agents to copy.
  [[nodiscard]] bool may_remove(const AgentKey& key);

  // Permission to move the WAL into the file, for as long as it lives.
  class Checkpoint {
   public:
    // `mark`: null allows it.
    Checkpoint(CopyMark* mark, const AgentKey& key)
        : mark_(mark), is_allowed_(mark == nullptr || mark->may_begin(key)) {}
    ~Checkpoint() {
      if (mark_ != nullptr && is_allowed_) mark_->ended();
    }
    Checkpoint(const Checkpoint&) = delete;
    Checkpoint& operator=(const Checkpoint&) = delete;
    [[nodiscard]] bool is_allowed() const { return is_allowed_; }

   private:
    CopyMark* const mark_;
    const bool is_allowed_;
  };

 private:
  void note(const AgentKey& key, int pages, std::uint32_t& seen);
  [[nodiscard]] bool is_held(const AgentKey& key) const REQUIRES(mutex_);
  // False: its copy is made first, and early.
  [[nodiscard]] bool is_free(const AgentKey& key) REQUIRES(mutex_);
  [[nodiscard]] bool may_begin(const AgentKey& key);
  void ended();

  std::atomic<std::uint32_t> marks_ = 0;  // how many there were
  Mutex mutex_;
  Condition news_;
  unsigned checkpoints_ GUARDED_BY(mutex_) = 0;  // in progress
  bool holds_all_ GUARDED_BY(mutex_) = false;
  std::unordered_set<AgentKey> to_copy_ GUARDED_BY(mutex_);
  std::vector<AgentKey> first_ GUARDED_BY(mutex_);      // something waits for them
  std::optional<AgentKey> in_copy_ GUARDED_BY(mutex_);  // of next()
  std::unordered_map<AgentKey, int> pages_ GUARDED_BY(mutex_);
};

}  // namespace hearth::storage

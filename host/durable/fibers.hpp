#pragma once
// The fibers of one live agent: those that run in this instance, and those that were interrupted.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/fiber_table.hpp"
#include "durable/wake.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::durable {

struct FiberSettings {
  std::chrono::milliseconds recovery_timeout{60'000};  // of one recovery hook
  int max_attempts = 10;  // recoveries begun without progress, until a fiber is dead
  std::chrono::milliseconds retry_base{1'000};  // wait after the first failed recovery; doubles
  std::chrono::milliseconds retry_cap{300'000};
  std::size_t max_running = 1'000;  // of one agent at once
  std::size_t max_snapshot_bytes = std::size_t{2} << 20;
};

// A fiber whose work runs in this instance. Never reused.
using FiberHandle = std::uint64_t;

// An interrupted fiber that is offered to the agent's code.
struct Interrupted {
  std::string id;
  std::string name;
  std::optional<std::string> snapshot;  // JSON
  std::int64_t created_at_ms = 0;
  int attempt = 1;  // counts from 1
};

// state          what is on disk                          leaves it by
// running        the row                                  finish() -> no row; the end of this instance -> interrupted
// interrupted    the row, next_at                         begin_recovery() once next_at has come
// recovering     the row, attempts + 1, next_at ahead     recovered() -> no row; start(replaces) -> no row, a new one runs;
//                                                         failed() -> interrupted, or dead after max_attempts;
//                                                         a crash -> interrupted, with the attempt counted
// dead           the row, dead = 1, last_error            retry() -> interrupted
//
// Promises
//  P1 Row first    start() writes the row before the first instruction of the work runs.
//  P2 Finished     finish() removes the row in the running turn: with the last writes of the work, or not at all. Finished
//                  work is never offered again.
//  P3 One row      A continuation takes its predecessor's place in one transaction.
//  P4 Counted      An attempt is on disk before the hook is called, so that a hook that kills the process counts.
//  P5 Oldest first Interrupted fibers are offered in the order of their creation.
//
// Durable    Methods write into the agent's implicit transaction. The caller commits: before start(), stash() and
//            begin_recovery() take effect outside, with the turn for the others.
// Threads    The agent's shard.  Failure  Result for what a caller does wrong, StorageError for the disk.
class Fibers {
 public:
  Fibers(storage::AgentDatabase& database, const Clock& clock, Random& random,
         FiberSettings settings);

  // What an earlier instance left. Once, before anything else.
  void load();

  // Gives up what holds the database; only wake() and counts() may be called afterwards.
  void close() { table_.close(); }

  // ---- work ----
  struct Started {
    FiberHandle handle = 0;
    std::string id;
  };
  Result<Started> start(std::string_view name, std::string_view replaces);
  // `json` was checked.
  Result<void> stash(FiberHandle fiber, std::string_view json);
  // The id of the fiber that is over.
  Result<std::string> finish(FiberHandle fiber);
  // The instance goes on purpose (a shutdown, an update, an eviction), not by a fault of the work: what runs or
  // is being recovered is interrupted, and that counts for nothing. Writes only if an attempt is given back.
  void interrupt_on_purpose();
  [[nodiscard]] std::size_t running() const { return running_.size(); }

  // ---- recovery ----
  // The oldest interrupted fiber that is due, now recovering; nothing if none is. A due one that has used up its attempts
  // is dead from now on, and passed over.
  std::optional<Interrupted> begin_recovery();
  // Those that begin_recovery() has passed over so since the last call.
  std::vector<std::string> take_passed_over() { return std::exchange(passed_over_, {}); }
  void recovered(std::string_view id);
  struct Failure {
    bool dead = false;
    std::int64_t next_at_ms = 0;
  };
  Failure failed(std::string_view id, std::string_view error);
  Result<void> retry(std::string_view id);

  // True if begin_recovery() would find something now.
  [[nodiscard]] bool due() const;
  // Running or recovering: work that ends with this instance. And when the next interrupted one is due.
  [[nodiscard]] Wake wake() const;

  struct Counts {
    std::size_t running = 0;
    std::size_t interrupted = 0;
    std::size_t dead = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Waiting {
    FiberRow row;  // without the snapshot
    bool recovering = false;
  };

  std::vector<Waiting>::iterator find_waiting(std::string_view id);
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }

  FiberTable table_;
  const Clock& clock_;
  Random& random_;
  const FiberSettings settings_;
  struct Running {
    std::string id;
    int attempts = 0;  // since the last progress
  };
  std::map<FiberHandle, Running> running_;
  FiberHandle last_handle_ = 0;
  std::vector<Waiting> waiting_;          // interrupted, recovering and dead, oldest first
  std::vector<std::string> passed_over_;  // ids
};

}  // namespace hearth::durable

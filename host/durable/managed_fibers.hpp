#pragma once
// The records of one agent's managed fibers. What they mean to an agent's author, and the table of
// their statuses, are in hearth/ext/managed_fibers.h.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/counted_tries.hpp"
#include "durable/fiber_record.hpp"
#include "durable/fibers.hpp"
#include "durable/job_count.hpp"
#include "durable/job_line.hpp"
#include "durable/jobs.hpp"
#include "durable/wake.hpp"
#include "durable/work_part.hpp"
#include "storage/agent_database.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::durable {

// kReplaceFailed: a record that has completed is the answer, any other one is replaced.
enum class SettledKey : std::uint32_t { kJoin = 0, kReject = 1, kReplace = 2, kReplaceFailed = 3 };

// The views are borrowed for the call; nothing in it was checked.
struct ManagedRequest {
  SettledKey policy = SettledKey::kJoin;
  std::string_view name{};
  std::string_view id{};
  std::string_view key{};
  std::string_view input{};     // JSON; empty: null
  std::string_view metadata{};  // JSON; empty: null
  std::uint32_t max_retries = 0;
  std::uint64_t retry_base_ms = 0;
  std::uint64_t retry_max_ms = 0;
  FiberKeeping keeping = FiberKeeping::kManaged;
  std::string_view parent{};  // the id of the fiber that waits for the value; or empty
  bool take_up = false;       // the caller can do the work of one that was interrupted
  bool is_turn = false;       // no parent; not of FiberKeeping::kManaged
};

// What clients hear of a turn.
struct TurnNews {
  std::string id;
  int recovery = 0;  // which one begins, from 1; 0: the turn has ended, for it was given up
  std::string why{};
};

struct ManagedFilter {
  std::uint32_t statuses = 0;  // bits; 0: the function's default
  std::string_view name{};
  std::int64_t before_ms = 0;
  std::string_view after{};
  std::size_t limit = 50;
  bool dead = false;
};

// Between two tries of telling.
inline constexpr std::chrono::milliseconds kTellBase{1'000};  // after the first failure; doubles
inline constexpr std::chrono::milliseconds kLongestTellWait{300'000};

struct ManagedSettings {
  std::chrono::milliseconds keep_completed{std::chrono::hours(24)};
  std::chrono::milliseconds keep_failed{std::chrono::hours(24 * 7)};
  std::size_t max_records = 10'000;                   // of one agent
  std::size_t max_json_bytes = std::size_t{1} << 20;  // of input, metadata and result, each
  int max_tell_interruptions = 10;  // tellings in a row that nobody ended, until it is given up
};

// What became of a record, for logs, counts and waiters.
struct ManagedChange {
  std::string id;
  FiberStatus status{};
  std::string record;  // JSON
};

// Layered over Fibers: a managed fiber is one row, which Fibers works on until it is settled, and
// this class from then on.
//
// Promises
//  P1 One unit     A record and the progress of its work are one row. load() settles what recovery
//                  had given up.
//  P2 Settled      A settled status is never overwritten but by resolve(), retry() and replace.
//  P3 Told         A settled record stays to be told (next_untold()) until told() has been called
//                  for it, or it was replaced, retried or removed on purpose. Retention does not
//                  touch it before. Telling is claimed before: what kills the process again and
//                  again is told after growing waits, and given up after max_tell_interruptions.
//                  The record then stays until it is removed.
//  P4 Conflict     A key or id with another name or input is kConflict, never a silent hit; and so
//                  is an id whose record has another key, or none.
//
//  P5 Brief        A brief record goes in the turn that settles it, and is not told. One that is
//                  dead is told, and kept for keep_failed.
//  P6 Parents      A brief record with a parent is kept until the parent has another checkpoint or
//                  is settled, and not told: a parent that is run again finds its value. One that
//                  may be revived keeps it. A kept record outlives that, and gives back a key that
//                  begins with its parent's id and a slash.
//  P7 Code         What waits for code waits for as long as it takes, and counts among max_records.
//  P8 Turns        Each recovery of a turn, and its end by giving it up, is in take_turn_news().
//  P9 Once         once() says of each mark of a fiber for the first time that it is new: over all
//                  recoveries, in the turn that does what it stands for. kMostMarks of a fiber.
//
// Savepoints      None of it may be called while a savepoint of the agent's own is open: what that
//                 rolls back is in memory here.
// Durable, Threads, Failure   As Fibers; besides, start() and resume() take effect outside only
//                             when they were committed.
// Bounded         In memory: what is being told, and the ids of parents that run. A list ends at 4
//                 MiB.
class ManagedFibers final : public WorkPart, private CountedTries {
 public:
  ManagedFibers(storage::AgentDatabase& database, Fibers& fibers, const Clock& clock,
                Random& random, ManagedSettings settings);

  // After Fibers::load(), once. Writes if there is something to repair.
  void load();
  // Gives up what holds the database; only wake() may be called afterwards.
  void close() override;

  struct Started {
    FiberHandle fiber = 0;  // 0: the record was there
    std::string id;
    std::string record;
    bool was_there = false;    // and its work goes on with `fiber`
    bool was_offered = false;  // its hook decides nothing any more
  };
  // kInvalidArgument, kConflict, kLimitExceeded: nothing was written.
  Result<Started> start(const ManagedRequest& request);
  // `adopts`: also one that has no record, which becomes a brief one. kNotFound: not being offered
  // now; kLimitExceeded.
  Result<FiberHandle> resume(std::string_view id, bool adopts = false);
  // This fiber has stashed: it needs the values of those no more that it has waited for before.
  void checkpointed(std::string_view id);
  // kNotFound: settled before. kInvalidArgument: not a status to settle with, or a result that is
  // no JSON; kLimitExceeded: a result too large; then it still runs. The change says kPending if
  // the work has failed and is to begin again.
  Result<ManagedChange> settle(FiberHandle fiber, FiberStatus status, std::string_view body);

  // By id or by key; the other is empty. kNotFound, kInvalidArgument.
  Result<std::string> inspect(std::string_view id, std::string_view key);
  // A JSON array, newest first. kNotFound: no record has the id `after`. A page of more than 4 MiB
  // ends before its limit: only an empty page is the last.
  Result<std::string> list(const ManagedFilter& filter);
  // The handle of what ran is of no use afterwards, and what was being recovered cannot be resumed.
  Result<ManagedChange> cancel(std::string_view id, std::string_view key, std::string_view reason);
  Result<ManagedChange> resolve(std::string_view id, std::string_view outcome_json);
  Result<void> retry(std::string_view id);
  // How many have gone. Without `statuses` and `dead`: completed, aborted, and with an error but
  // not dead.
  Result<std::uint64_t> remove(const ManagedFilter& filter);

  // ---- recovery: LiveAgent calls these around Fibers' own ----
  //
  //   Fibers::begin_recovery() gives one          is_managed(id): begin_recovery(id), for the
  //                                               event's body
  //   Fibers::take_passed_over() gives its id     is_managed(id): died(id, why), in the same turn
  //   the hook ends well, or is not there         is_managed(id): recovered(id, body), not
  //                                               Fibers::recovered()
  //   the hook fails, Fibers::failed() says dead  is_managed(id): died(id, why), in the same turn
  [[nodiscard]] bool is_managed(std::string_view id);
  // hearth.fibers/2 began it, and it was interrupted: a plan is asked for also if it is the only
  // one.
  [[nodiscard]] bool is_planned_alone(std::string_view id);
  // After Fibers::begin_recovery() gave this one: now recovering. (If it was cancelled between the
  // two: the record as it is now.) The members that HEARTH_EVENT_FIBER_RECOVERED has for it, as
  // JSON text (`"managed":{...},"reason":"..."`).
  struct Members {
    std::string json;
    bool is_retry = false;  // its work has failed
  };
  Members begin_recovery(std::string_view id);
  // The hook has ended well. `outcome_json`: what the event was completed with, or empty.
  // kNotFound: it was resumed or settled in the meantime, all is well. Anything else: this is no
  // outcome; treat it as a failed hook.
  Result<ManagedChange> recovered(std::string_view id, std::string_view outcome_json);
  // What is being recovered waits for another version of the code. `refused`: the code said no more
  // than that it recovers nothing. That is enough for what hearth.fibers/2 began; for what
  // hearth.managed_fibers/1 did it means that nobody goes on. False: it still is being recovered.
  bool unknown(std::string_view id, bool refused);
  // Recovery was given up.
  ManagedChange died(std::string_view id, std::string_view error);
  // One was settled since the last call of take_settled().
  [[nodiscard]] bool has_settled() const { return has_settled_; }
  bool take_settled() { return std::exchange(has_settled_, false); }
  // Since the last call, in order.
  std::vector<TurnNews> take_turn_news() { return std::exchange(turn_news_, {}); }
  // The last news of each turn that has been recovered and goes on, and of those that were given
  // up, as long as their records say so and no later turn has begun; kMostStandingTurns of each,
  // the oldest first.
  static constexpr std::size_t kMostStandingTurns = 20;
  [[nodiscard]] std::vector<TurnNews> standing_turns();

  // ---- marks ----
  static constexpr std::size_t kMostMarks = 10'000;
  // Whether this fiber, which runs, does it for the first time. kNotFound: it does not run;
  // kInvalidArgument: a mark is 1 to 256 bytes of UTF-8; kLimitExceeded.
  Result<bool> once(FiberHandle fiber, std::string_view mark);

  // ---- telling ----
  static constexpr std::size_t kMostTelling = 8;  // at once
  // The oldest settled record that has not been told, and is not being told, claimed; nothing if
  // none is, all must wait, or kMostTelling are being told. One whose telling was interrupted too
  // often is never told any more, and passed over.
  std::optional<ManagedChange> next_untold();
  // heard false: again, after growing waits that survive restarts.
  void told(std::string_view id, bool heard);
  // The instance goes on purpose: what is being told is interrupted, and that counts for nothing.
  void interrupt_on_purpose() override { line_.give_back_all(); }
  // Those that next_untold() has given up since the last call.
  std::vector<GivenUp> take_given_up() { return line_.take_given_up(); }

  // Removes what retention says, a few at a time. True if something went. Cheap when nothing is
  // due.
  bool sweep();
  // The dead ones that sweep() has removed since the last call.
  std::vector<std::string> take_expired() { return std::exchange(expired_, {}); }

  // True if next_untold() would find something now.
  [[nodiscard]] bool due() const override { return line_.due(); }
  // Untold ones: working if one is due or being told, at_ms for those that wait. The rest is in
  // Fibers::wake().
  [[nodiscard]] Wake wake() const override { return line_.wake(); }

 private:
  // ---- LinePolicy of what is to be told ----
  std::optional<Job> next_due() override;
  void give_up(Job& job, std::string_view why) override;
  // Nothing too if it was settled once more or retried: that is another thing to tell, or none.
  [[nodiscard]] std::optional<Job> claimed_row(std::string_view id) override;
  [[nodiscard]] bool counts_claims() const override { return false; }  // they count recoveries

  // A record as it is on disk, and its documents.
  FiberRecord record_of(const Job& job);
  std::optional<FiberRecord> find_record(std::string_view id);
  // The small columns of it; `state` says to whom it belongs from now on.
  void store(const FiberRecord& record, JobState state);
  Result<std::optional<FiberRecord>> find_named(const ManagedRequest& request);
  Result<FiberRecord> find_one(std::string_view id, std::string_view key);
  Result<void> make_room();
  Result<Started> begin(const ManagedRequest& request, const FiberRecord* replaced);
  ManagedChange settle_as(FiberRecord record, FiberOutcome outcome, bool dead);
  Result<Started> take_up(FiberRecord record);
  [[nodiscard]] bool has_open_parent(const FiberRecord& record);
  void remove_children(std::string_view parent);
  void note_turn(std::string_view id);
  void note_given_up(const FiberRecord& record, std::string_view why);
  [[nodiscard]] const std::vector<std::string>& given_up_turns();
  // A later turn has begun: it says how the session stands.
  void pass_given_up_turns();
  void erase_record(std::int64_t seq, const std::string& id);
  ManagedChange postpone(FiberRecord record, std::string_view error);
  // Puts in what only Fibers knows while it is not settled.
  void complete(FiberRecord& record);
  ManagedChange change_of(FiberRecord record);
  // No telling of it is to come.
  void settle_row(Job& job);

  Fibers& fibers_;
  const ManagedSettings settings_;
  JobLine<Job> line_;  // claimed: those that are being told
  JobCount count_;
  std::vector<std::string> expired_;  // ids
  // Those that run, and for which values may be kept since their last checkpoint.
  std::set<std::string, std::less<>> parents_;
  std::vector<TurnNews> turn_news_;
  // The newest ones that still stand, by id. Nothing: not looked for yet.
  std::optional<std::vector<std::string>> given_up_turns_;
  bool has_settled_ = false;
};

}  // namespace hearth::durable

#pragma once
// The records of one agent's fibers. hearth/ext/fibers.h has their meaning for authors, and the
// table of their statuses.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/counted_jobs.hpp"
#include "durable/fiber_record.hpp"
#include "durable/fibers.hpp"
#include "durable/jobs.hpp"
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

// kReplaceFailed: a completed record is the answer, any other settled record is replaced.
enum class SettledKey : std::uint32_t { kJoin = 0, kReject = 1, kReplace = 2, kReplaceFailed = 3 };

// The views are borrowed for the call. start() checks the fields.
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
  FiberKeeping keeping = FiberKeeping::kKept;
  std::string_view parent{};  // the id of the fiber that waits for this one's value; or empty
  bool take_up = false;       // the caller can go on with the work of an interrupted fiber
  bool is_turn = false;       // then without a parent
  std::string_view lane{};    // the same; empty: none
  // Progress (Fibers) resets the count of max_retries, and of a turn's recoveries.
  bool resets_by_progress = false;
};

// News of a turn for clients.
struct TurnNews {
  std::string id;
  int recovery = 0;  // the number of the recovery that begins, from 1; 0: the turn was given up
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

struct ManagedSettings {
  std::chrono::milliseconds keep_completed{std::chrono::hours(24)};
  std::chrono::milliseconds keep_failed{std::chrono::hours(24 * 7)};
  std::size_t max_records = 10'000;                   // of one agent
  std::size_t max_json_bytes = std::size_t{1} << 20;  // of input, metadata and result, each
};

// A record after a change, for logs, counts and waiting callers.
struct ManagedChange {
  std::string id;
  std::int64_t row = 0;
  FiberStatus status{};
  std::string record;                // JSON
  std::vector<std::string> inner{};  // ids of the fibers that were aborted with it
};

// Layered over Fibers: a managed fiber is one row. Fibers works on the row until the fiber is
// settled, and this class from then on. To tell a record is to deliver it to the agent's code as
// the event kFiberSettled.
//
// Promises
//  P1 One unit     A record and the progress of its work are one row.
//  P2 Settled      Only resolve(), retry() and a replacing start() overwrite a settled status.
//  P3 Told         A settled record is due for telling (next_untold()) until told(), unless it is
//                  replaced, retried or removed before.
//  P4 Conflict     A key or id with another name or input, or an id whose record has another key or
//                  none, is kConflict, never a silent hit.
//  P5 Brief        The turn that settles a brief record without an open parent removes it without
//                  telling, but a dead record is told, and kept for keep_failed.
//  P6 Parents      A brief record with an open parent is kept, untold, until the parent has another
//                  checkpoint or is settled, so that a parent that is run again finds the value.
//  P7 Code         A fiber that waits for code waits without limit, and counts toward max_records.
//  P8 Turns        Each recovery of a turn, and its giving up, is in take_turn_news().
//  P9 Once         once() is true one time for each mark of a fiber, over all its recoveries.
//  P10 Inner       An aborted fiber ends its inner fibers, however deep, and none begins below it.
//  P11 Lanes       Of the open fibers of a lane only the first accepted one runs or is offered.
//
// P1: load() settles the fibers whose recovery was given up.
// P3: Retention does not remove a record before it was told. A telling is claimed before it begins:
// a telling that crashes the process again and again is given up, and the record stays until it is
// removed.
// P6: A dead or interrupted parent may be revived, and keeps the values. A kKept record stays, but
// loses its key at the same moment if the key begins with the parent's id and a slash.
// P10: inner fibers are the open ones whose parent it is, and theirs.
// P9: The mark is written in the turn that does the thing. A fiber has at most kMostMarks.
// P11: The others are parked, also a revived one. Once the first one is settled, the next one is
// offered, as a retry is. While it waits for a retry or for code, a fiber holds its lane, too.
//
// Savepoints      No member may be called while a savepoint of the agent's code is open: a rollback
//                 would not reach the state in memory here.
// Durable, Threads, Failure   As Fibers. The effects of start() and resume() leave the agent only
//                             after the commit.
// Bounded         In memory: the records that are being told, and the ids of running parents. A
//                 list ends at 4 MiB.
class ManagedFibers final : public CountedJobs {
 public:
  ManagedFibers(storage::AgentDatabase& database, Fibers& fibers, const Clock& clock,
                Random& random, ManagedSettings settings, int max_crashes = kMostCrashes);

  // Once, after Fibers::load(). Writes only if there is something to repair.
  void load();

  struct Started {
    FiberHandle fiber = 0;  // 0: the record exists, and no work begins
    std::string id;
    std::string record;
    bool was_there = false;    // the record existed, and its work goes on with `fiber`
    bool was_offered = false;  // to a hook, whose end has no effect any more
    bool is_parked = false;    // it is new, and begins when its lane is free
  };
  // kInvalidArgument, kConflict, kLimitExceeded, kNotFound (the parent is over): nothing was
  // written.
  Result<Started> start(const ManagedRequest& request);
  // kNotFound: the fiber is not being offered now; kLimitExceeded.
  Result<FiberHandle> resume(std::string_view id);
  // This fiber has written a checkpoint: it needs no more the values of fibers that it waited for
  // before.
  void checkpointed(std::string_view id);
  // The work has ended. The change is kPending if the work failed and will be retried.
  // `is_final`: no retry can end better than this kError.
  // kNotFound: it was settled before. After other errors it still runs: kInvalidArgument: the
  // status does not settle, or the result is no JSON; kLimitExceeded: the result is too large.
  Result<ManagedChange> settle(FiberHandle fiber, FiberStatus status, std::string_view body,
                               bool is_final = false);

  // The same with an outcome, which is final. kInvalidArgument: also if it is none.
  Result<ManagedChange> settle(FiberHandle fiber, std::string_view outcome_json);

  // The record, by id or by key; the other is empty. kNotFound, kInvalidArgument.
  Result<std::string> inspect(std::string_view id, std::string_view key);
  // A JSON array, newest first. kNotFound: no record has the id `after`. A page can end before its
  // limit, after 4 MiB: only an empty page is the last.
  Result<std::string> list(const ManagedFilter& filter);
  // Settles an unsettled fiber as aborted. Its handle is invalid then, and it cannot be resumed.
  // "inner" in the record: the ids of the fibers that ended with it.
  Result<ManagedChange> cancel(std::string_view id, std::string_view key, std::string_view reason);
  // Settles a dead or interrupted fiber with this outcome. kNotFound: it is neither.
  Result<ManagedChange> resolve(std::string_view id, std::string_view outcome_json);
  // A dead or interrupted fiber is to be recovered again, with new counts. kNotFound: it is
  // neither.
  Result<void> retry(std::string_view id);
  // The number of removed records. Without `statuses` and `dead`: removes those that are completed,
  // aborted, or have an error and are not dead.
  Result<std::uint64_t> remove(const ManagedFilter& filter);

  // ---- recovery: DurableWork calls these beside those of Fibers ----
  //
  //   Fibers::begin_recovery() gives one          begin_recovery(id), for the event's body
  //   Fibers::take_given_up() gives its id        died(id, why), in the same turn
  //   the hook ends well, or is not there         recovered(id, body)
  //   the hook fails, Fibers::failed() says dead  died(id, why), in the same turn
  //
  // This fiber was interrupted: the agent's code is asked for a plan even if no other fiber is due.
  [[nodiscard]] bool is_planned_alone(std::string_view id);
  // After Fibers::begin_recovery() gave this fiber. Returns its members of the event
  // HEARTH_EVENT_FIBER_RECOVERED as JSON text (`"record":{...},"reason":"..."`). The record is as
  // it is now, also if it was cancelled in between.
  struct Members {
    std::string json;
    bool is_pending = false;  // see FiberRecord
  };
  Members begin_recovery(std::string_view id);
  // The hook has ended well. `outcome_json`: the body that completed the event, or empty.
  // kNotFound: the fiber was resumed or settled meanwhile, which is fine. Any other error: the body
  // is no outcome; the caller treats the hook as failed.
  Result<ManagedChange> recovered(std::string_view id, std::string_view outcome_json);
  // The work of this running fiber cannot go on in this version of the code: the fiber waits for
  // another one. kNotFound: it was settled before.
  Result<ManagedChange> wait_for_code(FiberHandle fiber);
  // The recovering fiber waits for another version of the code. False: it was settled meanwhile.
  bool unknown(std::string_view id);
  // The fiber's recovery was given up: settles it as dead.
  ManagedChange died(std::string_view id, std::string_view error);
  // A fiber was settled since the last call of take_settled().
  [[nodiscard]] bool has_settled() const { return has_settled_; }
  bool take_settled() { return std::exchange(has_settled_, false); }
  // The news since the last call, in order.
  std::vector<TurnNews> take_turn_news() { return std::exchange(turn_news_, {}); }
  // The last news of turns, for a client that has just connected: of turns that were recovered and
  // go on, and of given up turns whose records are still dead and after which no turn has begun. At
  // most kMostStandingTurns of each, the oldest first.
  static constexpr std::size_t kMostStandingTurns = 20;
  [[nodiscard]] std::vector<TurnNews> standing_turns();

  // ---- marks ----
  static constexpr std::size_t kMostMarks = 10'000;
  // True if this running fiber has not had the mark before; it has it then. kNotFound: the fiber
  // does not run. kInvalidArgument: a mark is 1 to 256 bytes of UTF-8. kLimitExceeded.
  Result<bool> once(FiberHandle fiber, std::string_view mark);

  // ---- telling ----
  static constexpr std::size_t kMostTelling = 8;  // tellings in progress
  // The next due record that is to be told, claimed. Nothing: none is due, or kMostTelling are in
  // progress. A record with too many crashed tellings is given up, and the next one is taken.
  std::optional<ManagedChange> next_untold();
  // The telling has ended. `heard` false: it is repeated, after growing waits that survive
  // restarts.
  void told(std::string_view id, bool heard);

  // Removes some expired records. True if it removed any. Cheap when none has expired.
  bool sweep();
  // The ids of the dead records that sweep() has removed since the last call.
  std::vector<std::string> take_expired() { return std::exchange(expired_, {}); }

 private:
  // ---- CountedJobs, for tellings alone: unsettled fibers are in Fibers::wake() ----
  std::optional<Job> next_due() override;
  void give_up(Job& job, std::string_view why) override;
  std::optional<std::int64_t> failed(Job& job) override;
  void done(Job& job) override;
  // Nothing also if the record was settled once more or retried: this telling is obsolete then.
  [[nodiscard]] std::optional<Job> claimed_row(std::string_view id) override;
  [[nodiscard]] bool counts_claims() const override { return false; }  // claims: recoveries

  // The record as it is on disk, with its documents.
  FiberRecord record_of(const Job& job);
  std::optional<FiberRecord> find_record(std::string_view id);
  // Writes the record's columns, without documents. `state`: of the row from now on.
  void store(const FiberRecord& record, JobState state);
  Result<std::optional<FiberRecord>> find_named(const ManagedRequest& request);
  Result<FiberRecord> find_one(std::string_view id, std::string_view key);
  Result<void> make_room();
  Result<Started> begin(const ManagedRequest& request, const FiberRecord* replaced);
  ManagedChange settle_as(FiberRecord record, FiberOutcome outcome, bool dead);
  ManagedChange settle_alone(FiberRecord record, FiberOutcome outcome, bool dead);
  // P10, once `outer` is settled.
  void abort_inner(ManagedChange& outer, const std::optional<std::string>& reason);
  Result<Started> take_up(FiberRecord record);
  [[nodiscard]] bool is_taken(const std::optional<std::string>& lane);
  void pass_lane(const std::optional<std::string>& lane);
  [[nodiscard]] bool is_open(std::string_view id);
  void remove_children(std::string_view parent);
  void note_turn(std::string_view id);
  void note_given_up(const FiberRecord& record, std::string_view why);
  [[nodiscard]] const std::vector<std::string>& given_up_turns();
  // A later turn has begun: earlier given up turns are no news any more.
  void pass_given_up_turns();
  void erase_record(std::int64_t seq, const std::string& id);
  ManagedChange postpone(FiberRecord record, std::string_view error);
  // Of an unsettled fiber: sets the fields that only Fibers knows.
  void complete(FiberRecord& record);
  ManagedChange change_of(FiberRecord record);
  // Ends the telling of this record.
  void settle_row(Job& job);

  Fibers& fibers_;
  const ManagedSettings settings_;
  std::vector<std::string> expired_;  // ids
  // Ids of running fibers for which values may be kept since their last checkpoint.
  std::set<std::string, std::less<>> parents_;
  std::vector<TurnNews> turn_news_;
  // Ids of the given up turns for standing_turns(). Nothing: not read yet.
  std::optional<std::vector<std::string>> given_up_turns_;
  bool has_settled_ = false;
};

}  // namespace hearth::durable

#pragma once
// The notifications of one live agent to others. What they mean to an agent's author is said in
// hearth/ext/call.h.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/counted_tries.hpp"
#include "durable/job_line.hpp"
#include "durable/jobs.hpp"
#include "durable/wake.hpp"
#include "durable/work_part.hpp"
#include "storage/agent_database.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {

// One that leaves now. The caller has checked its texts.
struct Notice {
  std::string agent_class;  // without a line break
  std::string name;
  std::string method;
  std::string arguments;  // JSON array
  std::string trace;      // empty: none
};

struct NoticeDelivery {
  std::string id;
  Notice notice;
  bool is_alarm = false;  // of durable/alarms.hpp: no agent notifies, a time has come
  std::chrono::milliseconds timeout{0};  // of the call; 0: as long as any call
};

struct NoticeOutcome {
  bool delivered = false;
  std::string error;  // why not; or what the callee's code answered; empty: neither
};

enum class NoticeEnd { kDelivered, kRetry, kDead, kRemoved };

// state      what is on disk              leaves it by
// waiting    the row; due_at if it is     begin_next() when its time has come
//            the first for its callee
// running    the row, claimed             ended(); a crash -> waiting, interruption counted, dead
//                                         after too many; the end of the instance on purpose ->
//                                         waiting
// dead       the row, last_error          remove()
//
// Promises
//  P1 Order        For each callee in the order of push(), one at a time; callees do not wait for
//                  each other. A dead one holds nothing back.
//  P2 At least once  The row goes in the transaction that knows of its delivery.
//  P3 Claim first  A delivery is claimed on disk before it happens, so that one that kills the
//                  process counts.
//  P4 Bounded      At most kMostRunning are on their way, kMostNotices in the table. One that is
//                  not delivered kGiveUpAfter its push() is dead with the next failure.
//
// Durable    Methods write into the agent's implicit transaction. The caller commits: after
//            begin_next() before the delivery, with the turn for the others.
// Savepoints  None of it may be called while a savepoint of the agent's own is open.
// Threads    The agent's shard.  Failure  Result for what a caller does wrong, StorageError for the
//                                         disk.
class Notices final : public WorkPart, private CountedTries {
 public:
  static constexpr std::size_t kMostRunning = 16;
  static constexpr std::size_t kMostNotices = 100'000;
  static constexpr std::chrono::hours kGiveUpAfter{24};
  static constexpr int kMostInterruptions = 10;

  Notices(storage::AgentDatabase& database, const Clock& clock, Random& random);

  // What an earlier instance left. Once, before anything else.
  void load();
  // Gives up what holds the database; only wake() may be called afterwards.
  void close() override;

  // Its id. kLimitExceeded.
  Result<std::string> push(const Notice& notice);
  // A JSON array, as hearth/ext/call.h has it; a page ends behind 4 MiB. kNotFound: `after`.
  Result<std::string> list(std::string_view after, std::size_t limit);
  Result<void> remove(std::string_view id);  // kNotFound

  // The next one to deliver, claimed; nothing if none is due.
  std::optional<NoticeDelivery> begin_next();
  NoticeEnd ended(std::string_view id, const NoticeOutcome& outcome);
  // The instance goes on purpose: what is on its way is interrupted, and that counts for nothing.
  void interrupt_on_purpose() override { line_.give_back_all(); }
  // Those that died of interruptions since the last call.
  std::vector<GivenUp> take_given_up() { return line_.take_given_up(); }

  [[nodiscard]] bool due() const override { return line_.due(); }
  // Working: one is on its way, or due.
  [[nodiscard]] Wake wake() const override { return line_.wake(); }

 private:
  // The first one that waits for this callee has its turn: those behind it have no due_at.
  void advance(const std::string& callee);
  [[nodiscard]] std::string record_json(const Job& job);
  void give_up(Job& job, std::string_view why) override;

  JobLine<Job> line_;
};

}  // namespace hearth::durable

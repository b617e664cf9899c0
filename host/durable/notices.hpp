#pragma once
// The notifications of one live agent to others. What they mean to an agent's author is said in
// hearth/ext/call.h.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/counted_jobs.hpp"
#include "durable/jobs.hpp"
#include "storage/agent_database.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {

// A notification to send. The caller has checked its texts.
struct Notice {
  std::string agent_class;  // without a line break
  std::string name;
  std::string method;
  std::string arguments;  // JSON array
  std::string trace;      // empty: none
};

struct NoticeDelivery {
  std::string id;
  std::int64_t row = 0;
  Notice notice;
  bool is_alarm = false;                 // not a notification: an alarm (durable/alarms.hpp)
  std::chrono::milliseconds timeout{0};  // of the call; 0: as long as any call
};

struct NoticeOutcome {
  bool delivered = false;
  std::string error;  // why not delivered, or the error of the callee's code; empty: neither
  // Of an alarm. A notification is tried again: the code is another class's.
  bool is_final = false;    // no retry can end better
  bool needs_code = false;  // another version of the class may read what this one cannot
};

// state      what is on disk              leaves it by
// waiting    the row; due_at if it is     next_delivery() when its time has come
//            the first for its callee
// running    the row, claimed             ended(); a crash -> waiting, interruption counted, or
//                                         dead after too many; the end of the instance on purpose
//                                         -> waiting
// dead       the row, last_error          remove()
//
// Promises
//  P1 Order        Each callee gets its notifications one at a time, in the order of push().
//  P2 At least once  The row is removed in the transaction that notes its delivery.
//  P3 Claim first  A delivery is claimed on disk before it begins, so that one that kills the
//                  process counts.
//  P4 Bounded      At most kMostRunning are in progress, and at most kMostNotices are in the table.
//
// P1: callees do not wait for each other, and a dead notification holds no other back.
// P4: a notification that fails kGiveUpAfter its push() or later is dead.
//
// Durable, Savepoints, Threads, Failure   As CountedJobs; next_delivery() begins a try.
class Notices final : public CountedJobs {
 public:
  static constexpr std::size_t kMostRunning = 16;
  static constexpr std::size_t kMostNotices = 100'000;
  static constexpr std::chrono::hours kGiveUpAfter{24};

  Notices(storage::AgentDatabase& database, const Clock& clock, Random& random,
          int max_crashes = kMostCrashes);

  // The notification's id. kLimitExceeded.
  Result<std::string> push(const Notice& notice);
  // A JSON array in the order of push(). A page ends after 4 MiB: only an empty page is the last.
  // kNotFound: no notification has the id `after`.
  Result<std::string> list(std::string_view after, std::size_t limit);
  // The next notification to deliver, claimed.
  std::optional<NoticeDelivery> next_delivery();

 private:
  // As in hearth/ext/call.h.
  [[nodiscard]] std::string record_json(const Job& job);
  std::optional<std::int64_t> next_after_failure(const Job& job) override;
};

}  // namespace hearth::durable

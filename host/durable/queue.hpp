#pragma once
// The queue of one live agent. hearth/ext/queue.h has its meaning for authors.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/counted_jobs.hpp"
#include "durable/jobs.hpp"
#include "durable/retry_policy.hpp"
#include "storage/agent_database.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {

// The views are borrowed for the call. push() checks the fields.
struct QueueRequest {
  std::string_view callback{};
  std::string_view payload{};  // JSON; empty: null
  std::uint32_t max_attempts = 0;
  std::uint64_t retry_base_ms = 0;
  std::uint64_t retry_max_ms = 0;
};

struct QueueFilter {
  std::string_view callback{};
  std::string_view state{};
  std::string_view member{};
  std::string_view value{};  // JSON
  std::string_view after{};
  std::size_t limit = 100;
};

struct QueueSettings {
  std::chrono::milliseconds timeout{300'000};  // of one delivery
  std::size_t max_items = 100'000;             // of one agent, dead letters included
  std::size_t max_payload_bytes = std::size_t{1} << 20;
};

// state      what is on disk                    leaves it by
// waiting    the row, next_at                   begin_next() when it is the first and its time has
//                                               come
// running    the row, claimed                   ended(); a crash -> waiting, interruption counted,
//                                               or dead after too many; the end of the instance
//                                               on purpose -> waiting; kNeedsCode -> waits for
//                                               code
// waits for  the row, due at kNextVersion       load() of the next instance -> waiting, before
// code                                          younger items; others do not wait for it
// dead       the row, last_error                retry() -> waiting, at the end
//
// Promises
//  P1 Order        Items are delivered one at a time, in the order of push(); an item that waits
//                  for its retry holds back those behind it, a dead item does not.
//  P2 At least once  The row is removed in the transaction that reports its end, never for a
//                    failure of the host.
//  P3 Claim first  A delivery is claimed on disk before it begins, so that one that kills the
//                  process counts.
//  P4 Kept         An item that cannot be done (no such callback, attempts used up) becomes a dead
//                  letter, with the reason.
//
// Durable, Savepoints, Threads, Failure   As CountedJobs.
// Bounded    In memory is only the running item, whatever the queue's length. A list ends at 4 MiB.
class Queue final : public CountedJobs {
 public:
  Queue(storage::AgentDatabase& database, const Clock& clock, Random& random,
        QueueSettings settings, int max_crashes = kMostCrashes);

  struct Pushed {
    std::string record;  // JSON
    std::string id;
  };
  // kInvalidArgument, kLimitExceeded.
  Result<Pushed> push(const QueueRequest& request);
  Result<std::string> get(std::string_view id);  // kNotFound
  // A JSON array, in the order of delivery. kNotFound: no item has the id `after`. A page can end
  // before its limit, after 4 MiB: only an empty page is the last.
  Result<std::string> list(const QueueFilter& filter);
  // Removes all that match. The number of removed items.
  Result<std::uint64_t> remove_all(const QueueFilter& filter);
  // Moves a dead letter to the end of the queue. kNotFound: no dead letter has this id.
  Result<void> retry(std::string_view id);

  // The body of HEARTH_EVENT_QUEUE_ITEM.
  [[nodiscard]] static std::string body_of(const Begun& item);

 private:
  // Which rows to visit; a field that is not set excludes none.
  struct Query {
    std::string_view callback{};
    std::optional<bool> dead{};
    std::optional<std::int64_t> only{};    // the row with this seq
    std::optional<std::int64_t> except{};  // all but the row with this seq
    std::int64_t after = 0;                // with a greater seq
  };

  Result<Query> query_of(const QueueFilter& filter);
  std::uint64_t remove_all_of(const Query& query);
  std::uint64_t remove_matching(Query query, const QueueFilter& filter);
  [[nodiscard]] std::string record_json(const Job& job);
  std::optional<std::int64_t> next_after_failure(const Job& job) override;

  const QueueSettings settings_;
};

}  // namespace hearth::durable

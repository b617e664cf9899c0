#pragma once
// The queue of one live agent. What it means to an agent's author is said in hearth/ext/queue.h.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/counted_tries.hpp"
#include "durable/job_count.hpp"
#include "durable/job_line.hpp"
#include "durable/jobs.hpp"
#include "durable/retry_policy.hpp"
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

// The views are borrowed for the call; nothing in it was checked.
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
  int max_interruptions = 10;  // crashes in a row in the middle of one item, until it is dead
};

// An item that is delivered now.
struct QueueDelivery {
  std::string id;
  std::string callback;
  std::string body;  // of HEARTH_EVENT_QUEUE_ITEM
  int attempt = 1;
};

struct QueueEnd {
  enum class Next { kDone, kRetry, kDead, kRemoved } next{};
  std::int64_t next_ms = 0;
};

// state      what is on disk                    leaves it by
// waiting    the row, next_at                   begin_next() when it is the first and its time has
//                                               come
// running    the row, claimed                   ended(); a crash -> waiting, interruption counted,
//                                               dead after too many; the end of the instance on
//                                               purpose -> waiting
// dead       the row, last_error                retry() -> waiting, at the end
//
// Promises
//  P1 Order        Items are delivered in the order of push(), one at a time; one that waits to be
//                  tried again holds back those behind it, a dead one does not.
//  P2 At least once  The row goes in the transaction that reports its end; never because of the
//                    host's own failure.
//  P3 Claim first  A delivery is claimed on disk before it happens, so that one that kills the
//                  process counts.
//  P4 Kept         An item that cannot be done (no such callback, attempts used up) becomes a dead
//                  letter, with its reason.
//
// Durable    Methods write into the agent's implicit transaction. The caller commits: after
//            begin_next() before the delivery, with the turn for the others.
// Savepoints  None of it may be called while a savepoint of the agent's own is open: what that
//             rolls back is in memory here.
// Threads    The agent's shard.  Failure  Result for what a caller does wrong, StorageError for the
//                                         disk.
// Bounded    In memory: the head of the queue only, whatever its length. A list ends at 4 MiB.
class Queue final : public WorkPart, private CountedTries {
 public:
  Queue(storage::AgentDatabase& database, const Clock& clock, Random& random,
        QueueSettings settings);

  // What an earlier instance left. Once, before anything else.
  void load();
  // Gives up what holds the database; only wake() may be called afterwards.
  void close() override;

  struct Pushed {
    std::string record;  // JSON
    std::string id;
  };
  // kInvalidArgument, kLimitExceeded.
  Result<Pushed> push(const QueueRequest& request);
  Result<std::string> get(std::string_view id);  // kNotFound
  // A JSON array, in the order of delivery. kNotFound: no item has the id `after`. A page of more
  // than 4 MiB ends before its limit: only an empty page is the last.
  Result<std::string> list(const QueueFilter& filter);
  // What runs goes on to its end, which is then kRemoved. kNotFound.
  Result<void> remove(std::string_view id);
  // How many have gone.
  Result<std::uint64_t> remove_all(const QueueFilter& filter);
  // A dead letter goes to the end of the queue. kNotFound: no dead letter has this id.
  Result<void> retry(std::string_view id);

  // The item to deliver now, claimed; nothing if one is running, none waits, or the first one's
  // time has not come. An item that was interrupted too often is dead from now on, and passed over.
  std::optional<QueueDelivery> begin_next();
  // The delivery has ended. `missing`: the class has no such callback. `error` is a text for
  // people, empty when done. kRemoved too if the delivery was interrupted on purpose.
  QueueEnd ended(bool done, bool missing, std::string_view error);
  // The instance goes on purpose: what runs is interrupted, and that counts for nothing.
  void interrupt_on_purpose() override;
  // Items that died of interruptions since the last call.
  std::vector<GivenUp> take_given_up() { return line_.take_given_up(); }

  // True if begin_next() would find something now.
  [[nodiscard]] bool due() const override { return line_.due(); }
  // Working: one runs, or is due. at_ms: when the first one's time comes.
  [[nodiscard]] Wake wake() const override { return line_.wake(); }

 private:
  // What a walk looks for; what is not set does not restrict.
  struct Query {
    std::string_view callback{};
    std::optional<bool> dead{};
    std::optional<std::int64_t> only{};    // the row with this seq
    std::optional<std::int64_t> except{};  // any but this one
    std::int64_t after = 0;                // with a greater seq
  };

  // The head alone has a due_at: what stands behind it is no reason to wake.
  void promote();
  Result<Query> query_of(const QueueFilter& filter);
  std::uint64_t remove_all_of(const Query& query);
  std::uint64_t remove_matching(Query query, const QueueFilter& filter);
  [[nodiscard]] std::string record_json(const Job& job);
  [[nodiscard]] std::string payload_of(const Job& job);
  // Nothing: the item was removed meanwhile.
  QueueEnd end_of(std::optional<Job> job, bool done, bool missing, std::string_view error);
  void give_up(Job& job, std::string_view why) override;

  const QueueSettings settings_;
  JobLine<Job> line_;
  JobCount count_;
};

}  // namespace hearth::durable

#pragma once
// The rows of an agent's fibers.

#include "base/error.hpp"
#include "durable/fiber_record.hpp"
#include "durable/jobs.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {

struct FiberFilter {
  std::uint32_t statuses = 0;  // bits; 0: the function's default
  std::string_view name{};
  std::int64_t before_ms = 0;
  std::string_view after{};
  std::size_t limit = 50;
  bool dead = false;
};

[[nodiscard]] FiberStatus status_of(const Job& row, FiberNow now);

// Threads, Durable, Failure   As Jobs, which outlives it.
class FiberTable {
 public:
  static constexpr std::size_t kMostMarks = 10'000;  // of one fiber

  explicit FiberTable(Jobs& jobs) : jobs_(jobs) {}

  [[nodiscard]] std::optional<Job> find(std::string_view id) {
    return jobs_.find(JobKind::kFiber, id);
  }
  [[nodiscard]] std::optional<Job> keyed(std::string_view key);
  // By its id or by its key; the other is empty. kInvalidArgument, kNotFound.
  [[nodiscard]] Result<Job> find_one(std::string_view id, std::string_view key);
  // The fiber of this id or of this key; each may be empty. kInvalidArgument: they are two.
  [[nodiscard]] Result<std::optional<Job>> find_named(std::string_view id, std::string_view key);
  // There is such a fiber, and it is not settled.
  [[nodiscard]] bool is_open(std::string_view id);
  // Reads the documents of the job.
  [[nodiscard]] FiberRecord with_documents(Job job);
  // `now`: what the instance does with it.
  [[nodiscard]] FiberChange change_of(Job job, FiberNow now = FiberNow::kNothing);
  void put_outcome(std::int64_t seq, const FiberOutcome& outcome);

  // Calls `see` with the fibers that the filter may select, newest first, until it is false. It
  // does not know which of the open fibers run. kNotFound: no fiber has the id `after`.
  Result<void> each(const FiberFilter& filter, const std::function<bool(Job&)>& see);
  // What remove() of this filter removes. Without `statuses` and `dead`: those that are completed,
  // aborted, or have an error and are not dead.
  [[nodiscard]] std::vector<Job> to_remove(const FiberFilter& filter);

  // ---- lanes ----
  [[nodiscard]] bool is_taken(const std::optional<std::string>& lane);
  // The first fiber of the lane that is still open has its turn.
  void pass_lane(const std::optional<std::string>& lane, std::int64_t now_ms);

  // ---- inner fibers: those that another fiber, their parent, waits for ----
  // Adds the ids of the open ones.
  void add_open(std::string_view parent, std::vector<std::string>& ids);
  // Removes the kept values of a fiber that does not need them any more. Open children of a fiber
  // that was not aborted go on. A child that keeps its record loses a key that only this fiber
  // uses: in a later run the same key may mean another place. True: rows were removed.
  bool remove_children(std::string_view parent);

  // True if the fiber has not had the mark before; it has it then. kInvalidArgument: a mark is 1 to
  // 256 bytes of UTF-8. kLimitExceeded.
  Result<bool> mark(std::int64_t seq, std::string_view mark);

 private:
  Jobs& jobs_;
};

}  // namespace hearth::durable

#pragma once
// The tellings of one live agent: each is a job that tells the agent's code that a fiber has ended.

#include "base/clock.hpp"
#include "base/random.hpp"
#include "durable/counted_jobs.hpp"
#include "durable/jobs.hpp"
#include "storage/agent_database.hpp"

#include <cstddef>
#include <optional>
#include <string_view>

namespace hearth::durable {

// A telling has the id of its fiber, and is its key too: if a fiber ends once more while
// its telling is in progress, the next telling begins when that one has ended. A telling that fails
// is tried again after growing waits. One that is given up leaves no row.
//
// Threads, Durable, Failure   As Jobs.
class Tellings final : public CountedJobs {
 public:
  static constexpr std::size_t kMostTelling = 8;  // in progress

  Tellings(storage::AgentDatabase& database, const Clock& clock, Random& random, int max_crashes);

  void add(std::string_view fiber);
  // The end of a telling in progress has no effect then.
  void drop(std::string_view fiber);
  // The next due one, claimed. Nothing: none is due, or kMostTelling are in progress.
  std::optional<Job> begin_next() { return begin(); }
  // True: the fiber's code has heard of its end, and this was its last end.
  bool ended(std::string_view fiber, bool heard);

 private:
  std::optional<std::int64_t> failed(Job& job) override;
  void bury(Job& job, std::string_view why) override;
};

}  // namespace hearth::durable

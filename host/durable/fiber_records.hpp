#pragma once
// The records of an agent's fibers: what its code and administrators read, and what they decide.

#include "durable/fiber_recovery.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::durable {

// Only resolve(), retry() and a replacing Fibers::start() overwrite a settled status.
//
// Threads, Durable, Failure   As Jobs, which outlives it, as all that the constructor gets.
// Bounded                     A list ends at 4 MiB.
class FiberRecords {
 public:
  FiberRecords(Jobs& jobs, FiberTable& table, FiberEnds& ends, FiberRecovery& recovery,
               const Clock& clock, const FiberSettings& settings)
      : jobs_(jobs),
        table_(table),
        ends_(ends),
        recovery_(recovery),
        clock_(clock),
        settings_(settings) {}

  // The record, by id or by key; the other is empty. kNotFound, kInvalidArgument.
  Result<std::string> inspect(std::string_view id, std::string_view key);
  // A JSON array, newest first. kNotFound: no record has the id `after`. A page can end before its
  // limit, after 4 MiB: only an empty page is the last.
  Result<std::string> list(const FiberFilter& filter);
  // Settles an unsettled fiber as aborted. Its handle is invalid then, and it cannot be resumed.
  // "inner" in the record: the ids of the fibers that ended with it.
  Result<FiberChange> cancel(std::string_view id, std::string_view key, std::string_view reason);
  // Settles a dead or interrupted fiber with this outcome. kNotFound: it is neither.
  Result<FiberChange> resolve(std::string_view id, std::string_view outcome_json,
                              Decides who = Decides::kAgent);
  // A dead or interrupted fiber is to be recovered again, with new counts. kNotFound: it is
  // neither.
  Result<void> retry(std::string_view id, Decides who = Decides::kAgent);
  // The number of removed records. See FiberTable::to_remove().
  Result<std::uint64_t> remove(const FiberFilter& filter);

 private:
  Jobs& jobs_;
  FiberTable& table_;
  FiberEnds& ends_;
  FiberRecovery& recovery_;
  const Clock& clock_;
  const FiberSettings& settings_;
};

}  // namespace hearth::durable

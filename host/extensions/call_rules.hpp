#pragma once
// The rules of complete(), emit() and submit() that each host of agents applies: a shard of the
// server, `hearth check` and the mock host. Pure functions, which know no calls in progress.

#include "base/error.hpp"
#include "extensions/types.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace hearth::extensions {

inline constexpr std::size_t kMaxAnswerBytes = std::size_t{16} << 20;  // of an answer, or a part
inline constexpr std::size_t kMaxErrorBytes = 4096;   // of an error's text; the rest is cut off
inline constexpr std::size_t kMaxOperations = 1000;   // in progress in one agent
inline constexpr unsigned kMaxOwnStateChanges = 100;  // that STATE_CHANGED causes in a row

// The results of complete().
struct Answer {
  Result<std::string_view> outcome;  // of the event, for its caller
  Result<void> returned;             // to the agent's code
};

// Judges the completion of an event of this kind with `outcome`. The answer borrows its bytes.
[[nodiscard]] Answer judge_answer(EventKind kind, const Result<std::string_view>& outcome,
                                  std::size_t max_bytes = kMaxAnswerBytes);

// Whether emit() accepts this part of the answer to an event of this kind. kUnsupported: the kind
// has no parts; kLimitExceeded, kInvalidArgument.
[[nodiscard]] Result<void> check_part(EventKind kind, std::string_view part,
                                      std::size_t max_bytes = kMaxAnswerBytes);

// HEARTH_OP_SLEEP, _OFFLOAD, _DRAIN and _DRAIN_CLIENT; the request of each is one number.
enum class OperationKind : std::uint32_t { kSleep = 1, kOffload = 2, kDrain = 3, kDrainClient = 6 };
struct OperationRequest {
  OperationKind kind{};
  std::uint64_t number = 0;  // milliseconds; the job; the call, or 0; the connection
};

// Reads the request of submit(). `runs_jobs`: the class has hearth.offload/1. kUnsupported,
// kInvalidArgument.
[[nodiscard]] Result<OperationRequest> read_operation(std::uint32_t operation,
                                                      std::string_view request, bool runs_jobs);

// The cause of changes by the handler of a STATE_CHANGED, and by all work that the handler has
// begun except fibers. Fibers continue after the event, maybe for days, so their changes after a
// wait have no such cause.
struct StateCause {
  std::shared_ptr<unsigned> changes;  // all changes so far that follow from one change from outside
  bool has_waited = false;            // its handler has returned for the first time
  bool changed_after_wait = false;    // ... and has changed the state since
};
// Counts a change of the state by the agent's code for that cause. The changes of one handler after
// its first wait count as one, so that it may show progress. kLimitExceeded: handlers cause each
// other for ever.
[[nodiscard]] Result<void> count_own_change(StateCause& cause);

}  // namespace hearth::extensions

#pragma once
// The rules of complete(), emit() and submit() that each host of agents keeps: a shard of the
// server, `hearth check` and the mock host. Pure functions: what is in progress, they do not know.

#include "base/error.hpp"
#include "extensions/types.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace hearth::extensions {

inline constexpr std::size_t kMaxAnswerBytes = std::size_t{16} << 20;  // of an answer, or a part
inline constexpr std::size_t kMaxErrorBytes = 4096;   // of an error's text; the rest is cut off
inline constexpr std::size_t kMaxOperations = 1000;   // of one agent in flight
inline constexpr unsigned kMaxOwnStateChanges = 100;  // that STATE_CHANGED causes in a row

// What complete() comes to.
struct Answer {
  Result<std::string_view> outcome;  // of the event, for whoever waits for it
  Result<void> returned;             // to the agent's code
};

// The event of this kind is completed with `outcome`, whose bytes the answer borrows.
[[nodiscard]] Answer judge_answer(EventKind kind, const Result<std::string_view>& outcome,
                                  std::size_t max_bytes = kMaxAnswerBytes);

// Whether emit() takes this part of the answer to an event of this kind. kUnsupported: the kind has
// no parts; kLimitExceeded, kInvalidArgument.
[[nodiscard]] Result<void> check_part(EventKind kind, std::string_view part,
                                      std::size_t max_bytes = kMaxAnswerBytes);

// HEARTH_OP_SLEEP, _OFFLOAD and _DRAIN; the request of each is one number.
enum class OperationKind : std::uint32_t { kSleep = 1, kOffload = 2, kDrain = 3 };
struct OperationRequest {
  OperationKind kind{};
  std::uint64_t number = 0;  // milliseconds; the job; the call, or 0
};

// What submit() is given. `runs_jobs`: the class has hearth.offload/1. kUnsupported,
// kInvalidArgument.
[[nodiscard]] Result<OperationRequest> read_operation(std::uint32_t operation,
                                                      std::string_view request, bool runs_jobs);

// A STATE_CHANGED that is being handled, also in what its handler has begun, but for fibers: those
// go on after it, maybe for days, so that what they change after a wait is from elsewhere.
struct StateCause {
  std::shared_ptr<unsigned> changes;  // that one change from elsewhere has led to so far
  bool has_waited = false;            // its handler has returned for the first time
  bool changed_after_wait = false;    // ... and has changed the state since
};
// The agent's code changes the state for that cause. What one handler changes after its first wait
// counts once: it may show its progress. kLimitExceeded: handlers call one another for ever.
[[nodiscard]] Result<void> count_own_change(StateCause& cause);

}  // namespace hearth::extensions

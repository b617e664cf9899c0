#pragma once
// The record of a fiber: its fields, statuses and JSON, and the outcomes with which its
// hook or an operator settles it.

#include "base/error.hpp"
#include "durable/jobs.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {

// The values are those of hearth/ext/fibers.h, single bits.
enum class FiberStatus : std::uint32_t {
  kPending = 1,
  kRunning = 2,
  kRecovering = 4,
  kInterrupted = 8,
  kCompleted = 16,
  kError = 32,
  kAborted = 64,
};
// "pending", "running", ... as in records.
std::string_view to_string(FiberStatus status) noexcept;
std::optional<FiberStatus> fiber_status(std::string_view word) noexcept;
[[nodiscard]] constexpr bool is_settled(FiberStatus status) {
  return static_cast<std::uint32_t>(status) >= 8;
}

// What this instance does with a fiber that is not settled.
enum class FiberNow : std::uint8_t { kNothing, kRuns, kRecovers };

// How long a record is kept.
enum class FiberKeeping : std::uint8_t {
  kKept,   // until retention or delete_fibers() removes it
  kBrief,  // until the fiber is settled; if it is dead, as long as a failed record
};

// A fiber with its documents, as it is shown.
struct FiberRecord {
  Job job{};
  FiberStatus status{};
  std::int64_t next_at_ms = 0;  // when it is offered; 0: it runs, recovers, is settled, or at once
  bool waits_for_code = false;  // for another version of the class

  // JSON; nothing: null.
  std::optional<std::string> input{};
  std::optional<std::string> metadata{};
  std::optional<std::string> snapshot{};
  std::optional<std::string> result{};
  std::optional<std::string> error{};   // a text
  std::optional<std::string> reason{};  // of its end: a word of the author's
};

// JSON, as in hearth/ext/fibers.h.
std::string record_json(const FiberRecord& record);

// A record after a change, for logs, counts and waiting callers.
struct FiberChange {
  std::string id;
  std::int64_t row = 0;
  FiberStatus status{};
  std::string record;                // JSON
  std::vector<std::string> inner{};  // ids of the fibers that were aborted with it
};

// How its hook or an operator settled a fiber. An absent snapshot or metadata leaves that of the
// record; an absent result or error becomes null.
struct FiberOutcome {
  FiberStatus status{};
  std::optional<std::string> result{};    // JSON
  std::optional<std::string> error{};     // a text
  std::optional<std::string> reason{};    // 1 to 256 bytes
  std::optional<std::string> snapshot{};  // JSON
  std::optional<std::string> metadata{};  // JSON
};

// An empty text is the outcome `interrupted`. Unknown members are ignored.
// kInvalidArgument: no JSON object, no settled status, an error that is no text, or a value that is
// nested too deeply. kLimitExceeded: result, metadata or snapshot larger than `max_json_bytes`.
Result<FiberOutcome> parse_outcome(std::string_view json, std::size_t max_json_bytes);

// Whether both texts are the same JSON value, in any spelling. False if one is not JSON.
bool same_json(std::string_view a, std::string_view b);

}  // namespace hearth::durable

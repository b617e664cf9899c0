#pragma once
// The record of a fiber: its fields, statuses and JSON, and the outcomes with which its
// hook or an operator settles it.

#include "base/error.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

// How long a record is kept.
enum class FiberKeeping : std::uint8_t {
  kKept,   // until retention or delete_fibers() removes it
  kBrief,  // until the fiber is settled; if it is dead, as long as a failed record
};

// Times are Unix milliseconds. Only completed_at_ms says whether the fiber is settled.
struct FiberRecord {
  std::int64_t seq = 0;  // the order of acceptance; set by the table
  std::string id;
  std::optional<std::string> key;
  std::string name;

  // Of an unsettled fiber: the status that was last written, which a crash does not change. Only
  // Fibers knows which fibers run or recover; the status is set from it before a record is shown.
  FiberStatus status = FiberStatus::kRunning;
  bool dead = false;
  std::int64_t created_at_ms = 0;
  std::optional<std::int64_t> started_at_ms;
  std::optional<std::int64_t> completed_at_ms;
  int attempts = 0;               // when it ended
  std::uint32_t failures = 0;     // of the work
  std::uint32_t max_retries = 0;  //
  std::chrono::milliseconds retry_base{0};
  std::chrono::milliseconds retry_cap{0};
  std::int64_t next_at_ms = 0;  // pending: when the work is retried
  FiberKeeping keeping = FiberKeeping::kKept;
  std::optional<std::string> parent;  // the id of the fiber that asked for it
  bool waits_for_code = false;        // for another version of the class
  bool is_turn = false;
  std::optional<std::string> lane;

  // JSON; nothing: null.
  std::optional<std::string> input;
  std::optional<std::string> metadata;
  std::optional<std::string> snapshot;
  std::optional<std::string> result;
  std::optional<std::string> error;   // a text
  std::optional<std::string> reason;  // of its end: a word of the author's

  [[nodiscard]] bool settled() const { return completed_at_ms.has_value(); }
  // By its values on disk: no run was interrupted. The work begins when its lane is free, or has
  // failed and is retried at next_at_ms.
  [[nodiscard]] bool is_pending() const { return status == FiberStatus::kPending; }
};

// JSON, as in hearth/ext/fibers.h.
std::string record_json(const FiberRecord& record);

// How its hook or an operator settled a fiber. An absent snapshot or metadata leaves that of the
// record; an absent result or error becomes null.
struct FiberOutcome {
  FiberStatus status{};
  std::optional<std::string> result;    // JSON
  std::optional<std::string> error;     // a text
  std::optional<std::string> reason;    // 1 to 256 bytes
  std::optional<std::string> snapshot;  // JSON
  std::optional<std::string> metadata;  // JSON
};

// An empty text is the outcome `interrupted`. Unknown members are ignored.
// kInvalidArgument: no JSON object, no settled status, an error that is no text, or a value that is
// nested too deeply. kLimitExceeded: result, metadata or snapshot larger than `max_json_bytes`.
Result<FiberOutcome> parse_outcome(std::string_view json, std::size_t max_json_bytes);

// Whether both texts are the same JSON value, in any spelling. False if one is not JSON.
bool same_json(std::string_view a, std::string_view b);

}  // namespace hearth::durable

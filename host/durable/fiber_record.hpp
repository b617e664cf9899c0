#pragma once
// The record of a managed fiber: its fields, its statuses, its JSON, and the outcomes that settle
// it by hand.

#include "base/error.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::durable {

// The values are those of hearth/ext/managed_fibers.h, single bits.
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

// For how long there is a record.
enum class FiberKeeping : std::uint8_t {
  kManaged,  // as kKept; begun by hearth.managed_fibers/1
  kKept,     // until retention or delete_fibers() removes it
  kBrief,    // until it is settled; a dead one as long as a failed one is kept
};

// Times are Unix milliseconds. Whether the fiber is settled is told by completed_at_ms alone.
struct FiberRecord {
  std::int64_t seq = 0;  // of acceptance; set by the table
  std::string id;
  std::optional<std::string> key;
  std::string name;

  // While it is not settled: what was last written. A crash changes nothing on disk, so what runs
  // and what is recovered is known to Fibers alone, and put in here before the record is shown.
  FiberStatus status = FiberStatus::kRunning;
  bool dead = false;
  std::int64_t created_at_ms = 0;
  std::optional<std::int64_t> started_at_ms;
  std::optional<std::int64_t> completed_at_ms;
  int attempts = 0;               // as of its end
  std::uint32_t failures = 0;     // of the work
  std::uint32_t max_retries = 0;  //
  std::chrono::milliseconds retry_base{0};
  std::chrono::milliseconds retry_cap{0};
  std::int64_t next_at_ms = 0;  // pending: when the work begins again
  FiberKeeping keeping = FiberKeeping::kManaged;
  std::optional<std::string> parent;  // the id of the fiber that asked for it
  bool waits_for_code = false;        // of another version
  bool is_turn = false;

  // JSON; none is null.
  std::optional<std::string> input;
  std::optional<std::string> metadata;
  std::optional<std::string> snapshot;
  std::optional<std::string> result;
  std::optional<std::string> error;  // a text

  [[nodiscard]] bool settled() const { return completed_at_ms.has_value(); }
  // As it is on disk: its work has failed, and begins again at next_at.
  [[nodiscard]] bool is_retry() const { return status == FiberStatus::kPending && failures > 0; }
};

// As hearth/ext/managed_fibers.h has it.
std::string record_json(const FiberRecord& record);

// How a fiber was settled by its hook or by hand. What is absent stays as it is in the record, but
// for result and error, which are then null.
struct FiberOutcome {
  FiberStatus status{};
  std::optional<std::string> result;    // JSON
  std::optional<std::string> error;     // a text
  std::optional<std::string> snapshot;  // JSON
  std::optional<std::string> metadata;  // JSON
};

// Nothing at all is the outcome `interrupted`. Unknown members are left aside. kInvalidArgument: no
// JSON object, no settled status, an error that is no text; kLimitExceeded: result, metadata or
// snapshot larger than `max_json_bytes`.
Result<FiberOutcome> parse_outcome(std::string_view json, std::size_t max_json_bytes);

// Whether both texts are the same JSON value, however it is spelled. Texts that are no JSON are
// never the same.
bool same_json(std::string_view a, std::string_view b);

}  // namespace hearth::durable

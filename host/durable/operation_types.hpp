#pragma once
// The values that describe operations, to begin, list and settle them.

#include "durable/fiber_runs.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::durable {

// From the mildest to the strictest.
enum class Effect : std::uint32_t { kRead = 1, kIdempotent, kKeyed, kProbe, kUnsafe };

// As bits, so that a filter can name several.
enum class OperationState : std::uint32_t {
  kRunning = 1,      // in this instance
  kInterrupted = 2,  // started, by its row, but not running
  kCompleted = 4,
  kNotExecuted = 8,
  kUnknown = 16,
};

// "running", "interrupted", "completed", "not_executed", "unknown".
[[nodiscard]] std::string_view to_string(OperationState state);

// kFailed: as kCutOff, and its run has refused the answer that it was given.
enum class OperationOutcome : std::uint32_t {
  kCompleted = 1,
  kNotExecuted,
  kUnknown,
  kCutOff,
  kFailed,
};

enum class OperationDecision : std::uint32_t { kRun = 1, kProbe, kCompleted, kJoin, kUnknown };

// An operator's settings for one kind. The limits are for each agent.
struct OperationKindSettings {
  std::chrono::milliseconds keep{0};  // of settled rows; 0: OperationSettings::keep
  std::size_t per_day = 0;            // operations that begin on one day of UTC; 0: no limit
  std::size_t cost_per_day = 0;       // the sum of their costs; 0: no limit
};

struct OperationSettings {
  std::size_t max_result_bytes = std::size_t{1} << 20;
  std::chrono::milliseconds keep = std::chrono::hours(24 * 30);
  std::map<std::string, OperationKindSettings, std::less<>> kinds{};
  std::size_t most = 100'000;  // rows
};

// Of a request to begin one.
inline constexpr std::size_t kMaxOperationArgumentBytes = std::size_t{64} << 10;
// So small that a day's sum cannot overflow.
inline constexpr std::uint64_t kMostOperationCost = 1'000'000'000'000'000;

// The views are borrowed for the call. check_operation() checks the fields.
struct OperationRequest {
  Effect effect = Effect::kUnsafe;
  FiberHandle fiber = 0;  // the running fiber whose work it is; 0: none
  std::uint64_t horizon_ms = 0;
  bool can_probe = false;
  bool can_resume = false;       // the rest of an answer can be requested
  bool acts_by_request = false;  // its request is all that it does
  std::uint64_t cost = 0;        // in the author's unit
  std::string_view kind{};
  std::string_view arguments{};  // JSON; empty: null
  std::string_view key{};
  std::string_view id{};          // of an operation that was begun before; or empty
  std::string_view key_header{};  // the header for the key; empty: Idempotency-Key
};

// The stored request of an operation, and what is known of the answer to it.
struct DispatchedRequest {
  std::string fingerprint;  // of its method, URL and body
  std::int64_t dispatched_at_ms = 0;
  std::optional<std::int64_t> status{};      // of the answer
  std::optional<std::string> upstream_id{};  // the other side's id of the request
  bool can_resume = false;                   // the rest of the answer can be requested
  bool whole = false;                        // the answer has ended, and all of it is stored
  std::uint64_t bytes = 0;                   // of its body, that are stored

  // The other side has begun a good answer, and its rest can be requested (or is stored).
  [[nodiscard]] bool is_resumable() const {
    return can_resume && status && *status >= 200 && *status < 300;
  }
};

// The request that a running operation is about to send.
struct OperationSending {
  std::string_view id{};           // the operation's
  std::string_view fingerprint{};  // of its method, URL and body; empty if it resumes
  bool resumes = false;            // it requests the rest of a stored answer
  std::uint64_t from = 0;          // the bytes of that answer which stay
};

// The received part of the answer to an operation's request.
struct StoredAnswer {
  DispatchedRequest request;
  std::string head;  // JSON; empty: not received
  std::string body;
};

struct OperationFilter {
  std::uint32_t states = 0;  // bits; 0: all
  std::string_view kind{};
  std::string_view fiber{};  // a fiber's id: only operations of its work
  bool keyed_too = false;  // of an outermost fiber also operations with a key, which have no scope
  std::string_view after{};
  std::size_t limit = 50;
  std::optional<std::int64_t> begun_before_ms{};
  bool without_documents = false;  // "args" and "result" are left out
};

struct OperationBegun {
  OperationDecision decision = OperationDecision::kUnknown;
  int attempt = 1;              // kRun
  std::uint64_t operation = 0;  // kRun, kProbe: for settle()
  std::string id;
  std::string result;  // kCompleted: JSON; empty: the result was too large to keep
};

// An operation with a new state.
struct OperationChange {
  std::string id;
  std::string kind;
  OperationState state = OperationState::kRunning;
};

struct UsedUpBudget {
  std::string kind;
  std::optional<std::int64_t> since_ms{};  // when the last operation of the day began
};

// An unknown operation that the host reports to the agent's code.
struct UnknownOperation {
  std::string id;
  std::string kind;
  std::string record{};  // JSON
  std::int64_t row = 0;
  std::int64_t since_ms = 0;  // when its last run began

  // A text for models and people, also in the client's frame.
  [[nodiscard]] static std::string warning(std::string_view id) {
    return "operation " + std::string(id) + " may have executed; verify before retrying";
  }
};

}  // namespace hearth::durable

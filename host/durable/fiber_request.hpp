#pragma once
// An agent's request to start a fiber.

#include "base/error.hpp"
#include "durable/fiber_record.hpp"
#include "durable/retry_policy.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::durable {

// kReplaceFailed: a completed record is the answer, any other settled record is replaced.
enum class SettledKey : std::uint32_t { kJoin = 0, kReject = 1, kReplace = 2, kReplaceFailed = 3 };

// The views are borrowed for the call. check_fiber() checks the fields.
struct FiberRequest {
  SettledKey policy = SettledKey::kJoin;
  std::string_view name{};
  std::string_view id{};
  std::string_view key{};
  std::string_view input{};     // JSON; empty: null
  std::string_view metadata{};  // JSON; empty: null
  std::uint32_t max_retries = 0;
  std::uint64_t retry_base_ms = 0;
  std::uint64_t retry_max_ms = 0;
  FiberKeeping keeping = FiberKeeping::kKept;
  std::string_view parent{};  // the id of the fiber that waits for this one's value; or empty
  bool take_up = false;       // the caller can go on with the work of an interrupted fiber
  bool is_turn = false;       // then without a parent
  std::string_view lane{};    // the same; empty: none
  // Progress resets the count of max_retries, and of a turn's recoveries.
  bool resets_by_progress = false;
};

// kInvalidArgument, kLimitExceeded: input or metadata are larger than `max_json_bytes`.
[[nodiscard]] Result<void> check_fiber(const FiberRequest& request, std::size_t max_json_bytes);
// `what`: a word for the message.
[[nodiscard]] Result<void> check_fiber_json(std::string_view what, std::string_view json,
                                            std::size_t max_bytes);
[[nodiscard]] Result<RetryPolicy> retry_of(const FiberRequest& request);
// Job::type.
[[nodiscard]] std::string type_of(const FiberRequest& request);

}  // namespace hearth::durable

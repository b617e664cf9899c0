#pragma once
// What may become of an operation: decisions from values, without a database.

#include "durable/operation_requests.hpp"

namespace hearth::durable {

// A caller that is no fiber begins an interrupted operation again within a day, or never.
inline constexpr std::chrono::milliseconds kLongestInterruption = std::chrono::hours(24);
inline constexpr std::chrono::milliseconds kMostClockSkew = std::chrono::minutes(5);

// ---- texts from outside ----
inline constexpr std::size_t kMaxOperationNoteBytes = 1024;
// kInvalidArgument, kLimitExceeded.
[[nodiscard]] Result<void> check_operation(const OperationRequest& request);
[[nodiscard]] Result<void> check_resolution(OperationOutcome outcome, std::string_view result,
                                            std::string_view note, std::string_view actor,
                                            std::size_t max_result_bytes);

// ---- beginning ----
// The other side still knows the operation's key.
[[nodiscard]] bool is_key_known(const OperationRow& row, std::int64_t now_ms);
struct DecidedOperation {
  OperationDecision decision = OperationDecision::kUnknown;
  OperationRow row;  // with the effect and the horizon that it has from now on
};
// P1: An operation has two effects: the one that it was begun with, and the one of the request. The
// stricter of them counts. `goes_on`: the request can go on with a stored answer (P10).
[[nodiscard]] DecidedOperation decide(OperationRow row, OperationState state,
                                      const OperationRequest& request, bool was_given_up,
                                      bool goes_on, std::int64_t now_ms);

// ---- its request ----
// Whether P8 allows it. `before`: the stored request.
[[nodiscard]] Result<void> check_sending(const RunningOperation& running,
                                         const OperationSending& sending,
                                         const std::optional<DispatchedRequest>& before,
                                         std::int64_t now_ms);

// ---- ending ----
// Of a run that was cut off. kCutOff: the operation may be begun again. `goes_on`: another run
// could go on with a stored answer (P10).
[[nodiscard]] OperationOutcome outcome_of_cut(const RunningOperation& running, bool has_request,
                                              bool goes_on);

// ---- giving up (P12) ----
// When an interrupted operation that cannot go on with an answer is given up; nothing: when its
// fibers are over.
[[nodiscard]] std::optional<std::int64_t> loss_without_answer_ms(const OperationRow& row);
// `goes_on`: its work may still run, and go on with a stored answer.
[[nodiscard]] std::optional<std::int64_t> loss_ms(const OperationRow& row, bool goes_on);
// Whether an interrupted operation whose work may still run is given up now.
[[nodiscard]] bool is_lost(const OperationRow& row, bool goes_on, std::int64_t now_ms);

}  // namespace hearth::durable

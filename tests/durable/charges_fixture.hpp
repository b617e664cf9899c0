#pragma once
// Operations of the kind "charge", of fibers or of the agent.

#include "durable/operations_fixture.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::durable {

inline constexpr auto kRun = OperationDecision::kRun;
inline constexpr auto kProbe = OperationDecision::kProbe;
inline constexpr auto kJoin = OperationDecision::kJoin;
inline constexpr auto kUnknown = OperationDecision::kUnknown;
inline constexpr auto kCompleted = OperationOutcome::kCompleted;
inline constexpr auto kNotExecuted = OperationOutcome::kNotExecuted;
inline constexpr auto kCutOff = OperationOutcome::kCutOff;

inline constexpr std::size_t kMaxResult = 100;

class OperationsTest : public OperationsFixture {
 protected:
  OperationsTest() : OperationsFixture({.max_result_bytes = kMaxResult, .kinds = {}}) {}

  OperationRequest charge(FiberHandle fiber, Effect effect = Effect::kUnsafe) const {
    OperationRequest request{
        .effect = effect, .fiber = fiber, .kind = "charge", .arguments = arguments_};
    if (effect == Effect::kKeyed)
      request.horizon_ms =
          static_cast<std::uint64_t>(std::chrono::milliseconds(std::chrono::hours(24)).count());
    return request;
  }
  OperationBegun begin(const OperationRequest& request) { return begin_request(request); }
  OperationBegun complete(const OperationRequest& request, std::string_view result = "1") {
    const OperationBegun begun = begin(request);
    EXPECT_EQ(begun.decision, kRun);
    settle(begun, kCompleted, result);
    return begun;
  }
  FiberHandle start_fiber(std::string_view id = "f") { return start(id).fiber; }

  std::string arguments_ = R"({"cents":500})";
};

}  // namespace hearth::durable

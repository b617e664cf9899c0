#pragma once
// What holds for every function of the extensions for durable work, whatever it does.

#include "plugins/generation/abi_host_fixture.hpp"

#include <functional>
#include <span>
#include <string>
#include <utility>

namespace hearth::plugins::testing {

// A function of a table, called with good arguments for the agent that is given.
struct DurableCall {
  const char* name;
  std::function<hearth_status(const hearth_host*, hearth_agent)> call;
};

class DurableCallsTest : public AbiHostTest {
 protected:
  void expect_common_rules(std::span<const DurableCall> functions) {
    for (const DurableCall& function : functions) {
      SCOPED_TRACE(function.name);
      EXPECT_EQ(function.call(host_, 1), HEARTH_E_GONE);
      EXPECT_EQ(function.call(host_, FakeAgentDirectory::kElsewhere), HEARTH_E_WRONG_THREAD);
      EXPECT_EQ(function.call(nullptr, kAgent), HEARTH_E_INVALID);
      EXPECT_TRUE(agent_.calls.empty());
      for (const auto& [code, status] : {std::pair{Errc::kInvalidArgument, HEARTH_E_INVALID},
                                         std::pair{Errc::kLimitExceeded, HEARTH_E_LIMIT},
                                         std::pair{Errc::kConflict, HEARTH_E_CONFLICT},
                                         std::pair{Errc::kClosing, HEARTH_E_CLOSING}}) {
        const std::string words = std::string(function.name) + " said no";
        answer(code, words);
        EXPECT_EQ(function.call(host_, kAgent), status);
        EXPECT_EQ(last_error(), words);
      }
      agent_.answer.reset();
      agent_.storage_breaks = true;
      EXPECT_EQ(function.call(host_, kAgent), HEARTH_E_IO);
      EXPECT_EQ(std::exchange(agent_.broken, ""), "the disk is gone");
      agent_.storage_breaks = false;
      agent_.calls.clear();
    }
  }

  static constexpr hearth_bytes kBadSlices[] = {
      {nullptr, 3}, {"\xff\xfe", 2}, {"x", static_cast<std::size_t>(-1)}};
};

}  // namespace hearth::plugins::testing

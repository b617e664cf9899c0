#pragma once
// Rules for all functions of the extensions for durable work.

#include "extensions/abi_fixture.hpp"
#include "extensions/sql.hpp"

#include <functional>
#include <span>

namespace hearth::extensions::testing {

// A function of a table, called with good arguments for the given agent.
struct DurableCall {
  const char* name;
  bool changes;  // it writes, or would
  std::function<hearth_status(const hearth_host*, hearth_agent)> call;
};

template <class Function, class... Arguments>
DurableCall durable_call(const char* name, bool changes, Function function,
                         Arguments... arguments) {
  return {name, changes, [=](const hearth_host* host, hearth_agent agent) {
            return function(host, agent, arguments...);
          }};
}

class DurableCallsTest : public AbiHostTest {
 protected:
  void expect_common_rules(std::span<const DurableCall> functions) {
    for (const DurableCall& function : functions) {
      SCOPED_TRACE(function.name);
      EXPECT_EQ(function.call(host_, 1), HEARTH_E_GONE);
      EXPECT_EQ(function.call(host_, TestDirectory::kElsewhere), HEARTH_E_WRONG_THREAD);
      EXPECT_EQ(function.call(nullptr, kAgent), HEARTH_E_INVALID);
      if (!function.changes) continue;
      agent_.its_phase = AgentPhase::kMigrating;
      EXPECT_EQ(function.call(host_, kAgent), HEARTH_E_INVALID);
      EXPECT_EQ(last_error(), "not while the agent's data are migrated");
      agent_.its_phase = AgentPhase::kClosing;
      EXPECT_EQ(function.call(host_, kAgent), HEARTH_E_CLOSING);
      EXPECT_EQ(last_error(), "the agent is being evicted");
      agent_.its_phase = AgentPhase::kRunning;
    }
    EXPECT_FALSE(agent_.has_stored());
    expect_refusals_in_a_savepoint(functions);
  }
  // `function` writes, and writing fails.
  void expect_io_error(const DurableCall& function) {
    agent_.break_storage();
    EXPECT_EQ(function.call(host_, kAgent), HEARTH_E_IO);
    EXPECT_NE(agent_.broken, "");
  }

  static constexpr hearth_bytes kBadSlices[] = {
      {nullptr, 3}, {"\xff\xfe", 2}, {"x", static_cast<std::size_t>(-1)}};

 private:
  void expect_refusals_in_a_savepoint(std::span<const DurableCall> functions) {
    const auto savepoint = agent_.of<SqlExtension>().sql().begin_savepoint();
    ASSERT_TRUE(savepoint);
    for (const DurableCall& function : functions) {
      if (!function.changes) continue;
      EXPECT_EQ(function.call(host_, kAgent), HEARTH_E_INVALID) << function.name;
      EXPECT_EQ(last_error(), "not while a transaction of the agent's own is open");
    }
    EXPECT_TRUE(agent_.of<SqlExtension>().sql().rollback_to(*savepoint));
  }
};

}  // namespace hearth::extensions::testing

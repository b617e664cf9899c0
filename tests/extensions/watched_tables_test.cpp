#include "extensions/watched_tables.hpp"

#include "abi_fixture.hpp"
#include "extensions/registry.hpp"

#include <hearth/ext/clock.h>
#include <hearth/ext/sql.h>
#include <hearth/ext/state.h>

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace hearth::extensions {
namespace {

using testing::kAgent;
using testing::slice;
using testing::view;

// Writes down what it sees: "hearth.sql/1 step of 41, statement 1".
class WatchedTablesTest : public testing::AbiHostTest, public AbiWatcher {
 protected:
  std::optional<hearth_status> enter(const AbiCall& call) override {
    std::string line(call.function.name);
    if (call.agent != 0) line += " of " + std::to_string(call.agent);
    if (call.statement != 0) line += ", a statement";
    seen_.push_back(line);
    return refusal_;
  }
  void lent(const AbiCall& /*call*/, hearth_bytes* bytes) override {
    seen_.push_back("lends " + std::string(view(*bytes)));
    *bytes = slice("a copy");
  }
  void left(const AbiCall& call) override {
    seen_.push_back("left " + std::string(call.function.name));
  }
  [[nodiscard]] bool has_extension(std::string_view id) const override { return id != hidden_; }
  [[nodiscard]] const AbiHost& abi() const override { return abi_; }

  template <class Table>
  const Table& watched(const char* id) {
    return *static_cast<const Table*>(table_.host.get_extension(&table_.host, id));
  }

  testing::Lines seen_;
  std::optional<hearth_status> refusal_;
  std::string_view hidden_;
  WatchedTable table_ = watched_table(*this);
  const hearth_host* const watched_ = &table_.host;
};

TEST_F(WatchedTablesTest, HasEveryExtensionThatThereIsWithFunctionsOfItsOwn) {
  for (const Registered& each : registered_extensions()) {
    const void* const table = watched_->get_extension(watched_, std::string(each.id).c_str());
    EXPECT_NE(table, nullptr) << each.id;
    EXPECT_NE(table, each.table) << each.id;
  }
  EXPECT_EQ(watched_->get_extension(watched_, "hearth.moon/1"), nullptr);
  EXPECT_EQ(watched_->get_extension(watched_, nullptr), nullptr);
  hidden_ = HEARTH_EXT_STATE;
  EXPECT_EQ(watched_->get_extension(watched_, HEARTH_EXT_STATE), nullptr);
}

TEST_F(WatchedTablesTest, WhatAFunctionDoesIsDoneAndSeen) {
  const auto& state = watched<hearth_state_v1>(HEARTH_EXT_STATE);
  seen_.clear();
  EXPECT_EQ(state.set(watched_, kAgent, 0, slice("1")), HEARTH_OK);
  hearth_bytes json{};
  EXPECT_EQ(state.get(watched_, kAgent, &json), HEARTH_OK);
  EXPECT_EQ(view(json), "a copy");
  EXPECT_EQ(seen_,
            (testing::Lines{"hearth.state/1 set of 41", "left hearth.state/1 set",
                            "hearth.state/1 get of 41", "lends 1", "left hearth.state/1 get"}));
}

TEST_F(WatchedTablesTest, WhatIsRefusedIsNotDoneAndLendsNothing) {
  const auto& state = watched<hearth_state_v1>(HEARTH_EXT_STATE);
  EXPECT_EQ(state.set(watched_, kAgent, 0, slice("1")), HEARTH_OK);
  seen_.clear();
  refusal_ = HEARTH_E_IO;
  EXPECT_EQ(state.set(watched_, kAgent, 0, slice("2")), HEARTH_E_IO);
  hearth_bytes json{};
  EXPECT_EQ(state.get(watched_, kAgent, &json), HEARTH_E_IO);
  EXPECT_EQ(json.ptr, nullptr);
  refusal_.reset();
  EXPECT_EQ(extension<hearth_state_v1>(HEARTH_EXT_STATE).get(host_, kAgent, &json), HEARTH_OK);
  EXPECT_EQ(view(json), "1");
}

TEST_F(WatchedTablesTest, NamesTheAgentAndTheStatement) {
  const auto& sql = watched<hearth_sql_v1>(HEARTH_EXT_SQL);
  hearth_statement statement = 0;
  seen_.clear();
  ASSERT_EQ(sql.prepare(watched_, kAgent, slice("SELECT 1"), &statement), HEARTH_OK);
  EXPECT_EQ(sql.step(watched_, kAgent, statement), HEARTH_ROW);
  EXPECT_GT(watched<hearth_clock_v1>(HEARTH_EXT_CLOCK).wall_ms(watched_), 0);
  EXPECT_EQ(seen_, (testing::Lines{"hearth.sql/1 prepare of 41", "left hearth.sql/1 prepare",
                                   "hearth.sql/1 step of 41, a statement", "left hearth.sql/1 step",
                                   "get_extension", "hearth.clock/1 wall_ms",
                                   "left hearth.clock/1 wall_ms"}));
}

}  // namespace
}  // namespace hearth::extensions

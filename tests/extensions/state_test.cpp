#include "extensions/state.hpp"

#include "extensions/abi_fixture.hpp"
#include "extensions/sql.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiStateTest : public AbiHostTest {
 protected:
  std::string shown() { return lent(state_.get); }

  const hearth_state_v1& state_ = extension<hearth_state_v1>(HEARTH_EXT_STATE);
};

TEST_F(AbiStateTest, IsShownStoredAndToldOf) {
  EXPECT_EQ(shown(), "HEARTH_E_NOT_FOUND");
  EXPECT_EQ(state_.get(host_, kAgent, nullptr), HEARTH_E_INVALID);
  EXPECT_EQ(state_.set_default(host_, kAgent, slice("0")), HEARTH_OK);
  EXPECT_EQ(shown(), "0");
  EXPECT_FALSE(agent_.has_stored()) << "a default is not stored";
  EXPECT_EQ(state_.set(host_, kAgent, 0, slice(R"({"n":1})")), HEARTH_OK);
  EXPECT_EQ(shown(), R"({"n":1})");
  EXPECT_EQ(agent_.told, (Lines{R"(state {"n":1} by 0, write 1)"}));
}

TEST_F(AbiStateTest, WhatIsNoJsonOrTooLargeIsRefused) {
  EXPECT_EQ(state_.set(host_, kAgent, 0, slice("{")), HEARTH_E_INVALID);
  EXPECT_EQ(state_.set(host_, kAgent, 0, slice(kNotUtf8)), HEARTH_E_INVALID);
  EXPECT_EQ(state_.set(host_, kAgent, 0, kNullWithLength), HEARTH_E_INVALID);
  EXPECT_EQ(state_.set_default(host_, kAgent, slice("{")), HEARTH_E_INVALID);
  const std::string large = '"' + std::string(ClassSettings::kMaxValue, 'x') + '"';
  EXPECT_EQ(state_.set(host_, kAgent, 0, slice(large)), HEARTH_E_LIMIT);
  EXPECT_EQ(state_.set_default(host_, kAgent, slice(large)), HEARTH_E_INVALID);
  EXPECT_EQ(shown(), "HEARTH_E_NOT_FOUND");
  EXPECT_TRUE(agent_.told.empty());
}

TEST_F(AbiStateTest, AClientThatMayNotWriteWritesThroughNobody) {
  agent_.add_client(5, "ann").flags = Client::kReadonly;
  EXPECT_EQ(state_.set(host_, kAgent, 5, slice("1")), HEARTH_E_FORBIDDEN);
  EXPECT_EQ(last_error(), "Connection is readonly");
  EXPECT_EQ(state_.set(host_, kAgent, 6, slice("1")), HEARTH_OK) << "that one has left";
}

TEST_F(AbiStateTest, AWatcherMayRefuseAChange) {
  answer(Errc::kLimitExceeded, "does it ever end?");
  EXPECT_EQ(state_.set(host_, kAgent, 0, slice("1")), HEARTH_E_LIMIT);
  EXPECT_EQ(last_error(), "does it ever end?");
  EXPECT_EQ(shown(), "HEARTH_E_NOT_FOUND");
}

TEST_F(AbiStateTest, ARollbackTakesItBackWithTheRows) {
  EXPECT_EQ(state_.set(host_, kAgent, 0, slice("1")), HEARTH_OK);
  storage::PluginSql& sql = agent_.of<SqlExtension>().sql();
  const auto savepoint = sql.begin_savepoint();
  ASSERT_TRUE(savepoint);
  EXPECT_EQ(state_.set(host_, kAgent, 0, slice("2")), HEARTH_OK);
  ASSERT_TRUE(sql.rollback_to(*savepoint));
  EXPECT_EQ(shown(), "1");
  EXPECT_EQ(agent_.told.back(), "undone after write 1");
}

// The new state may be a part of the old one's text (hearth/abi.h, "Memory").
TEST_F(AbiStateTest, MayBeReplacedByAPartOfItself) {
  EXPECT_EQ(state_.set(host_, kAgent, 0, slice(R"({"inner":[1,2,3]})")), HEARTH_OK);
  hearth_bytes json{};
  ASSERT_EQ(state_.get(host_, kAgent, &json), HEARTH_OK);
  EXPECT_EQ(state_.set(host_, kAgent, 0, slice(view(json).substr(9, 7))), HEARTH_OK);
  EXPECT_EQ(shown(), "[1,2,3]");
}

}  // namespace
}  // namespace hearth::extensions

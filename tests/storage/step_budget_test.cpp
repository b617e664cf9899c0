#include "storage/step_budget.hpp"

#include "storage/plugin_sql_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace hearth::storage {
namespace {

using std::chrono::milliseconds;

TEST(StepBudgetTest, IsItsThreadsWhileItLives) {
  const TickingClock clock;
  EXPECT_EQ(StepBudget::current(), nullptr);
  EXPECT_TRUE(StepBudget::has_time_for(StepBudget::kWorkPerLook));
  {
    const StepBudget budget(clock, clock.steady_now());
    EXPECT_EQ(StepBudget::current(), &budget);
    EXPECT_TRUE(budget.is_over());
    EXPECT_FALSE(StepBudget::has_time_for(StepBudget::kWorkPerLook));
  }
  EXPECT_EQ(StepBudget::current(), nullptr);
}

TEST(StepBudgetTest, LooksAtTheClockOnceInSoMuchWork) {
  const TickingClock clock;
  const StepBudget budget(clock, clock.steady_now());
  for (int look = 0; look < 3; ++look) {
    for (std::size_t work = 1; work < StepBudget::kWorkPerLook / 64; ++work)
      ASSERT_TRUE(StepBudget::has_time_for(64)) << look;
    EXPECT_FALSE(StepBudget::has_time_for(64)) << look;
  }
}

TEST(StepBudgetTest, TheTokensOfAQueryAreCountedAndARefusalStays) {
  const TickingClock clock;
  StepBudget budget(clock, clock.steady_now());
  for (int query = 0; query < 2; ++query) {
    for (std::size_t i = 0; i < kMostQueryTokens; ++i) ASSERT_TRUE(budget.take_query_token());
    EXPECT_FALSE(budget.refused_query());
    if (query == 0) budget.end_query();
  }
  EXPECT_FALSE(budget.take_query_token());
  budget.end_query();
  EXPECT_TRUE(budget.refused_query());
}

class StepTimeTest : public PluginSqlTest {
 protected:
  // Of the first step. Each look at the clock takes a millisecond.
  std::optional<Errc> error_of(const std::string& sql, const std::vector<std::string>& arguments) {
    const StatementHandle handle = prepare(sql);
    int place = 0;
    for (const std::string& each : arguments) EXPECT_TRUE(sql_->bind_text(handle, ++place, each));
    const Result<StepOutcome> outcome = sql_->step(handle);
    EXPECT_TRUE(sql_->finalize(handle));
    if (outcome) return std::nullopt;
    return outcome.error().code;
  }
  static std::string columns(const std::string& call) {
    std::string sql = "SELECT " + call;
    for (int i = 1; i < 200; ++i) sql += "," + call;
    return sql;
  }
};

TEST_F(StepTimeTest, FunctionsInOneRowLookAtTheClock) {
  start({.sql_time = milliseconds(50)});
  ASSERT_TRUE(run("CREATE VIRTUAL TABLE f USING fts5(x)"));
  ASSERT_TRUE(run("INSERT INTO f VALUES('a b c')"));
  const std::string long_text(StepBudget::kWorkPerLook, 'a');
  struct Case {
    std::string sql;
    std::vector<std::string> arguments;
  };
  const Case cases[] = {
      {columns("json_patch(?1,?2)"), {"{}", "{\"a\":1}"}},
      {columns("json_set(?1,'$.a',1)"), {"[\"" + long_text + "\"]"}},
      {columns("trim(?1)"), {long_text}},
      {columns("instr(?1,'b')"), {long_text}},
      {columns("replace(?1,'b','c')"), {long_text}},
      {columns("highlight(f,0,'<','>')") + " FROM f('a')", {}},
      {columns("snippet(f,0,'<','>','..',9)") + " FROM f('a')", {}},
      {columns("bm25(f)") + " FROM f('a')", {}},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(error_of(each.sql, each.arguments), Errc::kTimeout) << each.sql.substr(0, 40);
    EXPECT_FALSE(database_.broken());
  }
  EXPECT_EQ(error_of(columns("trim(?1)"), {"short"}), std::nullopt);
}

// A look every 1,000 instructions would be one, and with the worst pattern 17 s.
TEST_F(StepTimeTest, ThereIsALookForEachDozenOfRowsThatLikeReads) {
  ASSERT_TRUE(run("CREATE TABLE t(x)"));
  for (int i = 0; i < 110; ++i) ASSERT_TRUE(run("INSERT INTO t VALUES('a')"));
  start({.sql_time = milliseconds(5)});
  EXPECT_EQ(error_of("SELECT count(*) FROM t WHERE x LIKE ?", {"%b"}), Errc::kTimeout);
}

}  // namespace
}  // namespace hearth::storage

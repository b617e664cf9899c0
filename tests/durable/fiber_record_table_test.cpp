#include "durable/fiber_record_table.hpp"

#include "storage/statement.hpp"
#include "support/counted_steps.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

namespace hearth::durable {
namespace {

class FiberRecordTableTest : public ::testing::Test {
 protected:
  static FiberRecord record(std::string id, std::int64_t created_at_ms = 1) {
    FiberRecord record;
    record.id = std::move(id);
    record.name = "n";
    record.created_at_ms = created_at_ms;
    return record;
  }
  void settle(FiberRecord each, FiberStatus status, std::int64_t at_ms) {
    each.status = status;
    each.completed_at_ms = at_ms;
    table_.update(each, at_ms);
  }
  std::string walked(const RecordQuery& query) {
    std::string ids;
    table_.walk(query, [&](FiberRecord& each) {
      ids += each.id;
      return true;
    });
    return ids;
  }
  // Whether SQLite answers this from an index, without reading the table from one end to the other.
  bool uses(const std::string& index, const std::string& sql) {
    storage::Statement plan(database_.connection(), "EXPLAIN QUERY PLAN " + sql);
    for (storage::Rows rows = plan.query(); rows.next();) {
      if (rows.text(3).find(index) != std::string_view::npos) return true;
    }
    return false;
  }

  hearth::testing::TempDirectory directory_;
  storage::AgentDatabase database_{directory_.path() / "a.db", {"Worker", "a"}};
  FiberRecordTable table_{database_};
};

TEST_F(FiberRecordTableTest, ARecordComesBackWithEveryColumn) {
  EXPECT_FALSE(table_.find("x"));
  EXPECT_FALSE(table_.exists());
  FiberRecord in = record("x", 10);
  in.key = "k";
  in.max_retries = 3;
  in.retry_base = std::chrono::milliseconds(5);
  in.retry_cap = std::chrono::milliseconds(6);
  in.input = "[1]";
  in.metadata = "2";
  table_.insert(in);
  in.status = FiberStatus::kError;
  in.dead = true;
  in.started_at_ms = 11;
  in.completed_at_ms = 12;
  in.attempts = 4;
  in.failures = 2;
  in.next_at_ms = 77;
  in.metadata = "3";
  in.snapshot = "{}";
  in.result = "5";
  in.error = "no";
  table_.update(in, 12);
  database_.commit();
  const auto out = table_.find_by_key("k");
  ASSERT_TRUE(out);
  EXPECT_EQ(record_json(*out), record_json(in));
  EXPECT_EQ(out->retry_base, in.retry_base);
  EXPECT_EQ(out->retry_cap, in.retry_cap);
  EXPECT_EQ(table_.seq_of("x"), out->seq);
  EXPECT_EQ(table_.size(), 1U);
  table_.erase("x");
  EXPECT_FALSE(table_.find("x"));
}

TEST_F(FiberRecordTableTest, AWalkGoesFromTheNewestAndStopsWhenItIsTold) {
  for (const char* id : {"a", "b", "c", "d"}) table_.insert(record(id));
  settle(record("b"), FiberStatus::kCompleted, 5);
  settle(record("c"), FiberStatus::kAborted, 6);
  EXPECT_EQ(walked({}), "da") << "open ones only";
  EXPECT_EQ(walked({.settled = 127}), "dcba");
  EXPECT_EQ(walked({.open = false, .settled = 16}), "b");
  int seen = 0;
  table_.walk({.settled = 127}, [&](FiberRecord&) { return ++seen < 2; });
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(table_.open_ids(), (std::vector<std::string>{"a", "d"}));
  EXPECT_EQ(table_.settled_ids({.settled = 127}, 9), (std::vector<std::string>{"b", "c"}));
}

TEST_F(FiberRecordTableTest, AWalkOverOpenOnesDoesNotPassThroughTheSettledOnes) {
  table_.insert(record("a"));
  database_.commit();
  storage::Statement(
      database_.connection(),
      "INSERT INTO cf_agents_fibers(fiber_id, name, status, dead, created_at, completed_at) "
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000) "
      "SELECT 's' || i, 'n', 'error', 1, i, i FROM n")
      .execute();
  table_.insert(record("b"));
  database_.commit();
  const hearth::testing::CountedSteps steps(database_);
  EXPECT_EQ(walked({}), "ba");
  EXPECT_LT(steps.count(), 1'000U);
}

TEST_F(FiberRecordTableTest, WhatIsSettledIsUntoldUntilItIsNoted) {
  for (const char* id : {"a", "b"}) table_.insert(record(id));
  settle(record("b"), FiberStatus::kCompleted, 5);
  settle(record("a"), FiberStatus::kCompleted, 6);
  ASSERT_EQ(table_.untold().size(), 2U);
  EXPECT_EQ(table_.untold()[0].id, "b");
  EXPECT_TRUE(table_.note_not_told("b", 3, 99));
  EXPECT_EQ(table_.untold()[0].failures, 3);
  EXPECT_EQ(table_.untold()[0].tell_at_ms, 99);
  table_.note_telling("b", 2, 100);
  EXPECT_EQ(table_.untold()[0].interruptions, 2);
  EXPECT_EQ(table_.untold()[0].failures, 3);
  EXPECT_EQ(table_.untold()[0].tell_at_ms, 100);
  EXPECT_TRUE(table_.note_not_told("b", 4, 101));
  EXPECT_EQ(table_.untold()[0].interruptions, 0);
  EXPECT_TRUE(table_.note_told("b"));
  EXPECT_FALSE(table_.note_not_told("b", 1, 1));
  EXPECT_EQ(table_.untold().size(), 1U);
  table_.update(record("b"), 7);  // open again
  EXPECT_FALSE(table_.note_told("b"));
  EXPECT_EQ(table_.untold().size(), 1U);
}

TEST_F(FiberRecordTableTest, OnlyWhatWasToldExpires) {
  for (const char* id : {"a", "b", "c"}) table_.insert(record(id));
  settle(record("a"), FiberStatus::kCompleted, 5);
  settle(record("b"), FiberStatus::kError, 5);
  settle(record("c"), FiberStatus::kInterrupted, 5);
  EXPECT_EQ(table_.erase_expired(100, 100, 10), 0U);
  for (const char* id : {"a", "b", "c"}) table_.note_told(id);
  EXPECT_EQ(table_.erase_expired(4, 4, 10), 0U);
  EXPECT_EQ(table_.erase_expired(5, 4, 10), 1U);
  EXPECT_EQ(table_.erase_expired(5, 5, 10), 1U);
  EXPECT_EQ(table_.erase_expired(100, 100, 10), 0U) << "what was interrupted stays";
  EXPECT_EQ(table_.size_bound(), 1U);
}

TEST_F(FiberRecordTableTest, WhatEveryWakeAndEverySweepAskForHasItsIndex) {
  table_.insert(record("a"));
  EXPECT_TRUE(
      uses("cf_agents_fibers_open",
           "SELECT fiber_id FROM cf_agents_fibers WHERE completed_at IS NULL ORDER BY seq"));
  EXPECT_TRUE(
      uses("cf_agents_fibers_untold",
           "SELECT fiber_id FROM cf_agents_fibers WHERE told = 0 ORDER BY completed_at, seq"));
  EXPECT_TRUE(
      uses("cf_agents_fibers_kept",
           "SELECT 1 FROM cf_agents_fibers WHERE keep = 'failed' AND completed_at <= 5 LIMIT 1"));
  EXPECT_TRUE(uses("cf_agents_fibers_kept",
                   "SELECT seq FROM cf_agents_fibers WHERE keep = 'failed' AND completed_at <= 5 "
                   "ORDER BY completed_at LIMIT 9"));
}

TEST_F(FiberRecordTableTest, ATableThatWasRolledBackIsMadeAgain) {
  database_.begin_write();
  storage::Statement(database_.connection(), "SAVEPOINT plugin").execute();
  table_.insert(record("lost"));
  storage::Statement(database_.connection(), "ROLLBACK TO plugin").execute();
  storage::Statement(database_.connection(), "RELEASE plugin").execute();
  table_.insert(record("kept"));
  database_.commit();
  EXPECT_FALSE(table_.find("lost"));
  EXPECT_TRUE(table_.find("kept"));
}

}  // namespace
}  // namespace hearth::durable

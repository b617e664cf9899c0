#include "durable/schedule_table.hpp"

#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace hearth::durable {
namespace {

using RowIds = std::vector<std::int64_t>;

class ScheduleTableTest : public ::testing::Test {
 protected:
  ScheduleTableTest() { open(); }
  void open() {
    table_.reset();
    database_.reset();
    database_ = std::make_unique<storage::AgentDatabase>(directory_.path() / "a.db",
                                                         storage::AgentKey{"Clock", "a"});
    table_ = std::make_unique<ScheduleTable>(*database_);
  }
  ScheduleRow insert(std::string id, std::optional<std::int64_t> time = 100) {
    ScheduleRow row;
    row.id = std::move(id);
    row.callback = "tick";
    row.type = ScheduleType::kDelay;
    row.time = time;
    row.length_ms = 50;
    row.likeness = "like " + row.id;
    row.scheduled_for = 100;
    row.created_at = row.set_at = 50;
    table_->insert(row, "[1]");
    return row;
  }

  hearth::testing::TempDirectory directory_;
  std::unique_ptr<storage::AgentDatabase> database_;
  std::unique_ptr<ScheduleTable> table_;
};

TEST_F(ScheduleTableTest, ReadingMakesNoTable) {
  EXPECT_TRUE(table_->load().empty());
  EXPECT_FALSE(table_->find("x"));
  EXPECT_FALSE(table_->find(1));
  EXPECT_FALSE(table_->find_alike("x"));
  EXPECT_FALSE(table_->find_dead("x"));
  EXPECT_TRUE(table_->children("x").empty());
  EXPECT_TRUE(table_->list({}).empty());
  EXPECT_TRUE(table_->crowds(1, 1).empty());
  EXPECT_FALSE(database_->exists());
}

TEST_F(ScheduleTableTest, ARowComesBackAsItWasWritten) {
  ScheduleRow row;
  row.id = "i";
  row.callback = "c";
  row.type = ScheduleType::kCron;
  row.time = 1'700'000'000'123;
  row.cron = "* * * * *";
  row.time_zone = "Europe/Berlin";
  row.likeness = "l";
  row.retry = {7, std::chrono::milliseconds(11), std::chrono::milliseconds(13)};
  row.misfire = Misfire::kAll;
  row.misfire_limit = 17;
  row.overlap = Overlap::kAllow;
  row.scheduled_for = 19;
  row.created_at = 23;
  row.set_at = 29;
  table_->insert(row, R"({"a":1})");
  row.time.reset();
  row.paused = row.dead = row.owed = true;
  row.missing = 31;
  row.running = 37;
  row.scheduled_for = 41;
  row.missed = 43;
  row.attempts = 47;
  row.interruptions = 53;
  row.begun_at = 57;
  row.catch_up_until = 59;
  row.set_at = 61;
  row.runs = 67;
  row.failures = 71;
  row.last_run = 73;
  row.last_error = "e";
  table_->update(row);
  database_->commit();
  open();
  const auto back = table_->find("i");
  ASSERT_TRUE(back);
  EXPECT_EQ(back->seq, row.seq);
  EXPECT_EQ(back->parent, "");
  EXPECT_EQ(back->callback, "c");
  EXPECT_EQ(back->type, ScheduleType::kCron);
  EXPECT_EQ(back->time, std::nullopt);
  EXPECT_EQ(back->length_ms, 0);
  EXPECT_EQ(back->cron, row.cron);
  EXPECT_EQ(back->time_zone, row.time_zone);
  EXPECT_FALSE(back->fixed_rate);
  EXPECT_EQ(back->likeness, "l");
  EXPECT_EQ(back->retry, row.retry);
  EXPECT_EQ(back->misfire, Misfire::kAll);
  EXPECT_EQ(back->misfire_limit, 17U);
  EXPECT_EQ(back->overlap, Overlap::kAllow);
  EXPECT_TRUE(back->paused && back->dead && back->owed);
  EXPECT_EQ(back->missing, 31);
  EXPECT_EQ(back->running, 37);
  EXPECT_EQ(back->scheduled_for, 41);
  EXPECT_EQ(back->missed, 43U);
  EXPECT_EQ(back->attempts, 47);
  EXPECT_EQ(back->interruptions, 53);
  EXPECT_EQ(back->begun_at, 57);
  EXPECT_EQ(back->catch_up_until, 59);
  EXPECT_EQ(back->set_at, 61);
  EXPECT_EQ(back->created_at, 23);
  EXPECT_EQ(back->runs, 67);
  EXPECT_EQ(back->failures, 71);
  EXPECT_EQ(back->last_run, 73);
  EXPECT_EQ(back->last_error, "e");
  EXPECT_EQ(table_->payload(back->seq), R"({"a":1})");
}

TEST_F(ScheduleTableTest, RowsAreNumberedInTheOrderOfCreation) {
  const auto first = insert("b");
  const auto second = insert("a");
  EXPECT_LT(first.seq, second.seq);
  const auto rows = table_->load();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].id, "b");
  EXPECT_EQ(table_->payload(12'345), "null");
}

TEST_F(ScheduleTableTest, ARunOfAScheduleIsFoundByItsParentAlone) {
  insert("p");
  ScheduleRow child = insert("free");
  child.id = "c";
  child.parent = "p";
  table_->insert(child, "null");
  EXPECT_EQ(table_->children("p"), RowIds{child.seq});
  EXPECT_FALSE(table_->find("c"));
  EXPECT_TRUE(table_->find(child.seq));
  EXPECT_EQ(table_->list({}).size(), 2U);
  EXPECT_EQ(table_->find_alike("like free"), 2) << "its parent, not the run";
}

// Agents choose the ids of their fibers. A fiber may have the id of the schedule that began it, and
// may wait for other fibers.
TEST_F(ScheduleTableTest, FibersBelowAFiberThatIsNamedAfterAScheduleAreLeftAlone) {
  const std::string id = insert("p").id;
  Jobs jobs(*database_);
  Job fiber;
  fiber.kind = JobKind::kFiber;
  fiber.id = "f";
  fiber.parent = id;
  jobs.insert(fiber);
  EXPECT_TRUE(table_->children(id).empty());
  table_->hand_over_children(id, "heir");
  EXPECT_EQ(jobs.find(JobKind::kFiber, "f")->parent, id);
}

TEST_F(ScheduleTableTest, ARunningOneShotRowIsNotAlike) {
  ScheduleRow row = insert("a");
  EXPECT_EQ(table_->find_alike("like a"), row.seq);
  row.running = 1;
  table_->update(row);
  EXPECT_EQ(table_->find_alike("like a"), std::nullopt);
  EXPECT_EQ(table_->find_alike("like b"), std::nullopt);
}

TEST_F(ScheduleTableTest, ADeadRowIsNotAlikeAndFoundAsADeadOne) {
  ScheduleRow row = insert("a");
  EXPECT_EQ(table_->find_dead("like a"), std::nullopt);
  row.dead = true;
  table_->update(row);
  EXPECT_EQ(table_->find_alike("like a"), std::nullopt);
  EXPECT_EQ(table_->find_dead("like a"), row.seq);
  EXPECT_EQ(table_->find_dead("like b"), std::nullopt);
}

TEST_F(ScheduleTableTest, ThatARowsOccurrenceIsOverComesBackAndIsNotThatItIsOwed) {
  ScheduleRow row = insert("a");
  EXPECT_FALSE(table_->find("a")->over || table_->find("a")->owed);
  row.over = true;
  table_->update(row);
  EXPECT_TRUE(table_->find("a")->over);
  EXPECT_FALSE(table_->find("a")->owed);
}

TEST_F(ScheduleTableTest, RunsAreHandedOverToAnotherSchedule) {
  insert("p");
  insert("q");
  ScheduleRow child = insert("free");
  child.id = "c";
  child.parent = "p";
  table_->insert(child, "null");
  table_->hand_over_children("p", "q");
  EXPECT_EQ(table_->children("p"), RowIds{});
  EXPECT_EQ(table_->children("q"), RowIds{child.seq});
}

TEST_F(ScheduleTableTest, TheListIsByTimeThenAgeAndTheTimelessLast) {
  const auto never = insert("never", std::nullopt);
  const auto late = insert("late", 300);
  const auto soon = insert("soon", 200);
  const auto also = insert("also", 200);
  EXPECT_EQ(table_->list({}), (RowIds{soon.seq, also.seq, late.seq, never.seq}));
  ScheduleFilter filter;
  filter.after = "soon";
  EXPECT_EQ(table_->list(filter), (RowIds{also.seq, late.seq, never.seq}));
  filter.after = "never";
  EXPECT_EQ(table_->list(filter), RowIds{});
  filter = {};
  filter.until_ms = 300;
  EXPECT_EQ(table_->list(filter), (RowIds{soon.seq, also.seq}));
}

TEST_F(ScheduleTableTest, AShiftMovesWhatWaitsForALength) {
  ScheduleRow delay = insert("delay");
  ScheduleRow at = insert("at");
  at.type = ScheduleType::kAt;
  at.id = "dated";
  table_->insert(at, "null");
  ScheduleRow again = at;
  again.id = "tried again";
  table_->insert(again, "null");
  again.attempts = 1;
  table_->update(again);
  table_->shift(-30);
  EXPECT_EQ(table_->find("delay")->time, 70);
  EXPECT_EQ(table_->find("delay")->scheduled_for, 70);
  EXPECT_EQ(table_->find("dated")->time, 100);
  EXPECT_EQ(table_->find("tried again")->time, 70);
  EXPECT_EQ(table_->find("tried again")->scheduled_for, 100);
}

TEST_F(ScheduleTableTest, ACrowdIsManyDueOneShotRowsOfOneCallback) {
  for (int i = 0; i < 3; ++i) insert("x" + std::to_string(i));
  insert("later", 200);
  EXPECT_TRUE(table_->crowds(100, 4).empty());
  const auto crowds = table_->crowds(100, 3);
  ASSERT_EQ(crowds.size(), 1U);
  EXPECT_EQ(crowds[0].callback, "tick");
  EXPECT_EQ(crowds[0].rows, 3U);
}

TEST_F(ScheduleTableTest, WritesWaitForTheCommitAndEraseErases) {
  const auto row = insert("a");
  open();
  EXPECT_TRUE(table_->load().empty());
  insert("b");
  database_->commit();
  table_->erase(table_->find("b")->seq);
  EXPECT_FALSE(table_->find("b"));
  EXPECT_TRUE(table_->load().empty());
}

}  // namespace
}  // namespace hearth::durable

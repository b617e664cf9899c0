#include "durable/schedule_table.hpp"

#include "durable/database_fixture.hpp"
#include "durable/json_members.hpp"
#include "json/json.hpp"
#include "storage/agent_schema.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <tuple>

namespace hearth::durable {
namespace {

using RowIds = std::vector<std::string>;

class ScheduleTableTest : public DatabaseFixture {
 protected:
  ScheduleTableTest() { open(); }
  void open() {
    table_.reset();
    open_database();
    table_ = std::make_unique<ScheduleTable>(*database_);
  }
  ScheduleRow insert(std::string id, std::int64_t time = 100) {
    ScheduleRow row;
    row.id = std::move(id);
    row.name = "tick";
    row.type = "delay";
    row.next_at_ms = time;
    row.length_ms = 50;
    row.key = "like " + row.id;
    row.scheduled_for = 100;
    row.created_at_ms = row.set_at_ms = 50;
    table_->insert(row, "[1]");
    return row;
  }
  // A run of `parent`, made like the schedule "free".
  void insert_run(const char* id, const char* parent) {
    ScheduleRow row = insert("free");
    row.id = id;
    row.parent = parent;
    table_->insert(row, "null");
  }

  static RowIds ids(const std::vector<ScheduleRow>& rows) {
    RowIds ids;
    for (const ScheduleRow& row : rows) ids.push_back(row.id);
    return ids;
  }

  std::unique_ptr<ScheduleTable> table_;
};

TEST_F(ScheduleTableTest, ReadingMakesNoTable) {
  EXPECT_TRUE(table_->load().empty());
  EXPECT_FALSE(table_->find("x"));
  EXPECT_FALSE(table_->find_alike("x", false));
  EXPECT_TRUE(table_->children("x").empty());
  EXPECT_TRUE(table_->list({}).empty());
  EXPECT_TRUE(table_->crowds(1, 1).empty());
  EXPECT_FALSE(database_->exists());
}

TEST_F(ScheduleTableTest, ARowComesBackAsItWasWritten) {
  ScheduleRow row = insert("i");
  row.cron = "* * * * *";
  row.time_zone = "Europe/Berlin";
  row.misfire = Misfire::kAll;
  row.overlap = Overlap::kAllow;
  row.fixed_rate = row.paused = row.dead = row.over = true;
  std::int64_t next = 30;
  for (std::int64_t* const each :
       {&row.length_ms, &row.scheduled_for, &row.begun_at, &row.catch_up_until, &row.set_at_ms})
    *each = ++next;
  row.last_run = 43;
  for (int* const each :
       {&row.missing, &row.running, &row.attempts, &row.interruptions, &row.claims, &row.failures})
    *each = static_cast<int>(++next);
  row.missed = 43;
  row.misfire_limit = 17;
  row.next_at_ms = 0;
  row.last_error = "e";
  table_->update(row);
  database_->commit();
  open();
  const auto back = table_->find("i").value();
  EXPECT_EQ(schedule_record(back, "[1]"), schedule_record(row, table_->payload(back.seq)));
  EXPECT_EQ(run_body(back, "1", 2), run_body(row, "1", 2));
  EXPECT_EQ(back.key, "like i");
  EXPECT_EQ(back.type, "delay");
  EXPECT_TRUE(back.paused && back.dead && back.over && !back.owed && back.fixed_rate);
  EXPECT_EQ(std::tuple(back.length_ms, back.scheduled_for, back.begun_at, back.catch_up_until),
            std::tuple(31, 32, 33, 34));
  EXPECT_EQ(std::tuple(back.last_run, back.set_at_ms, back.created_at_ms), std::tuple(43, 35, 50));
  EXPECT_EQ(std::tuple(back.missing, back.running, back.interruptions), std::tuple(36, 37, 39));
}

TEST_F(ScheduleTableTest, TheViewShowsARow) {
  ScheduleRow row = insert("i");
  row.paused = row.over = true;
  row.misfire = Misfire::kAll;
  row.scheduled_for = 41;
  table_->update(row);
  storage::create_job_views(database_->connection(), storage::ViewsIn::kConnection);
  storage::Statement select(
      database_->connection(),
      "SELECT json_array(time, delay_ms, interval_ms, cron, time_zone, fixed_rate, misfire, "
      "misfire_limit, overlap, paused, missing, running, scheduled_for, owed, missed, begun_at, "
      "catch_up_until, last_run, typeof(scheduled_for)) FROM cf_agents_schedules");
  storage::Rows rows = select.query();
  ASSERT_TRUE(rows.next());
  EXPECT_EQ(rows.text(0), R"([100,50,null,null,null,0,2,0,0,1,0,0,41,2,0,0,0,null,"integer"])");
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
  insert_run("c", "p");
  EXPECT_EQ(ids(table_->children("p")), RowIds{"c"});
  EXPECT_FALSE(table_->find("c"));
  EXPECT_TRUE(table_->row("c"));
  EXPECT_EQ(table_->list({}).size(), 2U);
  EXPECT_EQ(table_->find_alike("like free", false)->id, "free") << "its parent, not the run";
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

TEST_F(ScheduleTableTest, ARunningOneShotIsNotAlikeAndADeadRowOnlyAsADeadOne) {
  ScheduleRow row = insert("a");
  const auto alike = [&](bool dead) { return table_->find_alike("like a", dead).has_value(); };
  EXPECT_TRUE(alike(false) && !alike(true));
  row.running = 1;
  table_->update(row);
  EXPECT_FALSE(alike(false) || alike(true));
  row.dead = true;
  table_->update(row);
  EXPECT_TRUE(!alike(false) && alike(true));
  EXPECT_FALSE(table_->find_alike("like b", true));
}

TEST_F(ScheduleTableTest, RunsAreHandedOverToAnotherSchedule) {
  insert("p");
  insert("q");
  insert_run("c", "p");
  table_->hand_over_children("p", "q");
  EXPECT_EQ(ids(table_->children("p")), RowIds{});
  EXPECT_EQ(ids(table_->children("q")), RowIds{"c"});
}

TEST_F(ScheduleTableTest, TheListIsByTimeThenAgeAndTheTimelessLast) {
  const auto never = insert("never", 0);
  const auto late = insert("late", 300);
  const auto soon = insert("soon", 200);
  const auto also = insert("also", 200);
  EXPECT_EQ(ids(table_->list({})), (RowIds{soon.id, also.id, late.id, never.id}));
  EXPECT_EQ(ids(table_->list({.after = "soon"})), (RowIds{also.id, late.id, never.id}));
  EXPECT_EQ(ids(table_->list({.after = "never"})), RowIds{});
  EXPECT_EQ(ids(table_->list({.until_ms = 300})), (RowIds{soon.id, also.id}));
}

TEST_F(ScheduleTableTest, AShiftMovesTheTimesThatThereAre) {
  ScheduleRow delay = insert("delay");
  delay.shift(-30);
  EXPECT_EQ(delay.next_at_ms, 70);
  EXPECT_EQ(delay.scheduled_for, 70);
  EXPECT_EQ(delay.begun_at, 0);
  ScheduleRow again = insert("tried again");
  again.type = "at";
  EXPECT_FALSE(again.waits_a_length());
  again.attempts = 1;
  EXPECT_TRUE(again.waits_a_length());
  again.shift(-30);
  EXPECT_EQ(again.next_at_ms, 70);
  EXPECT_EQ(again.scheduled_for, 100);
}

TEST_F(ScheduleTableTest, ACrowdIsManyDueOneShotRowsOfOneCallback) {
  for (int i = 0; i < 3; ++i) insert("x" + std::to_string(i));
  insert("later", 200);
  EXPECT_TRUE(table_->crowds(100, 4).empty());
  const auto crowds = table_->crowds(100, 3);
  ASSERT_EQ(crowds.size(), 1U);
  EXPECT_EQ(crowds[0].first, "tick");
  EXPECT_EQ(crowds[0].second.rows, 3);
}

TEST_F(ScheduleTableTest, WritesWaitForTheCommitAndEraseErases) {
  const auto row = insert("a");
  open();
  EXPECT_TRUE(table_->load().empty());
  insert("b");
  database_->commit();
  EXPECT_EQ(table_->size(), 1U);
  table_->erase(*table_->find("b"));
  EXPECT_FALSE(table_->find("b"));
  EXPECT_TRUE(table_->empty());
  EXPECT_TRUE(table_->load().empty());
}

TEST(ScheduleRowTest, TheStateIsTheFirstThatHolds) {
  ScheduleRow row;
  EXPECT_EQ(row.state_word(), "waiting");
  row.missing = 2;
  EXPECT_EQ(row.state_word(), "missing");
  row.paused = true;
  EXPECT_EQ(row.state_word(), "paused");
  row.dead = true;
  EXPECT_EQ(row.state_word(), "dead");
  row.running = 1;
  EXPECT_EQ(row.state_word(), "running");
}

TEST(ScheduleRowTest, OnlyWhatBelongsToTheTypeIsTold) {
  ScheduleRow row;
  const auto has = [&row](const char* name) {
    return parse_json(schedule_record(row, "null"))->contains(name);
  };
  row.type = to_string(ScheduleType::kDelay);
  EXPECT_TRUE(has("delay_ms"));
  EXPECT_FALSE(has("interval_ms") || has("cron") || has("time_zone"));
  row.type = to_string(ScheduleType::kAt);
  EXPECT_FALSE(has("delay_ms") || has("interval_ms") || has("cron"));
  row.type = to_string(ScheduleType::kInterval);
  EXPECT_TRUE(has("interval_ms"));
  row.type = to_string(ScheduleType::kCron);
  EXPECT_TRUE(has("cron") && has("time_zone"));
}

TEST(ScheduleRowTest, AnyTextMakesValidJson) {
  ScheduleRow row;
  row.type = to_string(ScheduleType::kAt);
  row.name = "say \"hi\"\n";
  row.last_error = "\xff\x01";
  const auto record = parse_json(schedule_record(row, R"({"deep":[1,2]})"));
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ((*record)["callback"], row.name);
  EXPECT_EQ((*record)["payload"]["deep"][1], 2);
  ASSERT_TRUE(parse_json(run_body(row, "[]", 0)).has_value());
}

TEST(ScheduleRowTest, ARunBearsTheNameOfItsSchedule) {
  ScheduleRow row;
  row.type = to_string(ScheduleType::kCron);
  row.id = "run";
  EXPECT_EQ((*parse_json(run_body(row, "1", 5)))["id"], "run");
  row.parent = "schedule";
  row.attempts = 2;
  row.missed = 9;
  const Json body = *parse_json(run_body(row, "1", 5));
  EXPECT_TRUE(has(body, {{"id", "schedule"}, {"attempt", 3}, {"missed", 9}, {"late_ms", 5}}));
}

TEST_F(ScheduleTableTest, AScheduleOfADistantYearDoesNotWaitForCode) {
  const std::int64_t end_of_9999 = 253'402'300'799'999;
  insert("never", end_of_9999);
  EXPECT_FALSE(table_->find("never")->waits_for_code());
  EXPECT_EQ(table_->find("never")->next_at_ms, end_of_9999);
}

}  // namespace
}  // namespace hearth::durable

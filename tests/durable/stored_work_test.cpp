// A file of schema version 1 with work in every state is opened by this server, and all of its work
// goes on.
#include "support/stored_work.hpp"

#include "durable/managed_fibers_fixture.hpp"
#include "durable/queue.hpp"
#include "durable/schedules.hpp"

#include <map>

namespace hearth::durable {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class StoredWorkTest : public ManagedFibersFixture {
 protected:
  void open_stored(const std::string& more = "") {
    managed_.reset();
    fibers_.reset();
    database_.reset();
    hearth::testing::make_stored_work(directory_.path() / "a.db", more);
    clock_.set_wall(WallTime(milliseconds(hearth::testing::kStoredWorkAtMs)));
    open();
    database_->commit();
  }
  // Name, or id, and attempt of each fiber that is offered by then, in order. Each one is
  // recovered.
  std::string recover_all() {
    std::string offered;
    while (const auto fiber = fibers_->begin_recovery()) {
      const bool managed = managed_->is_managed(fiber->id);
      offered += (managed ? fiber->id : fiber->name) + ":" + std::to_string(fiber->attempt) + ":" +
                 fiber->snapshot.value_or("") + " ";
      if (managed) {
        EXPECT_TRUE(managed_->recovered(fiber->id, R"({"status":"completed","result":1})"));
      } else {
        fibers_->recovered(fiber->id);
      }
      database_->commit();
    }
    return offered;
  }
  std::string tell_all() {
    std::string told;
    while (const auto change = managed_->next_untold()) {
      told += change->id + " ";
      managed_->told(change->id, true);
      database_->commit();
    }
    return told;
  }
};

TEST_F(StoredWorkTest, FibersAreRecoveredWithTheirCheckpointsAndAttempts) {
  open_stored();
  std::map<std::string, bool> left_over;
  for (const LeftOver& each : fibers_->take_left_over())
    left_over[each.name == "report" ? each.id : each.name] = each.was_running;
  EXPECT_EQ(left_over, (std::map<std::string, bool>{{"failed", false},
                                                    {"m-plain", true},
                                                    {"m-retry", false},
                                                    {"m-running", true},
                                                    {"running", true},
                                                    {"unstashed", true}}));
  EXPECT_EQ(recover_all(),
            R"(running:1:[1,2] unstashed:1: m-running:1:"half" m-plain:1: m-retry:1:7 failed:2: )");
  EXPECT_EQ(inspect("m-running")["snapshot"], "half");
  EXPECT_TRUE(fibers_->wake().none());
}

TEST_F(StoredWorkTest, DeadFibersAreKeptCanBeRetriedAndHaveTheirTime) {
  open_stored();
  const Json dead = *parse_json(*fibers_->list_dead("", 0));
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(dead[0]["name"], "dead");
  EXPECT_EQ(dead[0]["snapshot"]["a"], 1);
  EXPECT_EQ(dead[0]["last_error"], "the hook failed");
  ASSERT_TRUE(fibers_->retry(dead[0]["id"].get<std::string>()));
  EXPECT_EQ(fibers_->begin_recovery()->name, "dead");
  open_stored();
  EXPECT_TRUE(fibers_->sweep().empty());
  clock_.advance(hours(24 * 8));
  EXPECT_EQ(fibers_->sweep().size(), 1U);
}

TEST_F(StoredWorkTest, DeadFibersThatDoNotSayWhenTheyDiedHaveTheirTimeFromNowOn) {
  open_stored("DROP INDEX cf_agents_runs_dead; ALTER TABLE cf_agents_runs DROP COLUMN recoveries;");
  EXPECT_TRUE(fibers_->sweep().empty());
  clock_.advance(hours(24 * 7) - milliseconds(1));
  EXPECT_TRUE(fibers_->sweep().empty());
  clock_.advance(milliseconds(1));
  EXPECT_EQ(fibers_->sweep().size(), 1U);
}

TEST_F(StoredWorkTest, RecordsAreToldKeptAndFoundByTheirKeys) {
  open_stored();
  EXPECT_EQ(status("m-retry"), "pending");
  EXPECT_EQ(inspect("m-retry")["error"], "try later");
  EXPECT_EQ(inspect("m-retry")["failures"], 1);
  EXPECT_EQ(inspect("m-told")["result"]["r"], 1);
  EXPECT_EQ(inspect("m-dead")["dead"], true);
  EXPECT_EQ(inspect("m-running")["input"]["n"], 1);
  clock_.advance(seconds(10));
  EXPECT_EQ(tell_all(), "m-telling m-untold m-not-heard ");
  EXPECT_TRUE(managed_->inspect("", "key-m-told"));
  EXPECT_EQ(managed_->start(ManagedRequest{.name = "report", .key = "key-m-told", .input = "2"})
                .error()
                .code,
            Errc::kConflict);
  ASSERT_TRUE(managed_->retry("m-dead"));
  ASSERT_TRUE(managed_->resolve("m-interrupted", R"({"status":"completed"})"));
  database_->commit();
  crash();
  EXPECT_EQ(status("m-dead"), "recovering");
  EXPECT_EQ(tell_all(), "m-interrupted ");
  clock_.advance(hours(24));
  while (managed_->sweep()) continue;
  EXPECT_EQ(status("m-told"), "none");
  EXPECT_EQ(status("m-telling"), "error") << "a week";
}

TEST_F(StoredWorkTest, RecordsWithoutTheCountOfTellingsAreToldToo) {
  open_stored("ALTER TABLE cf_agents_fibers DROP COLUMN tell_interruptions;");
  clock_.advance(seconds(10));
  EXPECT_EQ(tell_all(), "m-telling m-untold m-not-heard ");
}

TEST_F(StoredWorkTest, AnOpenRecordWithoutARowIsRecovered) {
  open_stored("DELETE FROM cf_agents_runs WHERE id LIKE 'm-%';");
  EXPECT_EQ(status("m-plain"), "recovering");
  clock_.advance(seconds(10));
  EXPECT_NE(recover_all().find("m-plain:1: "), std::string::npos);
  EXPECT_EQ(inspect("m-plain")["result"], 1);
}

TEST_F(StoredWorkTest, ARowOfASettledRecordGoesWithoutAHook) {
  open_stored("INSERT INTO cf_agents_runs(id, name, created_at) VALUES('m-told', 'report', 1);");
  clock_.advance(seconds(10));
  EXPECT_EQ(recover_all().find("m-told"), std::string::npos);
  EXPECT_EQ(status("m-told"), "completed");
}

TEST_F(StoredWorkTest, SchedulesRunAgain) {
  open_stored();
  Schedules schedules(*database_, clock_, random_, {});
  schedules.load();
  const auto run_all = [&] {
    std::string callbacks;
    while (const auto run = schedules.begin_due()) {
      callbacks += run->callback + ":" + std::to_string(run->attempt) + " ";
      schedules.ended(run->run, RunOutcome::kDone, "");
    }
    return callbacks;
  };
  EXPECT_EQ(schedules.size(), 9U);
  EXPECT_EQ(run_all(), "claimed:1 beside:1 missing:1 ");
  clock_.advance(milliseconds(100));
  EXPECT_EQ(run_all(), "retrying:2 ");
  clock_.advance(seconds(60));
  const std::string later = run_all();
  for (const char* callback : {"later", "every", "beside"})
    EXPECT_NE(later.find(callback), std::string::npos) << callback << " in " << later;
  EXPECT_EQ(later.find("paused"), std::string::npos);
  EXPECT_EQ(later.find("nightly"), std::string::npos);
  schedules.close();
}

TEST_F(StoredWorkTest, ItemsComeInTheirOrderAfterTheOneThatWaits) {
  open_stored();
  Queue queue(*database_, clock_, random_, {});
  queue.load();
  EXPECT_FALSE(queue.begin_next()) << "the head waits to be tried again";
  EXPECT_EQ(parse_json(*queue.list({.state = "dead"}))->at(0).at("last_error"), "it broke");
  clock_.advance(seconds(600));
  std::string callbacks;
  while (const auto item = queue.begin_next()) {
    callbacks += item->callback + ":" + std::to_string(item->attempt) + " ";
    queue.ended(true, false, "");
  }
  EXPECT_EQ(callbacks, "head:2 behind:1 last:1 ");
  queue.close();
}

}  // namespace
}  // namespace hearth::durable

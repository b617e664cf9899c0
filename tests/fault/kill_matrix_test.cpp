// The kill matrix: a server is killed at each named place of durable work (base/stop_point.hpp) and
// restarted. No client asks for the agent. Then everything must be as the headers promise
// (durable/fibers.hpp, schedules.hpp, queue.hpp).
//
// A walk has four steps. The last one writes no checkpoint: its row and the end of the fiber are
// one commit. A note, which a schedule or the queue takes, has one step: its row and the end of the
// run are one commit.

#include "base/stop_point.hpp"
#include "fault/fault_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <set>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

using Lines = std::vector<std::string>;

// What must be on the disk: rows, their columns joined by '|'.
//   fibers    attempts, steps done by the checkpoint, whether there is an error
//   steps     numbers, in the order in which they were done; the run, if it is a note
//   hooks     with a committed turn: attempt, steps done by the checkpoint
//   finished  runs
//   records   of fibers: status, result
//   told      statuses that on_fiber_complete got
//   waiting   schedules and queue items that are left
struct Books {
  Lines fibers = {};
  Lines steps = {};
  Lines hooks = {};
  Lines finished = {};
  Lines records = {};
  Lines told = {};
  int waiting = 0;
  bool operator==(const Books&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Books& books) {
  const auto list = [&out](const char* name, const Lines& lines) {
    out << name << " [";
    for (const std::string& line : lines) out << " " << line;
    out << " ] ";
  };
  list("fibers", books.fibers);
  list("steps", books.steps);
  list("hooks", books.hooks);
  list("finished", books.finished);
  list("records", books.records);
  list("told", books.told);
  return out << "waiting " << books.waiting;
}

struct Case {
  const char* name;
  const char* stop_at;
  // What the server that stops finds at its start: nothing, and the work begins; or a walk that was
  // killed in its third step, which the server recovers.
  enum { kWorking, kRecovering } while_it_is = kWorking;
  const char* hook = "continue";
  // What is asked for; of a walk the rest is added.
  Lines work = {"?walk=r1"};
  int step_ms = 10;
  Books at_the_kill = {};
  Books at_rest = {};
  // Steps whose effect outside took place twice.
  Lines repeated = {};
  // A line of the log that says that all is over; empty: nothing is to be done.
  std::string over = "r1 is finished";

  friend std::ostream& operator<<(std::ostream& out, const Case& each) {
    return out << each.stop_at << " " << each.hook;
  }
};

const Lines kNothing = {};
const Lines kAll = {"1", "2", "3", "4"};
const Lines kDone = {"r1"};

// Also the status while the fiber is offered: the offer is known from its row, and from memory.
const Lines kRunning = {"running|NULL"};

const std::vector<Case> kCases = {
    // ---- the begin ----
    {.name = "StartNotCommittedLeavesNothing",
     .stop_at = "managed.start.written",
     .at_the_kill = {},
     .at_rest = {},
     .over = ""},
    {.name = "AWakeThatIsKnownTooEarlyIsHarmless",
     .stop_at = "commit.index_written",
     .at_the_kill = {},
     .at_rest = {},
     .over = "agent.evicted class=LedgerAgent agent=a "},
    {.name = "StartCommittedIsRecoveredWithoutACheckpoint",
     .stop_at = "managed.start.committed",
     .at_the_kill = {.fibers = {"0|NULL|0"}, .records = kRunning},
     .at_rest = {.steps = kAll, .hooks = {"1|NULL"}, .finished = kDone}},
    // ---- checkpoints ----
    {.name = "FirstStashNotCommittedIsRecoveredWithoutACheckpoint",
     .stop_at = "fiber.stash.written",
     .at_the_kill = {.fibers = {"0|NULL|0"}, .records = kRunning},
     .at_rest = {.steps = kAll, .hooks = {"1|NULL"}, .finished = kDone},
     .repeated = {"r1 1"}},
    {.name = "StashNotCommittedIsRecoveredFromTheOneBefore",
     .stop_at = "fiber.stash.written:3",
     .at_the_kill = {.fibers = {"0|2|0"}, .steps = {"1", "2"}, .records = kRunning},
     .at_rest = {.steps = kAll, .hooks = {"1|2"}, .finished = kDone},
     .repeated = {"r1 3"}},
    {.name = "StashCommittedIsRecoveredFromIt",
     .stop_at = "fiber.stash.committed:3",
     .at_the_kill = {.fibers = {"0|3|0"}, .steps = {"1", "2", "3"}, .records = kRunning},
     .at_rest = {.steps = kAll, .hooks = {"1|3"}, .finished = kDone}},
    // ---- the end ----
    {.name = "EndNotCommittedTakesTheLastWritesOfTheWorkWithIt",
     .stop_at = "managed.settle.written",
     .at_the_kill = {.fibers = {"0|3|0"}, .steps = {"1", "2", "3"}, .records = kRunning},
     .at_rest = {.steps = kAll, .hooks = {"1|3"}, .finished = kDone},
     .repeated = {"r1 4"}},
    {.name = "EndCommittedIsNeverOfferedAgain",
     .stop_at = "managed.settle.committed",
     .at_the_kill = {.steps = kAll, .finished = kDone},
     .at_rest = {.steps = kAll, .finished = kDone},
     .over = ""},
    {.name = "AWakeThatIsForgottenTooLateIsHarmless",
     .stop_at = "commit.index_late",
     .at_the_kill = {.steps = kAll, .finished = kDone},
     .at_rest = {.steps = kAll, .finished = kDone},
     .over = "agent.evicted class=LedgerAgent agent=a "},
    // ---- recovery ----
    {.name = "AttemptNotCommittedDoesNotCount",
     .stop_at = "fiber.attempt.written",
     .while_it_is = Case::kRecovering,
     .at_the_kill = {.fibers = {"0|2|0"}, .steps = {"1", "2"}, .records = kRunning},
     .at_rest = {.steps = kAll, .hooks = {"1|2"}, .finished = kDone}},
    {.name = "AttemptCommittedCounts",
     .stop_at = "fiber.attempt.committed",
     .while_it_is = Case::kRecovering,
     .at_the_kill = {.fibers = {"1|2|0"}, .steps = {"1", "2"}, .records = kRunning},
     .at_rest = {.steps = kAll, .hooks = {"2|2"}, .finished = kDone}},
    {.name = "GoingOnNotCommittedIsOfferedAgain",
     .stop_at = "managed.resume.written",
     .while_it_is = Case::kRecovering,
     .at_the_kill = {.fibers = {"1|2|0"}, .steps = {"1", "2"}, .records = kRunning},
     .at_rest = {.steps = kAll, .hooks = {"2|2"}, .finished = kDone}},
    {.name = "GoingOnCommittedGoesOnCounting",
     .stop_at = "managed.resume.committed",
     .while_it_is = Case::kRecovering,
     .at_the_kill =
         {.fibers = {"1|2|0"}, .steps = {"1", "2"}, .hooks = {"1|2"}, .records = kRunning},
     .at_rest = {.steps = kAll, .hooks = {"1|2", "2|2"}, .finished = kDone}},
    {.name = "AStepThatIsTakenBeginsTheAttemptsAnew",
     .stop_at = "fiber.stash.committed",
     .while_it_is = Case::kRecovering,
     .at_the_kill =
         {.fibers = {"0|3|0"}, .steps = {"1", "2", "3"}, .hooks = {"1|2"}, .records = kRunning},
     .at_rest = {.steps = kAll, .hooks = {"1|2", "1|3"}, .finished = kDone}},
    {.name = "HookCompletedButNotCommittedIsCalledAgain",
     .stop_at = "fiber.recovered.written",
     .while_it_is = Case::kRecovering,
     .hook = "drop",
     .at_the_kill = {.fibers = {"1|2|0"}, .steps = {"1", "2"}, .records = kRunning},
     .at_rest = {.steps = {"1", "2"}, .hooks = {"2|2"}},
     .over = "agent.evicted class=LedgerAgent agent=a "},
    {.name = "HookCompletedAndCommittedIsNotCalledAgain",
     .stop_at = "fiber.recovered.committed",
     .while_it_is = Case::kRecovering,
     .hook = "drop",
     .at_the_kill = {.steps = {"1", "2"}, .hooks = {"1|2"}},
     .at_rest = {.steps = {"1", "2"}, .hooks = {"1|2"}},
     .over = ""},
    {.name = "FailureNotCommittedIsAnAttemptAllTheSame",
     .stop_at = "fiber.failed.written",
     .while_it_is = Case::kRecovering,
     .hook = "twice",
     .at_the_kill = {.fibers = {"1|2|0"}, .steps = {"1", "2"}, .records = kRunning},
     .at_rest = {.steps = kAll, .hooks = {"2|2"}, .finished = kDone}},
    {.name = "FailureCommittedIsTriedAgain",
     .stop_at = "fiber.failed.committed",
     .while_it_is = Case::kRecovering,
     .hook = "twice",
     .at_the_kill =
         {.fibers = {"1|2|1"}, .steps = {"1", "2"}, .hooks = {"1|2"}, .records = kRunning},
     .at_rest = {.steps = kAll, .hooks = {"1|2", "2|2"}, .finished = kDone}},
};

const Lines kFiber = {"?managed=r1"};
const Lines kCompleted = {"completed|4"};
const Lines kToldSo = {"completed"};

const std::vector<Case> kManagedCases = {
    {.name = "StartNotCommittedLeavesNothing",
     .stop_at = "managed.start.written",
     .work = kFiber,
     .over = ""},
    {.name = "StartCommittedIsRecoveredFromItsInput",
     .stop_at = "managed.start.committed",
     .work = kFiber,
     .at_the_kill = {.fibers = {"0|NULL|0"}, .records = kRunning},
     .at_rest = {.steps = kAll,
                 .hooks = {"1|NULL"},
                 .finished = kDone,
                 .records = kCompleted,
                 .told = kToldSo}},
    {.name = "StashCommittedIsRecoveredFromIt",
     .stop_at = "fiber.stash.committed:3",
     .work = kFiber,
     .at_the_kill = {.fibers = {"0|3|0"}, .steps = {"1", "2", "3"}, .records = kRunning},
     .at_rest = {.steps = kAll,
                 .hooks = {"1|3"},
                 .finished = kDone,
                 .records = kCompleted,
                 .told = kToldSo}},
    {.name = "EndNotCommittedTakesTheLastWritesOfTheWorkWithIt",
     .stop_at = "managed.settle.written",
     .work = kFiber,
     .at_the_kill = {.fibers = {"0|3|0"}, .steps = {"1", "2", "3"}, .records = kRunning},
     .at_rest = {.steps = kAll,
                 .hooks = {"1|3"},
                 .finished = kDone,
                 .records = kCompleted,
                 .told = kToldSo},
     .repeated = {"r1 4"}},
    {.name = "EndCommittedIsNeverOfferedAgainAndItsResultIsThere",
     .stop_at = "managed.settle.committed",
     .work = kFiber,
     .at_the_kill = {.steps = kAll, .finished = kDone, .records = kCompleted},
     .at_rest = {.steps = kAll, .finished = kDone, .records = kCompleted, .told = kToldSo},
     .over = "agent.evicted class=LedgerAgent agent=a "},
    {.name = "WhatWasNotClaimedIsTold",
     .stop_at = "managed.tell.written",
     .work = kFiber,
     .at_the_kill = {.steps = kAll, .finished = kDone, .records = kCompleted},
     .at_rest = {.steps = kAll, .finished = kDone, .records = kCompleted, .told = kToldSo},
     .over = "agent.evicted class=LedgerAgent agent=a "},
    {.name = "WhatWasClaimedAndNotDeliveredIsToldAgain",
     .stop_at = "managed.tell.committed",
     .work = kFiber,
     .at_the_kill = {.steps = kAll, .finished = kDone, .records = kCompleted},
     .at_rest = {.steps = kAll, .finished = kDone, .records = kCompleted, .told = kToldSo},
     .over = "agent.evicted class=LedgerAgent agent=a "},
    {.name = "AttemptNotCommittedDoesNotCount",
     .stop_at = "fiber.attempt.written",
     .while_it_is = Case::kRecovering,
     .work = kFiber,
     .at_the_kill = {.fibers = {"0|2|0"}, .steps = {"1", "2"}, .records = kRunning},
     .at_rest = {.steps = kAll,
                 .hooks = {"1|2"},
                 .finished = kDone,
                 .records = kCompleted,
                 .told = kToldSo}},
    {.name = "KilledInTheHookItIsOfferedAgain",
     .stop_at = "fiber.attempt.committed",
     .while_it_is = Case::kRecovering,
     .work = kFiber,
     .at_the_kill = {.fibers = {"1|2|0"}, .steps = {"1", "2"}, .records = kRunning},
     .at_rest = {.steps = kAll,
                 .hooks = {"2|2"},
                 .finished = kDone,
                 .records = kCompleted,
                 .told = kToldSo}},
    {.name = "GoingOnNotCommittedIsOfferedAgain",
     .stop_at = "managed.resume.written",
     .while_it_is = Case::kRecovering,
     .work = kFiber,
     .at_the_kill = {.fibers = {"1|2|0"}, .steps = {"1", "2"}, .records = kRunning},
     .at_rest = {.steps = kAll,
                 .hooks = {"2|2"},
                 .finished = kDone,
                 .records = kCompleted,
                 .told = kToldSo}},
    {.name = "GoingOnCommittedGoesOnCounting",
     .stop_at = "managed.resume.committed",
     .while_it_is = Case::kRecovering,
     .work = kFiber,
     .at_the_kill =
         {.fibers = {"1|2|0"}, .steps = {"1", "2"}, .hooks = {"1|2"}, .records = kRunning},
     .at_rest = {.steps = kAll,
                 .hooks = {"1|2", "2|2"},
                 .finished = kDone,
                 .records = kCompleted,
                 .told = kToldSo}},
    {.name = "WhatTheHookDecidedCountsOnceItIsCommitted",
     .stop_at = "fiber.recovered.committed",
     .while_it_is = Case::kRecovering,
     .hook = "settle",
     .work = kFiber,
     .at_the_kill = {.steps = {"1", "2"},
                     .hooks = {"1|2"},
                     .records = {"completed|\"by the hook\""}},
     .at_rest = {.steps = {"1", "2"},
                 .hooks = {"1|2"},
                 .records = {"completed|\"by the hook\""},
                 .told = kToldSo},
     .over = "agent.evicted class=LedgerAgent agent=a "},
    {.name = "WhatTheHookDecidedIsAskedAgainIfItWasNotCommitted",
     .stop_at = "fiber.recovered.written",
     .while_it_is = Case::kRecovering,
     .hook = "settle",
     .work = kFiber,
     .at_the_kill = {.fibers = {"1|2|0"}, .steps = {"1", "2"}, .records = kRunning},
     .at_rest = {.steps = {"1", "2"},
                 .hooks = {"2|2"},
                 .records = {"completed|\"by the hook\""},
                 .told = kToldSo},
     .over = "agent.evicted class=LedgerAgent agent=a "},
    {.name = "AHookThatDecidesNothingLeavesItInterrupted",
     .stop_at = "fiber.recovered.committed",
     .while_it_is = Case::kRecovering,
     .hook = "drop",
     .work = kFiber,
     .at_the_kill = {.steps = {"1", "2"}, .hooks = {"1|2"}, .records = {"interrupted|NULL"}},
     .at_rest = {.steps = {"1", "2"},
                 .hooks = {"1|2"},
                 .records = {"interrupted|NULL"},
                 .told = {"interrupted"}},
     .over = "agent.evicted class=LedgerAgent agent=a "},
    {.name = "WithoutARecordACommittedCancelStands",
     .stop_at = "managed.cancel.committed",
     .work = {"?walk=r1", "?cancel=r1"},
     .step_ms = 300,
     .over = ""},
    {.name = "CancelNotCommittedNeverHappened",
     .stop_at = "managed.cancel.written",
     .work = {"?managed=r1", "?cancel=r1"},
     .step_ms = 300,
     .at_the_kill = {.fibers = {"0|NULL|0"}, .records = kRunning},
     .at_rest = {.steps = kAll,
                 .hooks = {"1|NULL"},
                 .finished = kDone,
                 .records = kCompleted,
                 .told = kToldSo}},
    {.name = "CancelCommittedStands",
     .stop_at = "managed.cancel.committed",
     .work = {"?managed=r1", "?cancel=r1"},
     .step_ms = 300,
     .at_the_kill = {.records = {"aborted|NULL"}},
     .at_rest = {.records = {"aborted|NULL"}, .told = {"aborted"}},
     .over = "agent.evicted class=LedgerAgent agent=a "},
};

const Lines kNote = {"n1"};

const std::vector<Case> kScheduleCases = {
    {.name = "ARunThatWasNotClaimedIsDueStill",
     .stop_at = "schedule.claim.written",
     .work = {"?schedule=n1"},
     .at_the_kill = {.waiting = 1},
     .at_rest = {.steps = kNote, .finished = kNote},
     .over = "n1 is finished"},
    {.name = "ARunThatWasClaimedIsBegunAgain",
     .stop_at = "schedule.claim.committed",
     .work = {"?schedule=n1"},
     .at_the_kill = {.waiting = 1},
     .at_rest = {.steps = kNote, .finished = kNote},
     .over = "n1 is finished"},
    {.name = "AnEndThatWasNotCommittedTakesTheWritesOfTheCallbackWithIt",
     .stop_at = "schedule.end.written",
     .work = {"?schedule=n1"},
     .at_the_kill = {.waiting = 1},
     .at_rest = {.steps = kNote, .finished = kNote},
     .repeated = {"n1 1"},
     .over = "n1 is finished"},
    {.name = "ARunThatHasEndedIsNotBegunAgain",
     .stop_at = "schedule.end.committed",
     .work = {"?schedule=n1"},
     .at_the_kill = {.steps = kNote, .finished = kNote},
     .at_rest = {.steps = kNote, .finished = kNote},
     .over = ""},
};

const Lines kItems = {"?queue=n1", "?queue=n2"};
const Lines kNotes = {"n1", "n2"};

const std::vector<Case> kQueueCases = {
    {.name = "AnItemThatWasNotClaimedIsStillTheFirst",
     .stop_at = "queue.claim.written",
     .work = {"?queue=n1"},
     .at_the_kill = {.waiting = 1},
     .at_rest = {.steps = kNote, .finished = kNote},
     .over = "n1 is finished"},
    {.name = "AnItemThatWasClaimedIsDeliveredAgain",
     .stop_at = "queue.claim.committed",
     .work = {"?queue=n1"},
     .at_the_kill = {.waiting = 1},
     .at_rest = {.steps = kNote, .finished = kNote},
     .over = "n1 is finished"},
    {.name = "AnEndThatWasNotCommittedTakesTheWritesOfTheCallbackWithIt",
     .stop_at = "queue.end.written:2",
     .work = kItems,
     .at_the_kill = {.steps = kNote, .finished = kNote, .waiting = 1},
     .at_rest = {.steps = kNotes, .finished = kNotes},
     .repeated = {"n2 1"},
     .over = "n2 is finished"},
    {.name = "AnItemThatWasDeliveredIsNotDeliveredAgain",
     .stop_at = "queue.end.committed:2",
     .work = kItems,
     .at_the_kill = {.steps = kNotes, .finished = kNotes},
     .at_rest = {.steps = kNotes, .finished = kNotes},
     .over = ""},
};

class KillMatrixTest : public FaultTest, public ::testing::WithParamInterface<Case> {
 protected:
  [[nodiscard]] Books books() const {
    const Lines schedules = rows("a", "SELECT id FROM cf_agents_schedules");
    const Lines items = rows("a", "SELECT id FROM cf_agents_queues");
    return {rows("a",
                 "SELECT attempts, json_extract(snapshot, '$.done'), last_error IS NOT NULL "
                 "FROM cf_agents_runs"),
            rows("a", "SELECT iif(fiber = '', run, step) FROM ledger ORDER BY rowid"),
            rows("a", "SELECT attempt, json_extract(snapshot, '$.done') FROM hooks ORDER BY rowid"),
            rows("a", "SELECT run FROM finished"),
            rows("a", "SELECT status, result FROM cf_agents_fibers"),
            rows("a", "SELECT status FROM told"),
            static_cast<int>(schedules.size() + items.size())};
  }
  [[nodiscard]] Lines repeated() const {
    Lines all = effects("a");
    std::ranges::sort(all);
    Lines twice;
    for (std::size_t i = 1; i < all.size(); ++i)
      if (all[i] == all[i - 1]) twice.push_back(all[i]);
    return twice;
  }
  void begin_work(const ServerProcess& server) {
    const std::string walk =
        "&steps=4&ms=" + std::to_string(GetParam().step_ms) + "&hook=" + GetParam().hook;
    for (const std::string& work : GetParam().work) {
      clients_.push_back(send(server, "a", work + walk));
      // One after the other; in the last one the server may stop.
      if (work != GetParam().work.back()) clients_.back()->read_reply();
    }
  }
  // A walk that was killed in its third step, before it did anything there.
  void interrupt_a_walk() {
    const auto server = serve_until("fiber.stash.committed:2");
    server->wait_until_ready();
    begin_work(*server);
    kill_where_it_stops(*server, "fiber.stash.committed");
  }

  std::vector<std::unique_ptr<RawClient>> clients_;
};

TEST_P(KillMatrixTest, IsAsPromised) {
  const Case& expected = GetParam();
  const std::string point(
      std::string_view(expected.stop_at).substr(0, std::string_view(expected.stop_at).find(':')));
  if (expected.while_it_is == Case::kRecovering) interrupt_a_walk();
  {
    const auto server = serve_until(expected.stop_at);
    if (expected.while_it_is == Case::kWorking) {
      server->wait_until_ready();
      begin_work(*server);
    }
    kill_where_it_stops(*server, point);
  }
  EXPECT_EQ(books(), expected.at_the_kill);

  auto server = serve_ledgers();
  if (!expected.over.empty()) server->wait_for_log(expected.over);
  let_one_come_and_go(*server);
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(books(), expected.at_rest) << server->log();
  EXPECT_EQ(repeated(), expected.repeated);

  // At rest is at rest: a further start finds nothing to do for it.
  EXPECT_EQ(wakes(), kNothing);
  server = serve_ledgers();
  let_one_come_and_go(*server);
  EXPECT_EQ(server->kill(), kKilled);
  EXPECT_EQ(count(server->log(), "agent=a "), 0U) << server->log();
  EXPECT_EQ(books(), expected.at_rest);
}

std::string case_name(const ::testing::TestParamInfo<Case>& each) {
  return each.param.name;
}
INSTANTIATE_TEST_SUITE_P(Fibers, KillMatrixTest, ::testing::ValuesIn(kCases), case_name);
INSTANTIATE_TEST_SUITE_P(Managed, KillMatrixTest, ::testing::ValuesIn(kManagedCases), case_name);
INSTANTIATE_TEST_SUITE_P(Schedules, KillMatrixTest, ::testing::ValuesIn(kScheduleCases), case_name);
INSTANTIATE_TEST_SUITE_P(Queue, KillMatrixTest, ::testing::ValuesIn(kQueueCases), case_name);

TEST(KillMatrix, HasACaseForEveryStopPoint) {
  std::set<std::string_view> tested = {
      // In tests of their own: ObjectKillTest.
      "call.answer.committed", "alarm.end.written", "alarm.end.committed", "object.hibernate.shut",
      "object.hibernate.closed",
      // DestroyKillTest.
      "destroy.condemned", "destroy.files_removed",
      // FetchProcessTest.
      "fetch.start.committed",
      // OperationsKillTest.
      "operation.started.written", "operation.started.committed", "operation.settled.written",
      "operation.settled.committed",
      // OperationRequestsKill.
      "operation.dispatched.written", "operation.answered.committed", "operation.part.committed",
      // NotifyKillTest.
      "notice.claim.written", "notice.claim.committed", "notice.end.written",
      "notice.end.committed"};
  for (const auto* cases : {&kCases, &kManagedCases, &kScheduleCases, &kQueueCases}) {
    for (const Case& each : *cases) {
      const std::string_view stop_at = each.stop_at;
      tested.insert(stop_at.substr(0, stop_at.find(':')));
    }
  }
  EXPECT_EQ(tested, std::set<std::string_view>(kStopPoints.begin(), kStopPoints.end()));
}

TEST_F(FaultTest, AServerThatIsToStopWhereThereIsNoPlaceDoesNotStart) {
  const auto server = serve_until("managed.start.comitted");
  EXPECT_EQ(server->wait(), kBadUsage);
  EXPECT_NE(server->log().find("managed.start.committed"), std::string::npos) << server->log();
}

TEST_F(FaultTest, AServerThatStoodStillGoesOnAsIfNothingHadBeen) {
  const auto server = serve_until("fiber.stash.committed:2");
  server->wait_until_ready();
  const auto client = send(*server, "a", "?walk=r1&steps=4&ms=10");
  wait_until_stopped(*server, "fiber.stash.committed");
  server->signal(SIGCONT);
  server->wait_for_log("r1 is finished");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(effects("a"), (Lines{"r1 1", "r1 2", "r1 3", "r1 4"}));
}

}  // namespace
}  // namespace hearth::testing

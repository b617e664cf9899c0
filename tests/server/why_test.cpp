#include "server/why.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hearth::server {
namespace {

constexpr std::int64_t kNow = 1'000'000'000;

std::int64_t ago(std::chrono::milliseconds time) {
  return kNow - time.count();
}

using extensions::Wait;
using extensions::WaitKind;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

struct WhyRow {
  const char* name;
  Wait wait;
  const char* kind;
  Urgency urgency;
  const char* what;
  const char* action;
};

const std::vector<WhyRow> kWhyRows = {
    {"a call",
     {WaitKind::kCall, "increment", "", ago(seconds(2))},
     "call",
     Urgency::kNone,
     "\"increment\" is in progress.",
     ""},
    {"a call for minutes",
     {WaitKind::kCall, "loop", "spin() at agent.cpp:7", ago(minutes(3))},
     "call",
     Urgency::kLong,
     "\"loop\" is in progress. It holds its event loop up: \"spin() at agent.cpp:7\".",
     ": hearth evict Notes a"},
    {"a call of unknown age",
     {WaitKind::kCall, "loop"},
     "call",
     Urgency::kNone,
     "\"loop\" is in progress.",
     ""},
    {"a fiber at work for half an hour",
     {WaitKind::kRunning, "f1", "", ago(minutes(30))},
     "fiber",
     Urgency::kNone,
     "The fiber \"f1\" runs.",
     ""},
    {"a try that failed",
     {WaitKind::kRetry, "f1", "503", ago(seconds(5)), kNow + 1000},
     "retry",
     Urgency::kNone,
     "The fiber \"f1\" waits for its next try. The last one failed: \"503\".",
     ""},
    {"an operation of an unknown outcome",
     {WaitKind::kUnknown, "op1", "pay", ago(seconds(1))},
     "unknown",
     Urgency::kPerson,
     "It is not known whether the operation \"op1\" was executed. Its kind is \"pay\".",
     "find out whether it was executed, and record it with hearth resolve"
     ": hearth operations Notes a op1"},
    {"a budget",
     {WaitKind::kBudget, "chat.model", "", {}, kNow + 1000},
     "budget",
     Urgency::kNone,
     "Today's budget of operations of the kind \"chat.model\" is used up.",
     "raise per_day or cost_per_day of the kind"},
    {"a time that is to come",
     {WaitKind::kSchedule, "report", "", ago(hours(9)), kNow + 60'000},
     "schedule",
     Urgency::kNone,
     "The schedule for \"report\" waits for its time.",
     ""},
    {"a time that has gone by",
     {WaitKind::kSchedule, "report", "", ago(hours(9)), ago(minutes(2))},
     "schedule",
     Urgency::kLong,
     "The schedule for \"report\" waits for its time.",
     ""},
    {"a text that looks like a place of the sentence",
     {WaitKind::kRetry, "{d}", "{a}", ago(hours(2)), {}, "f 1"},
     "retry",
     Urgency::kLong,
     "The fiber \"{d}\" waits for its next try. The last one failed: \"{a}\".",
     "correct what fails, or end it: hearth fibers cancel Notes/a 'f 1'"},
};

TEST(WhyTest, EachWaitIsExplainedAsItsRowSays) {
  for (const WhyRow& row : kWhyRows) {
    SCOPED_TRACE(row.name);
    const Explanation told = explain(row.wait, "Notes a", kNow);
    EXPECT_EQ(told.kind, row.kind);
    EXPECT_EQ(told.urgency, row.urgency);
    EXPECT_EQ(told.what, row.what);
    EXPECT_EQ(told.command.empty() ? told.action : told.action + ": " + told.command, row.action);
  }
}

// Clients choose names, and operators paste commands.
TEST(WhyTest, ANameIsAWordOfACommand) {
  const auto command = [](const Wait& wait) {
    return explain(wait, "Notes x;$(id)'", kNow).command;
  };
  EXPECT_EQ(command({WaitKind::kCall, "loop", "", ago(minutes(3))}),
            R"(hearth evict Notes 'x;$(id)'\''')");
  EXPECT_EQ(command({.kind = WaitKind::kDeadFiber, .id = "f1"}),
            R"(hearth fibers revive 'Notes/x;$(id)'\''' f1)");
  EXPECT_EQ(command({WaitKind::kAgentCall, R"(Notes/`id` "b")", "", ago(hours(1))}),
            R"(hearth why 'Notes/`id` "b"')");
}

TEST(WhyTest, EachKindHasARowOfItsOwn) {
  std::vector<std::string> words;
  for (int kind = 0; kind <= static_cast<int>(WaitKind::kNotice); ++kind) {
    const Explanation told = explain({static_cast<WaitKind>(kind), "s", "d"}, "Notes a", kNow);
    EXPECT_EQ(told.what.find('{'), std::string::npos) << told.what;
    EXPECT_TRUE(told.what.ends_with('.')) << told.what;
    words.emplace_back(told.kind);
  }
  std::ranges::sort(words);
  EXPECT_EQ(std::ranges::adjacent_find(words), words.end());
}

TEST(WhyTest, WhatNeedsAPersonComesFirstAndPlansLast) {
  std::vector<Wait> waits = {
      {WaitKind::kSchedule, "at night", "", ago(hours(100)), kNow + 1},
      {WaitKind::kRunning, "new", "", ago(seconds(1))},
      {WaitKind::kRunning, "of unknown age"},
      {WaitKind::kRunning, "old", "", ago(hours(3))},
      {WaitKind::kDeadFiber, "dead", "", ago(seconds(1))},
      {WaitKind::kDeadItem, "dead for long", "", ago(hours(1))},
  };
  sort_by_urgency(waits, kNow);
  std::vector<std::string> order;
  for (const Wait& wait : waits) order.push_back(wait.subject);
  EXPECT_EQ(order, (std::vector<std::string>{"dead for long", "dead", "old", "new",
                                             "of unknown age", "at night"}));
}

// Nothing else ends it, so the text must say how, and the id that this takes.
TEST(WhyTest, DeadWorkThatOnlyARemovalEndsSaysHow) {
  const Explanation told =
      explain({.kind = WaitKind::kDeadNotice, .subject = "Chat/b", .detail = "no", .id = "n-1"},
              "Notes a", kNow);
  EXPECT_EQ(told.what,
            "The notification or alarm n-1 for \"Chat/b\" has used up its tries. "
            "The last one failed: \"no\".");
  EXPECT_EQ(told.ends, "It stays until it is removed.");
  for (const char* const way :
       {"remove_notification(id)", "cancel_alarm(id)", "DELETE /objects/CLASS/NAME/alarms/ID"})
    EXPECT_NE(told.action.find(way), std::string::npos) << told.action;
}

}  // namespace
}  // namespace hearth::server

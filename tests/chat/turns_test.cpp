// Turns in an agent's database, on the mock host. The agent is killed between any two steps.
#include "rows.hpp"

#include <hearth/chat/message.hpp>
#include <hearth/chat/turns.hpp>
#include <hearth/chat/wire.hpp>
#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::milliseconds;
using Ids = std::vector<std::string>;

class Queue : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Queue>& m) { m.add("commit", &Queue::commit); }
  void commit() {}

  Turns turns{*this};
};

class TurnsTest : public ::testing::Test {
 protected:
  // Of an agent that was killed after the last step.
  [[nodiscard]] Turns& turns() {
    agent_.call("commit");
    agent_.kill();
    return agent_.as<Queue>().turns;
  }
  Accepted accept(TurnRequest request, LinePolicy policy = LinePolicy::kQueue) {
    if (request.origin_ids.empty()) request.origin_ids = {"u" + request.id};
    return turns().accept(request, {policy}, now_);
  }
  void run(const std::string& id) {
    accept({.id = id});
    ASSERT_TRUE(turns().begin(id, now_));
  }
  void end(const std::string& id, TurnState outcome, std::string_view error = {}) {
    ASSERT_TRUE(turns().end(id, outcome, error, now_));
  }
  [[nodiscard]] TurnRecord record(std::string_view id) {
    auto found = turns().find(id);
    EXPECT_TRUE(found) << id;
    return found ? *found : TurnRecord();
  }
  [[nodiscard]] std::string state(std::string_view id) {
    return std::string(state_text(record(id).state));
  }
  [[nodiscard]] Ids line() {
    Ids ids;
    for (const TurnInLine& turn : turns().line())
      ids.push_back((turn.is_running ? "*" : "") + turn.id);
    return ids;
  }
  template <class Run>
  static hearth_status error_of(Run run) {
    try {
      run();
    } catch (const Error& error) {
      return error.code();
    }
    return HEARTH_OK;
  }

  testing::Host host_;
  testing::AgentHandle agent_ = host_.create<Queue>("q");
  Time now_ = Time(std::chrono::hours(500'000));
};

TEST_F(TurnsTest, OneTurnRunsAndTheOthersWaitInTheirOrder) {
  EXPECT_EQ(turns().head(), std::nullopt);
  EXPECT_EQ(accept({.id = "t1"}).id, "t1");
  accept({.id = "t2", .kind = TurnKind::kRegenerate});
  EXPECT_EQ(line(), (Ids{"t1", "t2"}));
  EXPECT_FALSE(turns().begin("t2", now_)) << "it is not the first one";
  EXPECT_TRUE(turns().begin("t1", now_));
  EXPECT_TRUE(turns().begin("t1", now_)) << "it runs again after a crash";
  EXPECT_FALSE(turns().begin("t2", now_));
  EXPECT_EQ(line(), (Ids{"*t1", "t2"}));
  EXPECT_TRUE(turns().head()->is_running);
  end("t1", TurnState::kCompleted);
  EXPECT_FALSE(turns().begin("t1", now_));
  EXPECT_EQ(turns().head()->id, "t2");
  EXPECT_FALSE(turns().head()->is_running);
  EXPECT_TRUE(turns().begin("t2", now_));
  EXPECT_EQ(record("t2").kind, TurnKind::kRegenerate);
  EXPECT_FALSE(turns().begin("t9", now_));
}

TEST_F(TurnsTest, ATurnBeginsWhenItsTimeHasCome) {
  accept({.id = "c1", .kind = TurnKind::kContinuation, .owner = "tab1", .message_id = "a1"});
  accept({.id = "t2"});
  const Time at = now_ + kCoalesce;
  EXPECT_EQ(record("c1").not_before, at);
  EXPECT_FALSE(turns().begin("c1", at - milliseconds(1)));
  EXPECT_FALSE(turns().begin("t2", at)) << "it waits behind the continuation";

  now_ += milliseconds(20);
  const Accepted second =
      accept({.id = "c3", .kind = TurnKind::kContinuation, .owner = "tab2", .message_id = "a1"});
  EXPECT_EQ(second.place, Place::kJoins);
  EXPECT_EQ(second.id, "c1");
  EXPECT_EQ(turns().find("c3"), std::nullopt);
  EXPECT_EQ(record("c1").owner, "tab2");
  EXPECT_EQ(record("c1").message_id, "a1");
  EXPECT_FALSE(turns().begin("c1", at)) << "it waits for the next answer again";
  EXPECT_TRUE(turns().begin("c1", now_ + kCoalesce));
}

TEST_F(TurnsTest, PoliciesSkipWhatWaitsAndNameWhatIsJoined) {
  run("t1");
  accept({.id = "t2"});
  const Accepted merged = accept({.id = "t3", .origin_ids = {"ut2", "ut3"}}, LinePolicy::kMerge);
  EXPECT_EQ(merged.place, Place::kQueued);
  EXPECT_EQ(merged.joined, (Ids{"ut2", "ut3"}));
  ASSERT_EQ(merged.skipped.size(), 1U);
  EXPECT_EQ(merged.skipped[0].id, "t2");
  EXPECT_EQ(merged.skipped[0].origin_ids, Ids{"ut2"});
  EXPECT_EQ(state("t2"), "skipped");
  EXPECT_EQ(line(), (Ids{"*t1", "t3"}));

  EXPECT_EQ(accept({.id = "t4"}, LinePolicy::kDrop).place, Place::kDropped);
  EXPECT_EQ(turns().find("t4"), std::nullopt);
  EXPECT_EQ(accept({.id = "t5"}, LinePolicy::kLatest).skipped.size(), 1U);
  EXPECT_EQ(line(), (Ids{"*t1", "t5"}));
  accept({.id = "t6"}, LinePolicy::kDebounce);
  end("t1", TurnState::kCompleted);
  EXPECT_FALSE(turns().begin("t6", now_ + milliseconds(749)));
  EXPECT_TRUE(turns().begin("t6", now_ + milliseconds(750)));
}

TEST_F(TurnsTest, AFullLineTakesNoMore) {
  for (std::size_t i = 0; i < kMaxQueuedTurns; ++i) {
    const TurnRequest request{.id = "t" + std::to_string(i)};
    EXPECT_EQ(agent_.as<Queue>().turns.accept(request, {}, now_).place, Place::kQueued);
  }
  const Accepted refused = accept({.id = "more"});
  EXPECT_EQ(refused.place, Place::kFull);
  EXPECT_TRUE(refused.id.empty());
  EXPECT_EQ(turns().find("more"), std::nullopt);
  EXPECT_EQ(turns().line().size(), kMaxQueuedTurns);
}

TEST_F(TurnsTest, AnIdOrAKeyOfAnEarlierTurnIsThatTurn) {
  EXPECT_EQ(accept({.id = "t1", .key = "k1"}).place, Place::kQueued);
  EXPECT_EQ(accept({.id = "t2"}).place, Place::kQueued) << "no key is no key";
  EXPECT_EQ(accept({.id = "t3"}).place, Place::kQueued);
  const auto expect_known = [&] {
    for (const auto& [id, key] : {std::pair{"t1", ""}, {"t9", "k1"}, {"t1", "k1"}, {"t1", "k9"}}) {
      const Accepted again = accept({.id = id, .key = key}, LinePolicy::kLatest);
      EXPECT_EQ(again.place, Place::kKnown) << id << key;
      EXPECT_EQ(again.id, "t1") << id << key;
    }
  };
  expect_known();
  EXPECT_EQ(line(), (Ids{"t1", "t2", "t3"})) << "nothing is skipped";
  ASSERT_TRUE(turns().begin("t1", now_));
  end("t1", TurnState::kCompleted);
  expect_known();
}

TEST_F(TurnsTest, ATurnKeepsWhatIsSavedAndItsCountersGrow) {
  run("t1");
  TurnRecord turn = record("t1");
  EXPECT_EQ(turn.origin_ids, Ids{"ut1"});
  EXPECT_EQ(turn.created, now_);
  turn.message_id = "a1";
  turn.step = 3;
  turn.spent.tokens = 500;
  turn.spent.cost = 0.25;
  turn.incident.attempt = 2;
  turn.stash = {{"page", 7}};
  turn.work = 99;                   // not by save()
  turn.state = TurnState::kQueued;  // nor this
  EXPECT_TRUE(turns().save(turn));
  EXPECT_TRUE(turns().count("t1", 2, 1));
  EXPECT_TRUE(turns().count("t1", 3, 0));
  const TurnRecord back = record("t1");
  EXPECT_EQ(back.state, TurnState::kRunning);
  EXPECT_EQ(back.message_id, "a1");
  EXPECT_EQ(back.step, 3);
  EXPECT_EQ(back.spent.tokens, 500);
  EXPECT_EQ(back.spent.cost, 0.25);
  EXPECT_EQ(back.incident.attempt, 2);
  EXPECT_EQ(back.stash, Json({{"page", 7}}));
  EXPECT_EQ(back.work, 5);
  EXPECT_EQ(back.progress, 1);
}

TEST_F(TurnsTest, ATurnEndsOnce) {
  for (const TurnState outcome :
       {TurnState::kCompleted, TurnState::kError, TurnState::kAborted, TurnState::kSkipped}) {
    const std::string id(state_text(outcome));
    accept({.id = id});
    EXPECT_FALSE(turns().end(id, outcome, "", now_)) << "it does not run yet";
    ASSERT_TRUE(turns().begin(id, now_));
    TurnRecord turn = record(id);
    turn.stash = 1;
    ASSERT_TRUE(turns().save(turn));
    EXPECT_FALSE(record(id).ended);
    EXPECT_TRUE(turns().end(id, outcome, "why", now_ + milliseconds(5)));
    EXPECT_EQ(state(id), id);
    EXPECT_EQ(record(id).ended, now_ + milliseconds(5));
    EXPECT_EQ(record(id).error, "why");
    EXPECT_EQ(record(id).stash, nullptr);
    EXPECT_FALSE(turns().end(id, TurnState::kAborted, "again", now_));
    EXPECT_FALSE(turns().save(turn));
    EXPECT_FALSE(turns().count(id, 1, 1));
    EXPECT_EQ(turns().cancel(id, now_), Cancelled::kNothing);
    EXPECT_EQ(state(id), id);
    EXPECT_EQ(record(id).stash, nullptr);
    EXPECT_EQ(record(id).work, 0);
  }
  run("t1");
  for (const TurnState none : {TurnState::kQueued, TurnState::kRunning})
    EXPECT_EQ(error_of([&] { turns().end("t1", none, "", now_); }), HEARTH_E_INVALID);
}

TEST_F(TurnsTest, ACancelSkipsWhatWaitsAndIsKeptForWhatRuns) {
  run("t1");
  accept({.id = "t2"});
  EXPECT_FALSE(record("t1").is_stopping);
  EXPECT_EQ(turns().cancel("t1", now_), Cancelled::kStopping);
  EXPECT_EQ(turns().cancel("t2", now_), Cancelled::kSkipped);
  EXPECT_EQ(turns().cancel("t2", now_), Cancelled::kNothing);
  EXPECT_EQ(turns().cancel("t9", now_), Cancelled::kNothing);
  EXPECT_TRUE(record("t1").is_stopping);
  EXPECT_EQ(state("t2"), "skipped");
  EXPECT_EQ(line(), Ids{"*t1"});
}

TEST_F(TurnsTest, AClearLeavesNothing) {
  run("t0");
  end("t0", TurnState::kError, "The model is busy.");
  run("t1");
  TurnRecord turn = record("t1");
  accept({.id = "t2"});
  const auto gone = turns().clear(now_);
  ASSERT_EQ(gone.size(), 2U);
  EXPECT_TRUE(gone[0].is_running);
  EXPECT_EQ(gone[1].origin_ids, Ids{"ut2"});
  EXPECT_EQ(state("t0"), "error");
  EXPECT_EQ(state("t1"), "aborted");
  EXPECT_EQ(state("t2"), "skipped");
  EXPECT_TRUE(turns().line().empty());
  EXPECT_FALSE(turns().failed());
  EXPECT_FALSE(turns().save(turn));
  EXPECT_FALSE(turns().end("t1", TurnState::kAborted, "", now_));
  EXPECT_EQ(accept({.id = "t1"}).place, Place::kKnown) << "its fiber's record may be there";
  EXPECT_EQ(accept({.id = "t3"}).place, Place::kQueued);
}

TEST_F(TurnsTest, ContinuationsAndOwnTurnsInheritWhatTheLastClientSent) {
  const Json body = {{"mood", "calm"}};
  const Json tools = Json::array({{{"name", "geo"}}});
  accept({.id = "t1", .body = body, .client_tools = tools});
  accept({.id = "early", .kind = TurnKind::kProgram});
  EXPECT_EQ(record("early").body, nullptr) << "no turn has begun yet";
  ASSERT_TRUE(turns().begin("t1", now_));
  accept({.id = "t2", .body = 2});
  accept({.id = "c1", .kind = TurnKind::kContinuation});
  EXPECT_EQ(record("c1").body, body) << "not of a turn that waits";
  EXPECT_EQ(record("c1").client_tools, tools);
  end("t1", TurnState::kCompleted);
  EXPECT_EQ(record("t1").body, body);
  accept({.id = "p1", .kind = TurnKind::kProgram, .body = 3});
  EXPECT_EQ(record("p1").body, 3);
  EXPECT_EQ(record("p1").client_tools, tools);
  accept({.id = "r1", .kind = TurnKind::kRegenerate});
  EXPECT_EQ(record("r1").body, nullptr);

  ASSERT_TRUE(turns().begin("early", now_));
  EXPECT_EQ(record("t1").body, nullptr) << "only the last turn keeps it";
  EXPECT_EQ(record("c1").client_tools, tools);
}

TEST_F(TurnsTest, AFailureIsShownUntilTheNextTurn) {
  EXPECT_FALSE(turns().failed());
  run("t1");
  EXPECT_FALSE(turns().failed());
  end("t1", TurnState::kError, "The model is busy.");
  ASSERT_TRUE(turns().failed());
  EXPECT_EQ(turns().failed()->id, "t1");
  EXPECT_EQ(turns().failed()->error, "The model is busy.");
  accept({.id = "t2"});
  EXPECT_FALSE(turns().failed());
  ASSERT_EQ(turns().cancel("t2", now_), Cancelled::kSkipped);
  EXPECT_TRUE(turns().failed()) << "a turn that never ran";
  run("t3");
  end("t3", TurnState::kAborted);
  EXPECT_FALSE(turns().failed());
}

TEST_F(TurnsTest, OnlyTheLastTurnsAreKept) {
  run("first");
  end("first", TurnState::kCompleted);
  run("long");  // it runs all the time
  Turns& turns = this->turns();
  for (std::size_t i = 0; i <= kKeptTurns; ++i) {
    const std::string id = "t" + std::to_string(i);
    ASSERT_EQ(turns.accept({.id = id}, {}, now_).place, Place::kQueued);
    ASSERT_EQ(turns.cancel(id, now_), Cancelled::kSkipped);
  }
  EXPECT_EQ(this->turns().find("first"), std::nullopt);
  EXPECT_EQ(state("long"), "running");
  EXPECT_EQ(state("t1"), "skipped");
}

TEST_F(TurnsTest, WhatIsTooLargeIsRefused) {
  const auto refused = [&](TurnRequest request) {
    return error_of([&] { accept(std::move(request)); });
  };
  EXPECT_EQ(refused({.id = ""}), HEARTH_E_INVALID);
  EXPECT_EQ(refused({.id = text_of('t', kMaxTurnIdBytes + 1)}), HEARTH_E_INVALID);
  EXPECT_EQ(refused({.id = "t", .key = text_of('k', kMaxIdBytes + 1)}), HEARTH_E_INVALID);
  EXPECT_EQ(refused({.id = "t", .body = text_of('b', kMaxCustomBodyBytes - 1)}), HEARTH_E_LIMIT);
  EXPECT_EQ(refused({.id = "t", .client_tools = text_of('b', kMaxClientToolsBytes - 1)}),
            HEARTH_E_LIMIT);
  EXPECT_TRUE(turns().line().empty());

  Ids many;
  for (std::size_t i = 0; i <= kMaxOriginIds; ++i) many.push_back("u" + std::to_string(i));
  EXPECT_EQ(refused({.id = text_of('t', kMaxTurnIdBytes),
                     .origin_ids = many,
                     .body = text_of('b', kMaxCustomBodyBytes - 2),
                     .client_tools = text_of('b', kMaxClientToolsBytes - 2),
                     .key = text_of('k', kMaxIdBytes)}),
            HEARTH_OK);
  const std::string id = text_of('t', kMaxTurnIdBytes);
  EXPECT_EQ(record(id).origin_ids, Ids(many.begin() + 1, many.end()));

  ASSERT_TRUE(turns().begin(id, now_));
  TurnRecord turn = record(id);
  turn.stash = text_of('s', kMaxStashBytes - 1);
  EXPECT_EQ(error_of([&] { turns().save(turn); }), HEARTH_E_LIMIT);
  turn.stash = text_of('s', kMaxStashBytes - 2);
  EXPECT_TRUE(turns().save(turn));
}

TEST_F(TurnsTest, AClockThatHasGoneBackProlongsNoWait) {
  using std::chrono::hours;
  const Time then = now_;
  for (const milliseconds back : {milliseconds(1), milliseconds(hours(1))}) {
    SCOPED_TRACE(back.count());
    const std::string id = "of" + std::to_string(back.count());
    now_ = then;
    accept({.id = id + "plain"});
    EXPECT_TRUE(turns().begin(id + "plain", then - back));
    accept({.id = id + "late"}, LinePolicy::kDebounce);
    end(id + "plain", TurnState::kCompleted);
    EXPECT_FALSE(turns().begin(id + "late", then)) << "its time has not come";
    EXPECT_TRUE(turns().begin(id + "late", then - back));
    end(id + "late", TurnState::kCompleted);

    // One that was joined long after it was made waits since then.
    accept({.id = id + "goes_on", .kind = TurnKind::kContinuation, .message_id = "a"});
    now_ += hours(2);
    accept({.id = id + "joins", .kind = TurnKind::kContinuation, .message_id = "a"});
    EXPECT_FALSE(turns().begin(id + "goes_on", now_));
    EXPECT_TRUE(turns().begin(id + "goes_on", now_ - back));
    end(id + "goes_on", TurnState::kCompleted);
  }
}

}  // namespace
}  // namespace hearth::chat

#include "runtime/calls_in_progress.hpp"

#include "runtime/fakes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;

class CallsInProgressTest : public ::testing::Test {
 protected:
  // A call whose caller waits.
  std::pair<CallId, CallInProgress&> begin_call() {
    auto [id, call] = calls_->begin(EventKind::kCall, {});
    call.sink = std::make_shared<testing::FakeSink>(std::make_shared<testing::Answer>());
    return {id, call};
  }
  CallId begin_kept(std::string_view name, std::string_view body = "",
                    EventKind kind = EventKind::kCall) {
    auto [id, call] = calls_->begin(kind, {});
    call.sink = std::make_shared<testing::FakeSink>(std::make_shared<testing::Answer>());
    calls_->keep_if_interruptible(call, event_of(kind, name, body), true);
    return id;
  }
  static AgentEvent event_of(EventKind kind, std::string_view name, std::string_view body = "") {
    AgentEvent event;
    event.kind = kind;
    event.name = name;
    event.body = body;
    event.deadline_ms = 1'000;
    return event;
  }

  testing::ManualLoop loop_;
  ClientMemory memory_{std::size_t{64} << 10};
  std::optional<CallsInProgress> calls_{std::in_place, loop_, memory_, 10, 1'000};
};

struct CountRow {
  const char* name;
  EventKind kind;
  bool is_work;
  bool alone;
  std::size_t client_events;
  bool runs_method;
};

TEST_F(CallsInProgressTest, P1_ItCountsWhatIsInProgress) {
  for (const CountRow& row : {CountRow{"a call", EventKind::kCall, false, false, 1, true},
                              CountRow{"alone", EventKind::kCall, false, true, 1, true},
                              CountRow{"a request", EventKind::kRequest, false, false, 1, true},
                              CountRow{"a message", EventKind::kMessage, false, false, 1, false},
                              CountRow{"an item", EventKind::kQueueItem, true, false, 0, false}}) {
    SCOPED_TRACE(row.name);
    auto [id, call] = calls_->begin(row.kind, {});
    if (row.alone) calls_->run_alone(call);
    if (row.is_work) calls_->begin_work(call, {});
    EXPECT_EQ(calls_->size(), 1U);
    EXPECT_EQ(calls_->client_events(), row.client_events);
    EXPECT_EQ(calls_->runs_method(), row.runs_method);
    EXPECT_EQ(calls_->runs_alone(), row.alone);
    calls_->end(id, call);
    EXPECT_TRUE(calls_->empty());
    EXPECT_EQ(calls_->client_events(), 0U);
    EXPECT_FALSE(calls_->runs_method());
    EXPECT_FALSE(calls_->runs_alone());
    EXPECT_EQ(calls_->find(id), nullptr);
  }
}

TEST_F(CallsInProgressTest, P2_TheDeadlineOfACallThatHasEndedDoesNotRun) {
  int timed_out = 0;
  auto [id, call] = begin_call();
  calls_->arm_deadline(call, milliseconds(10), [&] { ++timed_out; });
  calls_->end(id, call);
  loop_.advance(milliseconds(20));
  EXPECT_EQ(timed_out, 0);
}

TEST_F(CallsInProgressTest, P2_ALaterDeadlineTakesThePlaceOfTheEarlier) {
  int timed_out = 0;
  auto [id, call] = begin_call();
  calls_->arm_deadline(call, milliseconds(10), [&] { timed_out += 10; });
  calls_->arm_deadline(call, milliseconds(50), [&] { ++timed_out; });
  loop_.advance(milliseconds(20));
  EXPECT_EQ(timed_out, 0);
  loop_.advance(milliseconds(30));
  EXPECT_EQ(timed_out, 1);
  calls_->arm_deadline(call, milliseconds(10), [&] { ++timed_out; });
  calls_->arm_deadline(call, milliseconds(0), [&] { ++timed_out; });
  loop_.advance(milliseconds(20));
  EXPECT_EQ(timed_out, 1) << "0 takes the deadline away";
  calls_->end(id, call);
}

struct AgainRow {
  const char* name;
  EventKind kind;
  bool is_idempotent;
  bool part_sent;
  unsigned interruptions;
  bool again;
};

TEST_F(CallsInProgressTest, P3_WhatIsCutOffAndHarmlessComesAgain) {
  for (const AgainRow& row :
       {AgainRow{"idempotent", EventKind::kCall, true, false, 0, true},
        AgainRow{"any other call", EventKind::kCall, false, false, 0, false},
        AgainRow{"its caller has seen a part", EventKind::kCall, true, true, 0, false},
        AgainRow{"a client that connects", EventKind::kConnect, false, false, 0, true},
        AgainRow{"a message", EventKind::kMessage, true, false, 0, false},
        AgainRow{"too often", EventKind::kCall, true, false, Interruptions::kMost, false}}) {
    SCOPED_TRACE(row.name);
    auto [id, call] = calls_->begin(row.kind, {});
    call.sink = std::make_shared<testing::FakeSink>(std::make_shared<testing::Answer>());
    call.part_sent = row.part_sent;
    call.interruptions.count = row.interruptions;
    calls_->keep_if_interruptible(call, event_of(row.kind, "m"), row.is_idempotent);
    EXPECT_EQ(calls_->interrupt(call), row.again);
    calls_->end(id, call);
    const auto again = calls_->take_interrupted();
    ASSERT_EQ(again.size(), row.again ? 1U : 0U);
    if (!row.again) continue;
    EXPECT_EQ(again[0].interruptions.count, 1U);
    EXPECT_EQ(again[0].interruptions.due, loop_.clock().steady_now() + milliseconds(1'000))
        << "its time goes on";
  }
}

TEST_F(CallsInProgressTest, P3_WhatWasCutOffComesInTheOrderInWhichItBeganAndNothingElse) {
  const auto first = begin_kept("first");
  const auto over = begin_kept("over");
  (void)begin_kept("answered otherwise");
  const auto last = begin_kept("last");
  const auto sink = calls_->find(last)->sink;
  calls_->end(over, *calls_->find(over));
  EXPECT_TRUE(calls_->interrupt(*calls_->find(last)));
  EXPECT_TRUE(calls_->interrupt(*calls_->find(first)));
  const auto again = calls_->take_interrupted();
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].name + " " + again[1].name, "first last");
  EXPECT_EQ(again[1].sink, sink) << "the sink of the waiting caller gets the answer";
  EXPECT_TRUE(calls_->take_interrupted().empty());
}

// The test begins a call for each text; `kept` says which calls leave a copy.
struct BoundRow {
  const char* name;
  std::size_t max_calls;
  std::size_t max_bytes;
  std::vector<std::size_t> bodies;
  std::vector<bool> kept;
  std::size_t others = 0;  // bytes of the account that others hold
};

TEST_F(CallsInProgressTest, P4_TheCopiesAreBoundedAndOnTheAccount) {
  constexpr std::size_t kLarge = ClientMemory::kFree;
  for (const BoundRow& row :
       {BoundRow{"calls", 2, 1'000, {0, 0, 0}, {true, true, false}},
        BoundRow{"bytes", 10, 20, {19, 0}, {true, false}},
        BoundRow{"one too large", 10, 20, {20, 19}, {false, true}},
        BoundRow{"overdrawn", 10, 100'000, {kLarge, 1}, {false, true}, std::size_t{65} << 10}}) {
    SCOPED_TRACE(row.name);
    const HeldBytes others(memory_, row.others);
    calls_.emplace(loop_, memory_, row.max_calls, row.max_bytes);
    std::vector<bool> kept;
    std::size_t bytes = row.others;
    for (const std::size_t body : row.bodies) {
      CallInProgress& call = *calls_->find(begin_kept("m", std::string(body, ' ')));
      kept.push_back(call.copy != nullptr);
      if (kept.back()) bytes += 1 + body;
      EXPECT_EQ(memory_.used(), bytes);
    }
    EXPECT_EQ(kept, row.kept);
    const CallId connect = begin_kept("", "", EventKind::kConnect);
    EXPECT_NE(calls_->find(connect)->copy, nullptr) << "it takes no place of calls";
    calls_->for_each([this](CallId id, CallInProgress& call) { calls_->end(id, call); });
    EXPECT_EQ(memory_.used(), row.others);
    EXPECT_NE(calls_->find(begin_kept("n", ""))->copy, nullptr) << "their places are free";
  }
}

}  // namespace
}  // namespace hearth::runtime

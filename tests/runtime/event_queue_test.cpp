#include "runtime/event_queue.hpp"

#include "fakes.hpp"

#include <gtest/gtest.h>

namespace hearth::runtime {
namespace {

using testing::Answer;
using testing::FakeSink;
using testing::Sight;

Event event_of(EventKind kind, ConnectionId client, std::string_view body) {
  Event event;
  event.kind = kind;
  event.connection = client;
  event.body = body;
  return event;
}

OwnedEvent begun_before(EventKind kind, const std::string& body, SteadyTime due = SteadyTime()) {
  OwnedEvent event;
  event.kind = kind;
  event.body = body;
  event.interruptions = {1, due};
  event.sink = std::make_shared<FakeSink>(std::make_shared<Answer>());
  return event;
}

bool any(const OwnedEvent& /*event*/) {
  return true;
}

class EventQueueTest : public ::testing::Test {
 protected:
  EventQueueTest() {
    limits_.max_waiting = 20;
    limits_.max_waiting_bytes = std::size_t{1} << 20;
  }
  ConnectionId connect() {
    return clients_.add(nullptr, {}, std::make_unique<testing::FakePort>(sight_)).id;
  }
  std::shared_ptr<Answer> call(std::string_view body = "[]") {
    auto answer = std::make_shared<Answer>();
    Event event = event_of(EventKind::kCall, 0, body);
    event.sink = std::make_shared<FakeSink>(answer);
    queue_.push(std::move(event));
    return answer;
  }
  void put_back(OwnedEvent first, OwnedEvent second) {
    std::vector<OwnedEvent> again;
    again.push_back(std::move(first));
    again.push_back(std::move(second));
    queue_.put_back(std::move(again), Error{Errc::kClosing, "try again"});
  }
  std::vector<std::string> bodies() {
    std::vector<std::string> texts;
    for (const OwnedEvent& event : queue_.take_if(any)) texts.push_back(event.body);
    return texts;
  }

  RuntimeLimits limits_;
  ClientMemory memory_{std::size_t{64} << 10};
  Metrics metrics_;
  hearth::testing::RecordingLogger logger_;
  Counter& dropped_ = metrics_.counter("dropped_total", "Clients.", {});
  Connections clients_{{metrics_.gauge("connections", "Clients.", {}), dropped_, logger_, memory_}};
  std::shared_ptr<Sight> sight_ = std::make_shared<Sight>();
  EventQueue queue_{clients_, memory_, limits_};
};

TEST_F(EventQueueTest, P1_EventsLeaveInTheOrderInWhichTheyCame) {
  for (const char* body : {"1", "2", "3"}) queue_.push(event_of(EventKind::kMessage, 0, body));
  EXPECT_EQ(bodies(), (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(EventQueueTest, P1_WhatComesAgainIsBeforeWhatWaitsInItsOwnOrder) {
  queue_.push(event_of(EventKind::kMessage, 0, "new"));
  put_back(begun_before(EventKind::kCall, "first"), begun_before(EventKind::kCall, "second"));
  EXPECT_EQ(bodies(), (std::vector<std::string>{"first", "second", "new"}));
  EXPECT_EQ(queue_.next_due(), SteadyTime::max());
}

TEST_F(EventQueueTest, P1_AnEventThatMayNotLeaveHoldsUpOnlyItself) {
  const ConnectionId held = connect();
  queue_.push(event_of(EventKind::kMessage, held, "held"));
  queue_.push(event_of(EventKind::kMessage, connect(), "free"));
  const auto may = [held](const OwnedEvent& event) { return event.connection != held; };
  EXPECT_EQ(queue_.take_first(may)->body, "free");
  EXPECT_FALSE(queue_.take_first(may));
  EXPECT_EQ(queue_.take_first(any)->body, "held");
}

TEST_F(EventQueueTest, AnEventKeepsAllThatItCameWith) {
  Event event = event_of(EventKind::kRequest, 0, "body");
  event.name = "POST";
  event.flags = 7;
  event.request = std::make_unique<RequestHead>();
  event.request->target = "/x";
  event.state_write = 3;
  queue_.push(std::move(event));
  std::optional<OwnedEvent> taken = queue_.take_first(any);
  ASSERT_TRUE(taken);
  const Event lent = lend(*taken);
  EXPECT_EQ(lent.kind, EventKind::kRequest);
  EXPECT_EQ(lent.name, "POST");
  EXPECT_EQ(lent.body, "body");
  EXPECT_EQ(lent.flags, 7U);
  EXPECT_EQ(lent.request->target, "/x");
  EXPECT_EQ(lent.state_write, 3U);
}

TEST_F(EventQueueTest, P2_MoreCallsThanMayWaitAreAnswered) {
  std::vector<std::shared_ptr<Answer>> answers;
  for (std::size_t i = 0; i <= limits_.max_waiting; ++i) answers.push_back(call());
  EXPECT_FALSE(answers[limits_.max_waiting - 1]->end);
  EXPECT_EQ(answers.back()->end, "error unavailable: too many requests wait for this agent");
  EXPECT_EQ(answers.back()->status, 503U);
}

TEST_F(EventQueueTest, P2_TheBytesOfCallsAreBounded) {
  limits_.max_waiting_bytes = 100;
  EXPECT_FALSE(call(std::string(60, 'x'))->end);
  EXPECT_TRUE(call(std::string(60, 'x'))->end);
  EXPECT_FALSE(call(std::string(40, 'x'))->end);
}

TEST_F(EventQueueTest, P2_TheClaimsOfCallsWithoutAConnectionCount) {
  limits_.max_waiting_bytes = 100;
  const auto call_with_claims = [this](ConnectionId client) {
    auto answer = std::make_shared<Answer>();
    Event event = event_of(EventKind::kCall, client, "[]");
    event.sink = std::make_shared<FakeSink>(answer);
    event.origin = traced_origin({}, std::string(60, 'c'));
    queue_.push(std::move(event));
    return answer;
  };
  const std::size_t before = memory_.used();
  EXPECT_FALSE(call_with_claims(0)->end);
  EXPECT_EQ(memory_.used() - before, 62U);
  EXPECT_TRUE(call_with_claims(0)->end);
  EXPECT_FALSE(call_with_claims(connect())->end) << "those of a connection are counted with it";
  (void)queue_.take_if(any);
  EXPECT_EQ(memory_.used(), before);
}

TEST_F(EventQueueTest, P2_WhatTheHostSendsIsNeverRefused) {
  for (std::size_t i = 0; i < limits_.max_waiting; ++i) (void)call();
  queue_.push(event_of(EventKind::kStateChanged, 0, "{}"));
  EXPECT_EQ(queue_.size(), limits_.max_waiting + 1);
}

TEST_F(EventQueueTest, P2_ACallThatComesAgainAndHasNoRoomIsTold) {
  for (std::size_t i = 0; i < limits_.max_waiting; ++i) (void)call();
  const auto answer = std::make_shared<Answer>();
  OwnedEvent call_again = begun_before(EventKind::kCall, "x");
  call_again.sink = std::make_shared<FakeSink>(answer);
  put_back(std::move(call_again), begun_before(EventKind::kConnect, ""));
  EXPECT_EQ(answer->end, "error closing: try again");
  EXPECT_EQ(queue_.size(), limits_.max_waiting + 1) << "a client's CONNECT always has room";
}

TEST_F(EventQueueTest, P3_AClientWithMuchWaitingIsNotReadFrom) {
  const ConnectionId client = connect();
  for (int i = 0; i < 15; ++i) queue_.push(event_of(EventKind::kMessage, client, "x"));
  EXPECT_TRUE(sight_->empty());
  queue_.push(event_of(EventKind::kMessage, client, "x"));
  EXPECT_EQ(*sight_, Sight{"pause"});
  while (queue_.size() > 5) (void)queue_.take_first(any);
  EXPECT_EQ(*sight_, Sight{"pause"});
  (void)queue_.take_first(any);
  EXPECT_EQ(*sight_, (Sight{"pause", "resume"}));
  EXPECT_EQ(clients_.find(client)->waiting_events, 4U);
}

TEST_F(EventQueueTest, P3_SoIsOneWithManyBytesWaiting) {
  const ConnectionId client = connect();
  memory_.enter(0, 0);
  queue_.push(
      event_of(EventKind::kMessage, client, std::string((std::size_t{256} << 10) - 1, 'x')));
  EXPECT_TRUE(sight_->empty());
  queue_.push(event_of(EventKind::kClose, client, "x"));
  EXPECT_EQ(*sight_, Sight{"pause"});
  (void)queue_.take_first(any);
  EXPECT_EQ(*sight_, (Sight{"pause", "resume"}));
}

TEST_F(EventQueueTest, P4_TheBytesAreOnTheAccount) {
  queue_.push(event_of(EventKind::kMessage, 0, std::string(1000, 'x')));
  EXPECT_EQ(memory_.used(), 1000U);
  (void)queue_.take_first(any);
  EXPECT_EQ(memory_.used(), 0U);
}

TEST_F(EventQueueTest, P4_WhileTheAccountIsOverdrawnLargeEventsOfClientsAreRefused) {
  const HeldBytes others(memory_, std::size_t{65} << 10);
  const ConnectionId client = connect();
  const std::string large(ClientMemory::kFree + 1, 'x');
  EXPECT_EQ(call(large)->end, "error unavailable: the server is short of memory: try again later");
  EXPECT_FALSE(call("small")->end);
  queue_.push(event_of(EventKind::kMessage, client, large));
  EXPECT_EQ(*sight_, Sight{"close 1013 the server is short of memory: try again later"});
  queue_.push(event_of(EventKind::kStateChanged, client, large));
  EXPECT_EQ(queue_.size(), 2U) << "the host's own word waits";
  EXPECT_EQ(dropped_.value(), 1U) << "who was answered is not dropped";
}

TEST_F(EventQueueTest, P4_TheHeadOfARequestCounts) {
  const HeldBytes others(memory_, std::size_t{65} << 10);
  const auto request = [this](std::size_t head_bytes) {
    auto answer = std::make_shared<Answer>();
    Event event = event_of(EventKind::kRequest, 0, "small");
    event.request = std::make_unique<RequestHead>();
    event.request->held.emplace(memory_, head_bytes);
    event.sink = std::make_shared<FakeSink>(answer);
    queue_.push(std::move(event));
    return answer;
  };
  EXPECT_FALSE(request(ClientMemory::kFree - 100)->end);
  const auto refused = request(ClientMemory::kFree);
  EXPECT_EQ(refused->end, "error unavailable: the server is short of memory: try again later");
  EXPECT_EQ(refused->status, 503U);
}

TEST_F(EventQueueTest, P4_SoDoesWhatAClientHasSaidWhenItConnected) {
  const HeldBytes others(memory_, std::size_t{65} << 10);
  ConnectRequest large;
  large.headers = {{"X-Large", std::string(ClientMemory::kFree, 'x')}};
  const ConnectionId client =
      clients_.add(nullptr, std::move(large), std::make_unique<testing::FakePort>(sight_)).id;
  queue_.push(event_of(EventKind::kConnect, connect(), ""));
  EXPECT_EQ(*sight_, Sight{});
  queue_.push(event_of(EventKind::kConnect, client, ""));
  EXPECT_EQ(*sight_, Sight{"close 1013 the server is short of memory: try again later"});
  EXPECT_EQ(queue_.size(), 1U);
  EXPECT_EQ(dropped_.value(), 1U);
}

TEST_F(EventQueueTest, TheTimeOfWhatComesAgainIsKnown) {
  EXPECT_EQ(queue_.next_due(), SteadyTime::max());
  const SteadyTime soon{std::chrono::seconds(1)};
  const SteadyTime later{std::chrono::seconds(2)};
  put_back(begun_before(EventKind::kCall, "later", later),
           begun_before(EventKind::kCall, "soon", soon));
  EXPECT_EQ(queue_.next_due(), soon);
}

TEST_F(EventQueueTest, TheEndOfAClientIsSeenToWait) {
  const ConnectionId client = connect();
  queue_.push(event_of(EventKind::kMessage, client, "x"));
  EXPECT_FALSE(queue_.has_close_of(client));
  queue_.push(event_of(EventKind::kClose, client, ""));
  EXPECT_TRUE(queue_.has_close_of(client));
}

TEST_F(EventQueueTest, WritesOfAnInstanceThatIsGoneAreForgotten) {
  Event changed = event_of(EventKind::kStateChanged, 0, "{}");
  changed.state_write = 9;
  queue_.push(std::move(changed));
  queue_.forget_state_writes();
  EXPECT_EQ(queue_.take_first(any)->state_write, 0U);
}

}  // namespace
}  // namespace hearth::runtime

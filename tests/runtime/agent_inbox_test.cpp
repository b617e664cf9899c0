#include "runtime/agent_inbox.hpp"

#include "fakes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;
using testing::Answer;
using testing::FakeSink;
using testing::kUsualAgent;
using testing::Sight;

const Error kAway{Errc::kUnavailable, "away"};

class AgentInboxTest : public ::testing::Test {
 protected:
  struct Client {
    ConnectionId id = 0;
    std::shared_ptr<Sight> sight = std::make_shared<Sight>();
  };
  Client connect(ConnectionState state) {
    Client client;
    Connection& connection =
        clients_.add(nullptr, {}, std::make_unique<testing::FakePort>(client.sight));
    connection.state = state;
    client.id = connection.id;
    inbox_.add(client.id);
    return client;
  }
  std::shared_ptr<Answer> wait(EventKind kind, ConnectionId client) {
    Event event;
    event.kind = kind;
    event.connection = client;
    auto answer = std::make_shared<Answer>();
    if (kind == EventKind::kCall || kind == EventKind::kRequest)
      event.sink = std::make_unique<FakeSink>(answer);
    inbox_.queue().push(std::move(event));
    return answer;
  }
  OwnedEvent begun(EventKind kind, ConnectionId client, milliseconds left,
                   const std::shared_ptr<Answer>& answer = nullptr) {
    OwnedEvent event;
    event.kind = kind;
    event.connection = client;
    event.interruptions = {1, loop_.clock().steady_now() + left};
    if (answer) event.sink = std::make_shared<FakeSink>(answer);
    return event;
  }
  void put_back(OwnedEvent event) {
    std::vector<OwnedEvent> events;
    events.push_back(std::move(event));
    inbox_.put_back(std::move(events), EvictReason::kCodeUpdate, kAway);
  }
  ConnectionState state_of(const Client& client) { return clients_.find(client.id)->state; }

  RuntimeLimits limits_;
  ClientMemory memory_{std::size_t{1} << 20};
  Metrics metrics_;
  hearth::testing::RecordingLogger logger_;
  Counter& dropped_ = metrics_.counter("dropped_total", "Clients.", {});
  Connections clients_{{metrics_.gauge("connections", "Clients.", {}), dropped_, logger_, memory_}};
  testing::ManualLoop loop_;
  int expired_ = 0;
  AgentInbox inbox_{
      kUsualAgent, {clients_, memory_, limits_, loop_, logger_}, [this] { ++expired_; }};
};

TEST_F(AgentInboxTest, P1_WhoIsRefusedHearsOfItInHisOwnWay) {
  const Client client = connect(ConnectionState::kOpen);
  const Client left = connect(ConnectionState::kClosed);
  const auto request = wait(EventKind::kRequest, 0);
  const auto call = wait(EventKind::kCall, client.id);
  wait(EventKind::kMessage, client.id);
  wait(EventKind::kClose, left.id);
  inbox_.refuse_all(kAway, kCloseTryAgainLater);
  EXPECT_TRUE(inbox_.empty());
  EXPECT_EQ(request->end, "error unavailable: away");
  EXPECT_EQ(request->status, 503U);
  EXPECT_EQ(call->end, "error unavailable: away");
  EXPECT_EQ(*client.sight, (Sight{"close 1013 away"}));
  EXPECT_EQ(clients_.find(left.id), nullptr) << "P3: it is forgotten";
  EXPECT_EQ(inbox_.clients(), std::vector{client.id});
}

TEST_F(AgentInboxTest, WhatItsOwnClientsHaveSentOutlivesARefusalOfStrangers) {
  const Client known = connect(ConnectionState::kOpen);
  const Client stranger = connect(ConnectionState::kWaiting);
  const Client left = connect(ConnectionState::kClosed);
  const auto request = wait(EventKind::kRequest, 0);
  const auto call = wait(EventKind::kCall, known.id);
  wait(EventKind::kConnect, stranger.id);
  wait(EventKind::kClose, left.id);
  inbox_.refuse_strangers(kAway, kCloseTryAgainLater);
  EXPECT_EQ(request->end, "error unavailable: away");
  EXPECT_EQ(*stranger.sight, (Sight{"close 1013 away"}));
  EXPECT_EQ(call->end, std::nullopt);
  EXPECT_EQ(inbox_.queue().size(), 2U) << "a call, and a client's end";
}

TEST_F(AgentInboxTest, P2_WhatWasCutOffComesFirstAndOnlyInItsTime) {
  const Client client = connect(ConnectionState::kOpen);
  const auto late = wait(EventKind::kRequest, 0);
  const auto soon_over = std::make_shared<Answer>();
  put_back(begun(EventKind::kCall, client.id, milliseconds(100), soon_over));
  EXPECT_EQ(inbox_.queue().size(), 2U);
  loop_.advance(milliseconds(99));
  EXPECT_EQ(expired_, 0);
  loop_.advance(milliseconds(1));
  EXPECT_EQ(expired_, 1);
  EXPECT_EQ(soon_over->end, "error timeout: the agent did not answer in time");
  EXPECT_EQ(late->end, std::nullopt) << "it has not begun";
  EXPECT_EQ(inbox_.queue().size(), 1U);
}

TEST_F(AgentInboxTest, TheLineOfACallThatIsGivenUpNamesItsMethodAndTrace) {
  const auto origin = std::make_shared<extensions::Origin>();
  origin->trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  OwnedEvent call = begun(EventKind::kCall, 0, milliseconds(0), std::make_shared<Answer>());
  call.name = std::string(100, 'm');
  call.origin = origin;
  inbox_.give_up(call);
  EXPECT_TRUE(logger_.contains(
      "agent.event_timed_out class=Counter agent=a event_kind=call method=" + std::string(64, 'm') +
      " trace=" + origin->trace))
      << logger_.events().back();
}

TEST_F(AgentInboxTest, P2_AClientThatWasConnectingIsToldToComeBackWhenItsTimeIsOver) {
  const Client client = connect(ConnectionState::kConnecting);
  put_back(begun(EventKind::kConnect, client.id, milliseconds(100)));
  put_back(begun(EventKind::kConnect, 999, milliseconds(100)));
  EXPECT_EQ(inbox_.queue().size(), 1U) << "one that is gone does not come again";
  loop_.advance(milliseconds(100));
  EXPECT_EQ(*client.sight, (Sight{"close 1012 the agent restarted while you connected"}));
  EXPECT_EQ(state_of(client), ConnectionState::kOpen) << "its end is an event";
}

TEST_F(AgentInboxTest, ADestroyedAgentTakesWithItWhatItKnew) {
  const Client known = connect(ConnectionState::kOpen);
  const Client stranger = connect(ConnectionState::kWaiting);
  const auto call = wait(EventKind::kCall, known.id);
  wait(EventKind::kConnect, stranger.id);
  const auto request = wait(EventKind::kRequest, 0);
  inbox_.part_with_known(Error{Errc::kNotFound, "destroyed"});
  EXPECT_EQ(call->end, "error not_found: destroyed");
  EXPECT_EQ(*known.sight, (Sight{"close 4410 destroyed"}));
  EXPECT_EQ(state_of(known), ConnectionState::kWaiting) << "its end is nobody's event";
  EXPECT_TRUE(stranger.sight->empty());
  EXPECT_EQ(request->end, std::nullopt);
  EXPECT_EQ(inbox_.queue().size(), 2U) << "for the next agent of the name";
}

TEST_F(AgentInboxTest, P3_AfterAnInstanceNobodyIsLeftHalfConnectedOrHalfGone) {
  const Client open = connect(ConnectionState::kOpen);
  const Client connecting = connect(ConnectionState::kConnecting);
  clients_.find(connecting.id)->connect_in_progress = true;
  const Client closed = connect(ConnectionState::kClosed);
  const Client closing = connect(ConnectionState::kClosed);
  wait(EventKind::kClose, closing.id);
  inbox_.part_with_unfinished();
  EXPECT_TRUE(open.sight->empty());
  EXPECT_EQ(*connecting.sight, (Sight{"close 1012 the agent restarted while you connected"}));
  EXPECT_EQ(clients_.find(closed.id), nullptr) << "its CLOSE was in progress";
  EXPECT_NE(clients_.find(closing.id), nullptr) << "its CLOSE still waits";
}

TEST_F(AgentInboxTest, WhoWaitsForAClassIsEndedWithItOnce) {
  const Client open = connect(ConnectionState::kOpen);
  const Client left = connect(ConnectionState::kClosed);
  inbox_.end_clients(kCloseServiceRestart, "the class is not loaded");
  inbox_.end_clients(kCloseServiceRestart, "the class is not loaded");
  EXPECT_EQ(*open.sight, (Sight{"close 1012 the class is not loaded"}));
  EXPECT_TRUE(left.sight->empty());
}

TEST_F(AgentInboxTest, AQuestionOfAClientOfASubAgentIsForTheNextAgentOfTheName) {
  Event question;
  question.kind = EventKind::kSubAgent;
  const auto answer = std::make_shared<Answer>();
  question.sink = std::make_unique<FakeSink>(answer);
  inbox_.queue().push(std::move(question));
  inbox_.part_with_known(Error{Errc::kNotFound, "destroyed"});
  EXPECT_EQ(answer->end, std::nullopt);
  EXPECT_EQ(inbox_.queue().size(), 1U) << "else its client would wait for ever";
}

}  // namespace
}  // namespace hearth::runtime

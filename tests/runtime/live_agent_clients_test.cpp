// The state and the connections of a live agent: what its clients may do, and what they see.
#include "work_fixture.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace hearth::runtime {
namespace {

using testing::LiveAgentTest;
using testing::Sight;

TEST_F(LiveAgentTest, TheClaimsOfAClientStayWithItsEventsWhenItHasGone) {
  std::vector<extensions::CallId> waiting;
  std::vector<std::string> claims;
  on_call([&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.name != "look") {
      waiting.push_back(event.call);
      return {};
    }
    for (const auto call : waiting) {
      const auto origin = host.origin(call).origin;
      claims.push_back(origin == nullptr ? "none" : origin->claims);
    }
    return complete(host, event);
  });
  ConnectRequest request;
  request.target = "/agents/counter/a";
  request.claims = R"({"sub":"ann"})";
  const auto leaves = shard_.settled(shard_.connect({"Counter", "a"}, std::move(request)));
  (void)shard_.call(leaves, "wait");
  shard_.shard().message(leaves.id, "wait", FrameKind::kText);
  shard_.settle();
  shard_.leave(leaves, 1000, "", true);
  ASSERT_EQ(shard_.shard().counts().connections, 0U);
  (void)shard_.ask(shard_.connect(), "look");
  EXPECT_EQ(claims, std::vector<std::string>(2, R"({"sub":"ann"})"));
}

TEST_F(LiveAgentTest, AClientsWriteReachesEveryOtherClientAndNotItself) {
  const auto writer = shard_.connect("a", "same id");
  const auto other = shard_.join("a", "same id");  // excluded by socket, not by id
  EXPECT_EQ(shard_.store(writer, R"({"n":2})")->end, "ok ");
  EXPECT_EQ(writer.sight->size(), 1U);
  EXPECT_EQ(other.sight->back(), R"(text state {"n":2})");
}

TEST_F(LiveAgentTest, AReadonlyClientCannotChangeTheStateNorMakeTheAgentDoIt) {
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kConnecting)
      EXPECT_TRUE(host.set_flags(event.connection, Connection::kReadonly));
    if (event.kind == EventKind::kCall) {
      const auto outcome = host.set_state(event.connection, "1");
      EXPECT_EQ(outcome.error().code, Errc::kForbidden);
      return host.complete(event.call, outcome.error());
    }
    return complete(host, event);
  };
  const auto client = shard_.connect();
  EXPECT_EQ(shard_.write_state(client, "1")->end, "error forbidden: Connection is readonly");
  EXPECT_EQ(shard_.call(client, "set")->end, "error forbidden: Connection is readonly");
}

TEST_F(LiveAgentTest, AClientThatBecomesReadonlyInACheckHearsWhatTheCheckSays) {
  shard_.script.checks_state = true;
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_TRUE(host.set_flags(event.connection, Connection::kReadonly));
    return Error{Errc::kInvalidArgument, ""};
  });
  const auto client = shard_.connect();
  const auto first = shard_.write_state(client, "1");
  EXPECT_EQ(first->end, "error invalid_argument: ");
  EXPECT_EQ(first->status, 200U) << "403 means: it was readonly before";
  EXPECT_EQ(shard_.write_state(client, "1")->status, 403U);
}

Result<void> refuses_13(HostCalls&, const AgentEvent& event) {
  if (event.kind == EventKind::kStateCheck && event.body == "13")
    return Error{Errc::kPlugin, "unlucky"};
  return {};
}

TEST_F(LiveAgentTest, AClientWhoseWriteIsRefusedIsToldTheTrueState) {
  shard_.script.checks_state = true;
  on_call(refuses_13);
  const auto writer = shard_.connect();
  const auto other = shard_.connect("a", "other");
  EXPECT_EQ(shard_.write_state(writer, "13")->end, "error plugin_error: unlucky");
  EXPECT_EQ(writer.sight->back(), "text state ") << "there is none";
  shard_.store(writer, "12");
  EXPECT_EQ(shard_.write_state(writer, "")->end, "error invalid_argument: the state is no JSON");
  EXPECT_EQ(writer.sight->back(), "text state 12");
  const std::size_t seen = other.sight->size();
  shard_.store(writer, "13");
  EXPECT_EQ(writer.sight->back(), "text state 12");
  EXPECT_EQ(other.sight->size(), seen) << "the others know it";
}

TEST_F(LiveAgentTest, AClassMayRejectAStateAndWatchesTheOnesItAccepted) {
  shard_.script.checks_state = true;
  shard_.script.watches_state = true;
  on_call(refuses_13);
  const auto client = shard_.connect();
  const auto other = shard_.join("a", "other");
  EXPECT_EQ(shard_.write_state(client, "13")->end, "error plugin_error: unlucky");
  shard_.store(client, "14");
  EXPECT_EQ(shard_.script.history.back(), "state_changed |14");
  EXPECT_EQ(other.sight->back(), "text state 14");
  EXPECT_EQ(other.sight->size(), 2U) << "the rejected one was shown to nobody";
}

TEST_F(LiveAgentTest, ADefaultStateIsShownAndNotStored) {
  shard_.script.on_create = [](HostCalls& host) { return host.set_default_state(R"({"n":0})"); };
  EXPECT_EQ(*shard_.join().sight, Sight{R"(handshake counter/a {"n":0})"});
  EXPECT_FALSE(std::filesystem::exists(shard_.data().agent_path({"Counter", "a"})));
}

TEST_F(LiveAgentTest, AClientWithoutProtocolGetsBroadcastsAndNoFramesOfTheProtocol) {
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kConnecting)
      EXPECT_TRUE(host.set_flags(event.connection, Connection::kNoProtocol));
    if (event.kind == EventKind::kMessage) {
      EXPECT_TRUE(host.set_state(0, "1"));
      EXPECT_TRUE(host.broadcast(FrameKind::kText, "all", "", {}));
    }
    return complete(host, event);
  };
  const auto client = shard_.connect();
  shard_.say(client, "go");
  EXPECT_EQ(*client.sight, Sight{"text all"});
}

TEST_F(LiveAgentTest, BroadcastGoesToATagAndNotToTheExcepted) {
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kConnecting) {
      const bool red = host.find_connection(event.connection)->client_id != "blue";
      if (red) EXPECT_TRUE(host.add_tag(event.connection, "red"));
    }
    if (event.kind == EventKind::kMessage) {
      const ConnectionId except[] = {event.connection};
      EXPECT_TRUE(host.broadcast(FrameKind::kBinary, "x", "red", except));
    }
    return complete(host, event);
  };
  const auto red = shard_.connect("a", "red one");
  const auto other_red = shard_.connect("a", "red two");
  const auto blue = shard_.join("a", "blue");
  shard_.say(red, "go");
  EXPECT_EQ(red.sight->size(), 1U);
  EXPECT_EQ(other_red.sight->back(), "binary x");
  EXPECT_EQ(blue.sight->size(), 1U);
}

TEST_F(LiveAgentTest, InvalidFramesAndCloseCodesAreRefused) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    const ConnectionId client = event.connection;
    EXPECT_EQ(host.send(client, FrameKind::kText, "\xff").error().code, Errc::kInvalidArgument);
    EXPECT_TRUE(host.send(client, FrameKind::kBinary, "\xff"));
    EXPECT_EQ(host.send(client + 1, FrameKind::kText, "x").error().code, Errc::kNotFound);
    for (const std::uint32_t code : {0U, 999U, 1004U, 1005U, 1006U, 1015U, 2999U, 5000U, 65536U}) {
      EXPECT_EQ(host.close(client, code, "").error().code, Errc::kInvalidArgument) << code;
    }
    EXPECT_FALSE(host.close(client, 4000, std::string(124, 'r')));
    EXPECT_TRUE(host.close(client, 4000, "enough"));
    EXPECT_EQ(host.send(client, FrameKind::kText, "late").error().code, Errc::kNotFound);
    return complete(host, event);
  });
  const auto client = shard_.connect();
  shard_.say(client, "x");
  EXPECT_EQ(client.sight->back(), "close 4000 enough");
}

TEST_F(LiveAgentTest, FramesSentBeforeACloseLeaveBeforeItAlsoWhenTheTurnWrote) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_TRUE(host.set_state(0, "1"));
    EXPECT_TRUE(host.send(event.connection, FrameKind::kText, "bye"));
    EXPECT_TRUE(host.close(event.connection, 1000, "done"));
    return complete(host, event);
  });
  const auto client = shard_.connect();
  shard_.say(client, "x");
  EXPECT_EQ(*client.sight,
            (Sight{"handshake counter/a -", "text state 1", "text bye", "close 1000 done"}));
}

TEST_F(LiveAgentTest, NothingIsSentToAClientBeforeItsHandshake) {
  shard_.script.on_event =
      do_on(EventKind::kConnecting, [](HostCalls& host, const AgentEvent& event) {
        EXPECT_EQ(host.send(event.connection, FrameKind::kText, "early").error().code,
                  Errc::kForbidden);
      });
  EXPECT_EQ(*shard_.join().sight, Sight{"handshake counter/a -"});
}

TEST_F(LiveAgentTest, AWalkThroughAllClientsSeesEachOnceInTheOrderOfArrival) {
  std::vector<ConnectionId> expected;
  for (int i = 0; i < 100; ++i) expected.push_back(shard_.connect("a", std::to_string(i)).id);
  std::vector<ConnectionId> seen;
  on_call([&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    for (ConnectionId id = host.next_connection(0, ""); id != 0; id = host.next_connection(id, ""))
      seen.push_back(id);
    return complete(host, event);
  });
  shard_.shard().message(expected[5], "x", FrameKind::kText);
  shard_.settle();
  EXPECT_EQ(seen, expected);
}

TEST_F(LiveAgentTest, AnAgentSeesOnlyItsOwnConnections) {
  const auto a = shard_.connect("a");
  const auto b = shard_.connect("b");
  on_call([&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_EQ(host.find_connection(b.id), nullptr);
    EXPECT_FALSE(host.send(b.id, FrameKind::kText, "spy"));
    return complete(host, event);
  });
  shard_.ask(a, "x");
  EXPECT_EQ(b.sight->size(), 1U);
}

}  // namespace
}  // namespace hearth::runtime

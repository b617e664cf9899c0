#include "api/agent_socket.hpp"

#include "api/api_fixture.hpp"
#include "api/sub_agent_gate.hpp"
#include "json/json.hpp"
#include "runtime/fakes.hpp"

#include <algorithm>
#include <atomic>
#include <set>

namespace hearth::api::testing {
namespace {

constexpr std::string_view kMcpServers =
    R"({"type":"cf_agent_mcp_servers","mcp":{"prompts":[],"resources":[],"servers":{},"tools":[]}})";

class AgentSocketTest : public ApiFixture {};

// Answers to Client::call().
constexpr std::string_view kDone = R"({"type":"rpc","id":"c","success":true,"done":true})";
std::string result(const std::string& json) {
  return R"({"type":"rpc","id":"c","success":true,"done":true,"result":)" + json + "}";
}
std::string part(const std::string& json) {
  return R"({"type":"rpc","id":"c","success":true,"done":false,"result":)" + json + "}";
}
std::string failure(const std::string& error) {
  return R"({"type":"rpc","id":"c","success":false,"error":")" + error + "\"}";
}

// ---- the handshake ------------------------------------------------------------------------------

TEST_F(AgentSocketTest, GreetsWithIdentityStateAndServersInThisOrder) {
  Client client = connect("/agents/counter/a");
  EXPECT_EQ(client.read_text(),
            R"({"type":"cf_agent_identity","name":"a","agent":"counter","stateFollows":true})");
  EXPECT_EQ(client.read_text(), R"({"type":"cf_agent_state","state":{"count":0}})");
  EXPECT_EQ(client.read_text(), kMcpServers);
}

TEST_F(AgentSocketTest, AnnouncesNoStateWhereThereIsNone) {
  Client client = connect("/agents/sampler/a");
  EXPECT_EQ(client.read_text(), R"({"type":"cf_agent_identity","name":"a","agent":"sampler"})");
  EXPECT_EQ(client.read_text(), kMcpServers);
  EXPECT_EQ(client.call("null"), result("null"));
}

TEST_F(AgentSocketTest, LeavesTheNameInTheIdentityAsItStandsInTheUrl) {
  Client client = connect("//agents//sampler///Room%201");
  EXPECT_EQ(client.read_text(),
            R"({"type":"cf_agent_identity","name":"Room%201","agent":"sampler"})");
}

TEST_F(AgentSocketTest, KeepsTheIdentityToItselfIfTheClassSaysSo) {
  runtime::ClassSettings settings;
  settings.send_identity = false;
  serve("Shy", counter, settings);
  serve("ShyWithoutState", sampler, settings);
  Client client = connect("/agents/shy/a");
  EXPECT_EQ(client.read_text(), R"({"type":"cf_agent_state","state":{"count":0}})");
  EXPECT_EQ(client.read_text(), kMcpServers);
  EXPECT_EQ(connect("/agents/shy-without-state/a").read_text(), kMcpServers);
}

TEST_F(AgentSocketTest, SaysNothingByItselfToAClientWithoutTheProtocol) {
  Client client = connect("/agents/counter/a?protocol=0");
  client.say("first");
  EXPECT_EQ(client.read_text(), "first");
  EXPECT_EQ(client.call("null"), result("null"));
}

// ---- messages -----------------------------------------------------------------------------------

TEST_F(AgentSocketTest, PassesOnWhatIsNoFrameOfTheProtocol) {
  auto client = greet("/agents/sampler/a");
  for (const std::string_view text :
       {"hello", "", "null", "{}", "[1]", R"({"type":"other"})", R"({"type":"cf_agent_state"})",
        R"({"type":"rpc","id":"1","method":"null","args":{}})",
        R"({"type":"rpc","id":1,"method":"null","args":[]})",
        R"({"type":"rpc","id":"1","method":"null","args":[]} and more)"}) {
    client.say(text);
    const Frame frame = client.read_frame();
    EXPECT_EQ(frame.opcode, 1);
    EXPECT_EQ(frame.payload, text);
  }
}

TEST_F(AgentSocketTest, PassesOnBinaryFramesWhateverTheyHold) {
  auto client = greet("/agents/sampler/a");
  for (const std::string& bytes :
       {std::string("\0\xFF\x01", 3), Client::call_text("1", "null"), std::string()}) {
    client.send(RawClient::frame(2, bytes));
    const Frame frame = client.read_frame();
    EXPECT_EQ(frame.opcode, 2);
    EXPECT_EQ(frame.payload, bytes);
  }
}

TEST_F(AgentSocketTest, ServesABurstInOrder) {
  Client client = connect("/agents/sampler/a");
  std::string burst;
  for (int i = 0; i < 25; ++i) burst += RawClient::text_frame("message " + std::to_string(i));
  client.send(burst);
  client.read_greeting();
  for (int i = 0; i < 25; ++i) EXPECT_EQ(client.read_text(), "message " + std::to_string(i));
}

TEST_F(AgentSocketTest, ServesFramesThatWereSentBeforeTheUpgradeWasAnswered) {
  start();
  RawClient client(port());
  client.send(RawClient::upgrade_text("/agents/sampler/a") + RawClient::text_frame("early") +
              RawClient::text_frame(Client::call_text("1", "null")));
  EXPECT_EQ(client.read_reply(false).status, 101);
  EXPECT_TRUE(contains(client.read_text(), "cf_agent_identity"));
  EXPECT_EQ(client.read_text(), kMcpServers);
  EXPECT_EQ(client.read_text(), "early");
  EXPECT_EQ(client.read_text(),
            R"({"type":"rpc","id":"1","success":true,"done":true,"result":null})");
}

// ---- calls --------------------------------------------------------------------------------------

TEST_F(AgentSocketTest, AnswersCallsWithValuesAndWithNothing) {
  auto client = greet("/agents/sampler/a");
  EXPECT_EQ(client.call("arguments", R"([1, {"a": null}])"), result(R"([1, {"a": null}])"));
  EXPECT_EQ(client.call("nothing"), kDone);
}

TEST_F(AgentSocketTest, TellsTheCallerTheAuthorsText) {
  auto client = greet("/agents/sampler/a");
  EXPECT_EQ(client.call("refuse"), failure(R"(it said \"no\"\n)"));
  EXPECT_EQ(client.call("nope"), failure("Method nope does not exist"));
}

TEST_F(AgentSocketTest, EchoesAnyId) {
  auto client = greet("/agents/sampler/a");
  client.say(R"({"args":[],"method":"nothing","id":"\"\\\u0000é","type":"rpc","extra":1})");
  EXPECT_EQ(client.read_text(), R"({"type":"rpc","id":"\"\\\u0000é","success":true,"done":true})");
}

// JSON.parse accepts all of these. A frame that is no message of the protocol would come back
// unchanged.
TEST_F(AgentSocketTest, AnswersEachCallWhateverItsArgumentsHold) {
  auto client = greet("/agents/sampler/a");
  const auto nested = [](int depth) {
    const auto levels = static_cast<std::size_t>(depth);
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_EQ(client.call("arguments", R"(["\ud83d","\uDD25 \ud83d\ud83d\udd25","\\ud83d"])"),
            result(R"(["\ufffd","\ufffd \ufffd\ud83d\udd25","\\ud83d"])"));
  EXPECT_EQ(client.call("arguments", nested(kMaxJsonDepth)), result(nested(kMaxJsonDepth)));
  const std::string refused = R"({"type":"rpc","id":"c","success":false,"error":"the arguments )";
  for (const std::string& arguments :
       {nested(kMaxJsonDepth + 1), nested(100'000), std::string("[1e999]")}) {
    EXPECT_TRUE(client.call("arguments", arguments).starts_with(refused)) << arguments.size();
  }
  client.say(R"({"type":"rpc","id":"\ud83d","method":"nothing","args":[]})");
  EXPECT_EQ(client.read_text(), R"({"type":"rpc","id":"\ud83d","success":true,"done":true})");
  client.say(R"({"type":"rpc","id":"c","method":"no\udd25pe","args":[]})");
  EXPECT_EQ(client.read_text(),
            "{\"type\":\"rpc\",\"id\":\"c\",\"success\":false,\"error\":\"Method no\xEF\xBF\xBDpe "
            "does not exist\"}");
  client.say(R"({"type":"rpc","id":"c","method":"nothing","args":[],"more":)" + nested(1'000) +
             "}");
  EXPECT_EQ(client.read_text(), kDone);
}

TEST_F(AgentSocketTest, StreamsPartsAndThenTheLastValue) {
  auto client = greet("/agents/sampler/a");
  EXPECT_EQ(client.call("stream"), part("1"));
  EXPECT_EQ(client.read_text(), part(R"("two")"));
  EXPECT_EQ(client.read_text(), part("[3]"));
  EXPECT_EQ(client.read_text(), result("4"));
}

TEST_F(AgentSocketTest, EndsABrokenStreamWithAnError) {
  auto client = greet("/agents/sampler/a");
  client.call("stream_fail");
  client.read_text();
  client.read_text();
  EXPECT_EQ(client.read_text(), failure("broken off"));
}

// ---- state --------------------------------------------------------------------------------------

TEST_F(AgentSocketTest, TellsEverybodyButTheWriterOfAState) {
  auto writer = greet("/agents/counter/a");
  auto reader = greet("/agents/counter/a");
  writer.say(R"({"type":"cf_agent_state","state":{"count":5}})");
  EXPECT_EQ(reader.read_text(), R"({"type":"cf_agent_state","state":{"count":5}})");
  // What the writer hears next is an answer, and no echo of its own state.
  EXPECT_EQ(writer.call("nothing"), kDone);
}

TEST_F(AgentSocketTest, TellsTheAgentsOwnStateToAllAndBeforeTheAnswer) {
  auto caller = greet("/agents/counter/a");
  auto reader = greet("/agents/counter/a");
  EXPECT_EQ(caller.call("set", "[7]"), R"({"type":"cf_agent_state","state":[7]})");
  EXPECT_EQ(caller.read_text(), result("true"));
  EXPECT_EQ(reader.read_text(), R"({"type":"cf_agent_state","state":[7]})");
}

TEST_F(AgentSocketTest, TellsTwinsOfEachOther) {
  auto writer = greet("/agents/counter/a?_pk=same");
  auto twin = greet("/agents/counter/a?_pk=same");
  writer.say(R"({"type":"cf_agent_state","state":null})");
  EXPECT_EQ(twin.read_text(), R"({"type":"cf_agent_state","state":null})");
  EXPECT_EQ(writer.call("id"), result(R"("same")"));
}

TEST_F(AgentSocketTest, TellsAReadonlyClientWhyItMayNotWrite) {
  auto client = greet("/agents/counter/a?readonly=1");
  client.say(R"({"type":"cf_agent_state","state":1})");
  EXPECT_EQ(client.read_text(),
            R"({"type":"cf_agent_state_error","error":"Connection is readonly"})");
  EXPECT_EQ(client.read_text(), R"({"type":"cf_agent_state","state":{"count":0}})");
  EXPECT_EQ(client.call("set"), failure("Connection is readonly"));
}

TEST_F(AgentSocketTest, TakesOrRefusesEachStateWhateverItHolds) {
  auto writer = greet("/agents/counter/a");
  auto reader = greet("/agents/counter/a");
  writer.say(R"({"type":"cf_agent_state","state":"\ud83d"})");
  EXPECT_EQ(reader.read_text(), R"({"type":"cf_agent_state","state":"\ufffd"})");
  for (const std::string& state :
       {std::string(1'000, '[') + std::string(1'000, ']'), std::string("-1e999")}) {
    writer.say(R"({"type":"cf_agent_state","state":)" + state + "}");
    EXPECT_TRUE(writer.read_text().starts_with(
        R"({"type":"cf_agent_state_error","error":"State update rejected: )"));
    EXPECT_EQ(writer.read_text(), R"({"type":"cf_agent_state","state":"\ufffd"})");
  }
}

TEST_F(AgentSocketTest, TellsNothingOfWhyAnAgentRejectedAState) {
  auto client = greet("/agents/counter/a");
  for (const std::string_view state : {"\"bad\"", "\"forbidden\""}) {
    client.say(R"({"type":"cf_agent_state","state":)" + std::string(state) + "}");
    EXPECT_EQ(client.read_text(),
              R"({"type":"cf_agent_state_error","error":"State update rejected"})");
    EXPECT_EQ(client.read_text(), R"({"type":"cf_agent_state","state":{"count":0}})");
  }
}

TEST_F(AgentSocketTest, TellsAWriterThatIsRefusedThatThereIsNoState) {
  auto client = greet("/agents/sampler/a");
  client.say(R"({"type":"cf_agent_state","state":"bad"})");
  EXPECT_EQ(client.read_text(),
            R"({"type":"cf_agent_state_error","error":"State update rejected"})");
  EXPECT_EQ(client.read_text(), R"({"type":"cf_agent_state"})");
}

// ---- ends ---------------------------------------------------------------------------------------

TEST_F(AgentSocketTest, ClosesAsTheAgentSays) {
  auto client = greet("/agents/sampler/a");
  client.say(Client::call_text("c", "close"));
  const Frame frame = client.read_frame();  // what was said after the close is lost
  EXPECT_EQ(frame.close_code(), 4001);
  EXPECT_EQ(frame.close_reason(), "as you wish");
}

TEST_F(AgentSocketTest, RefusesAClientThatTheAgentDoesNotWant) {
  const Frame frame = first_frame("/agents/sampler/a?refuse=1");
  EXPECT_EQ(frame.close_code(), 4403);
  EXPECT_EQ(frame.close_reason(), "not you");
}

TEST_F(AgentSocketTest, ClosesWhenTheAgentCannotStart) {
  EXPECT_EQ(close_code("/agents/broken/a"), 1011);
}

TEST_F(AgentSocketTest, TellsTheAgentHowAClientLeft) {
  Client stays = connect("/agents/room/a");
  Client leaves = connect("/agents/room/a");
  leaves.say("both are in");
  EXPECT_EQ(stays.read_text(), "both are in");
  leaves.send(RawClient::close_frame(4123, "bye"));
  EXPECT_EQ(stays.read_text(), "left 4123");
  Client vanishes = connect("/agents/room/a");
  vanishes.say("in");
  EXPECT_EQ(stays.read_text(), "in");
  vanishes.reset_on_close();
  vanishes.close();
  EXPECT_EQ(stays.read_text(), "left 1006");
}

TEST_F(AgentSocketTest, ComesBackForAClientWhoseAgentWasEvicted) {
  std::atomic<int> starts = 0;
  serve("Sleeper", [&starts](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kStart) ++starts;
    if (event.kind == EventKind::kCall && event.name == "evict") (void)host.evict();
    return nothing(host, event);
  });
  auto client = greet("/agents/sleeper/a");
  EXPECT_EQ(client.call("evict"), kDone);
  EXPECT_EQ(client.call("anything"), kDone);
  EXPECT_EQ(starts, 2);
}

TEST_F(AgentSocketTest, DeliversAllThatAClientSentWhileItsMessagesHadToWait) {
  std::atomic<runtime::CallId> held = 0;
  serve("Gate", [&held](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kConnect && event.name.ends_with("?hold")) {
      held = event.call;
      return {};
    }
    if (event.kind == EventKind::kConnect) (void)host.complete(held, std::string_view());
    if (event.kind == EventKind::kMessage) {
      (void)host.send(event.connection, FrameKind::kText, std::to_string(event.body.size()));
    }
    return nothing(host, event);
  });
  Client client = connect("/agents/gate/a?hold");
  std::string burst;
  for (int i = 0; i < 200; ++i) burst += RawClient::text_frame(std::string(10'000, 'x'));
  client.send(burst);
  Client opener = connect("/agents/gate/a");
  client.read_greeting();
  for (int i = 0; i < 200; ++i) EXPECT_EQ(client.read_text(), "10000");
}

TEST_F(AgentSocketTest, ClosesAClientThatNeverReadsAndGoesOnForTheOthers) {
  net_options_.send_queue = 256 * 1024;
  net_options_.close_timeout = std::chrono::milliseconds(200);
  Client reader = connect("/agents/room/a");
  Client sleeper(port(), "/agents/room/a", 4096);
  sleeper.say("both are in");
  EXPECT_EQ(reader.read_text(), "both are in");

  const std::string text(64 * 1024, 'x');
  bool gone = false;
  for (int i = 0; i < 500 && !gone; ++i) {
    reader.say(text);
    std::string heard = reader.read_text();
    if (heard != text) {
      EXPECT_EQ(heard, "left 1013");
      gone = true;
      heard = reader.read_text();
    }
    EXPECT_EQ(heard, text);
  }
  EXPECT_TRUE(gone);
  EXPECT_LT(sleeper.read_to_end().size(), 500 * text.size());
}

// On a shard that is driven by hand.
TEST(AgentSocketOnAManualLoopTest, DoesNotReadFromAClientWhoseMessagesWait) {
  runtime::testing::ShardFixture shard;
  runtime::CallId connecting = 0;
  shard.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kConnect) {
      connecting = event.call;
      return {};
    }
    return nothing(host, event);
  };
  shard.script.on_result = [&](HostCalls& host, const runtime::OperationResult&) {
    (void)host.complete(connecting, std::string_view());
  };
  const auto socket = std::make_shared<NotedSocket>();
  const auto listener = open_agent_socket(shard.shard(), socket, {"Counter", "a"}, "counter",
                                          {"me", "/agents/counter/a", {}});
  shard.settle();
  ASSERT_NE(connecting, 0U);
  int taken = 0;
  while (!socket->is_paused && taken < 1000) {
    listener->on_message("m", true);
    ++taken;
  }
  EXPECT_TRUE(socket->is_paused);
  EXPECT_LT(taken, 100);
  EXPECT_EQ(std::ranges::count(shard.script.history, "message |m"), 0);

  shard.runtime().post(shard.script.host->handle(), 1);
  shard.settle();
  EXPECT_FALSE(socket->is_paused);
  EXPECT_EQ(std::ranges::count(shard.script.history, "message |m"), taken);
  listener->on_close(1000, "", true);
  shard.settle();
}

// ---- loops --------------------------------------------------------------------------------------

TEST_F(AgentSocketTest, OpensSocketsOnTheLoopOfTheirAgent) {
  start(2);
  serve("Where", [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kMessage) return nothing(host, event);
    const std::string loops =
        std::to_string(host.handle() >> 56) + " " + std::to_string(current_loop().value_or(9));
    (void)host.send(event.connection, FrameKind::kText, loops);
    return nothing(host, event);
  });
  std::set<std::string> seen;
  for (const char name : {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'}) {
    const storage::AgentKey key{"Where", std::string(1, name)};
    const std::string expected = std::to_string(runtime_->shard_index(key));
    for (int i = 0; i < 3; ++i) {  // accepted on either loop
      auto client = greet("/agents/where/" + key.name);
      client.say("?");
      const std::string where = client.read_text();
      EXPECT_EQ(where, expected + " " + expected);
      seen.insert(where);
    }
  }
  EXPECT_EQ(seen.size(), 2U) << "the names do not cover both loops";
}

TEST_F(AgentSocketTest, SaysGoodbyeToAllWhenTheServerStops) {
  start(2);
  auto one = greet("/agents/counter/a");
  auto other = greet("/agents/counter/b");
  stop_runtime();
  one.say("too late");
  EXPECT_EQ(one.read_frame().close_code(), 1001);
  // The destructor of the fixture closes the other one.
}

TEST(AgentSocketOnAManualLoopTest, AGateLeavesAClientPausedWhoseSubAgentHasNoTimeForIt) {
  runtime::RuntimeLimits limits;
  limits.max_waiting = 1;
  runtime::ClassSettings one_at_a_time;
  one_at_a_time.max_events = 1;
  runtime::testing::ShardFixture shard(limits, one_at_a_time);
  runtime::CallId connecting = 0;
  shard.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kConnect) return nothing(host, event);
    connecting = event.call;
    return {};
  };
  const std::vector<Gate> gates{{{"Counter", "a"}, "counter", {"Counter", "a/Counter/b"}}};
  const auto open = [&] {
    auto socket = std::make_shared<NotedSocket>();
    (void)open_gated_socket(shard.shard(), shard.loop, socket, gates, "counter",
                            {"me", "/agents/counter/a/sub/counter/b", {}}, [] { return false; });
    shard.settle();
    return socket;
  };
  const auto connecting_one = open();
  ASSERT_NE(connecting, 0U);
  const auto waiting = open();
  EXPECT_FALSE(waiting->is_paused);
  const auto one_too_many = open();
  EXPECT_TRUE(one_too_many->is_paused) << "what it sends would wait without a bound";
}

}  // namespace
}  // namespace hearth::api::testing

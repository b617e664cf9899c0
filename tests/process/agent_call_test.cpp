// Agents of a real server that call each other: chains, circles, streams, a reload in the middle,
// and notifications across kill -9.

#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"
#include "support/environment.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <set>
#include <string>

namespace hearth::testing {
namespace {

class AgentCallProcessTest : public ProcessTest {
 protected:
  AgentCallProcessTest() {
    install(built::agent("calling-1"), "calling.so");
    put("classes/serial-caller.yaml", "class: serial-caller\ncalls: serial\n");
    put("hearth.yaml", "limits: {shutdown_grace: 100ms}\n");
  }
  [[nodiscard]] std::unique_ptr<ServerProcess> start() const {
    return serve_ready(
        {"--config", "hearth.yaml", "--shards", "2", "--log-level", "debug", "--show-failures"});
  }
  [[nodiscard]] std::unique_ptr<ServerProcess> start_until(const std::string& stop_at) const {
    auto server = serve_under({"env", "HEARTH_STOP_AT=" + stop_at},
                              {"--shards", "2", "--log-level", "debug"});
    server->wait_until_ready();
    return server;
  }
  static std::string error_of(AgentClient& client, const std::string& method,
                              const std::string& arguments) {
    client.begin(method, arguments);
    return dump_json(client.answer().at("error"));
  }
  // The names of all agents of a class.
  [[nodiscard]] std::set<std::string> agents_of(const std::string& agent_class) const {
    const Json page = parse_json(ask({"agents", agent_class, "--json"})).value();
    std::set<std::string> all;
    for (const Json& each : page.at("agents")) all.insert(each.at("name").get<std::string>());
    return all;
  }
  static long resident_kib(const ServerProcess& server) {
    std::ifstream status("/proc/" + std::to_string(server.pid()) + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
    return 0;
  }
  // Until the callee has all notes and the caller has none left.
  static Json notes_at_rest(const ServerProcess& server, std::size_t count) {
    AgentClient callee(server, "/agents/calling-agent/callee");
    AgentClient caller(server, "/agents/calling-agent/caller");
    return soon([&] { return callee.call("notes"); },
                [&](const Json& notes) {
                  return notes.size() >= count && caller.call("undelivered") == 0;
                });
  }
};

TEST_F(AgentCallProcessTest, AChainGoesThroughBothShards) {
  const auto server = start();
  std::string others = "[[";
  for (int agent = 0; agent < 12; ++agent)
    others += std::string(agent == 0 ? "" : ",") + R"(["calling-agent","a)" +
              std::to_string(agent) + R"("])";
  EXPECT_EQ(AgentClient(*server, "/agents/calling-agent/first").call("chain", others + "]]"), 12);
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(AgentCallProcessTest, ACircleThroughASerialAgentAndTooDeepADiveAreErrorsAtOnce) {
  const auto server = start();
  AgentClient serial(*server, "/agents/serial-caller/s");
  const std::string waits = R"("agent SerialCaller \"s\" waits for this call")";
  EXPECT_EQ(error_of(serial, "chain", R"([[["CallingAgent","a"],["SerialCaller","s"]]])"), waits);
  EXPECT_EQ(error_of(serial, "ask", R"(["SerialCaller","s","add",[1]])"), waits);
  EXPECT_EQ(serial.call("add", "[1]"), 1) << "it goes on";
  AgentClient diver(*server, "/agents/calling-agent/a");
  EXPECT_EQ(error_of(diver, "dive", R"(["calling-agent","b"])"),
            R"("more than 16 calls between agents wait for each other")");
}

// The length of the name as clients see it counts.
TEST_F(AgentCallProcessTest, AnObjectThatNoClientCouldReachIsNotMade) {
  put("classes/serial-caller.yaml", "class: serial-caller\nobjects: true\n");
  const auto server = start();
  AgentClient caller(*server, "/agents/calling-agent/caller");
  const auto add = [](const std::string& name) {
    return R"(["serial-caller",")" + name + R"(","add",[1]])";
  };
  std::string accents;
  while (accents.size() < 500) accents += "\xC3\xA9";
  for (const std::string& name : {accents, std::string("%00x"), std::string("%2E%2E")}) {
    const std::string error = error_of(caller, "ask", add(name));
    EXPECT_TRUE(contains(error, "name ")) << name << ": " << error;
  }
  EXPECT_EQ(caller.call("ask", add("a b")), 1);
  EXPECT_EQ(agents_of("serial-caller"), std::set<std::string>{"a%20b"});
}

// Clients choose the name in many an agent's code: it must not lead past another parent's gate.
TEST_F(AgentCallProcessTest, NoNameLeadsBelowAnAgentOfAnotherTree) {
  const auto server = start();
  AgentClient owner(*server, "/agents/calling-agent/owner");
  const std::string own = R"(["calling-agent","calling-agent/owner/secret","add",[)";
  EXPECT_EQ(owner.call("ask", own + "5]]"), 5) << "its own child is made";
  AgentClient stranger(*server, "/agents/calling-agent/stranger");
  for (const std::string way :
       {"CallingAgent/owner/secret", "calling-agent/owner/secret", "CallingAgent/owner/new",
        "CallingAgent/owner/CallingAgent/secret/new", "NoSuchClass/p/orphan",
        "CallingAgent/stranger/NoSuchClass/p/orphan", "CallingAgent/stranger/sub/p/orphan",
        "CallingAgent//y", "//y", "CallingAgent/x/",
        "CallingAgent/stranger/CallingAgent/p/orphan"}) {
    const std::string callee = R"(["calling-agent",")" + way + R"(",)";
    stranger.begin("ask", callee + R"("add",[1]])");
    EXPECT_EQ(stranger.answer().at("success"), false) << way;
    if (way.ends_with("CallingAgent/p/orphan")) continue;  // is waited for, and not made
    stranger.begin("notify", callee + "1,1]");
    EXPECT_EQ(stranger.answer().at("success"), false) << way;
  }
  EXPECT_EQ(stranger.call("undelivered"), 0);
  EXPECT_EQ(owner.call("ask", own + "1]]"), 6) << "nobody else has reached it";
  EXPECT_EQ(agents_of("calling-agent"),
            (std::set<std::string>{"owner", "stranger", "CallingAgent/owner/secret"}));
}

TEST_F(AgentCallProcessTest, ASlowReaderBoundsWhatIsMadeForIt) {
  const auto server = start();
  AgentClient reader(*server, "/agents/calling-agent/reader");
  EXPECT_EQ(reader.call("read", R"(["calling-agent","source",4,1000,0])"), 4000);
  const long before = resident_kib(*server);
  // Parts of 256 KiB: 96 MiB. A sanitizer keeps what was freed, so there it is only shown that
  // such a reader gets everything, of fewer parts.
  const int parts = kSanitized ? 64 : 384;
  EXPECT_EQ(
      reader.call("read", R"(["calling-agent","source",)" + std::to_string(parts) + ",262144,1]"),
      parts * 262144);
  const long grown = resident_kib(*server) - before;
  std::cout << parts / 4 << " MiB through a slow reader: " << grown << " KiB at the most\n";
  if (!kSanitized) EXPECT_LT(grown, 16 * 1024) << "of 96 MiB";
}

TEST_F(AgentCallProcessTest, ACallSurvivesTheReloadOfItsCallee) {
  const auto server = start();
  AgentClient caller(*server, "/agents/calling-agent/caller");
  EXPECT_EQ(caller.call("ask", R"(["serial-caller","callee","add",[7]])"), 7);
  caller.begin("ask", R"(["serial-caller","callee","hold",[1500]])");
  // Only the class of the callee gets other settings: its agents move, the caller stays.
  put("classes/serial-caller.yaml", "class: serial-caller\ncalls: serial\nidle_timeout: 50s\n");
  server->signal(SIGHUP);
  server->wait_for_log("agent.interrupted");
  EXPECT_EQ(caller.result(), 7) << "hold() is idempotent, and was begun again";
  // The library of both.
  AgentClient client(*server, "/agents/calling-agent/c");
  replace(built::agent("calling-2"), "calling.so");
  // The asking agent is of the same library, and may be interrupted itself.
  const auto version = [&client] {
    client.begin("ask", R"(["calling-agent","callee","version",[]])");
    const Json answer = client.answer();
    return answer.at("success") == true ? answer.at("result") : Json();
  };
  (void)soon(version, [](const Json& found) { return found == "2.0.0"; });
}

TEST_F(AgentCallProcessTest, CallsAreCutOffByTheEndOfTheServer) {
  const auto server = start();
  {
    AgentClient caller(*server, "/agents/calling-agent/caller");
    EXPECT_EQ(caller.call("ask", R"(["calling-agent","callee","add",[1]])"), 1);
    caller.begin("ask", R"(["calling-agent","callee","hold",[600000]])");
    // It is answered after the earlier one.
    caller.begin("add", "[1]");
    EXPECT_EQ(caller.result(), 1);
  }
  EXPECT_EQ(server->stop(), kClean);
}

// Before it has left, after it was delivered, and before its row has gone.
class NotifyKillTest : public AgentCallProcessTest,
                       public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Places, NotifyKillTest,
                         ::testing::Values("notice.claim.written:3", "notice.claim.committed:3",
                                           "notice.end.written:3", "notice.end.committed:3"));

TEST_P(NotifyKillTest, EachNotificationIsDeliveredUnderOneIdInOrder) {
  {
    const auto server = start_until(GetParam());
    AgentClient client(*server, "/agents/calling-agent/caller");
    client.begin("notify", R"(["calling-agent","callee",1,6])");
    server->wait_for_log("stopped at ");
    server->kill();
  }
  const auto server = start();
  const Json notes = notes_at_rest(*server, 6);
  ASSERT_EQ(notes.size(), 6U) << "one id each: " << dump_json(notes);
  int repeated = 0;
  for (int number = 1; number <= 6; ++number) {
    const Json& note = notes.at(static_cast<std::size_t>(number - 1));
    EXPECT_EQ(note.at("n"), number);
    repeated += note.at("times").get<int>() - 1;
  }
  EXPECT_LE(repeated, 1) << dump_json(notes);
}

TEST_F(AgentCallProcessTest, ANotificationThatWasNotCommittedWasNeverWritten) {
  {
    const auto server = start_until("commit.index_written");
    AgentClient client(*server, "/agents/calling-agent/caller");
    client.begin("notify", R"(["calling-agent","callee",1,1])");
    server->wait_for_log("stopped at ");
    server->kill();
  }
  const auto server = start();
  AgentClient caller(*server, "/agents/calling-agent/caller");
  EXPECT_EQ(caller.call("undelivered"), 0);
  AgentClient callee(*server, "/agents/calling-agent/callee");
  EXPECT_EQ(callee.call("notes"), Json::array());
}

}  // namespace
}  // namespace hearth::testing

// The kill matrix of operations: a server is killed at each place around an effect outside, for
// each class of effect, and restarted. No client asks for the agent. The provider
// (tests/support/provider.mjs) counts the effects.

#include "fault/buyer_fixture.hpp"
#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "support/exposition.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

namespace hearth::testing {
namespace {

using Lines = std::vector<std::string>;

// The further kill, while the order is recovered.
constexpr KillPlace kInRecovery = {"InItsRecovery", "fiber.attempt.committed", ""};

// What must be at rest.
struct AtRest {
  int effects = 1;
  std::string end = "paid";
  std::string state = "completed";
  bool operator==(const AtRest&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const AtRest& rest) {
    return out << rest.effects << " effects, " << rest.end << ", " << rest.state;
  }
};

AtRest expected(const std::string& kind, std::string_view place) {
  const bool has_acted = place == "AfterTheEffectAndBeforeTheAnswer" ||
                         place == "AfterSendingAndBeforeALateEffect" ||
                         place == "AfterTheAnswerAndBeforeTheCommit" || place == "AfterTheCommit";
  const bool was_kept = place == "AfterTheCommit";
  const bool was_begun = place != "BeforeStartedIsDurable";
  const bool was_sent = was_begun && place != "AfterStartedAndBeforeSending";
  const bool is_in_doubt = kind == "request" ? was_sent : kind == "unsafe" && was_begun;
  if (is_in_doubt && !was_kept) return {has_acted ? 1 : 0, "unknown", "unknown"};
  if ((kind == "read" || kind == "idempotent") && has_acted && !was_kept) return {.effects = 2};
  return {};
}

// Rules that each row of the table above must keep.
TEST(OperationsKillTable, HasNothingTwiceAndNothingLostInSilence) {
  int cells = 0;
  for (const KillPlace& place : kKillPlaces) {
    for (const std::string kind : kBuyerKinds) {
      SCOPED_TRACE(std::string(place.name) + ", " + kind);
      const AtRest rest = expected(kind, place.name);
      ++cells;
      if (kind != "read" && kind != "idempotent") EXPECT_LE(rest.effects, 1);
      if (rest.effects == 0) EXPECT_EQ(rest.state, "unknown");
    }
  }
  EXPECT_EQ(cells, 42) << "the six kill points, and an effect that comes late";
}

class OperationsKillTest : public BuyerTest {
 protected:
  // A server that is killed at `place` while it works on the order, or recovers it.
  void serve_and_kill(const KillPlace& place, const std::string& kind, bool recovers) {
    const std::string stop_at = place.stop_at;
    if (stop_at.empty()) ask_provider(std::string("/kill?at=") + place.provider_at);
    const auto server = stop_at.empty() ? serve_ledgers() : serve_until(stop_at);
    std::unique_ptr<RawClient> client;
    if (!recovers) {
      server->wait_until_ready();
      client = order(*server, "a", kind);
    }
    if (!stop_at.empty()) {
      kill_where_it_stops(*server, stop_at);
    } else {
      EXPECT_EQ(server->wait(), kKilled) << "the provider kills it";
    }
    log_ += server->log();
    was_killed_in_recovery_ |= recovers;
  }
  // A server that works until the order is over.
  AtRest serve_to_the_end() {
    const auto server = serve_ledgers();
    server->wait_for_log("the order is over");
    server->wait_for_log("agent.evicted class=Buyer agent=a ");
    EXPECT_EQ(server->stop(), kClean);
    log_ += server->log();
    const std::string warning = "may have executed; verify before retrying";
    AtRest rest;
    rest.effects = 0;
    const Json charged = ask_provider("/charged");
    for (const auto& [key, count] : charged.items()) rest.effects += count.get<int>();
    EXPECT_LE(charged.size(), 1U) << "one key: " << charged;
    const Lines ends = buyer_rows("a", "SELECT end FROM orders");
    rest.end = ends.size() == 1 ? ends[0] : "none";
    const Lines states = buyer_rows("a", "SELECT state FROM cf_agents_operations");
    rest.state = states.size() == 1 ? states[0] : "none";
    // A server that is killed in its recovery may not have written all lines of its log.
    const bool is_warned = count(log_, warning) > 0;
    if (is_warned || !was_killed_in_recovery_)
      EXPECT_EQ(is_warned, rest.state == "unknown") << log_;
    return rest;
  }

  bool was_killed_in_recovery_ = false;
  std::string log_;  // of all servers: a killed one may have logged it
};

class OperationsKillMatrix
    : public OperationsKillTest,
      public ::testing::WithParamInterface<std::tuple<KillPlace, const char*>> {};

TEST_P(OperationsKillMatrix, NoEffectTakesPlaceTwiceInSilence) {
  const auto& [place, kind] = GetParam();
  serve_and_kill(place, kind, false);
  EXPECT_EQ(serve_to_the_end(), expected(kind, place.name));
}
INSTANTIATE_TEST_SUITE_P(Operations, OperationsKillMatrix,
                         ::testing::Combine(::testing::ValuesIn(kKillPlaces),
                                            ::testing::ValuesIn(kBuyerKinds)),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param).name) + "_" +
                                  std::get<1>(each.param);
                         });

class OperationsRecoveryKill : public OperationsKillTest,
                               public ::testing::WithParamInterface<const char*> {};

TEST_P(OperationsRecoveryKill, AKillInTheRecoveryChangesNothing) {
  const std::string kind = GetParam();
  const KillPlace& first = kKillPlaces[3];
  serve_and_kill(first, kind, false);
  serve_and_kill(kInRecovery, kind, true);
  EXPECT_EQ(serve_to_the_end(), expected(kind, first.name));
}
INSTANTIATE_TEST_SUITE_P(Operations, OperationsRecoveryKill, ::testing::ValuesIn(kBuyerKinds),
                         [](const auto& each) { return std::string(each.param); });

TEST_F(OperationsKillTest, AnOperationAddsTwoCommitsAtMost) {
  install(built::agent("steps-agent"), "steps-agent.so");
  const auto server = serve_ledgers();
  AgentClient client(*server, "/agents/steps-agent/a");
  const auto commits = [&] {
    return Exposition(request(*server, "GET", "/metrics").body)
        .sum("hearth_commits_total", {{"class", "StepsAgent"}});
  };
  client.call("operate", "[1]");  // of the fiber, with one operation
  const double before = commits();
  client.call("operate", "[101]");
  EXPECT_LE(commits() - before, 2 * 100 + before);
  EXPECT_EQ(server->stop(), kClean);
}

// Waits for the frame about an operation that is unknown.
class WarnedClient : public AgentClient {
 public:
  explicit WarnedClient(const ServerProcess& server) : AgentClient(server, "/agents/buyer/a") {}
  std::string warned_of() {
    for (;;) {
      const Json frame = parse_json(read_text()).value();
      if (text_member(frame, "type") == "cf_agent_operation_unknown")
        return text_member(frame, "kind");
    }
  }
};

TEST_F(OperationsKillTest, AClientThatComesLaterHearsOfWhatIsUnknown) {
  serve_and_kill(kKillPlaces[2], "unsafe", false);
  EXPECT_EQ(serve_to_the_end(), (AtRest{0, "unknown", "unknown"}));
  const auto server = serve_ledgers();
  EXPECT_EQ(WarnedClient(*server).warned_of(), "unsafe");
  EXPECT_EQ(server->stop(), kClean);
}

// A server is killed while an effect of class unsafe is in progress. An administrator finds the
// unknown operation, also if the agent is cold, and resolves it. The agent's code does not run for
// that.
TEST_F(OperationsKillTest, AnAdministratorFindsAndResolvesWhatIsUnknown) {
  serve_and_kill(kKillPlaces[2], "unsafe", false);
  EXPECT_EQ(serve_to_the_end(), (AtRest{0, "unknown", "unknown"}));
  const auto server = serve_ledgers();
  const auto ask_hearth = [this](std::vector<std::string> arguments) {
    const auto command = run(std::move(arguments));
    EXPECT_EQ(command->wait(), kClean) << command->log();
    return command->out();
  };
  const auto metric = [&](const char* name, const std::map<std::string, std::string>& labels) {
    return Exposition(request(*server, "GET", "/metrics").body).sum(name, labels);
  };
  EXPECT_EQ(metric("hearth_operations_unknown", {}), 1) << "of a cold agent";
  const Json page = parse_json(ask_hearth({"operations", "--json", "--state", "unknown"})).value();
  ASSERT_EQ(page["operations"].size(), 1U) << page;
  const Json& found = page["operations"][0];
  EXPECT_EQ(found["class"], "Buyer");
  EXPECT_EQ(found["agent"], "a");
  EXPECT_EQ(found["kind"], "unsafe");
  EXPECT_TRUE(page["next"].is_null());
  const std::string id = text_member(found, "id");
  for (const char* const nothing : {"running", "interrupted"})
    EXPECT_EQ(ask_hearth({"operations", "--state", nothing}), "no operations\n");
  EXPECT_EQ(ask_hearth({"operations", "--kind", "keyed"}), "no operations\n");
  EXPECT_EQ(ask_hearth({"operations", "--older", "1h"}), "no operations\n");
  EXPECT_NE(ask_hearth({"operations", "buyer"}).find("Buyer/a  unsafe  unknown"),
            std::string::npos);
  const Json one = parse_json(ask_hearth({"operations", "buyer", "a", id})).value();
  EXPECT_EQ(one["args"]["cents"], 500);

  EXPECT_EQ(ask_hearth({"resolve", "buyer", "a", id, "completed", "--result", "{\"receipt\":7}",
                        "--note", "seen in their books"}),
            "operation " + id + " is completed\n");
  const auto again = run({"resolve", "buyer", "a", id, "completed"});
  EXPECT_EQ(again->wait().status, 1) << "it is settled";
  EXPECT_EQ(ask_hearth({"operations"}), "no operations\n");
  const std::string settled = ask_hearth({"operations", "buyer", "a", "--state", "completed"});
  EXPECT_NE(settled.find("seen in their books"), std::string::npos) << settled;
  server->wait_for_log("operation:resolved class=Buyer agent=a");
  EXPECT_EQ(metric("hearth_operations_unknown", {}), 0);
  EXPECT_EQ(metric("hearth_operations_total",
                   {{"class", "Buyer"}, {"kind", "unsafe"}, {"state", "completed"}}),
            1);
  const std::string audit = ask_hearth({"audit", "--event", "AdminOperationResolved"});
  EXPECT_NE(audit.find("administrator  Buyer/a"), std::string::npos) << audit;
  EXPECT_NE(audit.find("seen in their books"), std::string::npos) << audit;
  EXPECT_EQ(count(server->log(), "agent.started class=Buyer"), 0) << "no code of the agent ran";
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(buyer_rows("a", "SELECT state || settled_by FROM cf_agents_operations"),
            Lines{"completedadministrator"});
  EXPECT_TRUE(
      rows_of(root_ / "data/host.db", "SELECT name FROM wakes WHERE class = 'Buyer'").empty());
}

}  // namespace
}  // namespace hearth::testing

// A server is killed around the request of an operation, and in the middle of its answer, and
// restarted. No client asks for the agent. The provider (tests/support/provider.mjs, /poems)
// counts the effects.

#include "fault/fault_fixture.hpp"
#include "json/json.hpp"
#include "support/provider.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

namespace hearth::testing {
namespace {

using Lines = std::vector<std::string>;

// Where a server is killed: at a stop point, or by the provider while the server waits.
struct RequestPlace {
  const char* name;
  const char* stop_at;      // empty: the provider kills
  const char* provider_at;  // empty: it acts at once
  friend std::ostream& operator<<(std::ostream& out, const RequestPlace& place) {
    return out << place.name;
  }
};
constexpr std::array kRequestPlaces = {
    RequestPlace{"BeforeDispatchedIsDurable", "operation.dispatched.written", ""},
    RequestPlace{"AfterDispatchedAndBeforeSending", "fetch.start.committed", ""},
    RequestPlace{"AfterSendingAndBeforeTheEffect", "", "received"},
    RequestPlace{"AfterTheEffectAndBeforeTheAnswer", "", "acted"},
    RequestPlace{"AfterTheHeadOfTheAnswer", "operation.answered.committed", "stall"},
    RequestPlace{"InTheMiddleOfTheAnswer", "operation.part.committed", "stall"},
};
constexpr const RequestPlace& kInTheMiddle = kRequestPlaces[5];
// Of class keyed, unsafe, and unsafe with a request for the rest of an answer.
constexpr std::array kRequestKinds = {"keyed", "unsafe", "resumed"};

// What must be at rest.
struct PoemAtRest {
  int effects = 1;
  std::string end = "written";
  std::string state = "completed";
  bool operator==(const PoemAtRest&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const PoemAtRest& rest) {
    return out << rest.effects << " effects, " << rest.end << ", " << rest.state;
  }
};

PoemAtRest expected_poem(std::string_view kind, std::string_view place) {
  const bool has_begun = place == "AfterTheHeadOfTheAnswer" || place == "InTheMiddleOfTheAnswer";
  const bool has_acted = has_begun || place == "AfterTheEffectAndBeforeTheAnswer";
  if (kind == "keyed" || (kind == "resumed" && has_begun)) return {};
  return {has_acted ? 1 : 0, "unknown", "unknown"};
}

std::string whole_poem() {
  std::string all;
  for (int line = 0; line < 10; ++line) all += "line " + std::to_string(line) + " ";
  return all;
}

class OperationRequestsKillTest : public FaultTest {
 protected:
  OperationRequestsKillTest() {
    std::filesystem::copy_file(built::agent("poet-agent"), root_ / "plugins/poet-agent.so");
    use(provider_.http());
  }

  void use(std::uint16_t port) const {
    put("classes/poet.yaml",
        "class: Poet\nidle_timeout: 100ms\nfibers:\n  retry_base: 10ms\n"
        "  max_crashes: 0\negress:\n  allow: [127.0.0.1]\noptions:\n  provider: http://127.0.0.1:" +
            std::to_string(port) + "\n");
  }
  static std::unique_ptr<RawClient> order(const ServerProcess& server, const std::string& kind) {
    auto client = std::make_unique<RawClient>(server.port());
    client->send("POST /agents/poet/a?kind=" + kind +
                 " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    return client;
  }
  Json ask_provider(const std::string& path) const { return get_json(provider_.http(), path); }
  // `recovers`: a server before has begun the work.
  void serve_and_kill(const RequestPlace& place, const std::string& kind, bool recovers = false) {
    const std::string stop_at = place.stop_at;
    if (*place.provider_at != '\0') ask_provider(std::string("/kill?at=") + place.provider_at);
    const auto server = stop_at.empty() ? serve_ledgers() : serve_until(stop_at);
    std::unique_ptr<RawClient> client;
    if (!recovers) {
      server->wait_until_ready();
      client = order(*server, kind);
    }
    if (!stop_at.empty()) return kill_where_it_stops(*server, stop_at);
    EXPECT_EQ(server->wait(), kKilled) << "the provider kills it";
  }
  PoemAtRest serve_to_the_end() {
    const auto server = serve_ledgers();
    server->wait_for_log("the poem is over");
    server->wait_for_log("agent.evicted class=Poet agent=a ");
    EXPECT_EQ(server->stop(), kClean);
    PoemAtRest rest{.effects = 0};
    const Json charged = ask_provider("/charged");
    for (const auto& [key, count] : charged.items()) rest.effects += count.get<int>();
    EXPECT_LE(charged.size(), 1U) << "one key: " << charged;
    if (charged.size() == 1)
      EXPECT_EQ(poet_rows("SELECT id FROM cf_agents_operations"), Lines{charged.begin().key()});
    rest.end = only(poet_rows("SELECT end FROM poems"));
    rest.state = only(poet_rows("SELECT state FROM cf_agents_operations"));
    return rest;
  }
  static std::string only(const Lines& rows) { return rows.size() == 1 ? rows[0] : "none"; }
  [[nodiscard]] Lines poet_rows(const std::string& query) const {
    const std::string hash = sha256_hex("a").substr(0, 32);
    return rows_of(root_ / "data/agents/Poet" / hash.substr(0, 2) / (hash + ".db"), query);
  }

  Provider provider_;
};

class OperationRequestsKill
    : public OperationRequestsKillTest,
      public ::testing::WithParamInterface<std::tuple<RequestPlace, const char*>> {};

TEST_P(OperationRequestsKill, NoRequestHasASecondEffectInSilence) {
  const auto& [place, kind] = GetParam();
  serve_and_kill(place, kind);
  const PoemAtRest rest = serve_to_the_end();
  EXPECT_EQ(rest, expected_poem(kind, place.name));
  if (rest.end == "written")
    EXPECT_EQ(only(poet_rows("SELECT poem FROM poems")), whole_poem())
        << "nothing twice, nothing lost";
}
INSTANTIATE_TEST_SUITE_P(Operations, OperationRequestsKill,
                         ::testing::Combine(::testing::ValuesIn(kRequestPlaces),
                                            ::testing::ValuesIn(kRequestKinds)),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param).name) + "_" +
                                  std::get<1>(each.param);
                         });

// Of the unsafe operations that were cut off without a note, nothing had left.
TEST_F(OperationRequestsKillTest, OneThatActsByItsRequestIsInDoubtFromItsNoteOn) {
  serve_and_kill(kRequestPlaces[0], "request");
  EXPECT_EQ(serve_to_the_end(), PoemAtRest{});
  EXPECT_EQ(only(poet_rows("SELECT poem FROM poems")), whole_poem());
  std::filesystem::remove_all(root_ / "data");
  ask_provider("/charged?reset");
  serve_and_kill(kRequestPlaces[1], "request");
  EXPECT_EQ(serve_to_the_end(), (PoemAtRest{0, "unknown", "unknown"}));
}

TEST_F(OperationRequestsKillTest, WhatHasComeIsKeptIfNobodyCanAskForTheRest) {
  serve_and_kill(kInTheMiddle, "unsafe");
  EXPECT_EQ(serve_to_the_end(), (PoemAtRest{1, "unknown", "unknown"}));
  const std::string part = only(poet_rows("SELECT poem FROM poems"));
  EXPECT_EQ(part.find("id: 0\ndata: line 0\n"), 0U) << part;
  const std::string request = only(
      poet_rows("SELECT CAST(body AS TEXT) FROM cf_agents_operation_documents WHERE part = 3"));
  EXPECT_NE(request.find(R"("request_id":"poem-)"), std::string::npos) << request;
  EXPECT_NE(request.find(R"("status":200)"), std::string::npos) << request;
}

TEST_F(OperationRequestsKillTest, AKillInTheRestOfTheAnswerLosesNothing) {
  serve_and_kill(kInTheMiddle, "resumed");
  serve_and_kill(kInTheMiddle, "resumed", true);
  EXPECT_EQ(serve_to_the_end(), PoemAtRest{});
  EXPECT_EQ(only(poet_rows("SELECT poem FROM poems")), whole_poem());
}

TEST_F(OperationRequestsKillTest, ARequestThatCannotLeaveWasNotExecuted) {
  use(1);  // nothing listens there
  const auto server = serve_ledgers();
  const auto client = order(*server, "unsafe");
  server->wait_for_log("the poem is over");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(only(poet_rows("SELECT end FROM poems")), "failed");
  EXPECT_EQ(only(poet_rows("SELECT state FROM cf_agents_operations")), "not_executed");
}

}  // namespace
}  // namespace hearth::testing

// Operations of agents on the mock host: which run once, which are retried, and which never are.

#include "fields.hpp"
#include "one_agent.hpp"
#include "operation_kind.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using hearth::Effect;
using hearth::Json;
using hearth::OperationAttempt;
using hearth::OperationCall;
using hearth::OperationState;
using hearth::Probed;
using hearth::Task;
using hearth::testing::CallError;
using hearth::testing::FetchReply;
using hearth::testing::SentRequest;
using std::chrono::hours;
using std::chrono::seconds;

// What the provider has done, and the requests to it.
struct OtherSide {
  std::vector<std::string> keys;    // of all requests
  std::map<std::string, int> done;  // effects, by key
  int probes = 0;
  std::optional<FetchReply::Failure> failure;
  bool answers = true;  // false: it acts, and its answer never comes
};
OtherSide other_side;

FetchReply act(const SentRequest& request) {
  const std::string key = request.header("Idempotency-Key");
  if (request.method == "GET") {
    ++other_side.probes;
    const bool is_done = other_side.done.contains(key);
    return {.status = is_done ? 200U : 404U, .body = is_done ? R"({"receipt":"found"})" : ""};
  }
  other_side.keys.push_back(key);
  if (other_side.failure) return {.status = 0, .failure = other_side.failure};
  ++other_side.done[key];
  FetchReply reply{.body = R"({"receipt":")" + key.substr(0, 4) + "\"}"};
  if (!other_side.answers) reply.after = hours(1000);
  return reply;
}
FetchReply act_slowly(const SentRequest& request) {
  FetchReply reply = act(request);
  reply.after = seconds(1);
  return reply;
}

class Shop : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Shop>& m) {
    m.add("order", &Shop::order);
    m.add("twice", &Shop::twice);
    m.add("pay", &Shop::pay);
    m.add("resolve", &Shop::resolve);
    m.add("ledger", &Shop::ledger);
    m.add("undeclared", &Shop::undeclared);
    m.add("nothing", &Shop::nothing);
    m.add("measure", &Shop::measure);
    m.add("garbled", &Shop::garbled);
    m.fiber("measure", &Shop::run_measure);
    m.fiber("order", &Shop::run_order);
    m.fiber("twice", &Shop::run_twice);
    for (const auto& [name, effect] :
         {std::pair("read", Effect::kRead), std::pair("idempotent", Effect::kIdempotent),
          std::pair("keyed", Effect::kKeyed), std::pair("probe", Effect::kProbe),
          std::pair("unsafe", Effect::kUnsafe)}) {
      m.operation(name, operation_kind(effect));
    }
  }

  Task<Json> charge(OperationAttempt attempt, std::string method) {
    hearth::FetchRequest request{.method = std::move(method),
                                 .url = "https://pay.example/charges",
                                 .headers = {{"Idempotency-Key", attempt.id}}};
    auto response = co_await fetch(std::move(request));
    if (response.status() == 404) co_return nullptr;
    if (!response.ok()) throw hearth::Error(HEARTH_E_BUSY, "the other side fails");
    co_return co_await response.json();
  }
  Task<Probed> ask(OperationAttempt attempt) {
    const Json found = co_await charge(std::move(attempt), "GET");
    co_return found.is_null() ? Probed::not_executed() : Probed::completed(found);
  }
  Task<Json> run(OperationCall call) {
    const auto act = [this](OperationAttempt attempt) {
      return charge(std::move(attempt), "POST");
    };
    const auto probe = [this](OperationAttempt attempt) { return ask(std::move(attempt)); };
    co_return co_await operation(std::move(call), act, probe);
  }
  Task<Json> run_order(Json order, hearth::FiberContext&) {
    OperationCall call{.kind = order.at("kind").get<std::string>(), .args = {{"cents", 500}}};
    Json receipt = co_await run(std::move(call));
    kv().put("receipt", receipt);
    co_return receipt;
  }
  Task<int> run_twice(hearth::FiberContext& fiber) {
    for (int i = fiber.snapshot<int>().value_or(0); i < 2; ++i) {
      OperationCall call{.kind = "keyed", .args = {{"cents", 5}}};
      co_await run(std::move(call));
      fiber.stash(i + 1);
    }
    OperationCall last{.kind = "keyed", .args = {{"cents", 5}}};
    co_await run(std::move(last));
    co_return 3;
  }
  Task<Json> order(std::string kind) {
    Json input{{"kind", kind}};
    co_return co_await run_fiber<Json>("order", std::move(input));
  }
  void measure() { start_fiber("measure"); }
  // Reserves 10, and knows a second later that it is 3.
  Task<int> run_measure(hearth::FiberContext&) {
    OperationCall call{.kind = "keyed", .cost = 10};
    const auto count = [this](OperationAttempt attempt) { return use(std::move(attempt)); };
    co_return co_await operation(std::move(call), count);
  }
  Task<int> use(OperationAttempt attempt) {
    co_await sleep(seconds(1));
    attempt.set_cost(3);
    co_await sleep(seconds(1));
    co_return 1;
  }
  Task<int> twice() { return run_fiber<int>("twice"); }
  Task<Json> pay(std::string key, int cents) {
    OperationCall call{.kind = "keyed", .args = cents, .key = std::move(key)};
    return run(std::move(call));
  }
  // Its result is no JSON.
  Task<std::string> garbled(std::string kind) {
    OperationCall call{.kind = std::move(kind), .key = "k"};
    const auto act = [](OperationAttempt attempt) -> std::string {
      other_side.keys.push_back(attempt.id);
      return "caf\xe9";
    };
    co_return co_await operation(std::move(call), act);
  }
  Task<Json> undeclared() {
    OperationCall call{.kind = "refund", .key = "k"};
    return run(std::move(call));
  }
  // Neither answer, nor a fiber.
  Task<Json> nothing() {
    OperationCall call{.kind = "keyed"};
    return run(std::move(call));
  }
  bool resolve(std::string id, bool was_executed) {
    return resolve_operation(
        id, was_executed ? Probed::completed({{"receipt", "by hand"}}) : Probed::not_executed(),
        "looked at the books", "ada");
  }
  Json ledger() {
    Json all = Json::array();
    for (const auto& each : list_operations())
      all.push_back({{"id", each.id},
                     {"kind", each.kind},
                     {"state", static_cast<unsigned>(each.state)},
                     {"attempts", each.attempts},
                     {"result", each.result},
                     {"settled_by", each.settled_by.value_or("")}});
    return all;
  }
  Task<void> on_operation_unknown(const hearth::OperationRecord& operation) override {
    kv().put("unknown", {{"id", operation.id}, {"text", operation.warning()}});
    return {};
  }
};

std::vector<hearth::RecoveredOperations> recovered;

class WatchedShop : public Shop {
 public:
  Task<void> on_fiber_recovered(const hearth::RecoveredFiber& fiber) override {
    recovered.push_back(fiber.ops);
    return {};
  }
};

class OperationsSdkTest : public OneAgent<WatchedShop> {
 protected:
  OperationsSdkTest() {
    other_side = {};
    recovered.clear();
    host_.on_fetch(act);
  }
  Json ledger() { return agent_.call("ledger"); }
  Json first() { return ledger().at(0); }
  static constexpr unsigned state_of(OperationState state) { return static_cast<unsigned>(state); }
};

TEST_F(OperationsSdkTest, ItsResultIsKeptWithTheTurnThatUsesIt) {
  const Json receipt = agent_.call("order", "unsafe");
  EXPECT_EQ(fields(first(), {"state", "result"}),
            Json({state_of(OperationState::kCompleted), receipt}));
  ASSERT_EQ(other_side.keys.size(), 1U);
  EXPECT_EQ(first().at("id"), other_side.keys[0]) << "the id is the key for the other side";
}

// A kill between the request and its answer.
struct Killed {
  const char* kind;
  std::size_t requests;
  int probes;
  OperationState state;
};

TEST_F(OperationsSdkTest, I2_I5_AKillInItsMiddleIsRecoveredAsItsEffectSays) {
  for (const Killed& each : {Killed{"read", 2, 0, OperationState::kCompleted},
                             Killed{"idempotent", 2, 0, OperationState::kCompleted},
                             Killed{"keyed", 2, 0, OperationState::kCompleted},
                             Killed{"probe", 1, 1, OperationState::kCompleted},
                             Killed{"unsafe", 1, 0, OperationState::kUnknown}}) {
    SCOPED_TRACE(each.kind);
    other_side = {};
    recovered.clear();
    other_side.answers = false;
    auto agent = host_.create<WatchedShop>(each.kind);
    agent.start("order", each.kind);
    ASSERT_EQ(other_side.keys.size(), 1U);
    const std::string id = other_side.keys[0];
    agent.kill();
    other_side.answers = true;
    host_.advance(seconds(2));
    EXPECT_EQ(other_side.keys, std::vector<std::string>(each.requests, id)) << "the same key";
    EXPECT_EQ(other_side.probes, each.probes);
    const Json row = agent.call("ledger").at(0);
    EXPECT_EQ(row.at("state"), state_of(each.state));
    ASSERT_EQ(recovered.size(), 1U);
    const bool is_unknown = each.state == OperationState::kUnknown;
    EXPECT_EQ(recovered[0].unknown.size(), is_unknown ? 1U : 0U);
    EXPECT_EQ(recovered[0].interrupted.size(), is_unknown ? 0U : 1U);
    EXPECT_EQ(agent.sql("SELECT count(*) FROM cf_agents_kv WHERE key = 'unknown'"),
              Json::parse(is_unknown ? "[[1]]" : "[[0]]"));
  }
}

TEST_F(OperationsSdkTest, AKillBeforeTheRequestLeftIsNoSecondEffect) {
  other_side.failure = FetchReply::Failure{};
  EXPECT_THROW(agent_.call("order", "keyed"), CallError);
  EXPECT_TRUE(other_side.done.empty());
  EXPECT_EQ(first().at("state"), state_of(OperationState::kUnknown)) << "its fiber is over";
}

TEST_F(OperationsSdkTest, I5_WhatNobodyKnowsIsSaidUntilSomebodyHasLooked) {
  other_side.failure = FetchReply::Failure{.sent = true};
  const std::string text = refusal_of([this] { return agent_.call("order", "unsafe"); }).text;
  const std::string id = first().at("id").get<std::string>();
  EXPECT_EQ(text, "operation " + id + " may have executed; verify before retrying");
  EXPECT_EQ(agent_.sql("SELECT value ->> 'text' FROM cf_agents_kv WHERE key = 'unknown'"),
            (Json{{text}}));
  EXPECT_EQ(agent_.call("resolve", "none", true), false);
  EXPECT_EQ(agent_.call("resolve", id, true), true);
  EXPECT_EQ(first().at("result").at("receipt"), "by hand");
  EXPECT_EQ(first().at("settled_by"), "ada");
}

TEST_F(OperationsSdkTest, ARunGoesOnBehindItsCheckpoints) {
  auto call = agent_.start("twice");
  EXPECT_EQ(call.value(), 3);
  EXPECT_EQ(other_side.done.size(), 3U) << "three on purpose";
  other_side = {};
  auto other = host_.create<WatchedShop>("b");
  other_side.answers = true;
  int requests = 0;
  host_.on_fetch([&requests](const SentRequest& request) {
    FetchReply reply = act(request);
    if (++requests == 2) reply.after = hours(1000);
    return reply;
  });
  other.start("twice");
  other.kill();
  host_.advance(seconds(2));
  EXPECT_EQ(other_side.done.size(), 3U);
  EXPECT_EQ(other_side.keys.size(), 4U) << "the second is asked for again, with its key";
  ASSERT_EQ(recovered.size(), 1U);
  EXPECT_EQ(recovered[0].completed.size(), 1U);
}

TEST_F(OperationsSdkTest, AKeyWorksOutsideOfAFiber) {
  const Json receipt = agent_.call("pay", "order 7", 500);
  EXPECT_EQ(agent_.call("pay", "order 7", 500), receipt);
  EXPECT_EQ(other_side.keys.size(), 1U);
  EXPECT_THROW(agent_.call("pay", "order 7", 501), CallError) << "CONFLICT";
  EXPECT_THROW(agent_.call("nothing"), CallError) << "neither fiber nor key";
  EXPECT_THROW(agent_.call("undeclared"), CallError);
  EXPECT_EQ(other_side.keys.size(), 1U);
}

TEST_F(OperationsSdkTest, OneThatRunsIsJoined) {
  host_.on_fetch(act_slowly);
  auto first_call = agent_.start("pay", "k", 1);
  auto second_call = agent_.start("pay", "k", 1);
  host_.advance(seconds(2));
  EXPECT_EQ(first_call.value(), second_call.value());
  EXPECT_EQ(other_side.keys.size(), 1U);
}

TEST_F(OperationsSdkTest, OneWhoseResultCannotBeKeptWasCutOffAndDoesNotRunOn) {
  for (const auto& [kind, again] :
       {std::pair("idempotent", "the result of an operation must be JSON"),
        std::pair("unsafe", "may have executed; verify before retrying")}) {
    EXPECT_EQ(agent_.start("garbled", kind).error(), "the result of an operation must be JSON");
    auto next = agent_.start("garbled", kind);
    ASSERT_TRUE(next.done()) << "it waits for one that does not run: " << kind;
    EXPECT_NE(next.error().find(again), std::string::npos) << next.error();
  }
}

TEST_F(OperationsSdkTest, WhoJoinsDoesItIfTheOtherOneIsCancelled) {
  host_.on_fetch(act_slowly);
  auto first_call = agent_.start("pay", "k", 1);
  auto second_call = agent_.start("pay", "k", 1);
  first_call.cancel();
  host_.advance(seconds(2));
  EXPECT_TRUE(second_call.value().is_object());
  ASSERT_EQ(other_side.keys.size(), 2U);
  EXPECT_EQ(other_side.keys[0], other_side.keys[1]);
}

TEST_F(OperationsSdkTest, ClientsThatSpeakTheProtocolAreTold) {
  auto client = agent_.connect();
  other_side.failure = FetchReply::Failure{.sent = true};
  EXPECT_THROW(agent_.call("order", "unsafe"), CallError);
  const auto& frames = client.received();
  bool was_told = false;
  for (const auto& frame : frames)
    was_told = was_told || frame.payload.find("cf_agent_operation_unknown") != std::string::npos;
  EXPECT_TRUE(was_told);
}

TEST_F(OperationsSdkTest, ACostThatTheRunShowsReplacesTheReservedOne) {
  const auto cost = [&] { return agent_.sql("SELECT cost FROM cf_agents_operations")[0][0]; };
  agent_.call("measure");
  EXPECT_EQ(cost(), 10);
  agent_.kill();
  agent_.wake();
  host_.advance(seconds(1) / 2);
  EXPECT_EQ(cost(), 10) << "it was killed before it knew";
  host_.advance(seconds(1));
  EXPECT_EQ(cost(), 3);
  agent_.kill();
  agent_.wake();
  EXPECT_EQ(cost(), 3);
  host_.advance(seconds(10));
  EXPECT_EQ(agent_.as<Shop>().list_operations().at(0).state, OperationState::kCompleted);
  EXPECT_EQ(cost(), 3);
}

}  // namespace

// The payments plugin on the mock host, with a provider that counts.

#include "payments/payments.cpp"  // NOLINT(bugprone-suspicious-include): an agent class needs no header

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

using hearth::Json;
using hearth::testing::CallError;
using hearth::testing::FetchReply;
using hearth::testing::Host;
using hearth::testing::SentRequest;

constexpr const char* kProvider = "https://pay.example";
constexpr const char* kHook = "https://shop.example/hook";

// The requests, and their effects.
struct FakeProvider {
  bool honours_keys = true;
  unsigned status = 200;
  std::optional<FetchReply::Failure> failure;  // of requests that should act
  bool acts = true;                            // though it fails
  bool answers = true;                         // false: it acts, and its answer never comes
  bool is_late = false;                // it acts after its next answer that it does not have a key
  std::vector<std::string> asked;      // "POST /charges KEY"
  std::map<std::string, int> effects;  // by path
  std::map<std::string, std::string> receipts;  // by path and key

  FetchReply answer(const SentRequest& request) {
    const bool is_hook = request.url == kHook;
    const std::string path = is_hook ? "hook" : request.url.substr(std::string(kProvider).size());
    const std::string key = request.header(is_hook ? "Webhook-Id" : "Idempotency-Key");
    asked.push_back(request.method + " " + path + " " + key);
    std::string& receipt = receipts[path + key];
    if (request.method == "GET") {
      if (receipt.empty()) {
        if (std::exchange(is_late, false)) receipt = path + std::to_string(++effects[path]);
        return {.status = 404};
      }
      return {.body = hearth::to_text({{"receipt", receipt}})};
    }
    if (status != 200 && !acts) return {.status = status};
    if (!failure || acts) {
      if (receipt.empty() || !honours_keys) receipt = path + std::to_string(++effects[path]);
    }
    if (failure) return {.status = 0, .failure = failure};
    FetchReply reply{.status = status, .body = hearth::to_text({{"receipt", receipt}})};
    if (!answers) reply.after = hours(1000);
    return reply;
  }
};

class PaymentsTest : public ::testing::Test {
 protected:
  PaymentsTest() {
    host_.on_fetch([this](const SentRequest& request) { return provider_.answer(request); });
  }
  hearth::testing::AgentHandle create(const std::string& keys) {
    provider_.honours_keys = keys == "honoured";
    return host_.create<Payments>(keys, {{"provider", kProvider}, {"keys", keys}});
  }
  static Json payment(const std::string& status, const Json& more = Json::object()) {
    Json payment = {{"order", "1"}, {"cents", 500}, {"status", status}};
    payment.update(more);
    return payment;
  }
  // Of the only operation that is unknown.
  static void resolve(hearth::testing::AgentHandle& agent, const hearth::Probed& outcome) {
    auto& code = agent.as<Payments>();
    const auto unknown = code.list_operations({.states = {hearth::OperationState::kUnknown}});
    ASSERT_EQ(unknown.size(), 1U);
    EXPECT_TRUE(code.resolve_operation(unknown[0].id, outcome, "looked at their books", "ada"));
  }

  FakeProvider provider_;
  Host host_;
};

TEST_F(PaymentsTest, AnOrderIsChargedOnceHoweverOftenItIsAskedFor) {
  auto agent = create("honoured");
  EXPECT_EQ(agent.call("charge", "1", 500).at("status"), "charging");
  EXPECT_EQ(agent.call("charge", "1", 500), payment("paid", {{"receipt", "/charges1"}}));
  EXPECT_EQ(provider_.asked.size(), 1U);
  EXPECT_THROW(agent.call("charge", "1", 501), CallError) << "another amount";
  EXPECT_EQ(agent.call("charge", "2", 500).at("order"), "2");
  EXPECT_EQ(provider_.effects["/charges"], 2);
}

TEST_F(PaymentsTest, APaymentIsGivenBackOnce) {
  auto agent = create("honoured");
  EXPECT_THROW(agent.call("refund", "1"), CallError) << "no such order";
  provider_.status = 500;
  agent.call("charge", "1", 500);
  EXPECT_THROW(agent.call("refund", "1"), CallError) << "it is not paid yet";
  provider_.status = 200;
  host_.advance(minutes(1));
  auto client = agent.connect();
  EXPECT_EQ(agent.call("refund", "1").at("status"), "refunding");
  EXPECT_EQ(agent.call("refund", "1"),
            payment("refunded", {{"receipt", "/charges1"}, {"refund", "/refunds1"}}));
  EXPECT_EQ(provider_.effects["/refunds"], 1);
  const auto frames = client.take_received();
  ASSERT_EQ(frames.size(), 2U);
  Json last = agent.call("payment", "1");
  last["type"] = "payment";
  EXPECT_EQ(hearth::parse_json(frames[1].payload), last);
}

TEST_F(PaymentsTest, ARefusalIsTheEndOfAChargeAndNotOfAPayment) {
  auto agent = create("ignored");
  provider_.status = 402;
  provider_.acts = false;
  agent.call("charge", "1", 500);
  EXPECT_EQ(agent.call("charge", "1", 500),
            payment("refused", {{"note", "refused with status 402"}}));
  EXPECT_EQ(provider_.asked.size(), 1U) << "it is not asked for again";
  provider_.status = 200;
  agent.call("charge", "2", 500);
  provider_.status = 409;
  agent.call("refund", "2");
  EXPECT_EQ(agent.call("payment", "2").at("status"), "paid");
  provider_.status = 200;
  agent.call("refund", "2");
  EXPECT_EQ(agent.call("payment", "2").at("status"), "refunded");
}

TEST_F(PaymentsTest, WhatNeverLeftIsTriedAgainWhateverTheProviderMakesOfKeys) {
  for (const char* const keys : {"honoured", "listed", "ignored"}) {
    SCOPED_TRACE(keys);
    provider_ = {};
    auto agent = create(keys);
    provider_.failure = FetchReply::Failure{};
    provider_.acts = false;
    agent.call("charge", "1", 500);
    EXPECT_EQ(agent.call("payment", "1").at("status"), "charging");
    provider_.failure.reset();
    host_.advance(minutes(1));
    EXPECT_EQ(agent.call("payment", "1"), payment("paid", {{"receipt", "/charges1"}}));
    EXPECT_EQ(provider_.effects["/charges"], 1);
  }
}

// A crash after the effect, and before its answer.
TEST_F(PaymentsTest, AKillInTheMiddleIsNoSecondCharge) {
  struct Case {
    const char* keys;
    std::vector<std::string> asked;  // without the key
    const char* status;
  };
  for (const Case& each :
       {Case{"honoured", {"POST", "POST"}, "paid"}, Case{"listed", {"POST", "GET"}, "paid"},
        Case{"ignored", {"POST"}, "unknown"}}) {
    SCOPED_TRACE(each.keys);
    provider_ = {};
    auto agent = create(each.keys);
    provider_.answers = false;
    agent.call("charge", "1", 500);
    agent.kill();
    provider_.answers = true;
    host_.advance(minutes(1));
    EXPECT_EQ(agent.call("payment", "1").at("status"), each.status);
    EXPECT_EQ(provider_.effects["/charges"], 1);
    ASSERT_EQ(provider_.asked.size(), each.asked.size());
    const std::string key = provider_.asked[0].substr(provider_.asked[0].rfind(' '));
    for (std::size_t at = 0; at < each.asked.size(); ++at)
      EXPECT_EQ(provider_.asked[at], each.asked[at] + " /charges" + key);
  }
}

// The provider still works on a request whose caller is gone: its 404 for the key is too early.
TEST_F(PaymentsTest, AKeyThatIsNotListedYetProvesNothingUntilTheRequestCanLandNoMore) {
  struct Case {
    const char* name;
    bool is_late;
    bool is_killed;  // in the wait
    std::size_t requests;
  };
  for (const Case& each :
       {Case{"late", true, false, 3}, Case{"never", false, false, 4},
        Case{"late-and-killed", true, true, 3}, Case{"never-and-killed", false, true, 5}}) {
    SCOPED_TRACE(each.name);
    provider_ = {};
    auto agent = host_.create<Payments>(each.name, {{"provider", kProvider}, {"keys", "listed"}});
    provider_.honours_keys = false;
    provider_.failure = FetchReply::Failure{.phase = HEARTH_FETCH_PHASE_HEADERS, .sent = true};
    provider_.acts = false;
    provider_.is_late = each.is_late;
    agent.call("charge", "1", 500);
    provider_.failure.reset();
    host_.advance(seconds(30));
    EXPECT_EQ(provider_.asked.size(), 2U) << "POST, and GET: it is not listed";
    EXPECT_EQ(agent.call("payment", "1").at("status"), "charging");
    if (each.is_killed) agent.kill();
    host_.advance(minutes(3));
    EXPECT_EQ(agent.call("payment", "1"), payment("paid", {{"receipt", "/charges1"}}));
    EXPECT_EQ(provider_.effects["/charges"], 1);
    EXPECT_EQ(provider_.asked.size(), each.requests);
  }
}

TEST_F(PaymentsTest, WhatIsOpenGoesOnAsItWasBegunWhateverTheOptionSaysNow) {
  auto agent = create("ignored");
  provider_.answers = false;
  agent.call("charge", "1", 500);
  EXPECT_EQ(agent.call("payment", "1").at("status"), "charging");
  provider_.answers = true;
  agent.set_options({{"provider", kProvider}, {"keys", "honoured"}});
  agent.kill();
  host_.advance(minutes(1));
  EXPECT_EQ(agent.call("payment", "1").at("status"), "unknown") << "this provider ignored its key";
  EXPECT_EQ(provider_.effects["/charges"], 1);
  agent.call("charge", "1", 500);
  EXPECT_EQ(agent.call("payment", "1").at("status"), "unknown");
  EXPECT_EQ(provider_.effects["/charges"], 1);
  resolve(agent, hearth::Probed::completed("receipt 9"));
  agent.call("charge", "1", 500);
  EXPECT_EQ(agent.call("payment", "1").at("receipt"), "receipt 9");

  agent.call("refund", "1");
  agent.call("charge", "2", 500);
  EXPECT_EQ(agent.sql("SELECT DISTINCT kind FROM cf_agents_operations ORDER BY seq"),
            Json::parse(R"([["charge.ignored"],["refund"],["charge"]])"))
      << "what is new is begun as the option says";
  EXPECT_EQ(agent.sql("SELECT count(*) FROM open_moves"), Json::parse("[[0]]"));
}

// The earlier version did not write down `keys` for its orders.
TEST_F(PaymentsTest, WhatAnOlderVersionHasOpenGoesOnAsTheLedgerSays) {
  const std::string open = "SELECT payment || ' ' || what || ' ' || keys FROM open_moves";
  const auto update = [this](hearth::testing::AgentHandle& agent) {
    static_cast<void>(agent.sql("DROP TABLE open_moves"));
    static_cast<void>(agent.sql("DROP TABLE unknown_moves"));
    agent.call("deliveries", "1");  // commits it
    agent.set_options({{"provider", kProvider}, {"keys", "honoured"}});
    agent.kill();
    host_.advance(minutes(5));
  };
  // Interrupted, of each kind, as charge and as refund.
  for (const std::string keys : {"honoured", "listed", "ignored"}) {
    for (const std::string what : {"charge", "refund"}) {
      SCOPED_TRACE(keys + " " + what);
      provider_ = {};
      auto agent = host_.create<Payments>(what + keys, {{"provider", kProvider}, {"keys", keys}});
      provider_.honours_keys = keys == "honoured";
      if (what == "refund") agent.call("charge", "1", 500);
      provider_.answers = false;
      agent.call("charge", "1", 500);
      if (what == "refund") agent.call("refund", "1");
      provider_.answers = true;
      update(agent);
      const char* const done = what == "charge" ? "paid" : "refunded";
      EXPECT_EQ(agent.call("payment", "1").at("status"), keys == "ignored" ? "unknown" : done);
      EXPECT_EQ(provider_.effects["/" + what + "s"], 1);
      const Json still_open = Json::array({Json::array({"1 " + what + " ignored"})});
      EXPECT_EQ(agent.sql(open), keys == "ignored" ? still_open : Json::array());
    }
  }
  // Unknown, and resolved before the version came.
  provider_ = {};
  auto agent = create("ignored");
  provider_.answers = false;
  agent.call("charge", "1", 500);
  agent.kill();
  provider_.answers = true;
  host_.advance(minutes(1));
  EXPECT_EQ(agent.call("payment", "1").at("status"), "unknown");
  resolve(agent, hearth::Probed::completed("receipt 9"));
  update(agent);
  agent.call("charge", "1", 500);
  EXPECT_EQ(agent.call("payment", "1").at("receipt"), "receipt 9");
  EXPECT_EQ(provider_.effects["/charges"], 1);
}

TEST_F(PaymentsTest, ACutConnectionIsRepeatedWithTheKeyOrUnknown) {
  for (const char* const keys : {"honoured", "listed", "ignored"}) {
    SCOPED_TRACE(keys);
    provider_ = {};
    auto agent = create(keys);
    provider_.failure = FetchReply::Failure{.phase = HEARTH_FETCH_PHASE_HEADERS, .sent = true};
    agent.call("charge", "1", 500);
    provider_.failure.reset();
    host_.advance(minutes(1));
    const bool is_known = std::string(keys) != "ignored";
    EXPECT_EQ(agent.call("payment", "1").at("status"), is_known ? "paid" : "unknown");
    EXPECT_EQ(provider_.effects["/charges"], 1);
  }
}

TEST_F(PaymentsTest, WhatIsUnknownGoesOnWhenSomebodyHasLooked) {
  auto agent = create("ignored");
  provider_.failure = FetchReply::Failure{.phase = HEARTH_FETCH_PHASE_HEADERS, .sent = true};
  agent.call("charge", "1", 500);
  const Json unknown = agent.call("payment", "1");
  EXPECT_EQ(unknown.at("status"), "unknown");
  EXPECT_NE(unknown.at("note").get<std::string>().find("may have executed; verify before retrying"),
            std::string::npos);
  agent.call("charge", "1", 500);
  EXPECT_EQ(agent.call("payment", "1"), unknown) << "asking again changes nothing";
  EXPECT_EQ(provider_.asked.size(), 1U);
  resolve(agent, hearth::Probed::completed("receipt 9"));
  agent.call("charge", "1", 500);
  EXPECT_EQ(agent.call("payment", "1"), payment("paid", {{"receipt", "receipt 9"}}));

  agent.call("refund", "1");
  EXPECT_EQ(agent.call("payment", "1").at("status"), "unknown");
  resolve(agent, hearth::Probed::not_executed());
  provider_.failure.reset();
  agent.call("refund", "1");
  EXPECT_EQ(agent.call("payment", "1"),
            payment("refunded", {{"receipt", "receipt 9"}, {"refund", "/refunds2"}}));

  provider_.failure = FetchReply::Failure{.phase = HEARTH_FETCH_PHASE_HEADERS, .sent = true};
  agent.call("charge", "2", 500);
  resolve(agent, hearth::Probed::completed());
  agent.call("charge", "2", 500);
  EXPECT_EQ(agent.call("payment", "2").at("receipt"), "by hand") << "and nobody knows the receipt";
}

TEST_F(PaymentsTest, WhatAStoppedFiberLeavesIsUnknownUntilItIsAskedForAgain) {
  for (const char* const keys : {"honoured", "listed"}) {
    SCOPED_TRACE(keys);
    provider_ = {};
    auto agent = create(keys);
    auto client = agent.connect();
    provider_.status = 500;
    provider_.acts = false;
    agent.call("charge", "1", 500);
    host_.advance(minutes(60));
    const Json unknown = agent.call("payment", "1");
    EXPECT_EQ(unknown.at("status"), "unknown") << "all retries have failed";
    EXPECT_NE(unknown.at("note").get<std::string>().find("may have executed"), std::string::npos);
    bool is_told = false;
    for (const auto& frame : client.take_received()) {
      const Json json = hearth::parse_json(frame.payload);
      is_told = is_told || (json.value("type", "") == "payment" && json.at("status") == "unknown");
    }
    EXPECT_TRUE(is_told);
    provider_.status = 200;
    agent.call("charge", "1", 500);
    host_.advance(minutes(3));
    EXPECT_EQ(agent.call("payment", "1"), payment("paid", {{"receipt", "/charges1"}}));
    EXPECT_EQ(provider_.effects["/charges"], 1);
  }
}

TEST_F(PaymentsTest, TheNextLookTakesWhatSomebodyHasFoundOut) {
  auto agent = create("ignored");
  agent.call("subscribe", kHook);
  provider_.failure = FetchReply::Failure{.phase = HEARTH_FETCH_PHASE_HEADERS, .sent = true};
  agent.call("charge", "1", 500);
  provider_.failure.reset();
  EXPECT_EQ(agent.call("payment", "1").at("status"), "unknown");
  resolve(agent, hearth::Probed::completed("receipt 9"));
  const Json paid = payment("paid", {{"receipt", "receipt 9"}});
  EXPECT_EQ(agent.call("payment", "1"), paid);
  EXPECT_EQ(agent.call("deliveries", "1").at(0).at("status"), "delivered");
  agent.call("charge", "1", 500);
  EXPECT_EQ(agent.call("payment", "1"), paid);
  EXPECT_EQ(provider_.effects["hook"], 1);
  EXPECT_EQ(agent.sql("SELECT count(*) FROM open_moves"), Json::parse("[[0]]"));
  EXPECT_EQ(agent.sql("SELECT count(*) FROM unknown_moves"), Json::parse("[[0]]"));

  provider_.failure = FetchReply::Failure{.phase = HEARTH_FETCH_PHASE_HEADERS, .sent = true};
  agent.call("refund", "1");
  provider_.failure.reset();
  resolve(agent, hearth::Probed::not_executed());
  EXPECT_EQ(agent.call("payment", "1").at("status"), "unknown") << "a look does not refund";
  EXPECT_EQ(provider_.effects["/refunds"], 1);
}

TEST_F(PaymentsTest, WebhooksAreToldOnceAndWhatIsNotKnownIsSaid) {
  auto agent = create("honoured");
  agent.call("subscribe", kHook);
  agent.call("subscribe", kHook);
  agent.call("charge", "1", 500);
  EXPECT_EQ(agent.call("deliveries", "1"),
            Json::parse(R"([{"url":"https://shop.example/hook","event":"paid",)"
                        R"("status":"delivered"}])"));
  EXPECT_EQ(provider_.effects["hook"], 1);
  EXPECT_NE(provider_.asked.back(), "POST hook ") << "it has a Webhook-Id";

  agent.call("charge", "2", 500);
  provider_.answers = false;
  agent.call("refund", "2");
  EXPECT_EQ(provider_.effects["hook"], 2) << "the refund waits for its answer";
  agent.kill();
  provider_.answers = true;
  host_.advance(minutes(1));
  EXPECT_EQ(agent.call("payment", "2").at("status"), "refunded");
  EXPECT_EQ(agent.call("deliveries", "2").at(1).at("status"), "delivered");
  EXPECT_EQ(provider_.effects["hook"], 3);

  EXPECT_EQ(agent.call("unsubscribe", kHook), true);
  EXPECT_EQ(agent.call("unsubscribe", kHook), false);
  agent.call("charge", "3", 500);
  EXPECT_EQ(agent.call("deliveries", "3"), Json::array());
}

TEST_F(PaymentsTest, AWebhookThatAKillCutsOffIsNotRepeated) {
  auto agent = create("honoured");
  agent.call("charge", "1", 500);
  agent.call("subscribe", kHook);
  agent.call("refund", "1");
  ASSERT_EQ(provider_.effects["hook"], 1);
  agent.call("charge", "2", 500);
  ASSERT_EQ(provider_.effects["hook"], 2);

  const auto last_status = [&](const char* order) {
    return agent.call("deliveries", order).back().at("status").get<std::string>();
  };
  host_.on_fetch([this](const SentRequest& request) {
    FetchReply reply = provider_.answer(request);
    if (request.url == kHook) reply.after = hours(1000);
    return reply;
  });
  agent.call("refund", "2");
  EXPECT_EQ(last_status("2"), "pending");
  agent.kill();
  host_.advance(minutes(1));
  EXPECT_EQ(last_status("2"), "unknown");
  EXPECT_EQ(provider_.effects["hook"], 3);
  EXPECT_EQ(agent.call("payment", "2").at("status"), "refunded") << "the payment stands";

  // A receiver that refuses, and one that cannot be reached for a while.
  host_.on_fetch([this](const SentRequest& request) {
    if (request.url == kHook) return FetchReply{.status = 410};
    return provider_.answer(request);
  });
  agent.call("charge", "3", 500);
  EXPECT_EQ(last_status("3"), "refused");
  host_.on_fetch([this](const SentRequest& request) {
    if (request.url != kHook) return provider_.answer(request);
    return FetchReply{.status = 0, .failure = FetchReply::Failure{}};
  });
  agent.call("charge", "4", 500);
  EXPECT_EQ(last_status("4"), "pending");
  host_.on_fetch([this](const SentRequest& request) { return provider_.answer(request); });
  host_.advance(minutes(1));
  EXPECT_EQ(last_status("4"), "delivered");
  EXPECT_EQ(provider_.effects["hook"], 4);
}

TEST_F(PaymentsTest, WhatComesFromOutsideIsChecked) {
  auto agent = create("honoured");
  const auto refused = [&](const char* method, const auto&... arguments) {
    EXPECT_THROW(agent.call(method, arguments...), CallError) << method;
  };
  refused("charge", "", 1);
  refused("charge", std::string(101, 'x'), 1);
  refused("charge", "1", 0);
  refused("charge", "1", 100'000'001);
  refused("subscribe", "");
  refused("subscribe", "https://" + std::string(1'000, 'x'));
  refused("payment", "1");
  for (int hook = 0; hook < 100; ++hook) agent.call("subscribe", std::to_string(hook));
  refused("subscribe", "one more");
  agent.call("subscribe", "99");
  EXPECT_TRUE(provider_.asked.empty());
  EXPECT_THROW(host_.create<Payments>("b", {{"keys", "maybe"}}), std::exception);
  auto without = host_.create<Payments>("c");
  EXPECT_THROW(without.call("charge", "1", 1), CallError) << "no provider";
}

}  // namespace

// The plugin payments on a server that is killed. Its provider cuts connections, is slow or late,
// and counts its effects (tests/support/payments.mjs).

#include "fault/fault_fixture.hpp"
#include "json/json.hpp"
#include "support/provider.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

class PaymentsKillTest : public FaultTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    install(bundled("payments"), "payments.so");
    put("classes/payments.yaml",
        "class: payments\nobjects: true\nidle_timeout: 10s\negress:\n  allow: [127.0.0.1]\n"
        "fibers:\n  retry_base: 10ms\n  max_crashes: 0\noptions:\n  keys: " +
            std::string(GetParam()) +
            "\n  settles_within_ms: 20\n  provider: " + provider_url("/") + GetParam() + "\n");
    server_ = serve_ledgers();
  }
  void TearDown() override {
    if (server_) EXPECT_EQ(server_->stop(), kClean);
  }

  std::string provider_url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(provider_.http()) + path;
  }
  Json ask_provider(const std::string& path) const { return get_json(provider_.http(), path); }
  // The fault of the next request of this order to this path.
  void fault(const std::string& path, const std::string& order, const std::string& what) const {
    ask_provider("/fault?path=" + path + "&order=" + order + "&do=" + what +
                 "&pid=" + std::to_string(server_->pid()));
  }
  // The caller reads the answer if it needs it: the server may be killed before.
  std::unique_ptr<RawClient> call(const std::string& method, const std::string& arguments) const {
    auto client = std::make_unique<RawClient>(server_->port());
    client->send("POST /objects/payments/shop/call/" + method +
                 " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                 std::to_string(arguments.size()) + "\r\n\r\n" + arguments);
    return client;
  }
  // Begins the operation that moves the order's money to `path`.
  std::unique_ptr<RawClient> begin(const std::string& path, const std::string& order) const {
    return path == "/charges" ? call("charge", "[\"" + order + "\", 500]")
                              : call("refund", "[\"" + order + "\"]");
  }
  void wait_for_payment(const std::string& order, const std::string& status) const {
    server_->wait_for_log("payment " + order + " is " + status);
  }
  void wait_for_kill() {
    EXPECT_EQ(server_->wait(), kKilled) << "the provider kills it";
    server_ = serve_ledgers();
  }
  int effects(const std::string& path, const std::string& order) const {
    return ask_provider("/books")[path].value(order, 0);
  }
  [[nodiscard]] bool keys_are_ignored() const { return std::string(GetParam()) == "ignored"; }

  Provider provider_;
  std::unique_ptr<ServerProcess> server_;
};

// One that was charged and one that was given back, with each thing that can go wrong.
TEST_P(PaymentsKillTest, NoMoneyMovesTwiceInSilence) {
  const std::vector<std::string> faults = {"kill-before", "kill-after", "kill-late",
                                           "cut-before",  "cut-after",  "cut-late"};
  for (const std::string path : {"/charges", "/refunds"}) {
    const std::string done = path == "/charges" ? "paid" : "refunded";
    for (const std::string& each : faults) {
      const std::string order = path.substr(1) + "-" + each;
      SCOPED_TRACE(order);
      if (path == "/refunds") {
        const auto paid = begin("/charges", order);
        wait_for_payment(order, "paid");
      }
      fault(path, order, each);
      const auto asked = begin(path, order);
      if (each.starts_with("kill")) wait_for_kill();
      const bool is_unknown = keys_are_ignored();
      wait_for_payment(order, is_unknown ? "unknown" : done);
      const bool has_acted = !is_unknown || !each.ends_with("before");
      EXPECT_EQ(effects(path, order), has_acted ? 1 : 0);
      if (is_unknown) server_->wait_for_log("may have executed; verify before retrying");
    }
  }
}

TEST_P(PaymentsKillTest, WhoAsksAgainWhileItIsSlowWaitsForTheSameCharge) {
  fault("/charges", "1", "slow");
  const auto asked = begin("/charges", "1");
  EXPECT_EQ(provider_.wait_for_request(), "slow 1");
  const Reply again = begin("/charges", "1")->read_reply();
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(parse_json(again.body).value()["data"]["status"], "charging") << again.body;
  ask_provider("/go-on");
  wait_for_payment("1", "paid");
  EXPECT_EQ(effects("/charges", "1"), 1);
}

TEST_P(PaymentsKillTest, ARefusalIsKnown) {
  fault("/charges", "1", "refused");
  const auto asked = begin("/charges", "1");
  wait_for_payment("1", "refused");
  EXPECT_EQ(effects("/charges", "1"), 0);
}

TEST_P(PaymentsKillTest, AWebhookIsToldOnceOrUnknown) {
  EXPECT_EQ(call("subscribe", "[\"" + provider_url("/hook") + "\"]")->read_reply().status, 200);
  for (const auto& [each, status] : std::map<std::string, std::string>{{"none", "delivered"},
                                                                       {"refused", "refused"},
                                                                       {"cut-after", "unknown"},
                                                                       {"kill-before", "unknown"},
                                                                       {"kill-after", "unknown"}}) {
    SCOPED_TRACE(each);
    fault("/hook", each, each);
    const auto asked = begin("/charges", each);
    if (each.starts_with("kill")) wait_for_kill();
    server_->wait_for_log("the notice that " + each + " is paid is " + status);
    EXPECT_EQ(effects("/charges", each), 1) << "the payment stands";
    EXPECT_EQ(effects("/hook", each), each == "none" || each.ends_with("after") ? 1 : 0);
  }
}

// As README.md prints it.
// With the other providers nothing is unknown.
class UnknownPaymentTest : public PaymentsKillTest {};

TEST_P(UnknownPaymentTest, WhatIsUnknownIsResolvedAsPrinted) {
  fault("/charges", "order-7", "kill-after");
  const auto asked = begin("/charges", "order-7");
  wait_for_kill();
  wait_for_payment("order-7", "unknown");
  const auto ask_hearth = [this](std::vector<std::string> arguments) {
    const auto command = run(std::move(arguments));
    EXPECT_EQ(command->wait(), kClean) << command->log();
    return command->out();
  };
  const Json unknown =
      parse_json(ask_hearth({"operations", "--state", "unknown", "--json"})).value();
  ASSERT_EQ(unknown["operations"].size(), 1U) << unknown;
  const std::string id = text_member(unknown["operations"][0], "id");
  ask_hearth({"resolve", "payments", "shop", id, "completed", "--result", "\"receipt-7\"", "--note",
              "seen in their books"});
  const auto again = begin("/charges", "order-7");
  wait_for_payment("order-7", "paid");
  const Reply payment = call("payment", R"(["order-7"])")->read_reply();
  EXPECT_EQ(parse_json(payment.body).value()["data"]["receipt"], "receipt-7") << payment.body;
  EXPECT_EQ(effects("/charges", "order-7"), 1);
}

INSTANTIATE_TEST_SUITE_P(Keys, PaymentsKillTest, ::testing::Values("honoured", "listed", "ignored"),
                         [](const auto& each) { return std::string(each.param); });
INSTANTIATE_TEST_SUITE_P(Keys, UnknownPaymentTest, ::testing::Values("ignored"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace hearth::testing

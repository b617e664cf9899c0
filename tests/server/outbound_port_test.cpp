#include "server/outbound_port.hpp"

#include "runtime/fakes.hpp"
#include "support/manual_clock.hpp"
#include "support/recording_logger.hpp"
#include "support/temp_directory.hpp"

#include <hearth/ext/fetch.h>

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::server {
namespace {

using extensions::FetchRequest;
using Lines = std::vector<std::string>;

// What was asked of the client, and whom it tells.
struct Asked {
  net::OutboundRequest request;
  net::OutboundListener* listener = nullptr;  // null once the exchange is gone
  std::size_t credit = 0;
};

class FakeOutboundHttp final : public net::OutboundHttp {
 public:
  std::vector<std::shared_ptr<Asked>> asked;
  std::optional<Error> refusal;

  Result<std::unique_ptr<net::OutboundExchange>> start(net::OutboundRequest request,
                                                       net::OutboundListener& listener) override {
    if (refusal) return *refusal;
    asked.push_back(std::make_shared<Asked>(Asked{std::move(request), &listener, 0}));
    return std::make_unique<Exchange>(asked.back());
  }
  [[nodiscard]] std::size_t running() const override { return 0; }

 private:
  class Exchange final : public net::OutboundExchange {
   public:
    explicit Exchange(std::shared_ptr<Asked> asked) : asked_(std::move(asked)) {}
    ~Exchange() override { asked_->listener = nullptr; }
    void credit(std::size_t bytes) override { asked_->credit += bytes; }

   private:
    std::shared_ptr<Asked> asked_;
  };
};

// Writes down what it is told: "256 {...}", "end 0", "end 65536 limit_exceeded ...".
class HeardRemote final : public extensions::RemoteListener {
 public:
  Lines told;
  std::function<void()> then = [] {};

  void part(std::string body, std::uint32_t flags) override {
    told.push_back(std::to_string(flags) + " " + body);
    then();
  }
  void end(Result<std::string> outcome, std::uint32_t flags) override {
    told.push_back("end " + std::to_string(flags) +
                   (outcome ? *outcome
                            : " " + std::string(to_string(outcome.error().code)) + " " +
                                  outcome.error().message));
    then();
  }
};

class OutboundPortTest : public ::testing::Test {
 protected:
  std::unique_ptr<extensions::RemoteOperation> make(extensions::EgressLimits limits = {}) {
    FetchRequest request;
    request.agent_class = "C";
    request.method = "POST";
    request.url = "https://a.example/";
    request.body = "12345";
    request.headers = {{"A", "1"}};
    request.secret_headers = {{"S", "2"}};
    request.window = 100;
    request.limits = limits;
    request.rules = std::make_shared<const EgressRules>();
    return *port_.make(std::move(request));
  }
  std::string metric(const std::string& series) const {
    const std::string text = metrics_.text();
    const auto at = text.find(series + " ");
    if (at == std::string::npos) return "none";
    const auto begin = at + series.size() + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  }
  std::string requests(const std::string& outcome) const {
    return metric("hearth_fetch_requests_total{class=\"C\",outcome=\"" + outcome + "\"}");
  }
  std::string in_flight() const { return metric("hearth_fetch_in_flight{class=\"C\"}"); }

  testing::TempDirectory directory_;
  testing::ManualClock clock_;
  testing::RecordingLogger logger_;
  Metrics metrics_;
  runtime::testing::ManualLoop loop_;
  FakeOutboundHttp http_;
  EgressBudget budget_{directory_.path() / "server.db", clock_, logger_};
  OutboundPort port_{
      {.loop = loop_, .http = http_, .budget = budget_, .metrics = metrics_, .logger = logger_}};
  HeardRemote heard_;
};

TEST_F(OutboundPortTest, TheAnswerComesInParts) {
  auto operation = make();
  EXPECT_TRUE(http_.asked.empty()) << "not before start()";
  operation->start(heard_);
  ASSERT_EQ(http_.asked.size(), 1U);
  const auto asked = http_.asked[0];
  EXPECT_EQ(asked->request.method, "POST");
  EXPECT_EQ(asked->request.headers.at(0).name, "A");
  EXPECT_EQ(asked->request.secret_headers.at(0).value, "2");
  EXPECT_EQ(asked->request.credit, 100U);
  EXPECT_EQ(in_flight(), "1");
  asked->listener->on_head(
      {.status = 200, .headers = {{"X", "y"}}, .url = "https://a.example/", .http_version = "2"});
  asked->listener->on_body("abc");
  asked->listener->on_end(std::nullopt);
  EXPECT_EQ(heard_.told,
            (Lines{R"(256 {"status":200,"url":"https://a.example/","headers":[["X","y"]]})",
                   "0 abc", "end 0"}));
  EXPECT_EQ(requests("answered"), "1");
  EXPECT_EQ(in_flight(), "0");
  EXPECT_EQ(metric("hearth_fetch_bytes_total{class=\"C\",direction=\"sent\"}"), "5");
  EXPECT_EQ(metric("hearth_fetch_bytes_total{class=\"C\",direction=\"received\"}"), "3");
}

TEST_F(OutboundPortTest, TheHeadUsesCreditToo) {
  auto operation = make();
  operation->credit(11);
  operation->start(heard_);
  const auto asked = http_.asked[0];
  EXPECT_EQ(asked->request.credit, 111U);
  asked->listener->on_head({.status = 200, .headers = {}, .url = "u", .http_version = "1.1"});
  const std::size_t head = heard_.told[0].size() - std::string("256 ").size();
  operation->credit(head - 1);
  EXPECT_EQ(asked->credit, 0U);
  operation->credit(8);
  EXPECT_EQ(asked->credit, 7U);
}

TEST_F(OutboundPortTest, AFailureHasItsPhaseAndWhetherItWasSent) {
  auto operation = make();
  operation->start(heard_);
  http_.asked[0]->listener->on_end(
      net::OutboundFailure{.code = Errc::kTimeout,
                           .phase = net::OutboundFailure::Phase::kHeaders,
                           .sent = true,
                           .message = "too slow"});
  EXPECT_EQ(heard_.told,
            Lines{"end " + std::to_string((6 << 16) | HEARTH_FETCH_SENT) + " timeout too slow"});
  EXPECT_EQ(http_.asked[0]->listener, nullptr);
  EXPECT_EQ(requests("failed"), "1");
  EXPECT_TRUE(logger_.contains("fetch.failed"));
  EXPECT_FALSE(logger_.contains("a.example"));
}

TEST_F(OutboundPortTest, WhatTheClientRefusesIsToldLater) {
  http_.refusal = Error{Errc::kInvalidArgument, "odd"};
  auto operation = make();
  operation->start(heard_);
  EXPECT_TRUE(heard_.told.empty());
  loop_.settle();
  EXPECT_EQ(heard_.told, Lines{"end 65536 invalid_argument odd"});
  EXPECT_EQ(requests("refused"), "1");
}

TEST_F(OutboundPortTest, OneThatIsDestroyedIsCancelled) {
  auto operation = make();
  operation->start(heard_);
  operation.reset();
  EXPECT_EQ(http_.asked[0]->listener, nullptr);
  EXPECT_EQ(requests("cancelled"), "1");
  EXPECT_EQ(in_flight(), "0");
  make().reset();
  EXPECT_EQ(requests("cancelled"), "1") << "it never started";
}

TEST_F(OutboundPortTest, ItMayBeDestroyedWhileItTells) {
  auto operation = make();
  heard_.then = [&] { operation.reset(); };
  operation->start(heard_);
  http_.asked[0]->listener->on_body("abc");
  EXPECT_EQ(operation, nullptr);
  operation = make();
  operation->start(heard_);
  http_.asked[1]->listener->on_end(std::nullopt);
  EXPECT_EQ(heard_.told, (Lines{"0 abc", "end 0"}));
}

TEST_F(OutboundPortTest, NoMoreRunAtOnceThanTheClassMay) {
  const extensions::EgressLimits limits{.concurrent = 1};
  auto first = make(limits);
  first->start(heard_);
  auto second = make(limits);
  second->start(heard_);
  loop_.settle();
  ASSERT_EQ(heard_.told.size(), 1U);
  EXPECT_TRUE(heard_.told[0].starts_with("end 65536 limit_exceeded egress.limits.concurrent is 1"));
  first.reset();
  auto third = make(limits);
  third->start(heard_);
  EXPECT_EQ(http_.asked.size(), 2U);
}

TEST_F(OutboundPortTest, OneForWhichNothingIsReservedStartsLater) {
  const extensions::EgressLimits limits{.requests_per_minute = 1};
  auto first = make(limits);
  first->start(heard_);
  EXPECT_TRUE(http_.asked.empty());
  EXPECT_TRUE(loop_.settle_until([this] { return !http_.asked.empty(); }));
  auto second = make(limits);
  second->start(heard_);
  loop_.settle();
  ASSERT_EQ(heard_.told.size(), 1U);
  EXPECT_TRUE(heard_.told[0].starts_with("end 65536 limit_exceeded the class has reached"));
}

TEST_F(OutboundPortTest, OneThatIsGoneWhenItsBudgetIsThereDoesNotStart) {
  const extensions::EgressLimits limits{.requests_per_minute = 5};
  make(limits)->start(heard_);
  // The next that waits is answered behind it.
  std::promise<void> answered;
  if (!budget_.ask("C", limits, [&](const Result<void>&) { answered.set_value(); }))
    answered.get_future().wait();
  loop_.settle();
  EXPECT_TRUE(http_.asked.empty());
  EXPECT_EQ(requests("cancelled"), "1");
}

TEST_F(OutboundPortTest, BytesPastTheLimitOfTheDayCutTheAnswerOff) {
  const extensions::EgressLimits limits{.bytes_per_day = 10};
  // A request that waits until the first portion is reserved.
  std::promise<void> reserved;
  ASSERT_FALSE(budget_.ask("C", limits, [&](const Result<void>&) { reserved.set_value(); }));
  reserved.get_future().wait();
  auto operation = make(limits);
  operation->start(heard_);
  ASSERT_EQ(http_.asked.size(), 1U);
  http_.asked[0]->listener->on_body("67890");
  EXPECT_EQ(heard_.told, Lines{"0 67890"});
  http_.asked[0]->listener->on_body("x");
  ASSERT_EQ(heard_.told.size(), 2U);
  EXPECT_TRUE(heard_.told[1].starts_with("end " + std::to_string((7 << 16) | HEARTH_FETCH_SENT) +
                                         " limit_exceeded"));
  EXPECT_EQ(http_.asked[0]->listener, nullptr);
}

}  // namespace
}  // namespace hearth::server

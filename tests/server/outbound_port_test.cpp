#include "server/outbound_port.hpp"

#include "runtime/fakes.hpp"
#include "support/manual_clock.hpp"
#include "support/recording_logger.hpp"
#include "support/temp_directory.hpp"

#include <hearth/ext/fetch.h>

#include <gtest/gtest.h>

#include <cstdint>
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

// What was asked of the client, and its listener.
struct Asked {
  net::OutboundRequest request;
  net::OutboundListener* listener = nullptr;  // null once the exchange is gone
  std::size_t credit = 0;
  int followed = 0;
  net::OutboundExchange* exchange = nullptr;

  void redirect(std::uint64_t received, std::uint64_t to_send) const {
    listener->on_redirect({.received = received, .to_send = to_send}, *exchange);
  }
};

class FakeOutboundHttp {
 public:
  std::vector<std::shared_ptr<Asked>> asked;
  std::optional<Error> refusal;

  OutboundPort::StartRequest start() {
    return
        [this](net::OutboundRequest request,
               net::OutboundListener& listener) -> Result<std::unique_ptr<net::OutboundExchange>> {
          if (refusal) return *refusal;
          asked.push_back(std::make_shared<Asked>(Asked{std::move(request), &listener}));
          return std::make_unique<Exchange>(asked.back());
        };
  }

 private:
  class Exchange final : public net::OutboundExchange {
   public:
    explicit Exchange(std::shared_ptr<Asked> asked) : asked_(std::move(asked)) {
      asked_->exchange = this;
    }
    ~Exchange() override { asked_->listener = nullptr; }
    void credit(std::size_t bytes) override { asked_->credit += bytes; }
    void follow() override { ++asked_->followed; }
    [[nodiscard]] net::OutboundFailure::Phase phase() const override {
      return net::OutboundFailure::Phase::kHeaders;
    }

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

const std::string kCutOffForTheDay =
    "end " + std::to_string((7 << 16) | HEARTH_FETCH_SENT | HEARTH_FETCH_OF_DAY) +
    " limit_exceeded";

class OutboundPortTest : public ::testing::Test {
 protected:
  std::unique_ptr<extensions::RemoteOperation> make(extensions::EgressLimits limits = {},
                                                    const std::string& secret = "2") {
    FetchRequest request;
    request.agent_class = "C";
    request.agent = "a";
    request.call = 7;
    request.its_method = "ask";
    request.trace = "00-1-2-01";
    request.method = "POST";
    request.url = "https://a.example/";
    request.body = "12345";
    request.headers = {{"A", "1"}};
    request.secret_headers = {{"S", secret}};
    request.window = 100;
    request.limits = limits;
    request.rules = std::make_shared<const EgressRules>();
    return *port_.make(std::move(request));
  }
  std::unique_ptr<extensions::RemoteOperation> begin(extensions::EgressLimits limits = {}) {
    auto operation = make(limits);
    operation->start(heard_);
    return operation;
  }
  // Waits until the budget has answered all that asked before. False: it answers at once.
  [[nodiscard]] bool wait_for_budget(const extensions::EgressLimits& limits, std::uint64_t bytes) {
    std::promise<void> answered;
    const auto at_once =
        budget_.ask("C", limits, bytes, [&](const Result<void>&) { answered.set_value(); });
    if (!at_once) answered.get_future().wait();
    loop_.settle();
    return !at_once;
  }
  static net::OutboundFailure failure(Errc code, net::OutboundFailure::Phase phase, bool sent,
                                      std::string message) {
    return {.code = code, .phase = phase, .sent = sent, .message = std::move(message)};
  }
  // It has run so far as that the client is asked for the `count`-th time.
  std::shared_ptr<Asked> start(extensions::RemoteOperation& operation, std::size_t count = 1) {
    operation.start(heard_);
    EXPECT_TRUE(loop_.settle_until([&] { return http_.asked.size() == count; }));
    return http_.asked.empty() ? std::make_shared<Asked>() : http_.asked.back();
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
  std::string bytes(const std::string& direction) const {
    return metric("hearth_fetch_bytes_total{class=\"C\",direction=\"" + direction + "\"}");
  }
  std::string in_flight() const { return metric("hearth_fetch_in_flight{class=\"C\"}"); }

  testing::TempDirectory directory_;
  testing::ManualClock clock_;
  testing::RecordingLogger logger_;
  Metrics metrics_;
  runtime::testing::ManualLoop loop_;
  FakeOutboundHttp http_;
  EgressBudget budget_{directory_.path() / "server.db", clock_, logger_};
  OutboundPort port_{{.loop = loop_,
                      .start = http_.start(),
                      .budget = budget_,
                      .metrics = metrics_,
                      .logger = logger_}};
  HeardRemote heard_;
};

TEST_F(OutboundPortTest, AnAnswerThatRepeatsTheKeyShowsStars) {
  for (const std::string scheme : {"", "Bearer "}) {
    heard_.told.clear();
    auto operation = make({}, scheme + "0123456789abcdef");
    const auto asked = start(*operation, http_.asked.size() + 1);
    EXPECT_EQ(asked->request.credit, 116U) << "what waits needs no credit of the agent";
    asked->listener->on_head({.status = 401,
                              .headers = {{"X", "0123456789abcdef"}},
                              .url = "https://a.example/?0123456789abcdef",
                              .http_version = "2"});
    asked->listener->on_body("the key 01234567");
    asked->listener->on_body("89abcdef is wrong: 0123");
    asked->listener->on_end(std::nullopt);
    EXPECT_EQ(
        heard_.told,
        (Lines{
            R"(256 {"status":401,"url":"https://a.example/?****************","headers":[["X","****************"]]})",
            "0 the key ", "0 **************** is wrong: ", "0 0123", "end 0"}));
  }
}

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

TEST_F(OutboundPortTest, TheHeadSaysThatOnlyTheConnectionEndsTheBody) {
  auto operation = begin();
  http_.asked[0]->listener->on_head(
      {.status = 200, .headers = {}, .url = "u", .http_version = "1.1", .until_close = true});
  EXPECT_EQ(heard_.told, Lines{R"(256 {"status":200,"url":"u","headers":[],"until_close":true})"});
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
  auto operation = begin();
  http_.asked[0]->listener->on_end(
      failure(Errc::kTimeout, net::OutboundFailure::Phase::kHeaders, true, "too slow"));
  EXPECT_EQ(heard_.told,
            Lines{"end " + std::to_string((6 << 16) | HEARTH_FETCH_SENT) + " timeout too slow"});
  EXPECT_EQ(http_.asked[0]->listener, nullptr);
  EXPECT_EQ(requests("failed"), "1");
  EXPECT_TRUE(logger_.contains(
      "fetch.failed class=C agent=a phase=headers code=timeout reason=\"too slow\" call=7 "
      "method=ask trace=00-1-2-01"))
      << logger_.events().back();
  EXPECT_FALSE(logger_.contains("a.example"));
}

TEST_F(OutboundPortTest, WhatTheClientRefusesIsToldLater) {
  http_.refusal = Error{Errc::kInvalidArgument, "odd"};
  auto operation = begin();
  EXPECT_TRUE(heard_.told.empty());
  loop_.settle();
  EXPECT_EQ(heard_.told, Lines{"end 65536 invalid_argument odd"});
  EXPECT_EQ(requests("refused"), "1");
}

TEST_F(OutboundPortTest, OneThatIsDestroyedIsCancelled) {
  auto operation = begin();
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
  operation = begin();
  http_.asked[1]->listener->on_end(std::nullopt);
  EXPECT_EQ(heard_.told, (Lines{"0 abc", "end 0"}));
}

TEST_F(OutboundPortTest, NoMoreRunAtOnceThanTheClassMay) {
  const extensions::EgressLimits limits{.concurrent = 1};
  auto first = begin(limits);
  auto second = begin(limits);
  loop_.settle();
  ASSERT_EQ(heard_.told.size(), 1U);
  EXPECT_TRUE(heard_.told[0].starts_with("end 65536 limit_exceeded egress.limits.concurrent is 1"));
  first.reset();
  auto third = begin(limits);
  EXPECT_EQ(http_.asked.size(), 2U);
}

TEST_F(OutboundPortTest, ThePlacesOfAClassAreThoseOfAllShards) {
  const extensions::EgressLimits limits{.concurrent = 1};
  FakeOutboundHttp other_http;
  OutboundPort other({.loop = loop_,
                      .start = other_http.start(),
                      .budget = budget_,
                      .metrics = metrics_,
                      .logger = logger_});
  auto first = begin(limits);
  FetchRequest request;
  request.agent_class = "C";
  request.limits = limits;
  auto second = *other.make(std::move(request));
  second->start(heard_);
  loop_.settle();
  EXPECT_TRUE(other_http.asked.empty());
  EXPECT_EQ(heard_.told.size(), 1U);
}

// ---- redirects, and what was not sent -----------------------------------------------------------

TEST_F(OutboundPortTest, EachRequestOfARedirectAsksTheBudget) {
  auto operation = make({.requests_per_minute = 3});
  const auto asked = start(*operation);
  for (const int times : {1, 2}) {
    asked->redirect(0, 0);
    EXPECT_TRUE(loop_.settle_until([&] { return asked->followed == times; }));
  }
  asked->redirect(0, 0);
  EXPECT_TRUE(loop_.settle_until([&] { return !heard_.told.empty(); }));
  EXPECT_TRUE(heard_.told[0].starts_with(
      "end " + std::to_string((1 << 16) | HEARTH_FETCH_SENT) +
      " limit_exceeded the class has reached its limit, egress.limits.requests_per_minute is 3"))
      << heard_.told[0];
  EXPECT_EQ(asked->listener, nullptr);
  EXPECT_EQ(asked->followed, 2);
  EXPECT_EQ(in_flight(), "0");
}

TEST_F(OutboundPortTest, TheBytesOfRedirectsCountAsThoseOfAnswers) {
  auto operation = make({.bytes_per_day = 20});
  const auto asked = start(*operation);
  asked->redirect(4, 5);  // 307: the body is sent anew
  EXPECT_TRUE(loop_.settle_until([&] { return asked->followed == 1; }));
  EXPECT_EQ(bytes("sent"), "10");
  EXPECT_EQ(bytes("received"), "4");
  asked->redirect(7, 0);
  ASSERT_EQ(heard_.told.size(), 1U);
  EXPECT_TRUE(heard_.told[0].starts_with(kCutOffForTheDay)) << heard_.told[0];
  EXPECT_EQ(asked->listener, nullptr);
}

TEST_F(OutboundPortTest, AnEndBeforeTheBudgetAnswersARedirectIsTheEnd) {
  const extensions::EgressLimits limits{.bytes_per_day = 1000};
  auto operation = make(limits);
  const auto asked = start(*operation);
  asked->redirect(0, 500);  // more than is reserved
  asked->listener->on_end(
      failure(Errc::kTimeout, net::OutboundFailure::Phase::kConnect, true, "late"));
  ASSERT_TRUE(wait_for_budget(limits, 400));
  EXPECT_EQ(asked->followed, 0);
  ASSERT_EQ(heard_.told.size(), 1U);
  EXPECT_TRUE(heard_.told[0].ends_with(" timeout late"));
  const auto too_long = budget_.ask("C", limits, 596, [](const Result<void>&) {});
  EXPECT_TRUE(too_long && !*too_long);
  const auto fits = budget_.ask("C", limits, 595, [](const Result<void>&) {});
  EXPECT_TRUE(!fits || *fits) << "its 500 were not sent";
}

TEST_F(OutboundPortTest, ABodyThatIsRefusedOrNotSentDoesNotCount) {
  const extensions::EgressLimits limits{.bytes_per_day = 9};
  const auto not_sent = [](bool sent) {
    return failure(Errc::kUnavailable, net::OutboundFailure::Phase::kConnect, sent, "none");
  };
  auto first = make(limits);
  start(*first, 1)->listener->on_end(not_sent(false));
  http_.refusal = Error{Errc::kLimitExceeded, "2000 requests are under way already"};
  auto second = begin(limits);
  EXPECT_TRUE(loop_.settle_until([&] { return heard_.told.size() == 2; }));
  http_.refusal.reset();
  EXPECT_EQ(bytes("sent"), "5") << "the client took the first one";

  auto third = make(limits);
  start(*third, 2)->listener->on_end(not_sent(true));
  auto fourth = begin(limits);  // five more than the four that are left
  EXPECT_TRUE(loop_.settle_until([&] { return heard_.told.size() == 4; }));
  EXPECT_TRUE(heard_.told[3].starts_with("end " + std::to_string((1 << 16) | HEARTH_FETCH_OF_DAY) +
                                         " limit_exceeded the body has more bytes"))
      << heard_.told[3];
  EXPECT_EQ(bytes("sent"), "10");
  const auto granted = budget_.ask("C", limits, 4, [](const Result<void>&) {});
  EXPECT_TRUE(!granted || *granted) << "the four are left";
}

TEST_F(OutboundPortTest, ARequestThatIsRefusedOrNotSentIsNotOneOfTheMinute) {
  const extensions::EgressLimits limits{.requests_per_minute = 1};
  for (const std::size_t times : {1U, 2U, 3U}) {
    auto denied = make(limits);
    start(*denied, times)
        ->listener->on_end(
            failure(Errc::kForbidden, net::OutboundFailure::Phase::kRules, false, "denied"));
    EXPECT_TRUE(heard_.told.back().ends_with(" forbidden denied")) << heard_.told.back();
  }
  auto allowed = make(limits);
  start(*allowed, 4)->listener->on_end(std::nullopt);
  EXPECT_EQ(heard_.told.back(), "end 0");
}

TEST_F(OutboundPortTest, OneThatIsCancelledWhileItWaitsForItsBudgetUsesUpNothing) {
  const extensions::EgressLimits limits{.requests_per_minute = 2, .bytes_per_day = 10};
  make(limits)->start(heard_);  // nothing is reserved yet
  EXPECT_TRUE(http_.asked.empty());
  ASSERT_TRUE(wait_for_budget(limits, 5));
  auto last = make(limits);  // the second request of the minute, with the other half of the bytes
  start(*last)->listener->on_end(std::nullopt);
  EXPECT_EQ(heard_.told, Lines{"end 0"});
}

TEST_F(OutboundPortTest, OneForWhichNothingIsReservedStartsLater) {
  const extensions::EgressLimits limits{.requests_per_minute = 1};
  auto first = begin(limits);
  EXPECT_TRUE(http_.asked.empty());
  EXPECT_TRUE(loop_.settle_until([this] { return !http_.asked.empty(); }));
  auto second = begin(limits);
  loop_.settle();
  ASSERT_EQ(heard_.told.size(), 1U);
  EXPECT_TRUE(heard_.told[0].starts_with("end 65536 limit_exceeded the class has reached"));
}

TEST_F(OutboundPortTest, OneThatIsGoneWhenItsBudgetIsThereDoesNotStart) {
  const extensions::EgressLimits limits{.requests_per_minute = 5};
  make(limits)->start(heard_);
  (void)wait_for_budget(limits, 5);
  EXPECT_TRUE(http_.asked.empty());
  EXPECT_EQ(requests("cancelled"), "1");
}

TEST_F(OutboundPortTest, BytesPastTheLimitOfTheDayCutTheAnswerOff) {
  const extensions::EgressLimits limits{.bytes_per_day = 10};
  ASSERT_TRUE(wait_for_budget(limits, 0));
  auto operation = begin(limits);
  ASSERT_TRUE(loop_.settle_until([this] { return http_.asked.size() == 1; }));
  http_.asked[0]->listener->on_body("67890");
  EXPECT_EQ(heard_.told, Lines{"0 67890"});
  http_.asked[0]->listener->on_body("x");
  ASSERT_EQ(heard_.told.size(), 2U);
  EXPECT_TRUE(heard_.told[1].starts_with(kCutOffForTheDay)) << heard_.told[1];
  EXPECT_EQ(http_.asked[0]->listener, nullptr);
}

TEST_F(OutboundPortTest, ARefusalSaysWhichHostAndWhichSettingAllowsIt) {
  auto operation = make({}, "inside-secret-0123456789");
  operation->start(heard_);
  http_.asked[0]->listener->on_end(
      net::OutboundFailure{.code = Errc::kForbidden,
                           .phase = net::OutboundFailure::Phase::kRules,
                           .message = "no",
                           .host = "inside-secret-0123456789.test:11434"});
  const std::string why =
      "no: egress.allow of its class can allow it if egress.deny does not name it; "
      "a private address must be listed itself";
  EXPECT_EQ(heard_.told, Lines{"end 65536 forbidden " + why});
  EXPECT_TRUE(logger_.contains("reason=\"" + why + "\" call=7")) << logger_.events().back();
  EXPECT_TRUE(logger_.contains(" host=" + std::string(24, '*') + ".test:11434"))
      << logger_.events().back();
}

}  // namespace
}  // namespace hearth::server

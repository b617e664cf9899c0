#include "net/outbound_exchange.hpp"

#include "net/outbound_fixture.hpp"

namespace hearth::net {
namespace {

using std::chrono::milliseconds;

class OutboundExchangeTest : public OutboundFixture {
 protected:
  OutboundRequest follow(std::string_view path) const {
    OutboundRequest request = to(path);
    request.follow_redirects = true;
    return request;
  }
  std::string other_url(std::string_view path) const {
    return "http://other.test:" + std::to_string(provider_.http()) + std::string(path);
  }
};

// ---- redirects ----------------------------------------------------------------------------------

TEST_F(OutboundExchangeTest, ARedirectIsAnAnswerUnlessItIsFollowed) {
  const auto heard = finish(to("/redirect?to=/echo&body=moved"));
  EXPECT_EQ(heard->head->status, 302);
  EXPECT_EQ(heard->body, "moved");
}

TEST_F(OutboundExchangeTest, ARedirectIsFollowedToTheLastUrl) {
  for (const char* path : {"/redirect?to=/echo", "/redirect?to=/echo&body=moved"}) {
    const auto heard = finish(follow(path));
    ASSERT_FALSE(heard->failure) << heard->failure->message;
    EXPECT_EQ(heard->head->status, 200);
    EXPECT_EQ(heard->head->url, provider_.http_url("/echo"));
    EXPECT_EQ(heard->body.find("moved"), std::string::npos);
  }
}

TEST_F(OutboundExchangeTest, ABodyGoesAlongWhereTheStatusSaysSo) {
  for (const int code : {302, 307}) {
    OutboundRequest request = follow("/redirect?to=/echo&code=" + std::to_string(code));
    request.method = "POST";
    request.body = "kept";
    const auto heard = finish(std::move(request));
    EXPECT_NE(heard->body.find(code == 307 ? R"("body":"kept")" : R"("method":"GET")"),
              std::string::npos)
        << heard->body;
  }
}

TEST_F(OutboundExchangeTest, ARedirectIsFollowedWhenTheListenerSaysSo) {
  for (const int code : {302, 307}) {
    const int before = stat("requests");
    OutboundRequest request = follow("/redirect?to=/echo&body=moved&code=" + std::to_string(code));
    request.method = "POST";
    request.body = "kept";
    const auto heard = start(std::move(request));
    heard->at_redirect = [] {};
    run_until([&] { return heard->redirects.size() == 1; });
    EXPECT_EQ(heard->redirects[0].received, 5U);
    EXPECT_EQ(heard->redirects[0].to_send, code == 307 ? 4U : 0U);
    heard->credit(1);
    EXPECT_EQ(stat("requests") - before, 1);
    EXPECT_FALSE(heard->head || heard->ended);
    heard->is_calling = true;
    heard->exchange->follow();
    heard->is_calling = false;
    run_until([&] { return heard->ended; });
    EXPECT_FALSE(heard->failure);
    EXPECT_EQ(stat("requests") - before, 2);
  }
}

TEST_F(OutboundExchangeTest, WhoWaitsToFollowHasTheDeadlineOfTheWhole) {
  OutboundRequest request = follow("/redirect");
  request.connect_timeout = milliseconds(500);
  request.total_timeout = milliseconds(1000);
  const auto heard = start(request);
  heard->at_redirect = [] {};
  run_until([&] { return heard->ended; });
  ASSERT_TRUE(heard->failure);
  EXPECT_EQ(heard->failure->message, "the request was not answered within its time");
  EXPECT_TRUE(heard->failure->sent);
  heard->exchange->follow();
  settle();
  EXPECT_EQ(heard->redirects.size(), 1U) << "it is over";
}

TEST_F(OutboundExchangeTest, ItMayBeDestroyedInsteadOfFollowing) {
  const auto heard = start(follow("/redirect"));
  heard->at_redirect = [&] { heard->exchange.reset(); };
  run_until([&] { return heard->exchange == nullptr; });
  EXPECT_EQ(http_->running(), 0U);
}

TEST_F(OutboundExchangeTest, ALoopOfRedirectsEnds) {
  const OutboundFailure failure = fail(follow("/redirect"));
  EXPECT_EQ(failure.code, Errc::kLimitExceeded);
  EXPECT_EQ(failure.message, "the host redirects too often");
  EXPECT_TRUE(failure.sent);
}

TEST_F(OutboundExchangeTest, SecretsAreNotSentToAnotherOrigin) {
  OutboundRequest request = follow("/redirect?to=" + other_url("/echo"));
  request.headers = {{"cookie", "c=1"}, {"x-api-key", "own"}, {"accept", "text/x-any"}};
  request.secret_headers = {{"x-key", "hush"}};
  const auto heard = finish(request);
  ASSERT_FALSE(heard->failure) << heard->failure->message;
  EXPECT_EQ(heard->body.find("hush"), std::string::npos);
  EXPECT_EQ(heard->body.find("c=1"), std::string::npos);
  EXPECT_EQ(heard->body.find("own"), std::string::npos);
  EXPECT_NE(heard->body.find("text/x-any"), std::string::npos);

  request.url = provider_.http_url("/redirect?to=" +
                                   other_url("/redirect?to=" + provider_.http_url("/echo")));
  EXPECT_EQ(finish(request)->body.find("hush"), std::string::npos) << "not on the way back";
  request.url = provider_.http_url("/redirect?to=/echo");
  EXPECT_NE(finish(request)->body.find("hush"), std::string::npos) << "to the same origin";
}

TEST_F(OutboundExchangeTest, ABodyIsNotSentToAnotherOrigin) {
  OutboundRequest request = follow("/redirect?code=307&to=" + other_url("/echo"));
  request.method = "POST";
  request.body = "hush";
  const auto before = stat("requests");
  const OutboundFailure failure = fail(request);
  EXPECT_EQ(failure.code, Errc::kForbidden);
  EXPECT_EQ(failure.phase, Phase::kRules);
  EXPECT_TRUE(failure.sent);
  EXPECT_EQ(failure.message, "the host redirects the request's body to another origin");
  EXPECT_EQ(stat("requests") - before, 1);
}

TEST_F(OutboundExchangeTest, ARedirectToWhatIsNoHttpFails) {
  const OutboundFailure failure = fail(follow("/redirect?to=file:///etc/passwd"));
  EXPECT_EQ(failure.phase, Phase::kRules);
  EXPECT_TRUE(failure.sent);
}

// ---- credit -------------------------------------------------------------------------------------

TEST_F(OutboundExchangeTest, WithoutCreditNoPieceComes) {
  OutboundRequest request = to("/endless");
  request.credit = 0;
  const auto heard = start(request);
  run_until([&] { return heard->head.has_value(); });
  settle();
  EXPECT_EQ(heard->pieces, 0);
  heard->credit(1);
  run_until([&] { return heard->pieces == 1; });
  settle();
  EXPECT_EQ(heard->pieces, 1) << "one may overdraw it";
  heard->credit(1);
  settle();
  EXPECT_EQ(heard->pieces, 1) << "what was overdrawn is paid first";
  heard->cancel();
}

TEST_F(OutboundExchangeTest, TheOtherSideWaitsForCredit) {
  OutboundRequest request = to("/bytes?n=20000000");
  request.credit = 1'000'000;
  const auto heard = start(request);
  run_until([&] { return heard->body.size() >= 1'000'000; });
  settle();
  EXPECT_LE(heard->body.size(), 1'000'000U + 16'384U);
  EXPECT_FALSE(heard->ended);
  heard->at_body = [&] { heard->credit(100'000); };
  heard->credit(1'000'000);
  run_until([&] { return heard->ended; });
  EXPECT_FALSE(heard->failure);
  EXPECT_EQ(heard->body.size(), 20'000'000U);
}

TEST_F(OutboundExchangeTest, TheEndComesWithoutCreditIfNothingIsLeft) {
  OutboundRequest request = to("/bytes?n=1000");
  request.credit = 1000;
  const auto heard = finish(request);
  EXPECT_FALSE(heard->failure);
  EXPECT_EQ(heard->body.size(), 1000U);
}

TEST_F(OutboundExchangeTest, CompressedBodiesAndHttp2StreamsComeByCreditToo) {
  OutboundRequest http2 = get(provider_.https_url("/bytes?n=3000000"));
  http2.http2 = true;
  const std::pair<OutboundRequest, std::size_t> rows[] = {
      {to("/gzip-bomb?mb=8"), std::size_t{8} << 20}, {http2, 3'000'000}};
  for (auto [request, whole] : rows) {
    request.credit = 1;
    const auto heard = start(request);
    run_until([&] { return heard->pieces == 1; });
    settle();
    EXPECT_EQ(heard->pieces, 1) << request.url;
    heard->credit(std::size_t{1} << 30);
    run_until([&] { return heard->ended; });
    EXPECT_FALSE(heard->failure) << request.url;
    EXPECT_EQ(heard->body.size(), whole) << request.url;
  }
}

// ---- deadlines ----------------------------------------------------------------------------------

TEST_F(OutboundExchangeTest, SilenceInABodyEndsIt) {
  OutboundRequest request = to("/stall");
  request.idle_timeout = milliseconds(500);
  const auto heard = finish(request);
  ASSERT_TRUE(heard->failure);
  EXPECT_EQ(heard->failure->code, Errc::kTimeout);
  EXPECT_EQ(heard->failure->phase, Phase::kBody);
  EXPECT_EQ(heard->failure->message, "the rest of the answer does not come");
  EXPECT_EQ(heard->body, "first");
}

TEST_F(OutboundExchangeTest, ABodyThatMovesIsNotIdle) {
  OutboundRequest request = to("/sse?events=10&every_ms=100");
  request.idle_timeout = milliseconds(700);  // less than all of it takes
  EXPECT_FALSE(finish(request)->failure);
}

TEST_F(OutboundExchangeTest, WhoWaitsForCreditIsNotIdle) {
  OutboundRequest request = to("/bytes?n=3000000");
  request.credit = 1;
  request.idle_timeout = milliseconds(400);
  const auto waiting = start(request);
  run_until([&] { return waiting->pieces == 1; });
  // One that is idle, from now on for longer.
  request.url = provider_.http_url("/stall");
  request.credit = 100;
  request.idle_timeout = milliseconds(800);
  EXPECT_TRUE(finish(request)->failure);
  EXPECT_FALSE(waiting->ended);
  waiting->credit(4'000'000);
  run_until([&] { return waiting->ended; });
  EXPECT_FALSE(waiting->failure) << waiting->failure->message;
}

TEST_F(OutboundExchangeTest, TheWholeHasADeadline) {
  for (const char* path : {"/sse?events=1000&every_ms=10", "/never", "/endless"}) {
    OutboundRequest request = to(path);
    request.credit = 1;
    request.total_timeout = milliseconds(150);
    const OutboundFailure failure = fail(request);
    EXPECT_EQ(failure.code, Errc::kTimeout) << path;
    EXPECT_EQ(failure.message, "the request was not answered within its time") << path;
  }
}

// ---- the end by the caller ----------------------------------------------------------------------

TEST_F(OutboundExchangeTest, ItCanBeCancelledInEachState) {
  names_->held_ = "held.test";
  const std::string silent = "://provider.test:" + std::to_string(provider_.silent()) + "/";
  OutboundRequest upload = get("http" + silent);
  upload.method = "POST";
  upload.body = std::string(8 << 20, 'b');
  OutboundRequest paused = to("/endless");
  paused.credit = 0;
  OutboundRequest http2 = get(provider_.https_url("/endless"));
  http2.http2 = true;
  http2.credit = 1;
  struct Case {
    OutboundRequest request;
    std::function<bool(const Heard&)> reached;  // none: where it stands after all that is ready
  };
  const std::vector<Case> cases = {
      {get("http://held.test/"), {}},
      {get("https" + silent), {}},
      {upload, {}},
      {to("/never"), {}},
      {to("/stall"), [](const Heard& heard) { return heard.pieces > 0; }},
      {paused, [](const Heard& heard) { return heard.head.has_value(); }},
      {http2, [](const Heard& heard) { return heard.pieces > 0; }},
      {to("/echo"), [](const Heard& heard) { return heard.ended; }},
  };
  for (const Case& one : cases) {
    auto heard = start(one.request);
    heard->cancel();
    EXPECT_EQ(http_->running(), 0U) << "at once";
    heard = start(one.request);
    settle();
    if (one.reached) run_until([&] { return one.reached(*heard); });
    heard->cancel();
    EXPECT_EQ(http_->running(), 0U);
    const int pieces = heard->pieces;
    settle();
    EXPECT_EQ(heard->pieces, pieces) << "nothing comes after it";
  }
  EXPECT_FALSE(finish(to("/echo"))->failure) << "the client goes on";
}

TEST_F(OutboundExchangeTest, TheOtherSideSeesThatItIsCancelled) {
  const auto heard = start(to("/endless"));
  run_until([&] { return heard->pieces > 0; });
  heard->cancel();
  run_until([&] { return stat("cancelled") == 1; });
}

TEST_F(OutboundExchangeTest, ItMayBeDestroyedInsideEachCall) {
  for (const char* path : {"/bytes?n=100000", "/cut-body", "/stall", "/gzip-bomb?mb=1"}) {
    for (const int where : {0, 1, 2}) {
      OutboundRequest request = to(path);
      if (std::string_view(path) == "/stall") request.idle_timeout = milliseconds(500);
      const auto heard = start(request);
      bool gone = false;
      const auto destroy = [&] {
        heard->exchange.reset();
        gone = true;
      };
      (where == 0 ? heard->at_head : where == 1 ? heard->at_body : heard->at_end) = destroy;
      heard->at_body =
          where == 2 ? std::function<void()>([&] { heard->credit(1 << 20); }) : heard->at_body;
      run_until([&] { return gone; });
      settle();
      EXPECT_EQ(heard->ended, where == 2) << path << where;
    }
  }
}

TEST_F(OutboundExchangeTest, AnotherMayBeStartedAndDestroyedInsideACall) {
  const auto first = start(to("/endless"));
  Heard second;
  const auto third = start(to("/endless"));
  first->at_body = [&] {
    if (second.exchange) return;
    begin(second, to("/echo"));
    third->exchange.reset();
  };
  run_until([&] { return second.ended; });
  EXPECT_FALSE(second.failure);
  first->cancel();
}

}  // namespace
}  // namespace hearth::net

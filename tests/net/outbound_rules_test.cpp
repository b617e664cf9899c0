// Where requests may go, once names have addresses, hosts redirect and connections are kept.
#include "net/outbound_fixture.hpp"
#include "net/outbound_transfer.hpp"
#include "net/trust_store.hpp"

namespace hearth::net {
namespace {

class OutboundRulesTest : public OutboundFixture {
 protected:
  void expect_refused(OutboundRequest request, bool sent = false) {
    const std::string url = request.url;
    const OutboundFailure failure = fail(std::move(request));
    EXPECT_EQ(failure.code, Errc::kForbidden) << url;
    EXPECT_EQ(failure.phase, Phase::kRules) << url;
    EXPECT_EQ(failure.sent, sent) << url;
  }
  OutboundRequest through_proxy(std::string url) const {
    OutboundRequest request = get(std::move(url));
    request.proxy = "http://proxy.test:" + std::to_string(provider_.proxy());
    request.rules = rules({"provider.test"});
    return request;
  }
};

TEST_F(OutboundRulesTest, P1_ANameThatLeadsInsideIsRefused) {
  for (const char* address : {"127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1", "169.254.169.254",
                              "64:ff9b::7f00:1", "fd00::1"}) {
    names_->addresses_["provider.test"] = {address};
    for (const auto& allowed : {rules({}), rules({"*"}), rules({"provider.test"})}) {
      OutboundRequest request = to("/echo");
      request.rules = allowed;
      expect_refused(std::move(request));
    }
  }
  names_->addresses_["provider.test"] = {"127.0.0.1"};
  EXPECT_EQ(stat("http"), 1) << "only this question";
}

TEST_F(OutboundRulesTest, P1_AnAddressInAnyFormIsRefused) {
  const std::string port = ":" + std::to_string(provider_.http()) + "/echo";
  for (const char* host : {"127.0.0.1", "127.1", "0177.1", "0x7f000001", "2130706433", "127.0.0.1.",
                           "[::1]", "[::ffff:127.0.0.1]", "%31%32%37.0.0.1"}) {
    OutboundRequest request = get("http://" + std::string(host) + port);
    request.rules = rules({});
    expect_refused(request);
  }
  EXPECT_TRUE(names_->asked_.empty()) << "no address is asked for as a name";
  EXPECT_FALSE(finish(get("http://0177.1" + port))->failure) << "allowed in any form, too";
}

TEST_F(OutboundRulesTest, P1_OfTheAddressesOnlyThoseAllowedAreTried) {
  names_->addresses_["provider.test"] = {"10.0.0.1", "127.0.0.1", "::1"};
  EXPECT_FALSE(finish(to("/echo"))->failure);
}

TEST_F(OutboundRulesTest, P1_ARedirectInsideIsRefused) {
  const std::string port = ":" + std::to_string(provider_.http()) + "/echo";
  names_->addresses_["inside.test"] = {"127.0.0.2"};
  for (const std::string& to_url :
       {std::string("http://169.254.169.254/"), std::string("http://127.0.0.2/"),
        "http://inside.test" + port, std::string("http://10.0.0.1/"),
        std::string("http://[::1]/")}) {
    OutboundRequest request = to("/redirect?to=" + to_url);
    request.follow_redirects = true;
    expect_refused(std::move(request), true);
  }
}

TEST_F(OutboundRulesTest, P1_AKeptConnectionIsJudgedAgain) {
  EXPECT_FALSE(finish(to("/echo"))->failure);
  // Now the name has another address, and libcurl would still use the connection that it has.
  names_->addresses_["provider.test"] = {"127.0.0.9"};
  OutboundRequest request = to("/echo");
  request.rules = rules({"provider.test", "127.0.0.9"});
  expect_refused(std::move(request));
}

// What a transfer is given has been judged. It judges again, in case libcurl has other addresses.
TEST_F(OutboundRulesTest, P1_ASocketIsJudgedWhenItOpens) {
  CurlLoop curl(loop_);
  CreditedBody body(1000, 1000);
  TrustStore trusted = TrustStore::open("").value();
  OutboundRequest request = to("/echo");
  const OutboundTarget target = parse_target(request.url).value();
  for (const bool is_allowed : {false, true}) {
    request.rules = is_allowed ? rules({"*", "127.0.0.1"}) : rules({});
    OutboundTransfer transfer(curl, {.request = request,
                                     .target = target,
                                     .addresses = {parse_ip_address("127.0.0.1").value()},
                                     .trusted = trusted,
                                     .body = body,
                                     .moved = [] {}});
    run_until([&] { return transfer.is_done(); });
    EXPECT_EQ(transfer.failure().has_value(), !is_allowed);
    EXPECT_EQ(transfer.phase(), is_allowed ? Phase::kBody : Phase::kRules);
    EXPECT_EQ(stat("http"), is_allowed ? 2 : 1) << "one of them for this question";
  }
}

TEST_F(OutboundRulesTest, P1_DenyHoldsForWhatANameLeadsTo) {
  OutboundRequest request = to("/echo");
  request.rules = rules({"*", "127.0.0.0/8"}, {"127.0.0.1"});
  expect_refused(std::move(request));
}

TEST_F(OutboundRulesTest, P2_EachRequestAsksTheResolver) {
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(finish(to("/echo"))->failure);
  EXPECT_EQ(names_->asked_.size(), 3U);
}

TEST_F(OutboundRulesTest, AProxyIsWhatIsConnectedTo) {
  names_->addresses_ = {{"proxy.test", {"127.0.0.1"}}};
  const auto plain = finish(through_proxy(provider_.http_url("/echo")));
  ASSERT_FALSE(plain->failure) << plain->failure->message;
  EXPECT_NE(plain->body.find(R"("x-proxied":"yes")"), std::string::npos) << plain->body;
  const auto tls = finish(through_proxy(provider_.https_url("/echo")));
  ASSERT_FALSE(tls->failure) << tls->failure->message;
  EXPECT_EQ(tls->head->status, 200);
  EXPECT_EQ(names_->asked_, (std::vector<std::string>{"proxy.test", "proxy.test"}));
}

TEST_F(OutboundRulesTest, AProxyIsToldItsPassword) {
  OutboundRequest request = through_proxy(provider_.http_url("/echo"));
  request.proxy = "http://user:key@127.0.0.1:" + std::to_string(provider_.proxy());
  const auto heard = finish(std::move(request));
  EXPECT_NE(heard->body.find(R"("x-proxied":"Basic dXNlcjprZXk=")"), std::string::npos);
}

TEST_F(OutboundRulesTest, BehindAProxyNamesAreJudged) {
  names_->addresses_ = {{"proxy.test", {"127.0.0.1"}}};
  expect_refused(through_proxy("http://elsewhere.test/"));
  expect_refused(through_proxy("http://169.254.169.254/"));
}

TEST_F(OutboundRulesTest, ATunnelThatIsRefusedIsNoConnection) {
  names_->addresses_ = {{"proxy.test", {"127.0.0.1"}}};
  OutboundRequest request = through_proxy("https://refused.test/");
  request.rules = rules({"refused.test"});
  const OutboundFailure failure = fail(std::move(request));
  EXPECT_EQ(failure.phase, Phase::kConnect);
  EXPECT_FALSE(failure.sent);
}

}  // namespace
}  // namespace hearth::net

#include "net/outbound_failure.hpp"

#include "net/outbound_fixture.hpp"
#include "support/few_descriptors.hpp"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace hearth::net {

namespace {

class OutboundFailureTest : public OutboundFixture {
 protected:
  void expect(OutboundRequest request, Errc code, Phase phase, bool sent,
              const std::string& message) {
    const std::string url = request.url;
    const OutboundFailure failure = fail(std::move(request));
    EXPECT_EQ(to_string(failure.code), to_string(code)) << url;
    EXPECT_EQ(failure.phase, phase) << url;
    EXPECT_EQ(failure.sent, sent) << url;
    EXPECT_EQ(failure.message, message) << url;
  }
  // A port without a listener: it was allocated, and is free again.
  static std::uint16_t free_port() {
    asio::io_context loop;
    using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp>;
    return Acceptor(loop, {asio::ip::make_address("127.0.0.1"), 0}).local_endpoint().port();
  }
  std::string silent_url(std::string_view scheme) const {
    return std::string(scheme) + "://provider.test:" + std::to_string(provider_.silent()) + "/";
  }
};

TEST_F(OutboundFailureTest, RulesRefuseBeforeAnythingIsAsked) {
  OutboundRequest request = to("/echo");
  request.rules = rules({"other.test"});
  expect(request, Errc::kForbidden, Phase::kRules, false, "requests may not go to this host");
  EXPECT_TRUE(names_->asked_.empty());
}

// Each row is one request, and how it fails.
TEST_F(OutboundFailureTest, EachStepFailsInItsOwnWords) {
  using std::chrono::milliseconds;
  const auto within = [](OutboundRequest request, milliseconds connect, milliseconds idle) {
    if (connect != milliseconds(0)) request.connect_timeout = connect;
    if (idle != milliseconds(0)) request.idle_timeout = idle;
    return request;
  };
  const auto post = [](OutboundRequest request, std::size_t bytes = 0) {
    request.method = "POST";
    request.body = std::string(bytes, 'b');
    return request;
  };
  const auto port = [](std::uint16_t number) { return ":" + std::to_string(number) + "/"; };
  const milliseconds usual(0);
  names_->held_ = "held.test";
  names_->addresses_["stranger.test"] = {"127.0.0.1"};
  OutboundRequest endless = to("/endless");
  endless.max_body = 100'000;
  endless.credit = 1'000'000;
  const std::string cut_head = "the connection ended before the head of the answer was there";
  const std::string not_packed = "the body of the answer is not compressed as it says";
  const std::string switches = "the host switches to a protocol that was not asked for";
  struct Row {
    const char* name;
    OutboundRequest request;
    Errc code;
    Phase phase;
    bool sent;
    std::string message;
  };
  const Row rows[] = {
      {"ANameWithoutAddress", get("http://nowhere.test/"), Errc::kUnavailable, Phase::kResolve,
       false, "the host's name cannot be resolved"},
      {"ANameThatIsNotResolvedInTime", within(get("http://held.test/"), milliseconds(50), usual),
       Errc::kTimeout, Phase::kResolve, false, "the host's name was not resolved in time"},
      {"AConnectionThatIsRefused", get("http://provider.test" + port(free_port())),
       Errc::kUnavailable, Phase::kConnect, false, "no connection to the host could be made"},
      {"ATlsHandshakeWithoutAnAnswer", within(get(silent_url("https")), milliseconds(400), usual),
       Errc::kTimeout, Phase::kTls, false, "the TLS handshake with the host took too long"},
      {"ATlsHandshakeWithWhatSpeaksNone", get("https://provider.test" + port(provider_.http())),
       Errc::kUnavailable, Phase::kTls, false, "the TLS handshake with the host failed"},
      {"ACertificateForAnotherName", get("https://stranger.test" + port(provider_.https())),
       Errc::kUnavailable, Phase::kTls, false, "the certificate of the host is not accepted"},
      {"ARequestThatIsNotTaken",
       within(post(get(silent_url("http")), 32 << 20), usual, milliseconds(200)), Errc::kTimeout,
       Phase::kSend, true, "the host does not take the request"},
      {"AnAnswerThatDoesNotBegin", within(to("/never"), usual, milliseconds(100)), Errc::kTimeout,
       Phase::kHeaders, true, "the host does not answer"},
      {"AnAnswerThatEndsInItsHead", to("/cut-head"), Errc::kUnavailable, Phase::kHeaders, true,
       cut_head},
      {"AnAnswerThatEndsBeforeItsHead", to("/cut-before-head"), Errc::kUnavailable, Phase::kHeaders,
       true, cut_head},
      {"AnAnswerThatIsNoHttp", to("/garbage"), Errc::kUnavailable, Phase::kHeaders, true,
       "the answer is not valid HTTP"},
      {"AHeadThatIsTooLong", to("/huge-headers?bytes=100000"), Errc::kLimitExceeded,
       Phase::kHeaders, true, "the head of the answer is longer than 64 KiB"},
      {"AnAnswerInAnotherProtocol", to("/switch"), Errc::kUnavailable, Phase::kHeaders, true,
       switches},
      {"AnAnswerInAnotherProtocolToAPost", post(to("/switch")), Errc::kUnavailable, Phase::kHeaders,
       true, switches},
      {"ABodyThatIsTooLong", endless, Errc::kLimitExceeded, Phase::kBody, true,
       "the body of the answer is longer than 100000 bytes"},
      {"NoGzip", to("/bad-gzip"), Errc::kUnavailable, Phase::kBody, true, not_packed},
      {"JunkBehindGzip", to("/packed?tail=junk"), Errc::kUnavailable, Phase::kBody, true,
       not_packed},
      {"GzipAsDeflate", to("/packed?as=deflate&made=gzip"), Errc::kUnavailable, Phase::kBody, true,
       not_packed},
      {"AByteBehindDeflate", to("/packed?as=deflate&made=deflate&tail=1"), Errc::kUnavailable,
       Phase::kBody, true, not_packed},
      {"TooMuchBehindRawDeflate", to("/packed?as=deflate&made=raw&tail=12345"), Errc::kUnavailable,
       Phase::kBody, true, not_packed},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    expect(row.request, row.code, row.phase, row.sent, row.message);
  }
  EXPECT_EQ(finish(to("/huge-headers?bytes=30000"))->body, "huge");
  endless.url = provider_.http_url("/bytes?n=100000");
  EXPECT_FALSE(finish(endless)->failure) << "as long as it may be";
}

TEST_F(OutboundFailureTest, ACertificateThatIsNotTrusted) {
  options_.extra_ca_file.clear();
  make_client();
  expect(get(provider_.https_url("/echo")), Errc::kUnavailable, Phase::kTls, false,
         "the certificate of the host is not accepted");
}

TEST_F(OutboundFailureTest, AKeptConnectionThatIsCutSendsOnlySafeRequestsAgain) {
  for (const auto& [method, times] :
       {std::pair("POST", 1), std::pair("PUT", 1), std::pair("PATCH", 1), std::pair("DELETE", 1),
        std::pair("GET", 2), std::pair("OPTIONS", 2)}) {
    EXPECT_FALSE(finish(to("/echo"))->failure) << "its connection is kept";
    const int before = stat("requests");
    OutboundRequest request = to("/cut-before-head");
    request.method = method;
    expect(std::move(request), Errc::kUnavailable, Phase::kHeaders, true,
           "the connection ended before the head of the answer was there");
    EXPECT_EQ(stat("requests") - before, times) << method;
  }
}

TEST_F(OutboundFailureTest, ABodyThatIsCut) {
  for (const char* path : {"/cut-body", "/cut-chunk"}) {
    const auto heard = finish(to(path));
    ASSERT_TRUE(heard->failure) << path;
    EXPECT_EQ(heard->failure->phase, Phase::kBody) << path;
    EXPECT_TRUE(heard->failure->sent);
    EXPECT_EQ(heard->body, "only this") << "what has come is given on first";
    EXPECT_EQ(heard->failure->message,
              "the connection ended before the body of the answer was there");
  }
}

TEST_F(OutboundFailureTest, ATrailerIsNoLongerThanAHead) {
  const auto heard = finish(to("/long-trailer"));
  ASSERT_TRUE(heard->failure);
  EXPECT_EQ(heard->failure->code, Errc::kLimitExceeded);
  EXPECT_EQ(heard->failure->phase, Phase::kBody);
  EXPECT_EQ(heard->failure->message, "the head of the answer is longer than 64 KiB");
  EXPECT_EQ(heard->body, "body");
}

TEST_F(OutboundFailureTest, OnlyABodyWithoutALengthCannotShowThatItIsCut) {
  for (const char* path : {"/bytes?n=5", "/sse", "/packed", "/gzip", "/until-close?gzip"})
    EXPECT_FALSE(finish(to(path))->head->until_close) << path;
  OutboundRequest over_http2 = get(provider_.https_url("/sse"));
  over_http2.http2 = true;
  EXPECT_FALSE(finish(over_http2)->head->until_close);
  for (const char* path : {"/until-close", "/until-close?version=1.0"}) {
    const auto heard = finish(to(path));
    EXPECT_FALSE(heard->failure) << path;
    EXPECT_TRUE(heard->head->until_close) << path;
    EXPECT_EQ(heard->body, "data: one\n\n") << path;
  }
}

TEST_F(OutboundFailureTest, AnHttp2BodyThatIsCut) {
  OutboundRequest request = get(provider_.https_url("/cut-body"));
  request.http2 = true;
  const auto heard = finish(request);
  ASSERT_TRUE(heard->failure);
  EXPECT_EQ(heard->failure->phase, Phase::kBody);
  EXPECT_EQ(heard->body, "only this");
}

TEST_F(OutboundFailureTest, P6_ACompressedBodyThatIsCutIsNotWhole) {
  const std::string random = "qwvzjxkpfbgm0918273645QWVZJXKPFBGM";  // not made much smaller
  for (const char* query : {"", "&members=2", "&as=deflate&made=deflate", "&as=deflate&made=raw"}) {
    const std::string path = "/packed?text=" + random + query + "&keep=";
    for (const int keep : {1, 2, 11, 20, 30, -1}) {  // -1: all but the last one
      expect(to(path + std::to_string(keep)), Errc::kUnavailable, Phase::kBody, true,
             "the compressed body of the answer is cut off");
    }
  }
  const auto heard = finish(to("/packed?text=" + random + "&keep=-1"));
  EXPECT_TRUE(heard->failure);
  EXPECT_EQ(heard->body, random) << "what has come is given on first";
}

TEST_F(OutboundFailureTest, P6_AnEncodingThatWasNotAskedForIsNotUndone) {
  for (const char* query :
       {"as=br&made=br", "as=br&made=br&keep=3", "as=gzip,%20gzip", "as=zstd"}) {
    const auto heard = finish(to("/packed?" + std::string(query)));
    ASSERT_TRUE(heard->failure) << query;
    EXPECT_EQ(heard->failure->phase, Phase::kBody) << query;
    EXPECT_EQ(heard->failure->message, "the answer has an encoding that was not asked for");
    EXPECT_EQ(heard->head->status, 200);
    EXPECT_EQ(heard->body, "");
  }
  expect(to("/transfer-gzip"), Errc::kUnavailable, Phase::kHeaders, true,
         "the answer has an encoding that was not asked for");
}

TEST_F(OutboundFailureTest, ACompressedBodyIsAsLongAsWhatItUnpacksTo) {
  for (const std::size_t credit : {std::size_t{0}, std::size_t{100} << 20}) {
    OutboundRequest request = to("/gzip-bomb?mb=64");
    request.max_body = 1'000'000;
    request.credit = credit;
    const auto heard = start(request);
    run_until([&] { return heard->head.has_value(); });
    if (credit == 0) heard->credit(1 << 30);
    run_until([&] { return heard->ended; });
    ASSERT_TRUE(heard->failure);
    EXPECT_EQ(heard->failure->code, Errc::kLimitExceeded);
    EXPECT_LE(heard->body.size(), 1'000'000U);
  }
}

TEST_F(OutboundFailureTest, ADescriptorThatIsMissingIsNoConnection) {
  const auto warm = finish(to("/echo"));
  const testing::FewDescriptors none(0);
  expect(get(provider_.https_url("/echo")), Errc::kUnavailable, Phase::kConnect, false,
         "no connection to the host could be made");
}

TEST_F(OutboundFailureTest, AMessageTellsNoSecret) {
  OutboundRequest request = get("http://provider.test:" + std::to_string(free_port()) + "/?k=hush");
  request.secret_headers = {{"authorization", "hush"}};
  const OutboundFailure failure = fail(request);
  EXPECT_EQ(failure.message.find("hush"), std::string::npos);
  EXPECT_EQ(failure.message.find("127.0.0.1"), std::string::npos);
}

TEST_F(OutboundFailureTest, ARefusalNamesTheHostThatTheRulesRefuse) {
  names_->addresses_["inside.test"] = {"10.0.0.1"};
  const std::string port = ":" + std::to_string(free_port());
  for (const std::string& host : {"inside.test" + port, "10.0.0.1" + port, "[::1]" + port}) {
    EXPECT_EQ(fail(get("http://" + host + "/?k=hush")).host, host);
    OutboundRequest redirected = to("/redirect?to=http://" + host + "/");
    redirected.follow_redirects = true;
    EXPECT_EQ(fail(std::move(redirected)).host, host);
  }
  EXPECT_EQ(fail(get("http://provider.test" + port)).host, "") << "the rules allow it";
}

}  // namespace
}  // namespace hearth::net

// Requests of agents through the ABI. Requests of operations: fetch_operations_test.cpp.
#include "extensions/fetch.hpp"

#include "extensions/fetch_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

namespace hearth::extensions {
namespace {

using namespace testing;
using std::chrono::milliseconds;

TEST_F(AbiFetchTest, TheTraceOfTheEventGoesAlongUnlessTheAgentSetsOne) {
  use({});
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  agent_->origin_call = 5;
  agent_->its_origin.trace = trace;
  hearth_fetch_request it = request("https://a.example/");
  EXPECT_EQ(start(it), HEARTH_OK);
  it.call = 5;
  EXPECT_EQ(start(it), HEARTH_OK);
  it.headers = slice(R"([["TraceParent","mine"]])");
  EXPECT_EQ(start(it), HEARTH_OK);
  ASSERT_EQ(port_.made.size(), 3U);
  EXPECT_EQ(port_.made[0].headers, (Headers{{"traceparent", trace}})) << "a fiber has no event";
  EXPECT_EQ(port_.made[1].headers, (Headers{{"traceparent", trace}}));
  EXPECT_EQ(port_.made[2].headers, (Headers{{"TraceParent", "mine"}}));
}

TEST_F(AbiFetchTest, ARequestSaysWhoseItIs) {
  use({});
  agent_->origin_call = 5;
  agent_->its_origin.trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  agent_->its_origin.method = "ask";
  ASSERT_EQ(start(with(request("https://a.example/"), &hearth_fetch_request::call, 5)), HEARTH_OK);
  const FetchRequest& made = port_.made.front();
  EXPECT_EQ(made.agent_class, "Plain");
  EXPECT_EQ(made.agent, "a");
  EXPECT_EQ(made.call, 5U);
  EXPECT_EQ(made.its_method, "ask");
  EXPECT_EQ(made.trace, agent_->its_origin.trace);
}

TEST_F(AbiFetchTest, ARequestIsSubmittedWithWhatItSays) {
  hearth_fetch_request it = request("https://a.example/v1?x=1");
  it.flags = HEARTH_FETCH_FOLLOW | HEARTH_FETCH_HTTP2;
  it.method = slice("POST");
  it.headers = slice(R"([["Accept","text/event-stream"],["X","1"]])");
  it.body = slice("\xff{}");
  it.connect_timeout_ms = 1;
  it.idle_timeout_ms = 2;
  it.total_timeout_ms = 3;
  it.max_bytes = 4;
  it.window = 5;
  ASSERT_EQ(start(it), HEARTH_OK);
  EXPECT_EQ(id_, 99U);
  EXPECT_EQ(agent_->told, Lines{"submit remote 4 7"});
  ASSERT_EQ(port_.made.size(), 1U);
  const FetchRequest& made = port_.made.front();
  EXPECT_EQ(made.agent_class, "Plain");
  EXPECT_EQ(made.method, "POST");
  EXPECT_EQ(made.url, "https://a.example/v1?x=1");
  EXPECT_EQ(made.headers, (Headers{{"Accept", "text/event-stream"}, {"X", "1"}}));
  EXPECT_TRUE(made.secret_headers.empty());
  EXPECT_EQ(made.body, "\xff{}");
  EXPECT_TRUE(made.follow_redirects);
  EXPECT_TRUE(made.http2);
  EXPECT_EQ(made.connect_timeout, milliseconds(1));
  EXPECT_EQ(made.idle_timeout, milliseconds(2));
  EXPECT_EQ(made.total_timeout, milliseconds(3));
  EXPECT_EQ(made.max_bytes, 4U);
  EXPECT_EQ(made.window, 5U);
}

TEST_F(AbiFetchTest, TheClassMayDoWithoutHttp2) {
  ClassSettings settings;
  settings.egress.http2 = false;
  use(settings);
  hearth_fetch_request it = request("https://a.example/");
  it.flags = HEARTH_FETCH_HTTP2;
  ASSERT_EQ(start(it), HEARTH_OK);
  EXPECT_FALSE(port_.made.front().http2);
}

TEST_F(AbiFetchTest, ZeroIsTheDefaultOfTheHeader) {
  ASSERT_EQ(start("http://a.example"), HEARTH_OK);
  const FetchRequest& made = port_.made.front();
  EXPECT_EQ(made.method, "GET");
  EXPECT_FALSE(made.follow_redirects);
  EXPECT_FALSE(made.http2);
  EXPECT_EQ(made.connect_timeout, std::chrono::seconds(10));
  EXPECT_EQ(made.idle_timeout, std::chrono::seconds(60));
  EXPECT_EQ(made.total_timeout, milliseconds(0));
  EXPECT_EQ(made.max_bytes, 64U << 20U);
  EXPECT_EQ(made.window, 256U << 10U);
}

TEST_F(AbiFetchTest, TheClassSaysWhereItMayGoAndHowOften) {
  ClassSettings settings;
  settings.egress.allow = {"a.example"};
  settings.egress.proxy = "http://proxy.example:3128";
  settings.egress.limits = {.requests_per_minute = 5, .concurrent = 6, .bytes_per_day = 7};
  use(settings);
  ASSERT_EQ(start("https://b.example/"), HEARTH_OK) << "the port judges";
  const FetchRequest& made = port_.made.front();
  EXPECT_EQ(made.proxy, "http://proxy.example:3128");
  EXPECT_EQ(made.limits.requests_per_minute, 5U);
  EXPECT_EQ(made.limits.concurrent, 6U);
  EXPECT_EQ(made.limits.bytes_per_day, 7U);
  ASSERT_NE(made.rules, nullptr);
  EXPECT_TRUE(made.rules->may_ask("a.example", 443));
  EXPECT_FALSE(made.rules->may_ask("b.example", 443));
  ASSERT_EQ(start("https://a.example/"), HEARTH_OK);
  EXPECT_EQ(port_.made.back().rules, port_.made.front().rules) << "parsed once";
}

TEST_F(AbiFetchTest, WhatTheOperatorSetsHoldsForTheNextRequest) {
  use(with_key("s3cret"));
  ASSERT_EQ(start_with_credential("key"), HEARTH_OK);
  EXPECT_TRUE(port_.made.back().rules->may_ask("a.example", 443));
  EgressSettings tight;
  tight.deny = {"a.example"};
  tight.proxy = "http://proxy.example:3128";
  tight.limits.requests_per_minute = 5;
  agent_->its_egress = std::make_shared<const EgressSettings>(tight);
  ASSERT_EQ(start("https://a.example/"), HEARTH_OK) << "the port judges";
  const FetchRequest& made = port_.made.back();
  EXPECT_FALSE(made.rules->may_ask("a.example", 443));
  EXPECT_EQ(made.proxy, "http://proxy.example:3128");
  EXPECT_EQ(made.limits.requests_per_minute, 5U);
  EXPECT_EQ(start_with_credential("key"), HEARTH_E_NOT_FOUND) << "it was withdrawn";
}

TEST_F(AbiFetchTest, WhatIsWrongIsRefusedAtOnce) {
  for (const std::string_view url :
       {"", "a.example", "ftp://a.example/", "file:///etc/passwd", "http://", "https:///x",
        "https://me:secret@a.example/", "https://a.example/a b", "https://a.example/\n"})
    EXPECT_EQ(start(url), HEARTH_E_INVALID) << url;
  EXPECT_EQ(start("https://a.example/" + std::string(17'000, 'a')), HEARTH_E_INVALID);
  EXPECT_EQ(start("HTTPS://a.example/?me@b"), HEARTH_OK);
  const hearth_fetch_request its = request("https://a.example/");
  for (const std::string_view headers :
       {"{}", "[1]", R"([["a"]])", R"([["a","b","c"]])", R"([["a",1]])", "[", R"([["a b","c"]])",
        R"([["a","b\r\nc: d"]])", R"([["","b"]])", R"([["connection","close"]])",
        R"([["Content-Length","1"]])", R"([["TRANSFER-ENCODING","chunked"]])",
        R"([["Proxy-Authorization","x"]])", R"([["expect","100-continue"]])",
        R"([["Host","b.example"]])", R"([["hOST","a.example"]])"})
    EXPECT_EQ(start(with(its, &hearth_fetch_request::headers, slice(headers))), HEARTH_E_INVALID)
        << headers;
  for (const std::string_view method : {"GE T", "CONNECT", "TRACE", "trace", "Track", "\r\n"}) {
    EXPECT_EQ(start(with(its, &hearth_fetch_request::method, slice(method))), HEARTH_E_INVALID)
        << method;
  }
  EXPECT_EQ(start(with(its, &hearth_fetch_request::flags, 8)), HEARTH_E_UNSUPPORTED);
  EXPECT_EQ(start(with(its, &hearth_fetch_request::body, kNullWithLength)), HEARTH_E_INVALID);
  EXPECT_EQ(start(with(its, &hearth_fetch_request::struct_size, 0)), HEARTH_E_INVALID);
}

TEST_F(AbiFetchTest, ASmallerRequestIsOneWithoutTheRest) {
  hearth_fetch_request it = request("https://a.example/");
  it.struct_size = offsetof(hearth_fetch_request, headers);
  it.headers = kNullWithLength;
  EXPECT_EQ(start(it), HEARTH_OK);
}

TEST_F(AbiFetchTest, AHostWithoutAWayOutSaysSo) {
  use({}, false);
  EXPECT_EQ(start("https://a.example/"), HEARTH_E_UNSUPPORTED);
  EXPECT_EQ(last_error(), "this host makes no requests to other servers");
}

TEST_F(AbiFetchTest, TheWordsOfThePortAndOfTheAgentAreHanded) {
  use({});
  port_.refusal = Error{Errc::kInvalidArgument, "odd"};
  EXPECT_EQ(start("https://a.example/"), HEARTH_E_INVALID);
  EXPECT_EQ(last_error(), "odd");
  port_.refusal.reset();
  agent_->answer = Error{Errc::kForbidden, "not now"};
  EXPECT_EQ(start("https://a.example/"), HEARTH_E_FORBIDDEN);
  EXPECT_EQ(id_, 0U);
}

TEST_F(AbiFetchTest, TheHostAddsTheCredential) {
  use(with_key("X-Api-Key: s3cret\n"));
  ASSERT_EQ(start_with_credential("key"), HEARTH_OK);
  const FetchRequest& made = port_.made.front();
  EXPECT_EQ(made.secret_headers, (Headers{{"X-Api-Key", "s3cret"}}));
  EXPECT_TRUE(made.headers.empty());
}

TEST_F(AbiFetchTest, TheFileIsReadForEachRequest) {
  use(with_key("one"));
  ASSERT_EQ(start_with_credential("key"), HEARTH_OK);
  std::ofstream(files_.path() / "key") << "two";
  ASSERT_EQ(start_with_credential("key"), HEARTH_OK);
  EXPECT_EQ(port_.made.back().secret_headers, (Headers{{"Authorization", "Bearer two"}}));
}

TEST_F(AbiFetchTest, ACredentialThatIsMissingIsNamed) {
  use(with_key("s3cret"));
  EXPECT_EQ(start_with_credential("other"), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(last_error(), "the class has no credential \"other\"");
  EXPECT_TRUE(port_.made.empty());
}

TEST_F(AbiFetchTest, APortThatSendsNothingTakesAnyName) {
  use({});
  port_.wants = false;
  ASSERT_EQ(start_with_credential("key"), HEARTH_OK);
  EXPECT_EQ(port_.made.front().credential, "key");
  EXPECT_TRUE(port_.made.front().secret_headers.empty());
}

TEST_F(AbiFetchTest, AFileThatCannotBeUsedIsToldTheLogAlone) {
  use(with_key("s3cret with spaces"));
  EXPECT_EQ(start_with_credential("key"), HEARTH_E_BUSY);
  const std::string path = (files_.path() / "key").native();
  EXPECT_EQ(last_error().find(path), std::string::npos);
  ASSERT_EQ(agent_->told.size(), 1U);
  EXPECT_NE(agent_->told[0].find(path), std::string::npos);
  EXPECT_EQ((last_error() + agent_->told[0]).find("s3cret"), std::string::npos);
}

TEST(FetchHeadTest, IsJsonWhateverTheOtherSideSends) {
  EXPECT_EQ(fetch_head(200, "https://a.example/", {}),
            R"({"status":200,"url":"https://a.example/","headers":[]})");
  EXPECT_EQ(fetch_head(404, "http://b", {{"X", "a\"b"}, {"Y", "\xff"}}),
            R"({"status":404,"url":"http://b","headers":[["X","a\"b"],["Y",")"
            "\xef\xbf\xbd\"]]}");
}

TEST(CredentialHeaderTest, IsALineOrAToken) {
  const auto of = [](std::string_view text) {
    const auto header = credential_header(text);
    return header ? header->first + "=" + header->second : "refused";
  };
  EXPECT_EQ(of("X-Key: a b\r\n"), "X-Key=a b");
  EXPECT_EQ(of("Authorization: Basic dTpw"), "Authorization=Basic dTpw");
  EXPECT_EQ(of("sk-123\n"), "Authorization=Bearer sk-123");
  EXPECT_EQ(of("a:b"), "Authorization=Bearer a:b") << "a colon alone makes no header";
  for (const std::string_view text :
       {"", "\n", "two words", "X-Key: ", "a\nb", "X: a\nY: b", "Content-Length: 5", "b d: x"})
    EXPECT_EQ(of(text), "refused") << text;
}

}  // namespace
}  // namespace hearth::extensions

#include "net/outbound_target.hpp"

#include <gtest/gtest.h>

namespace hearth::net {
namespace {

TEST(OutboundTargetTest, AUrlHasOneForm) {
  struct Case {
    const char* url;
    const char* usual;
    const char* host;
    int port;
  };
  for (const Case& one : std::initializer_list<Case>{
           {"http://a.example", "http://a.example/", "a.example", 80},
           {"HTTPS://A.Example./b?c=d#e", "https://a.example/b?c=d", "a.example", 443},
           {"http://a.example:8080/", "http://a.example:8080/", "a.example", 8080},
           {"http://0177.1/", "http://127.0.0.1/", "127.0.0.1", 80},
           {"http://0x7f000001/", "http://127.0.0.1/", "127.0.0.1", 80},
           {"http://2130706433/", "http://127.0.0.1/", "127.0.0.1", 80},
           {"http://127.1./", "http://127.0.0.1/", "127.0.0.1", 80},
           {"http://%31%32%37.0.0.1/", "http://127.0.0.1/", "127.0.0.1", 80},
           {"http://[::1]:81/", "http://[::1]:81/", "::1", 81},
           {"http://[::FFFF:127.0.0.1]/", "http://[::ffff:127.0.0.1]/", "::ffff:127.0.0.1", 80},
           {"http://XN--BCHER-KVA.example/", "http://xn--bcher-kva.example/",
            "xn--bcher-kva.example", 80},
       }) {
    const Result<OutboundTarget> target = parse_target(one.url);
    ASSERT_TRUE(target) << one.url << ": " << target.error().message;
    EXPECT_EQ(target->url, one.usual) << one.url;
    EXPECT_EQ(target->host, one.host) << one.url;
    EXPECT_EQ(target->port, one.port) << one.url;
  }
}

TEST(OutboundTargetTest, WhatIsNoUrlIsRefused) {
  for (const char* url : {"",
                          "a",
                          "/a",
                          "http:",
                          "http://",
                          "http://b\u00FCcher.example/",
                          "http://a b/",
                          "http://a.example/b c",
                          "http://a.example:0/",
                          "http://a.example:99999/",
                          "http://user@a.example/",
                          "http://user:key@a.example/",
                          "http://a.example@/",
                          "http://a.example../",
                          "http://a..example/",
                          "http://.a.example/",
                          "http://127.0.0.1../",
                          "ftp://a.example/",
                          "gopher://a/",
                          "http://[::1/",
                          "http://[fe80::1%25eth0]/",
                          "http://a.example/\r\nb",
                          "http://./",
                          "http://a.example\\@b.example/",
                          "dict://a:1/"})
    EXPECT_FALSE(parse_target(url)) << url;
  EXPECT_FALSE(parse_target("http://a.example/" + std::string(20'000, 'x')));
}

TEST(OutboundTargetTest, ALocationIsReadFromWhereItIs) {
  const OutboundTarget from = parse_target("https://a.example/b/c?d").value();
  struct Case {
    const char* location;
    const char* url;
  };
  for (const Case& one : std::initializer_list<Case>{
           {"e", "https://a.example/b/e"},
           {"/e?f", "https://a.example/e?f"},
           {"//b.example/e", "https://b.example/e"},
           {"http://0x7f.1/", "http://127.0.0.1/"},
           {"/with space", "https://a.example/with%20space"},
       }) {
    const Result<OutboundTarget> next = resolve_location(from, one.location);
    ASSERT_TRUE(next) << one.location << ": " << next.error().message;
    EXPECT_EQ(next->url, one.url);
  }
  for (const char* location : {"file:///etc/passwd", "ftp://a.example/", "http://u:p@a.example/"})
    EXPECT_FALSE(resolve_location(from, location)) << location;
}

TEST(OutboundTargetTest, AnOriginIsSchemeHostAndPort) {
  const OutboundTarget one = parse_target("https://a.example/b").value();
  EXPECT_TRUE(one.has_origin_of(parse_target("https://A.example:443/c").value()));
  for (const char* other :
       {"http://a.example:443/", "https://a.example:444/", "https://b.example/"})
    EXPECT_FALSE(one.has_origin_of(parse_target(other).value())) << other;
}

TEST(OutboundTargetTest, AProxyMayHaveAPassword) {
  const auto proxy = parse_proxy("http://user:key@proxy.example:3128").value();
  EXPECT_EQ(proxy.host, "proxy.example");
  EXPECT_EQ(proxy.port, 3128);
  for (const char* url : {"proxy.example:3128", "https://proxy.example", "socks5://proxy.example"})
    EXPECT_FALSE(parse_proxy(url)) << url;
}

TEST(OutboundTargetTest, ARedirectMayChangeTheMethod) {
  struct Case {
    int status;
    const char* method;
    const char* next;
  };
  for (const Case& one : std::initializer_list<Case>{{301, "POST", "GET"},
                                                     {302, "POST", "GET"},
                                                     {303, "POST", "GET"},
                                                     {303, "PUT", "GET"},
                                                     {303, "HEAD", "HEAD"},
                                                     {302, "PUT", "PUT"},
                                                     {307, "POST", "POST"},
                                                     {308, "POST", "POST"}}) {
    OutboundRequest request;
    request.method = one.method;
    request.body = "b";
    request.headers = {{"Content-Type", "text/plain"}, {"x", "y"}};
    EXPECT_TRUE(follow_redirect(request, one.status, true));
    EXPECT_EQ(request.method, one.next) << one.status;
    const bool stays = std::string_view(one.method) == one.next && request.method != "HEAD";
    if (request.method != "HEAD") EXPECT_EQ(request.body.empty(), !stays) << one.status;
    EXPECT_EQ(request.headers.size(), std::string_view(one.method) == one.next ? 2U : 1U);
  }
}

TEST(OutboundTargetTest, OnlyWhatSaysNothingOfTheSenderCrossesAnOrigin) {
  OutboundRequest request;
  request.method = "GET";
  request.secret_headers = {{"x-key", "e"}};
  for (const char* name : {"Authorization", "COOKIE", "X-Api-Key", "X-Goog-Api-Key", "Referer",
                           "Origin", "traceparent", "Idempotency-Key", "If-None-Match",
                           "X-Forwarded-For", "Accept", "ACCEPT-language", "Range", "user-agent"})
    request.headers.push_back({name, "v"});
  ASSERT_TRUE(follow_redirect(request, 307, true));
  EXPECT_EQ(request.headers.size(), 14U);
  EXPECT_EQ(request.secret_headers.size(), 1U);
  ASSERT_TRUE(follow_redirect(request, 307, false));
  EXPECT_TRUE(request.secret_headers.empty());
  std::string names;
  for (const HttpHeader& header : request.headers) names += header.name + ' ';
  EXPECT_EQ(names, "Accept ACCEPT-language Range user-agent ");
}

TEST(OutboundTargetTest, ABodyDoesNotCrossAnOrigin) {
  struct Row {
    int status;
    const char* method;
    bool goes;
  };
  for (const Row& row : std::initializer_list<Row>{{301, "POST", true},  // as a GET
                                                   {302, "POST", true},
                                                   {303, "PUT", true},
                                                   {307, "POST", false},
                                                   {308, "POST", false},
                                                   {301, "PUT", false},
                                                   {302, "PATCH", false}}) {
    OutboundRequest request;
    request.method = row.method;
    request.body = "b";
    request.headers = {{"Content-Type", "text/plain"}};
    OutboundRequest empty = request;
    empty.body.clear();
    const auto followed = follow_redirect(request, row.status, false);
    EXPECT_EQ(followed.has_value(), row.goes) << row.status << row.method;
    if (row.goes) EXPECT_TRUE(request.body.empty() && request.headers.empty()) << row.status;
    if (!row.goes) EXPECT_EQ(followed.error().code, Errc::kForbidden);
    EXPECT_TRUE(follow_redirect(empty, row.status, false)) << row.status << row.method;
  }
}

}  // namespace
}  // namespace hearth::net

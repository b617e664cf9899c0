// hearth.connections/1 and hearth.http/1.

#include "plugins/generation/abi_host_fixture.hpp"

#include <hearth/ext/connections.h>
#include <hearth/ext/http.h>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace hearth::plugins {
namespace {

using namespace testing;

// ---- hearth.connections/1 ----

class AbiConnectionsTest : public AbiHostTest {
 protected:
  AbiConnectionsTest() {
    runtime::Connection& client = agent_.clients[5];
    client.client_id = "ann";
    client.target = "/agents/plain/x?a=1";
    client.headers = {{"User-Agent", "test"}};
    client.tags = {"red"};
    client.attachment = "kept";
    client.flags = HEARTH_CONNECTION_READONLY;
    agent_.clients[8].client_id = "bob";
  }
  const hearth_connections_v1& connections_ =
      extension<hearth_connections_v1>(HEARTH_EXT_CONNECTIONS);
};

TEST_F(AbiConnectionsTest, AreWalkedInOrder) {
  std::uint64_t connection = 0;
  ASSERT_EQ(connections_.next(host_, kAgent, 0, kNothing, &connection), HEARTH_OK);
  EXPECT_EQ(connection, 5U);
  ASSERT_EQ(connections_.next(host_, kAgent, 5, kNothing, &connection), HEARTH_OK);
  EXPECT_EQ(connection, 8U);
  EXPECT_EQ(connections_.next(host_, kAgent, 8, kNothing, &connection), HEARTH_E_NOT_FOUND);
  ASSERT_EQ(connections_.next(host_, kAgent, 0, slice("bob"), &connection), HEARTH_OK);
  EXPECT_EQ(connection, 8U);
  EXPECT_EQ(connections_.next(host_, kAgent, 0, slice(kNotUtf8), &connection), HEARTH_E_INVALID);
  EXPECT_EQ(connections_.next(host_, kAgent, 0, kNothing, nullptr), HEARTH_E_INVALID);
}

TEST_F(AbiConnectionsTest, ShowWhatIsKnownOfThem) {
  hearth_bytes out{};
  ASSERT_EQ(connections_.id(host_, kAgent, 5, &out), HEARTH_OK);
  EXPECT_EQ(view(out), "ann");
  ASSERT_EQ(connections_.target(host_, kAgent, 5, &out), HEARTH_OK);
  EXPECT_EQ(view(out), "/agents/plain/x?a=1");
  ASSERT_EQ(connections_.header(host_, kAgent, 5, slice("user-agent"), &out), HEARTH_OK);
  EXPECT_EQ(view(out), "test");
  EXPECT_EQ(connections_.header(host_, kAgent, 5, slice("cookie"), &out), HEARTH_E_NOT_FOUND);
  ASSERT_EQ(connections_.tag(host_, kAgent, 5, 0, &out), HEARTH_OK);
  EXPECT_EQ(view(out), "ann");
  ASSERT_EQ(connections_.tag(host_, kAgent, 5, 1, &out), HEARTH_OK);
  EXPECT_EQ(view(out), "red");
  EXPECT_EQ(connections_.tag(host_, kAgent, 5, 2, &out), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(connections_.tag(host_, kAgent, 5, 0xffffffff, &out), HEARTH_E_NOT_FOUND);
  ASSERT_EQ(connections_.attachment(host_, kAgent, 5, &out), HEARTH_OK);
  EXPECT_EQ(view(out), "kept");
  std::uint32_t flags = 0;
  ASSERT_EQ(connections_.flags(host_, kAgent, 5, &flags), HEARTH_OK);
  EXPECT_EQ(flags, static_cast<std::uint32_t>(HEARTH_CONNECTION_READONLY));
}

TEST_F(AbiConnectionsTest, OneThatHasLeftIsGone) {
  hearth_bytes out{};
  std::uint32_t flags = 0;
  EXPECT_EQ(connections_.id(host_, kAgent, 6, &out), HEARTH_E_GONE);
  EXPECT_EQ(connections_.tag(host_, kAgent, 6, 0, &out), HEARTH_E_GONE);
  EXPECT_EQ(connections_.flags(host_, kAgent, 6, &flags), HEARTH_E_GONE);
  answer(Errc::kNotFound);
  EXPECT_EQ(connections_.send(host_, kAgent, 6, HEARTH_SEND_TEXT, slice("x")), HEARTH_E_GONE);
  EXPECT_EQ(connections_.add_tag(host_, kAgent, 6, slice("x")), HEARTH_E_GONE);
  EXPECT_EQ(connections_.set_flags(host_, kAgent, 6, 0), HEARTH_E_GONE);
  EXPECT_EQ(connections_.set_attachment(host_, kAgent, 6, kNothing), HEARTH_E_GONE);
  EXPECT_EQ(connections_.close(host_, kAgent, 6, 1000, kNothing), HEARTH_E_GONE);
}

TEST_F(AbiConnectionsTest, ChangesAndFramesArePassedOn) {
  const std::array<std::uint64_t, 2> except = {5, 6};
  EXPECT_EQ(connections_.add_tag(host_, kAgent, 5, slice("blue")), HEARTH_OK);
  EXPECT_EQ(connections_.set_flags(host_, kAgent, 5, 2), HEARTH_OK);
  EXPECT_EQ(connections_.set_attachment(host_, kAgent, 5, slice(kNotUtf8)), HEARTH_OK);
  EXPECT_EQ(connections_.send(host_, kAgent, 5, HEARTH_SEND_TEXT, slice("hi")), HEARTH_OK);
  EXPECT_EQ(connections_.send(host_, kAgent, 5, HEARTH_SEND_BINARY, slice(kNotUtf8)), HEARTH_OK);
  EXPECT_EQ(connections_.broadcast(host_, kAgent, HEARTH_SEND_TEXT, slice("all"), slice("red"),
                                   except.data(), 2),
            HEARTH_OK);
  EXPECT_EQ(connections_.close(host_, kAgent, 5, 4000, slice("bye")), HEARTH_OK);
  EXPECT_EQ(agent_.calls,
            (Calls{"add_tag 5 blue", "set_flags 5 2", "set_attachment 5 \xff\xfe", "send 5 0 hi",
                   "send 5 1 \xff\xfe", "broadcast 0 all to 'red' but 5 6", "close 5 4000 bye"}));
}

TEST_F(AbiConnectionsTest, BadFramesAreRefusedBeforeTheyAreSent) {
  EXPECT_EQ(connections_.send(host_, kAgent, 5, HEARTH_SEND_TEXT, slice(kNotUtf8)),
            HEARTH_E_INVALID);
  EXPECT_EQ(connections_.send(host_, kAgent, 5, HEARTH_SEND_TEXT, kNullWithLength),
            HEARTH_E_INVALID);
  EXPECT_EQ(connections_.send(host_, kAgent, 5, 7, slice("x")), HEARTH_E_UNSUPPORTED);
  EXPECT_EQ(connections_.broadcast(host_, kAgent, 7, slice("x"), kNothing, nullptr, 0),
            HEARTH_E_UNSUPPORTED);
  EXPECT_EQ(connections_.broadcast(host_, kAgent, 0, slice("x"), kNothing, nullptr, 1),
            HEARTH_E_INVALID);
  EXPECT_EQ(connections_.broadcast(host_, kAgent, 0, slice(kNotUtf8), kNothing, nullptr, 0),
            HEARTH_E_INVALID);
  EXPECT_EQ(connections_.add_tag(host_, kAgent, 5, slice(kNotUtf8)), HEARTH_E_INVALID);
  EXPECT_EQ(connections_.close(host_, kAgent, 5, 1000, slice(kNotUtf8)), HEARTH_E_INVALID);
  EXPECT_TRUE(agent_.calls.empty());
}

// ---- hearth.http/1 ----

class AbiHttpTest : public AbiHostTest {
 protected:
  AbiHttpTest() {
    agent_.view = {.target = "/agents/plain/x", .headers = &headers_, .response = &response_};
  }

  const runtime::Headers headers_ = {{"Accept", "text/plain"}, {"X-A", "1"}};
  runtime::ResponseHead response_;
  const hearth_http_v1& http_ = extension<hearth_http_v1>(HEARTH_EXT_HTTP);
};

TEST_F(AbiHttpTest, ShowsTheRequest) {
  hearth_bytes name{};
  hearth_bytes out{};
  ASSERT_EQ(http_.target(host_, kAgent, 1, &out), HEARTH_OK);
  EXPECT_EQ(view(out), "/agents/plain/x");
  ASSERT_EQ(http_.header(host_, kAgent, 1, slice("accept"), &out), HEARTH_OK);
  EXPECT_EQ(view(out), "text/plain");
  EXPECT_EQ(http_.header(host_, kAgent, 1, slice("none"), &out), HEARTH_E_NOT_FOUND);
  ASSERT_EQ(http_.header_at(host_, kAgent, 1, 1, &name, &out), HEARTH_OK);
  EXPECT_EQ(view(name), "X-A");
  EXPECT_EQ(view(out), "1");
  EXPECT_EQ(http_.header_at(host_, kAgent, 1, 2, &name, &out), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(http_.header_at(host_, kAgent, 1, 0, nullptr, &out), HEARTH_E_INVALID);
}

TEST_F(AbiHttpTest, SetsTheHeadOfTheResponse) {
  EXPECT_EQ(http_.set_status(host_, kAgent, 1, 404), HEARTH_OK);
  EXPECT_EQ(
      http_.add_header(host_, kAgent, 1, slice("Content-Type"), slice("text/plain; charset=utf-8")),
      HEARTH_OK);
  EXPECT_EQ(http_.add_header(host_, kAgent, 1, slice("x-empty"), kNothing), HEARTH_OK);
  EXPECT_EQ(response_.status, 404U);
  EXPECT_EQ(response_.headers,
            (runtime::Headers{{"Content-Type", "text/plain; charset=utf-8"}, {"x-empty", ""}}));
}

TEST_F(AbiHttpTest, RefusesWhatWouldBreakTheMessage) {
  for (const std::uint32_t status : {0U, 100U, 199U, 600U, 0xffffffffU}) {
    EXPECT_EQ(http_.set_status(host_, kAgent, 1, status), HEARTH_E_INVALID) << status;
  }
  for (const char* name :
       {"", "a b", "a:b", "a\nb", "\xc3\xa4", "Content-Length", "transfer-encoding", "CONNECTION",
        "Upgrade", "Date", "keep-alive", "Trailer", "TE", "Proxy-Connection"}) {
    EXPECT_EQ(http_.add_header(host_, kAgent, 1, slice(name), slice("x")), HEARTH_E_INVALID)
        << name;
  }
  for (const std::string_view value : {"a\r\nSet-Cookie: x", "a\nb", "a\0b", "\x7f"}) {
    const std::string_view whole = value == "a" ? std::string_view("a\0b", 3) : value;
    EXPECT_EQ(http_.add_header(host_, kAgent, 1, slice("x-a"), slice(whole)), HEARTH_E_INVALID);
  }
  EXPECT_EQ(http_.add_header(host_, kAgent, 1, slice("x-a"), slice(std::string(8193, 'x'))),
            HEARTH_E_LIMIT);
  EXPECT_TRUE(response_.headers.empty());
  EXPECT_EQ(response_.status, 200U);
}

TEST_F(AbiHttpTest, TakesAtMost64Headers) {
  for (int n = 0; n < 64; ++n) {
    ASSERT_EQ(http_.add_header(host_, kAgent, 1, slice("x-a"), slice("1")), HEARTH_OK);
  }
  EXPECT_EQ(http_.add_header(host_, kAgent, 1, slice("x-a"), slice("1")), HEARTH_E_LIMIT);
}

TEST_F(AbiHttpTest, TheHeadCannotChangeOnceItHasLeft) {
  agent_.view.response = nullptr;
  EXPECT_EQ(http_.set_status(host_, kAgent, 1, 404), HEARTH_E_FORBIDDEN);
  EXPECT_EQ(http_.add_header(host_, kAgent, 1, slice("x-a"), slice("1")), HEARTH_E_FORBIDDEN);
}

TEST_F(AbiHttpTest, ARequestThatIsOverIsGone) {
  answer(Errc::kNotFound);
  hearth_bytes out{};
  EXPECT_EQ(http_.target(host_, kAgent, 1, &out), HEARTH_E_GONE);
  EXPECT_EQ(http_.set_status(host_, kAgent, 1, 404), HEARTH_E_GONE);
}

}  // namespace
}  // namespace hearth::plugins

#include "extensions/abi_fixture.hpp"
#include "extensions/basics.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiHttpTest : public AbiHostTest {
 protected:
  AbiHttpTest() {
    agent_.view = {.target = "/agents/plain/x", .headers = &headers_, .response = &response_};
  }

  hearth_status add_header(std::string_view name, hearth_bytes value) {
    return http_.add_header(host_, kAgent, 1, slice(name), value);
  }

  const Headers headers_ = {{"Accept", "text/plain"}, {"X-A", "1"}};
  ResponseHead response_;
  const hearth_http_v1& http_ = extension<hearth_http_v1>(HEARTH_EXT_HTTP);
};

TEST_F(AbiHttpTest, ShowsTheRequest) {
  hearth_bytes name{};
  hearth_bytes out{};
  EXPECT_EQ(lent(http_.target, 1U), "/agents/plain/x");
  EXPECT_EQ(lent(http_.header, 1U, slice("accept")), "text/plain");
  EXPECT_EQ(lent(http_.header, 1U, slice("none")), "HEARTH_E_NOT_FOUND");
  ASSERT_EQ(http_.header_at(host_, kAgent, 1, 1, &name, &out), HEARTH_OK);
  EXPECT_EQ(view(name), "X-A");
  EXPECT_EQ(view(out), "1");
  EXPECT_EQ(lent(http_.header_at, 1U, 2U, &name), "HEARTH_E_NOT_FOUND");
  EXPECT_EQ(lent(http_.header_at, 1U, 0U, nullptr), "HEARTH_E_INVALID");
}

TEST_F(AbiHttpTest, SetsTheHeadOfTheResponse) {
  EXPECT_EQ(http_.set_status(host_, kAgent, 1, 404), HEARTH_OK);
  EXPECT_EQ(add_header("Content-Type", slice("text/plain; charset=utf-8")), HEARTH_OK);
  EXPECT_EQ(add_header("x-empty", kNothing), HEARTH_OK);
  EXPECT_EQ(response_.status, 404U);
  EXPECT_EQ(response_.headers,
            (Headers{{"Content-Type", "text/plain; charset=utf-8"}, {"x-empty", ""}}));
}

TEST_F(AbiHttpTest, RefusesWhatWouldBreakTheMessage) {
  for (const std::uint32_t status : {0U, 100U, 199U, 600U, 0xffffffffU}) {
    EXPECT_EQ(http_.set_status(host_, kAgent, 1, status), HEARTH_E_INVALID) << status;
  }
  for (const char* name :
       {"", "a b", "a:b", "a\nb", "\xc3\xa4", "Content-Length", "transfer-encoding", "CONNECTION",
        "Upgrade", "Date", "keep-alive", "Trailer", "TE", "Proxy-Connection"}) {
    EXPECT_EQ(add_header(name, slice("x")), HEARTH_E_INVALID) << name;
  }
  for (const std::string_view value : {"a\r\nSet-Cookie: x", "a\nb", "a\0b", "\x7f"}) {
    const std::string_view whole = value == "a" ? std::string_view("a\0b", 3) : value;
    EXPECT_EQ(add_header("x-a", slice(whole)), HEARTH_E_INVALID);
  }
  EXPECT_EQ(add_header("x-a", slice(std::string(8193, 'x'))), HEARTH_E_LIMIT);
  EXPECT_TRUE(response_.headers.empty());
  EXPECT_EQ(response_.status, 200U);
}

TEST_F(AbiHttpTest, TakesAtMost64Headers) {
  for (int n = 0; n < 64; ++n) {
    ASSERT_EQ(add_header("x-a", slice("1")), HEARTH_OK);
  }
  EXPECT_EQ(add_header("x-a", slice("1")), HEARTH_E_LIMIT);
}

TEST_F(AbiHttpTest, TheHeadCannotChangeOnceItHasLeft) {
  agent_.view.response = nullptr;
  EXPECT_EQ(http_.set_status(host_, kAgent, 1, 404), HEARTH_E_FORBIDDEN);
  EXPECT_EQ(add_header("x-a", slice("1")), HEARTH_E_FORBIDDEN);
}

TEST_F(AbiHttpTest, ABodyIsReadOnce) {
  std::uint64_t window = 0;
  BodyReader body = [&window](std::uint64_t given) {
    window = given;
    return std::make_unique<NoRemote>();
  };
  std::uint64_t id = 0;
  EXPECT_EQ(http_.read_body(host_, kAgent, 1, 0, 7, &id), HEARTH_E_FORBIDDEN);
  agent_.view.body = &body;
  EXPECT_EQ(http_.read_body(host_, kAgent, 1, 0, 7, nullptr), HEARTH_E_INVALID);
  EXPECT_EQ(http_.read_body(host_, kAgent, 1, 0, 7, &id), HEARTH_OK);
  EXPECT_EQ(window, 256U << 10U);
  ASSERT_NE(agent_.remote, nullptr);
  agent_.remote->telling(std::string("piece"), false, 0);
  EXPECT_EQ(agent_.told.back(), "body of 1");
  EXPECT_EQ(http_.read_body(host_, kAgent, 1, 0, 7, &id), HEARTH_E_FORBIDDEN);
}

TEST_F(AbiHttpTest, ARequestThatIsOverIsGone) {
  answer(Errc::kNotFound);
  EXPECT_EQ(lent(http_.target, 1U), "HEARTH_E_GONE");
  EXPECT_EQ(http_.set_status(host_, kAgent, 1, 404), HEARTH_E_GONE);
}

}  // namespace
}  // namespace hearth::extensions

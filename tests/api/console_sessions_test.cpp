#include "api/console_sessions.hpp"

#include "support/manual_clock.hpp"
#include "support/seeded_random.hpp"

#include <gtest/gtest.h>

#include <set>

namespace hearth::api {
namespace {

using std::chrono::seconds;

class ConsoleSessionsTest : public ::testing::Test {
 protected:
  static net::HttpRequest request(const std::string& cookie, const std::string& key = {},
                                  const std::string& host = "127.0.0.1:8787") {
    net::HttpRequest asked{.method = "GET",
                           .target = "/admin/plugins",
                           .headers = {},
                           .body = {},
                           .peer = "127.0.0.1:1"};
    asked.headers.push_back({"Host", host});
    if (!cookie.empty()) asked.headers.push_back({"Cookie", cookie});
    if (!key.empty()) asked.headers.push_back({"X-Hearth-Console", key});
    return asked;
  }
  static std::string cookie(const std::string& secret) { return "hearth_console_8787=" + secret; }
  ConsoleSessions::Session session() { return sessions_.redeem(sessions_.make_code()).value(); }

  hearth::testing::ManualClock clock_;
  hearth::testing::SeededRandom random_;
  ConsoleSessions sessions_{clock_, random_};
};

TEST_F(ConsoleSessionsTest, ACodeWorksOnceAndForAMinute) {
  const std::string code = sessions_.make_code();
  EXPECT_FALSE(sessions_.redeem(""));
  EXPECT_FALSE(sessions_.redeem("x" + code));
  EXPECT_TRUE(sessions_.redeem(code));
  EXPECT_FALSE(sessions_.redeem(code));
  struct Case {
    seconds after;
    bool is_good;
  };
  for (const auto& [after, is_good] : {Case{seconds(59), true}, Case{seconds(60), false}}) {
    const std::string each = sessions_.make_code();
    clock_.advance(after);
    EXPECT_EQ(sessions_.redeem(each).has_value(), is_good) << after.count();
  }
}

TEST_F(ConsoleSessionsTest, ASessionIsTheCookieAndTheKey) {
  const auto [secret, key] = session();
  const std::string other = session().key;
  struct Case {
    std::string cookie;
    std::string key = {};
    std::string host = "127.0.0.1:8787";
    bool has_cookie = false;
    bool is_page = false;
  };
  const Case cases[] = {
      {.cookie = cookie(secret), .key = key, .has_cookie = true, .is_page = true},
      {.cookie = "a=b; " + cookie(secret) + "; c=d",
       .key = key,
       .has_cookie = true,
       .is_page = true},
      {.cookie = cookie("planted") + "; " + cookie(secret),
       .key = key,
       .has_cookie = true,
       .is_page = true},
      {.cookie = cookie(secret), .has_cookie = true},
      {.cookie = cookie(secret), .key = "1", .has_cookie = true},
      {.cookie = cookie(secret), .key = other, .has_cookie = true},
      {.cookie = "", .key = key},
      {.cookie = ""},
      {.cookie = cookie(""), .key = key},
      {.cookie = cookie("0" + secret), .key = key},
      {.cookie = cookie(secret.substr(1)), .key = key},
      {.cookie = "hearth_console=" + secret, .key = key},
      {.cookie = cookie(secret), .key = key, .host = "127.0.0.1:8788"},
      {.cookie = "x" + cookie(secret), .key = key},
  };
  for (const Case& each : cases) {
    const auto asked = request(each.cookie, each.key, each.host);
    EXPECT_EQ(sessions_.has_cookie(asked), each.has_cookie) << each.cookie;
    EXPECT_EQ(sessions_.is_page(asked), each.is_page) << each.cookie;
  }
}

TEST_F(ConsoleSessionsTest, ASessionEnds) {
  const auto page = [](const ConsoleSessions::Session& of) {
    return request(cookie(of.cookie), of.key);
  };
  const auto left = page(session());
  const auto stays = page(session());
  EXPECT_TRUE(sessions_.is_page(left));
  sessions_.end(left);
  EXPECT_FALSE(sessions_.is_page(left));
  clock_.advance(ConsoleSessions::kSessionLife - seconds(1));
  EXPECT_TRUE(sessions_.is_page(stays));
  clock_.advance(seconds(1));
  EXPECT_FALSE(sessions_.is_page(stays));
}

TEST_F(ConsoleSessionsTest, TheOldestMakesRoom) {
  std::string oldest = sessions_.make_code();
  std::string second = sessions_.make_code();
  for (std::size_t i = 1; i < ConsoleSessions::kMaxCodes; ++i) (void)sessions_.make_code();
  EXPECT_FALSE(sessions_.redeem(oldest));
  EXPECT_TRUE(sessions_.redeem(second));

  oldest = session().cookie;
  second = session().cookie;
  for (std::size_t i = 2; i < ConsoleSessions::kMaxSessions; ++i) (void)session();
  EXPECT_TRUE(sessions_.has_cookie(request(cookie(oldest))));
  (void)session();
  EXPECT_FALSE(sessions_.has_cookie(request(cookie(oldest))));
  EXPECT_TRUE(sessions_.has_cookie(request(cookie(second))));
}

TEST_F(ConsoleSessionsTest, TheCookieIsBoundToThePathsOfTheConsole) {
  const auto asked = request("");
  std::set<std::string> paths;
  for (const bool over_tls : {false, true}) {
    for (const std::string& each : ConsoleSessions::cookies(asked, "s", over_tls)) {
      EXPECT_TRUE(each.starts_with("hearth_console_8787=s; Path=/")) << each;
      paths.insert(each.substr(22, each.find(';', 22) - 22));
      EXPECT_NE(each.find("; Max-Age=43200; HttpOnly; SameSite=Strict"), std::string::npos) << each;
      EXPECT_EQ(each.ends_with("; Secure"), over_tls) << each;
    }
  }
  EXPECT_EQ(paths, (std::set<std::string>{" Path=/admin", " Path=/console"}));
}

}  // namespace
}  // namespace hearth::api

// The console over real sockets: its links, its files, and /admin with its session.
#include "api/console_pages.hpp"

#include "api/api_fixture.hpp"
#include "json/json.hpp"

#include <algorithm>

namespace hearth::api::testing {
namespace {

constexpr ConsoleFile kFiles[] = {{"index.html", "the page"}, {"app.js", "the script"}};
constexpr std::size_t kMostBytes = std::size_t{60} << 10;

class ConsolePagesTest : public ApiFixture {
 protected:
  void open(std::span<const ConsoleFile> files = kFiles) {
    pages_.emplace(sessions_, logger_, false, files);
    has_desks_ = true;
    console_ = &sessions_;
    pages_->add_routes(more_rows_);
    start();
  }
  static std::string bearer() {
    return std::string("Authorization: Bearer ") + kAdminToken + "\r\n";
  }
  // The path of a new link.
  std::string link() {
    const Reply reply = ask(http("POST", "/admin/console/link", bearer()));
    EXPECT_EQ(reply.status, 200) << reply.body;
    const std::string url = parse_json(reply.body).value()["url"].get<std::string>();
    EXPECT_TRUE(url.starts_with("http://test/console/enter?code=")) << url;
    return url.substr(std::string("http://test").size());
  }
  // The header with the cookie of a new session, whose key page_ gets.
  std::string session() {
    const Reply reply = ask(http("GET", link()));
    EXPECT_EQ(reply.status, 200);
    const std::size_t key = reply.body.find("/console#key=") + 13;
    page_ = "X-Hearth-Console: " + reply.body.substr(key, 64) + "\r\n";
    const std::size_t at = reply.head.find("Set-Cookie: ") + 12;
    return "Cookie: " + reply.head.substr(at, reply.head.find(';', at) - at) + "\r\n";
  }

  SystemClock clock_;
  hearth::testing::SeededRandom random_;
  ConsoleSessions sessions_{clock_, random_};
  std::optional<ConsolePages> pages_;
  std::string page_;
};

TEST_F(ConsolePagesTest, ALinkWorksOnce) {
  open();
  const std::string target = link();
  EXPECT_EQ(logger_.count("console.link actor=administrator peer=127.0.0.1:"), 1U);
  // A look ahead does not spend it.
  EXPECT_EQ(ask(http("HEAD", target), false).status, 403);
  EXPECT_EQ(ask(http("GET", target, "Sec-Purpose: prefetch;prerender\r\n")).status, 403);
  const Reply reply = ask(http("GET", target));
  EXPECT_TRUE(answers(reply, 200, "content='0;url=/console#key="));
  EXPECT_TRUE(lacks(reply.head, "\r\nLocation:"));
  EXPECT_EQ(ask(http("GET", target)).status, 401);
  EXPECT_EQ(ask(http("GET", "/console/enter")).status, 401);
  EXPECT_EQ(ask(http("POST", "/admin/console/link")).status, 401);
  EXPECT_EQ(logger_.count("console.entered"), 1U);
  const std::string code = target.substr(target.find('=') + 1);
  EXPECT_FALSE(logger_.contains(code));
}

TEST_F(ConsolePagesTest, FilesAreForSessionsAlone) {
  open();
  const std::string cookie = session();
  struct Case {
    std::string target, extra;
    int status;
    std::string body;
  };
  const Case cases[] = {
      {"/console", cookie, 200, "the page"},
      {"/console/app.js", cookie, 200, "the script"},
      {"/console/nothing.js", cookie, 404, "nothing at this path"},
      {"/console", "", 401, "hearth console"},
      {"/console/app.js", "", 401, "hearth console"},
      {"/console/app.js", bearer(), 401, "hearth console"},
      {"/console/app.js", "Cookie: hearth_console=0\r\n", 401, "hearth console"},
  };
  for (const Case& each : cases) {
    const Reply reply = ask(http("GET", each.target, each.extra));
    EXPECT_EQ(reply.status, each.status) << each.target;
    EXPECT_TRUE(contains(reply.body, each.body)) << each.target;
    EXPECT_EQ(reply.head.find("Content-Encoding: gzip") != std::string::npos, reply.status == 200);
    for (const char* header :
         {"Content-Security-Policy: default-src 'none'; script-src 'self'",
          "frame-ancestors 'none'", "Referrer-Policy: no-referrer", "Cache-Control: no-store"})
      EXPECT_TRUE(contains(reply.head, header)) << each.target << header;
  }
}

TEST_F(ConsolePagesTest, ASessionIsTheTokenForThePageAlone) {
  open();
  const std::string cookie = session();
  struct Case {
    const char* about;
    std::string extra;
    int status;
  };
  const Case cases[] = {
      {"the page", cookie + page_, 200},
      {"the page, as a browser asks",
       cookie + page_ + "Origin: http://test\r\nSec-Fetch-Site: same-origin\r\n", 200},
      {"the page, behind a proxy that has changed the Host",
       cookie + page_ + "Origin: https://ops.example\r\nSec-Fetch-Site: same-origin\r\n", 200},
      {"a link, a form or an image", cookie, 401},
      {"a program that has stolen the cookie", cookie + "X-Hearth-Console: 1\r\n", 401},
      {"another port of the host", cookie + page_ + "Sec-Fetch-Site: same-site\r\n", 403},
      {"another origin", cookie + page_ + "Origin: http://evil.example\r\n", 403},
      {"a wrong token beside it", cookie + page_ + "X-Api-Key: wrong\r\n", 401},
      {"no session", page_, 401},
  };
  for (const Case& each : cases) {
    for (const auto& [method, target] :
         {std::pair("GET", "/admin/plugins"), std::pair("POST", "/admin/plugins/reload")}) {
      const Reply reply = ask(http(method, target, each.extra));
      EXPECT_EQ(reply.status, each.status) << each.about << " " << target;
      EXPECT_TRUE(lacks(reply.head, "Access-Control"));
    }
  }
  const Reply preflight = ask(http("OPTIONS", "/admin/plugins",
                                   "Origin: http://evil.example\r\n"
                                   "Access-Control-Request-Method: GET\r\n"
                                   "Access-Control-Request-Headers: x-hearth-console\r\n"));
  EXPECT_EQ(preflight.status, 403);
}

TEST_F(ConsolePagesTest, LeavingEndsTheSession) {
  open();
  const std::string cookie = session();
  EXPECT_EQ(ask(http("POST", "/console/leave", cookie)).status, 401);
  EXPECT_EQ(ask(http("GET", "/admin/plugins", cookie + page_)).status, 200);
  EXPECT_EQ(ask(http("POST", "/admin/console/link", cookie + page_)).status, 403);
  const Reply left = ask(http("POST", "/console/leave", cookie + page_));
  EXPECT_EQ(left.status, 204);
  for (const char* path : {"/console", "/admin"})
    EXPECT_TRUE(contains(left.head, "hearth_console=; Path=" + std::string(path) + "; Max-Age=0;"));
  EXPECT_EQ(ask(http("GET", "/admin/plugins", cookie + page_)).status, 401);
  EXPECT_EQ(ask(http("GET", "/console", cookie)).status, 401);
}

TEST_F(ConsolePagesTest, AServerWithoutItSaysHowToGetIt) {
  open({});
  EXPECT_TRUE(answers(ask(http("GET", "/console")), 404, "-DHEARTH_CONSOLE=ON"));
  EXPECT_TRUE(
      answers(ask(http("POST", "/admin/console/link", bearer())), 404, "-DHEARTH_CONSOLE=ON"));
}

TEST(ConsoleFilesTest, AreSmall) {
  const auto files = console_files();
  if (files.empty()) GTEST_SKIP() << "this build has no console";
  std::size_t bytes = 0;
  for (const ConsoleFile& each : files) {
    bytes += each.gzip.size();
    EXPECT_TRUE(each.gzip.starts_with("\x1f\x8b")) << each.path;
  }
  EXPECT_LE(bytes, kMostBytes);
  EXPECT_NE(std::ranges::find(files, "index.html", &ConsoleFile::path), files.end());
}

}  // namespace
}  // namespace hearth::api::testing

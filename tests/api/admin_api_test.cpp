// /admin over real sockets, with rows that only note what they were asked.
#include "api/admin_api.hpp"

#include "api/api_fixture.hpp"

namespace hearth::api::testing {
namespace {

class AdminApiTest : public ApiFixture {
 protected:
  AdminApiTest() {
    has_desks_ = true;
    start();
  }

  static std::string bearer(const std::string& token = kAdminToken) {
    return "Authorization: Bearer " + token + "\r\n";
  }
  Reply as_admin(const std::string& method, const std::string& target, const std::string& body = "",
                 const std::string& extra = "") {
    return ask(http(method, target, bearer() + extra, body), method != "HEAD");
  }
};

using Asked = std::vector<std::string>;

TEST_F(AdminApiTest, AnswersNobodyWithoutTheToken) {
  for (const std::string& extra :
       {std::string(), bearer("wrong"), bearer(std::string(kAdminToken) + "x"),
        bearer(std::string(kAdminToken).substr(1)), std::string("Authorization: Bearer \r\n"),
        std::string("Authorization: Basic ") + kAdminToken + "\r\n",
        std::string("Authorization: ") + kAdminToken + "\r\n"}) {
    for (const char* target : {"/admin/plugins", "/admin/nothing", "/admin", "/admin/agents/a/b",
                               "/admin/plugins?token=token-of-the-administrators"}) {
      const Reply reply = ask(http("GET", target, extra));
      EXPECT_EQ(reply.status, 401) << extra << target;
      EXPECT_TRUE(contains(reply.head, "WWW-Authenticate: Bearer"));
      EXPECT_TRUE(contains(reply.body, R"("code":"unauthorized")", "Authorization: Bearer TOKEN"));
      EXPECT_TRUE(lacks(reply.body, kAdminToken));
    }
  }
  EXPECT_EQ(ask(http("POST", "/admin/plugins/reload")).status, 401);
  EXPECT_TRUE(desks_.take_asked().empty());
}

TEST_F(AdminApiTest, APageOfAnotherOriginIsRefusedEvenWithTheToken) {
  for (const char* extra :
       {"Origin: http://evil.example\r\n", "Origin: null\r\n", "Origin: http://test:81\r\n",
        "Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n",
        "Origin: http://test\r\nSec-Fetch-Site: cross-site\r\n"}) {
    const Reply reply = as_admin("POST", "/admin/plugins/reload", "", extra);
    EXPECT_EQ(reply.status, 403) << extra;
    EXPECT_TRUE(lacks(reply.head, "Access-Control"));
  }
  EXPECT_TRUE(desks_.take_asked().empty());
  EXPECT_EQ(as_admin("GET", "/admin/plugins", "", "Origin: http://test\r\n").status, 200);
  EXPECT_EQ(as_admin("GET", "/admin/plugins", "", "Sec-Fetch-Site: same-origin\r\n").status, 200);
}

TEST_F(AdminApiTest, APreflightGetsNoPermission) {
  const Reply reply = ask(http("OPTIONS", "/admin/plugins",
                               "Origin: http://evil.example\r\n"
                               "Access-Control-Request-Method: GET\r\n"
                               "Access-Control-Request-Headers: authorization\r\n"));
  EXPECT_EQ(reply.status, 403);
  EXPECT_TRUE(lacks(reply.head, "Access-Control"));
}

TEST_F(AdminApiTest, AnswersAreNotKeptByCaches) {
  const Reply reply = as_admin("GET", "/admin/plugins");
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(contains(reply.head, "Cache-Control: no-store\r\n",
                       "X-Content-Type-Options: nosniff\r\n",
                       "Content-Type: application/json\r\n"));
}

TEST_F(AdminApiTest, ListsTheMethodsOfAClassOnlyAtTheirPath) {
  for (const char* target : {"/admin/classes/", "/admin/classes/a", "/admin/classes//methods",
                             "/admin/classes/a/methods/", "/admin/classes/a/b"}) {
    EXPECT_EQ(as_admin("GET", target).status, 404) << target;
  }
  EXPECT_EQ(as_admin("GET", "/admin/classes/ChatRoom/methods").status, 200);
  EXPECT_EQ(as_admin("POST", "/admin/classes/ChatRoom/methods").status, 405);
  EXPECT_EQ(desks_.take_asked(), Asked{"GET /admin/classes/ChatRoom/methods"});
}

TEST_F(AdminApiTest, OtherMethodsAndPathsAreRefused) {
  EXPECT_EQ(as_admin("HEAD", "/admin/plugins").status, 200);
  const Reply reply = as_admin("POST", "/admin/plugins");
  EXPECT_EQ(reply.status, 405);
  EXPECT_TRUE(contains(reply.head, "Allow: GET, HEAD\r\n"));
  EXPECT_EQ(as_admin("GET", "/admin/plugins/reload").status, 405);
  EXPECT_EQ(as_admin("GET", "/admin/agents/a/b/evict").status, 405);
  EXPECT_EQ(as_admin("PUT", "/admin/agents/a/b").status, 405);
  for (const char* target : {"/admin", "/admin/", "/admin/x", "/admin/agents/", "/admin/agents/a",
                             "/admin/agents//b", "/admin/operations/a/b", "/administrator"}) {
    EXPECT_EQ(as_admin("GET", target).status, 404) << target;
  }
}

TEST(AdminAnswerTest, AFailureIsAnErrorWithItsCode) {
  const auto missing = admin_refusal(Error{Errc::kNotFound, "there is no agent \"x\""});
  EXPECT_EQ(answer_of(missing),
            R"(404 {"error":{"code":"not_found","message":"there is no agent \"x\""}})");
  EXPECT_EQ(admin_refusal(Error{Errc::kUnavailable, "later"}).status, 503);
}

class NoAdminTest : public ApiFixture {};

TEST_F(NoAdminTest, WithoutAdministratorsNothingIsThere) {
  EXPECT_EQ(get("/admin/plugins").status, 404);
}

}  // namespace
}  // namespace hearth::api::testing

// /admin over real sockets, with actions that only note what they were asked.
#include "api/admin_api.hpp"

#include "api/api_fixture.hpp"
#include "api/fake_actions.hpp"
#include "json/json.hpp"

namespace hearth::api::testing {
namespace {

class AdminApiTest : public ApiFixture {
 protected:
  AdminApiTest() {
    admin_actions_ = &actions_;
    start();
  }

  static std::string bearer(const std::string& token = kAdminToken) {
    return "Authorization: Bearer " + token + "\r\n";
  }
  Reply as_admin(const std::string& method, const std::string& target, const std::string& body = "",
                 const std::string& extra = "") {
    return ask(http(method, target, bearer() + extra, body), method != "HEAD");
  }

  FakeActions actions_;
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
      EXPECT_NE(reply.head.find("WWW-Authenticate: Bearer"), std::string::npos);
      EXPECT_NE(reply.body.find(R"("code":"unauthorized")"), std::string::npos);
      EXPECT_NE(reply.body.find("Authorization: Bearer TOKEN"), std::string::npos);
      EXPECT_EQ(reply.body.find(kAdminToken), std::string::npos);
    }
  }
  EXPECT_EQ(ask(http("POST", "/admin/plugins/reload")).status, 401);
  EXPECT_TRUE(actions_.asked.empty());
}

TEST_F(AdminApiTest, APageOfAnotherOriginIsRefusedEvenWithTheToken) {
  for (const char* extra :
       {"Origin: http://evil.example\r\n", "Origin: null\r\n", "Origin: http://test:81\r\n",
        "Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n",
        "Origin: http://test\r\nSec-Fetch-Site: cross-site\r\n"}) {
    const Reply reply = as_admin("POST", "/admin/plugins/reload", "", extra);
    EXPECT_EQ(reply.status, 403) << extra;
    EXPECT_EQ(reply.head.find("Access-Control"), std::string::npos);
  }
  EXPECT_TRUE(actions_.asked.empty());
  EXPECT_EQ(as_admin("GET", "/admin/plugins", "", "Origin: http://test\r\n").status, 200);
  EXPECT_EQ(as_admin("GET", "/admin/plugins", "", "Sec-Fetch-Site: same-origin\r\n").status, 200);
}

TEST_F(AdminApiTest, APreflightGetsNoPermission) {
  const Reply reply = ask(http("OPTIONS", "/admin/plugins",
                               "Origin: http://evil.example\r\n"
                               "Access-Control-Request-Method: GET\r\n"
                               "Access-Control-Request-Headers: authorization\r\n"));
  EXPECT_EQ(reply.status, 403);
  EXPECT_EQ(reply.head.find("Access-Control"), std::string::npos);
}

TEST_F(AdminApiTest, AnswersAreNotKeptByCaches) {
  const Reply reply = as_admin("GET", "/admin/plugins");
  EXPECT_EQ(reply.status, 200);
  EXPECT_NE(reply.head.find("Cache-Control: no-store\r\n"), std::string::npos);
  EXPECT_NE(reply.head.find("X-Content-Type-Options: nosniff\r\n"), std::string::npos);
  EXPECT_NE(reply.head.find("Content-Type: application/json\r\n"), std::string::npos);
}

TEST_F(AdminApiTest, ListsTheCurrentVersionsAndWhatIsRefused) {
  PluginVersion old;
  old.file = "/p/a.so";
  old.generation = 1;
  old.state = "pinned";
  old.pinned_because = "a thread";
  PluginVersion current;
  current.file = "/p/a.so";
  current.plugin = "a";
  current.version = "2.0.0";
  current.sha256 = "00ff";
  current.generation = 2;
  current.current = true;
  current.state = "current";
  current.classes = {"A", "B"};
  actions_.list = {.versions = {old, current},
                   .refused = {{.file = "/p/b.so", .rule = "E6", .reason = "no"}},
                   .settings = {{.agent_class = "a", .state = "on_trial", .reason = {}},
                                {.agent_class = "b", .state = "taken_back", .reason = "no"}}};
  EXPECT_EQ(as_admin("GET", "/admin/plugins").body,
            R"({"moving":[],"plugins":[{"classes":["A","B"],"file":"/p/a.so","generation":2,)"
            R"("pinned_because":null,"plugin":"a","sha256":"00ff","state":"current",)"
            R"("version":"2.0.0"}],"refused":[{"file":"/p/b.so","reason":"no","rule":"E6"}],)"
            R"("settings":[{"class":"a","reason":null,"state":"on_trial"},)"
            R"({"class":"b","reason":"no","state":"taken_back"}]})");
  const std::string all = as_admin("GET", "/admin/generations").body;
  EXPECT_TRUE(all.starts_with(R"({"generations":[{)")) << all;
  EXPECT_NE(all.find(R"("generation":1,"pinned_because":"a thread")"), std::string::npos) << all;
  EXPECT_NE(all.find(R"("generation":2)"), std::string::npos) << all;
}

TEST_F(AdminApiTest, AReloadIsOfAllOrOfOneClass) {
  actions_.files = {
      {.file = "/p/a.so",
       .outcome = "new_version",
       .version = "2.0.0",
       .generation = 2,
       .reason = {}},
      {.file = "/p/b.so", .outcome = "refused", .version = {}, .generation = 0, .reason = "no"}};
  EXPECT_EQ(as_admin("POST", "/admin/plugins/reload").body,
            R"({"files":[{"file":"/p/a.so","generation":2,"outcome":"new_version",)"
            R"("version":"2.0.0"},{"file":"/p/b.so","outcome":"refused","reason":"no"}]})");
  EXPECT_EQ(as_admin("POST", "/admin/plugins/reload", "{}").status, 200);
  EXPECT_EQ(as_admin("POST", "/admin/plugins/reload", R"({"class":"counter"})").status, 200);
  EXPECT_EQ(actions_.asked, (Asked{"reload ", "reload ", "reload counter"}));
  EXPECT_TRUE(logger_.contains("admin.reload"));
}

TEST_F(AdminApiTest, ABodyThatIsSomethingElseIsRefused) {
  for (const char* body : {"[]", "x", R"({"class":1})", R"({"class":""})", R"({"klass":"a"})",
                           R"({"class":"a","more":1})"}) {
    const Reply reply = as_admin("POST", "/admin/plugins/reload", body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_NE(reply.body.find("invalid_argument"), std::string::npos);
  }
  EXPECT_EQ(as_admin("POST", "/admin/plugins/reload",
                     R"({"class":")" + std::string(AdminApi::kMaxBody, 'a') + R"("})")
                .status,
            400);
  EXPECT_TRUE(actions_.asked.empty());
}

TEST_F(AdminApiTest, WhatIsInQuarantineIsListedAndReleased) {
  EXPECT_EQ(as_admin("GET", "/admin/quarantine").body, R"({"quarantined":[]})");
  actions_.held = {{.agent_class = "Room",
                    .sha256 = "00ff",
                    .library = "/p/a.so",
                    .reason = "SIGSEGV",
                    .call = "message",
                    .since_ms = 5}};
  EXPECT_EQ(as_admin("GET", "/admin/quarantine").body,
            R"({"quarantined":[{"call":"message","class":"Room","library":"/p/a.so",)"
            R"("reason":"SIGSEGV","sha256":"00ff","since_ms":5}]})");
  actions_.released = {.agent_class = "Room",
                       .files = {{.file = "/p/a.so", .outcome = "unchanged"}}};
  EXPECT_EQ(as_admin("POST", "/admin/quarantine/release", R"({"class":"room"})").body,
            R"({"files":[{"file":"/p/a.so","outcome":"unchanged"}],"released":"Room"})");
  EXPECT_EQ(actions_.asked, (Asked{"quarantined", "quarantined", "release room"}));
  EXPECT_TRUE(logger_.contains("admin.release"));
  for (const char* body : {"", "{}", "[]", R"({"class":1})"})
    EXPECT_EQ(as_admin("POST", "/admin/quarantine/release", body).status, 400) << body;
  EXPECT_EQ(as_admin("GET", "/admin/quarantine/release").status, 405);
  EXPECT_EQ(as_admin("POST", "/admin/quarantine").status, 405);
  actions_.failure = Error{Errc::kNotFound, "it is not in quarantine"};
  EXPECT_EQ(as_admin("POST", "/admin/quarantine/release", R"({"class":"room"})").status, 404);
}

TEST_F(AdminApiTest, APageOfAgentsSaysWhereTheNextOneBegins) {
  AgentView first;
  first.name = "a";
  first.created_at_ms = 5;
  first.state = "cold";
  first.next_wake_ms = 7;
  AgentView second;
  second.name = "Room%201";
  second.state = "live";
  second.connections = 2;
  second.version = "1.0.0";
  second.working = true;
  actions_.page = {.agent_class = "Counter", .agents = {first, second}, .more = true};
  EXPECT_EQ(as_admin("GET", "/admin/agents?class=counter").body,
            R"({"agents":[{"connections":0,"created_at_ms":5,"name":"a","next_wake_ms":7,)"
            R"("state":"cold","version":null,"working":false},)"
            R"({"connections":2,"created_at_ms":null,"name":"Room%201","next_wake_ms":null,)"
            R"("state":"live","version":"1.0.0","working":true}],)"
            R"("class":"Counter","next":"Room%201"})");
  as_admin("GET", "/admin/agents?class=counter&after=Room%25201&limit=1000");
  EXPECT_EQ(actions_.asked,
            (Asked{"agents counter after= limit=100", "agents counter after=Room%201 limit=1000"}));
  actions_.page.more = false;
  EXPECT_NE(as_admin("GET", "/admin/agents?class=counter").body.find(R"("next":null)"),
            std::string::npos);
}

TEST_F(AdminApiTest, APageIsBounded) {
  for (const char* query : {"", "?class=", "?class=a&limit=0", "?class=a&limit=1001",
                            "?class=a&limit=-1", "?class=a&limit=x", "?class=a&limit=1x"}) {
    EXPECT_EQ(as_admin("GET", std::string("/admin/agents") + query).status, 400) << query;
  }
  EXPECT_TRUE(actions_.asked.empty());
}

TEST_F(AdminApiTest, WhatWasDoneIsListed) {
  actions_.entries = {{.id = 8,
                       .at_ms = 1000,
                       .event = "AdminEvict",
                       .actor = "administrator",
                       .agent_class = "Counter",
                       .agent = "a",
                       .detail = R"({"peer":"127.0.0.1:1"})"},
                      {.id = 9, .at_ms = 2000, .event = "ServerReady", .actor = "server"}};
  const Json page = parse_json(as_admin("GET", "/admin/audit").body).value();
  EXPECT_EQ(page["next"], 9);
  EXPECT_EQ(page["entries"][0], (Json{{"id", 8},
                                      {"at_ms", 1000},
                                      {"event", "AdminEvict"},
                                      {"actor", "administrator"},
                                      {"class", "Counter"},
                                      {"agent", "a"},
                                      {"detail", {{"peer", "127.0.0.1:1"}}}}));
  EXPECT_EQ(page["entries"][1]["agent"], nullptr);
  EXPECT_EQ(page["entries"][1]["detail"], nullptr);
  actions_.entries.clear();
  EXPECT_EQ(parse_json(as_admin("GET", "/admin/audit?after=7").body).value()["next"], 7);
  (void)as_admin("GET",
                 "/admin/audit?last=3&event=E&actor=A&class=C&agent=a%2Fb&since_ms=1&until_ms=2");
  EXPECT_EQ(actions_.asked,
            (Asked{"audit after=0 limit=100     -1 -1", "audit after=7 limit=100     -1 -1",
                   "audit after=0 limit=3 newest E A C a/b 1 2"}));
  for (const char* wrong : {"after=-1", "limit=0", "limit=1001", "last=x", "since_ms=1.5"})
    EXPECT_EQ(as_admin("GET", std::string("/admin/audit?") + wrong).status, 400) << wrong;
}

TEST_F(AdminApiTest, OneAgentIsShownEvictedAndDestroyed) {
  actions_.view.name = "x";
  actions_.view.state = "live";
  EXPECT_NE(as_admin("GET", "/admin/agents/counter/x").body.find(R"("state":"live")"),
            std::string::npos);
  EXPECT_EQ(as_admin("POST", "/admin/agents/counter/x/evict").body,
            R"({"evicted":true,"state":"live"})");
  actions_.state = "cold";
  EXPECT_EQ(as_admin("POST", "/admin/agents/counter/Room%201/evict").body,
            R"({"evicted":false,"state":"cold"})");
  EXPECT_EQ(as_admin("DELETE", "/admin/agents/counter/x").body, R"({"destroyed":true})");
  EXPECT_EQ(actions_.asked, (Asked{"agent counter x", "evict counter x", "evict counter Room%201",
                                   "destroy counter x"}));
  EXPECT_TRUE(logger_.contains("admin.evict"));
  EXPECT_TRUE(logger_.contains("admin.destroy"));
}

TEST_F(AdminApiTest, WhatAgentsDidOutsideIsListedShownAndResolved) {
  actions_.ledger.operations = {R"({"class":"Shop","agent":"a","id":"x"})"};
  actions_.ledger.skipped = {{{"Shop", "b"}, "busy"}};
  actions_.ledger.next = "Shop/x/a";
  const Json page = parse_json(as_admin("GET", "/admin/operations").body).value();
  EXPECT_EQ(page["operations"][0]["agent"], "a");
  EXPECT_EQ(page["skipped"][0]["reason"], "busy");
  EXPECT_EQ(page["next"], "Shop/x/a");
  actions_.ledger.next.clear();
  EXPECT_TRUE(parse_json(as_admin("GET",
                                  "/admin/operations?class=shop&agent=a%2Fb&kind=charge&limit=5&"
                                  "state=unknown,running&begun_before_ms=7&after=Shop%2Fx%2Fa")
                             .body)
                  .value()["next"]
                  .is_null());
  EXPECT_EQ(as_admin("GET", "/admin/operations/shop/a/x").status, 200);
  const char* const path = "/admin/operations/shop/a/x/resolve";
  EXPECT_EQ(as_admin("POST", path, R"({"outcome":"completed","result":[1],"note":"seen"})").status,
            200);
  EXPECT_EQ(as_admin("POST", path, R"({"outcome":"not_executed"})").status, 200);
  EXPECT_EQ(actions_.asked, (Asked{"operations / kind=  before=-1 after= limit=100",
                                   ("operations shop/a/b kind=charge unknown;running; before=7 "
                                    "after=Shop/x/a limit=5"),
                                   "operation shop a x", "resolve shop a x executed [1] seen",
                                   "resolve shop a x not executed  "}));
  EXPECT_TRUE(logger_.contains("admin.resolve"));
}

TEST_F(AdminApiTest, AResolutionThatSaysSomethingElseIsRefused) {
  for (const char* const body :
       {"", "[]", "{}", R"({"outcome":"unknown"})", R"({"outcome":"completed","note":1})",
        R"({"outcome":"completed","extra":1})", R"({"outcome":"not_executed","result":1})"}) {
    EXPECT_EQ(as_admin("POST", "/admin/operations/shop/a/x/resolve", body).status, 400) << body;
  }
  const std::string too_long =
      R"({"outcome":"completed","note":")" + std::string(AdminApi::kMaxResolution, 'x') + R"("})";
  EXPECT_EQ(as_admin("POST", "/admin/operations/shop/a/x/resolve", too_long).status, 400);
  for (const char* const query : {"agent=a", "limit=0", "limit=1001", "begun_before_ms=x"})
    EXPECT_EQ(as_admin("GET", std::string("/admin/operations?") + query).status, 400) << query;
  const std::string long_value(4097, 'x');
  for (const char* const key : {"class", "kind", "state", "after", "begun_before_ms", "limit"})
    EXPECT_EQ(as_admin("GET", std::string("/admin/operations?") + key + '=' + long_value).status,
              400)
        << key << ": as if it were absent, it would ask something else";
  EXPECT_EQ(as_admin("GET", "/admin/audit?class=" + long_value).status, 400);
  EXPECT_EQ(as_admin("GET", "/admin/agents?class=shop&after=" + long_value).status, 400);
  EXPECT_TRUE(actions_.asked.empty());
}

TEST_F(AdminApiTest, ListsTheClasses) {
  actions_.views = {{.name = "ChatRoom",
                     .segment = "chat-room",
                     .aliases = {"my-chat"},
                     .version = "1.0.0",
                     .library = "/p/c.so",
                     .code = "Room",
                     .refusal = "it is in quarantine",
                     .agents = 3,
                     .live = 1}};
  EXPECT_EQ(
      as_admin("GET", "/admin/classes").body,
      R"({"classes":[{"agents":3,"aliases":["/agents/my-chat"],"class":"ChatRoom","code":"Room","library":"/p/c.so","live":1,)"
      R"("path":"/agents/chat-room","refusal":"it is in quarantine","version":"1.0.0"}]})");
}

TEST_F(AdminApiTest, ListsTheMethodsOfAClass) {
  actions_.methods_of_class = {.segment = "chat-room", .methods = R"([{"name":"say"}])"};
  const Reply reply = as_admin("GET", "/admin/classes/ChatRoom/methods");
  EXPECT_EQ(reply.body, R"({"class":"chat-room","methods":[{"name":"say"}]})");
  EXPECT_NE(reply.head.find("Cache-Control: no-store\r\n"), std::string::npos);
  EXPECT_EQ(actions_.asked, Asked{"methods ChatRoom"});
  EXPECT_EQ(as_admin("POST", "/admin/classes/ChatRoom/methods").status, 405);
  for (const char* target : {"/admin/classes/", "/admin/classes/a", "/admin/classes//methods",
                             "/admin/classes/a/methods/", "/admin/classes/a/b"}) {
    EXPECT_EQ(as_admin("GET", target).status, 404) << target;
  }
  actions_.failure = Error{Errc::kNotFound, "no class is served"};
  EXPECT_EQ(as_admin("GET", "/admin/classes/a/methods").status, 404);
}

TEST_F(AdminApiTest, OtherMethodsAndPathsAreRefused) {
  EXPECT_EQ(as_admin("HEAD", "/admin/plugins").status, 200);
  const Reply reply = as_admin("POST", "/admin/plugins");
  EXPECT_EQ(reply.status, 405);
  EXPECT_NE(reply.head.find("Allow: GET, HEAD\r\n"), std::string::npos);
  EXPECT_EQ(as_admin("GET", "/admin/plugins/reload").status, 405);
  EXPECT_EQ(as_admin("GET", "/admin/agents/a/b/evict").status, 405);
  EXPECT_EQ(as_admin("PUT", "/admin/agents/a/b").status, 405);
  for (const char* target : {"/admin", "/admin/", "/admin/x", "/admin/agents/", "/admin/agents/a",
                             "/admin/agents//b", "/admin/operations/a/b", "/administrator"}) {
    EXPECT_EQ(as_admin("GET", target).status, 404) << target;
  }
}

TEST_F(AdminApiTest, AFailureIsAnErrorWithItsCode) {
  actions_.failure = Error{Errc::kNotFound, "there is no agent \"x\""};
  const Reply reply = as_admin("GET", "/admin/agents/counter/x");
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.body, R"({"error":{"code":"not_found","message":"there is no agent \"x\""}})");
  actions_.failure = Error{Errc::kUnavailable, "later"};
  EXPECT_EQ(as_admin("GET", "/admin/plugins").status, 503);
}

class NoAdminTest : public ApiFixture {};

TEST_F(NoAdminTest, WithoutActionsNothingIsThere) {
  start();
  EXPECT_EQ(get("/admin/plugins").status, 404);
}

}  // namespace
}  // namespace hearth::api::testing

// Routes, and clients with and without proofs of identity.
#include "api/edge_fixture.hpp"
#include "base/close_codes.hpp"

#include <algorithm>
#include <cctype>
#include <iomanip>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace hearth::api::testing {
namespace {

class WhoMayConnectTest : public EdgeFixture {};

// ---- every route ----

// A path with values for the variables of its pattern.
std::string filled_in(std::string_view pattern) {
  std::string path(pattern);
  for (const auto& [open, value] : {std::pair<std::string, std::string>{"{class}", "guarded"},
                                    {"{name}", "a"},
                                    {"{name...}", "a"},
                                    {"{id}", "a"},
                                    {"{method}", "echo"},
                                    {"{alarm}", "a"},
                                    {"{uuid}", "a"},
                                    {"{kind}", "a"},
                                    {"{action}", "a"},
                                    {"{path...}", "echo"}}) {
    if (const auto at = path.find(open); at != std::string::npos)
      path.replace(at, open.size(), value);
  }
  return path;
}

enum class Asker { kNobody, kStranger, kUser, kAdministrator };

bool is_let_in(Access access, Asker asker) {
  switch (access) {
    case Access::kAnybody: return true;
    case Access::kUser: return asker == Asker::kUser;
    case Access::kObjectsOwner:
    case Access::kAdministrator: return asker == Asker::kAdministrator;
  }
  return false;
}

TEST_F(WhoMayConnectTest, EachRouteLetsInThoseOfItsTableAndNobodyElse) {
  has_desks_ = true;
  open();
  const std::pair<Asker, std::string> askers[] = {
      {Asker::kNobody, ""},
      {Asker::kStranger, bearer("0123456789abcdef-of-a-thief")},
      {Asker::kUser, bearer(kClientToken)},
      {Asker::kAdministrator, bearer(kAdminToken)},
  };
  std::size_t rows = 0;
  for (const Route& route : api().routes().all()) {
    const std::string path = filled_in(route.pattern);
    ASSERT_EQ(path.find('{'), std::string::npos) << "a value is missing here: " << path;
    const std::string method(route.method == "*" ? "PUT" : route.method);
    EXPECT_EQ(route.access == Access::kAdministrator || path.starts_with("/objects"),
              path.starts_with("/admin") || path.starts_with("/objects"))
        << path;
    EXPECT_FALSE(route.summary.empty()) << path;
    ++rows;
    for (const auto& [asker, header] : askers) {
      const Reply reply = ask(http(method, path, header));
      const bool refused = reply.status == 401 || reply.status == 403;
      EXPECT_EQ(refused, !is_let_in(route.access, asker))
          << method << ' ' << path << ' ' << static_cast<int>(asker) << ": " << reply.status;
      if (!refused) continue;
      EXPECT_EQ(reply.status, 401) << method << ' ' << path;
      EXPECT_TRUE(contains(reply.head, "WWW-Authenticate: Bearer"));
    }
  }
  EXPECT_GE(rows, 44U) << "a part of the server is not there; proofs_test.cpp asks a real one";
  for (const auto& [asker, header] : askers) {
    const bool is_admin = asker == Asker::kAdministrator;
    EXPECT_EQ(ask(http("GET", "/admin/nothing", header)).status, is_admin ? 404 : 401);
    EXPECT_EQ(ask(http("PUT", "/admin/plugins", header)).status, is_admin ? 405 : 401);
  }
}

TEST_F(WhoMayConnectTest, ObjectsAreForWhoMayReachTheirAgents) {
  open();
  const std::string u1 = bearer(jwt("u1"));
  struct Case {
    std::string path, header;
    int refused;  // 0: it is not
  };
  const Case cases[] = {
      {"/objects/guarded/a/call/echo", "", 401},
      {"/objects/Guarded/a/call/echo", "", 401},
      {"/objects/guarded/a/call/echo", bearer(kAdminToken), 401},
      {"/objects/guarded/a/call/echo", bearer(kClientToken), 0},
      {"/objects/open/a/call/echo", "", 0},
      {"/objects/mine/u1/call/echo", u1, 0},
      {"/objects/mine/u2/call/echo", u1, 403},
      {"/objects/Mine/u2/call/echo", u1, 403},
      {"/objects/ours/u2/call", u1, 403},
      {"/objects/mine/u1/call", "", 401},
  };
  for (const Case& each : cases) {
    const int status = ask(http("POST", each.path, each.header)).status;
    const bool is_refused = status == 401 || status == 403;
    EXPECT_EQ(is_refused ? status : 0, each.refused) << each.path;
  }
}

// The check of access and the choice of the class know the same spellings of a class.
TEST_F(WhoMayConnectTest, NoSpellingOfAClassGoesAroundItsRules) {
  has_desks_ = true;
  open();
  runtime_->classes().expect_again("gone-now");
  runtime_->classes().expect("never-there");
  struct Route {
    std::string method, path, body;
    bool is_noted;
  };
  const Route routes[] = {
      {"POST", "/call", R"({"method":"claims"})", false},
      {"POST", "/call/claims", "", false},
      {"POST", "/alarms", "{}", true},
      {"GET", "/alarms", "", true},
      {"DELETE", "/alarms/x", "", true},
  };
  struct Class {
    std::string spelled;
    int without, with;  // the statuses without a token and with one; 0: success
  };
  const Class classes[] = {
      {"guarded", 401, 0},       {"Guarded", 401, 0},    {"GUARDED", 404, 404},
      {"guarded_", 404, 404},    {"gUARDED", 404, 404},  {"gone-now", 503, 503},
      {"GoneNow", 503, 503},     {"GONE_NOW", 503, 503}, {"never-there", 422, 422},
      {"NEVER_THERE", 422, 422}, {"nobody", 404, 404},   {"%67uarded", 404, 404},
  };
  for (const Class& its : classes) {
    for (const Route& route : routes) {
      const std::string path = "/objects/" + its.spelled + "/a" + route.path;
      for (const bool has_token : {false, true}) {
        const Reply reply =
            ask(http(route.method, path, has_token ? bearer(kClientToken) : "", route.body));
        const int status = reply.status < 300 ? 0 : reply.status;
        EXPECT_EQ(status, has_token ? its.with : its.without) << route.method << ' ' << path;
        std::vector<std::string> reached;
        if (has_token && its.with == 0 && route.is_noted)
          reached = {route.method + ' ' + path + " Guarded a"};
        EXPECT_EQ(desks_.take_asked(), reached) << route.method << ' ' << path;
      }
    }
  }
}

TEST_F(WhoMayConnectTest, AlarmsAreForThoseWhoseNameTheirObjectHas) {
  has_desks_ = true;
  open();
  const std::string body = R"({"method":"echo","delay_seconds":1})";
  const std::string u1 = bearer(jwt("u1"));
  for (const auto& [path, status] :
       {std::pair("/objects/mine/u1/alarms", 200), std::pair("/objects/ours/u1/alarms", 200),
        std::pair("/objects/Mine/u2/alarms", 403), std::pair("/objects/MINE/u2/alarms", 404)})
    EXPECT_EQ(ask(http("POST", path, u1, body)).status, status) << path;
}

// ---- proofs ----

TEST_F(WhoMayConnectTest, ASocketWithoutAGoodProofIsOpenedAndClosedForGood) {
  open();
  const std::string u1 = jwt("u1");
  const std::pair<std::string, int> cases[] = {
      {"/agents/open/a", 0},
      {"/agents/open/a?token=whatever", 0},
      {"/agents/guarded/a", 4401},
      {"/agents/guarded/a?token=" + kClientToken, 0},
      {"/agents/guarded/a?token=" + kClientToken + "x", 4401},
      {"/agents/guarded/a?token=" + kClientToken + "&token=" + kClientToken, 4401},
      {"/agents/guarded/a?token=" + std::string(kAdminToken), 4401},
      {"/agents/guarded/a?token=" + u1, 4401},
      {"/agents/users/a?token=" + u1, 0},
      {"/agents/users/a?token=" + kClientToken, 4401},
      {"/agents/users/a?token=" + jwt("u1", -1), 4401},
      {"/agents/mine/u1?token=" + u1, 0},
      {"/agents/named/u1?token=" + u1, 0},
      {"/agents/named/%751?token=" + u1, 4403},
      {"/agents/named/u%31/sub/open/u2?token=" + u1, 4403},
      {"/agents/mine/%751?token=" + u1, 0},  // of objects all spellings are one agent
      {"/agents/mine/u2?token=" + u1, 4403},
      {"/agents/ours/u1?token=" + u1, 0},
      {"/agents/ours/u2?token=" + u1, 4403},
      {"/agents/mine/u1/sub/open/u2?token=" + u1, 0},
      {"/agents/mine/u2/sub/open/u1?token=" + u1, 4403},
      {"/agents/open/x/sub/mine/u1", 0},
  };
  for (const auto& [target, code] : cases) EXPECT_EQ(close_code(target), code) << target;
}

TEST_F(WhoMayConnectTest, ARequestGets401Or403) {
  open();
  const std::string u1 = bearer(jwt("u1"));
  struct Case {
    std::string path, header;
    int status;
  };
  const Case cases[] = {
      {"/agents/named/%751/echo", u1, 403},
      {"/agents/mine/%751/echo", u1, 200},
      {"/agents/guarded/a/echo", "", 401},
      {"/agents/guarded/a/echo", bearer(kClientToken), 200},
      {"/agents/guarded/a/echo", bearer(kClientToken) + bearer(kClientToken), 401},
      {"/agents/guarded/a/echo?token=" + kClientToken, bearer(kClientToken), 401},
      {"/agents//guarded/a/echo", "", 401},
      {"//agents/guarded/a/echo", "", 401},
      {"/agents/guarded", "", 401},
      {"/agents/guarded", bearer(kClientToken), 200},
      {"/agents/mine/u1/echo", u1, 200},
      {"/agents/mine/u2/echo", u1, 403},
      {"/agents/mine/u1/echo", bearer(kClientToken), 401},
  };
  for (const Case& each : cases) {
    const Reply reply = ask(http("GET", each.path, each.header));
    EXPECT_EQ(reply.status, each.status) << each.path;
    const bool asks =
        reply.head.find("WWW-Authenticate: Bearer realm=\"hearth\"\r\n") != std::string::npos;
    EXPECT_EQ(asks, each.status == 401) << each.path;
  }
  EXPECT_EQ(logger_.count(kClientToken), 0U);
}

TEST_F(WhoMayConnectTest, WhatTheServerAsksForHoldsWhereAClassSaysNothing) {
  open(ProofKind::kToken);
  const std::string token = "?token=" + kClientToken;
  EXPECT_EQ(close_code("/agents/sampler/a"), 4401);
  EXPECT_EQ(close_code("/agents/sampler/a" + token), 0);
  EXPECT_EQ(close_code("/agents/open/a"), 0);
  EXPECT_EQ(close_code("/agents/nobody/a"), 4401) << "which classes there are is told to users";
  EXPECT_EQ(close_code("/agents/nobody/a" + token), 4404);
  EXPECT_EQ(get("/agents/nobody").status, 401);
  for (const char* page : {"/", "/healthz", "/readyz", "/metrics"})
    EXPECT_EQ(get(page).status, 200) << page;
}

// The same method is behind the same key at both doors.
TEST_F(WhoMayConnectTest, TheKeyOfObjectsIsAskedForAtAgentsToo) {
  const std::string key = "0123456789abcdef-of-objects";
  edge_.objects_key = key;
  open();
  serve_with("Kept", {.type = ProofKind::kObjectsKey, .name = {}});
  const std::string thief = "0123456789abcdef-of-a-thief";
  struct Row {
    std::string headers;
    std::string query;
    bool is_let_in;
  };
  const Row rows[] = {
      {"", "", false},
      {bearer(key), "", true},
      {"X-Api-Key: " + key + "\r\n", "", true},
      {"", "?token=" + key, true},
      {bearer(thief), "", false},
      {"X-Api-Key: \r\n", "", false},
      {bearer(kClientToken), "", false},
      {bearer(kAdminToken), "", false},
      {bearer(key) + bearer(key), "", false},
      {"X-Api-Key: " + key + "\r\nX-Api-Key: " + key + "\r\n", "", false},
      {bearer(thief) + "X-Api-Key: " + key + "\r\n", "", false},
  };
  for (const Row& row : rows) {
    const std::string target = "/agents/kept/a" + row.query;
    EXPECT_EQ(ask(http("GET", target, row.headers)).status == 401, !row.is_let_in) << row.headers;
    RawClient client(port());
    client.upgrade(target, row.headers);
    EXPECT_EQ(client.read_frame().close_code(), row.is_let_in ? 0 : 4401) << row.headers;
  }
  EXPECT_EQ(get("/agents/kept").status, 401) << "the list of methods";
}

TEST_F(WhoMayConnectTest, WithoutAKeyOfObjectsNoProofIsOne) {
  open();
  serve_with("Kept", {.type = ProofKind::kObjectsKey, .name = {}});
  for (const std::string& header : {std::string(), std::string("X-Api-Key:\r\n"), bearer("x")})
    EXPECT_EQ(ask(http("GET", "/agents/kept/a", header)).status, 401) << header;
}

TEST_F(WhoMayConnectTest, TheAgentGetsTheClaimsAndNoToken) {
  open();
  auto client = greet("/agents/mine/u1?a=1&token=" + jwt("u1") + "&_pk=me");
  EXPECT_TRUE(contains(client.call("claims"), R"("sub":"u1")"));
  EXPECT_TRUE(contains(client.call("target"), R"("/agents/mine/u1?a=1&_pk=me")"));
  EXPECT_TRUE(contains(client.call("id"), R"("me")"));

  const Reply claims = ask(http("GET", "/agents/mine/u1/claims", bearer(jwt("u1"))));
  EXPECT_TRUE(contains(claims.body, R"("sub":"u1")"));
  EXPECT_EQ(get("/agents/mine/u1/target?token=" + jwt("u1")).body, "/agents/mine/u1/target");
  auto open_client = greet("/agents/open/a?token=mine");
  EXPECT_TRUE(contains(open_client.call("target"), "?token=mine"))
      << "where no token is asked for, the parameter is the agent's own";
  EXPECT_TRUE(contains(open_client.call("claims"), "null"));
}

TEST_F(WhoMayConnectTest, ABrowserMayOfferTheTokenAsASubprotocol) {
  open();
  const auto offer = [this](const std::string& token) {
    RawClient client(port());
    const Reply reply =
        client.upgrade("/agents/guarded/a", "Sec-WebSocket-Protocol: bearer, " + token + "\r\n");
    EXPECT_EQ(reply.status, 101);
    EXPECT_TRUE(contains(reply.head, "Sec-WebSocket-Protocol: bearer\r\n"))
        << "a browser takes an answer without one for a failure, and would try for ever";
    return client.read_frame().close_code();
  };
  EXPECT_EQ(offer(kClientToken), 0);
  EXPECT_EQ(offer("wrong"), 4401);
}

TEST_F(WhoMayConnectTest, ASocketEndsWithItsToken) {
  open();
  auto client = greet("/agents/users/a?token=" + jwt("u1", 2));
  EXPECT_TRUE(contains(client.call("claims"), "u1"));
  const Frame last = client.read_frame();
  EXPECT_EQ(last.close_code(), 4401);
  EXPECT_EQ(last.close_reason(), "the token has expired");
}

// The socket has passed the check and is not registered yet, so a withdrawal of access does not
// find it.
TEST_F(WhoMayConnectTest, ASocketOnItsWayWhileAccessIsWithdrawnComesAgain) {
  open();
  int round = 0;
  const auto other_rules = [&round] {
    EntryRules rules;
    rules.auth.name = std::to_string(round);
    return std::make_shared<const EntryRules>(rules);
  };
  for (const std::string path : {"/agents/open/a", "/agents/open/a/sub/guarded/b"}) {
    for (const bool is_by_rules : {false, true}) {
      SCOPED_TRACE(path);
      ++round;
      net::HttpRequest request;
      request.method = "GET";
      request.target = path;
      const net::UpgradePlan plan = api().on_upgrade(request);
      ASSERT_FALSE(plan.refusal);
      if (is_by_rules) {
        (void)runtime_->classes().set_entry_rules({{"another", other_rules()}});
      } else {
        runtime_->classes().access_changed();  // a token is good no more
      }
      const auto socket = std::make_shared<NotedSocket>();
      EXPECT_NE(plan.opened(socket), nullptr);
      EXPECT_EQ(socket->closed_with, kCloseServiceRestart);
      EXPECT_EQ(socket->reason, kAccessChanged);
    }
  }
}

// ---- further paths ----

RouteRule prefix(std::string path, std::string agent_class = {}) {
  RouteRule rule;
  rule.path = std::move(path);
  rule.agent_class = std::move(agent_class);
  rule.is_prefix = true;
  return rule;
}

RouteRule leads_to(std::string path, std::string agent_class, std::string name) {
  RouteRule rule;
  rule.path = std::move(path);
  rule.agent_class = std::move(agent_class);
  rule.name = std::move(name);
  return rule;
}

RouteRule refused(std::string path, int status) {
  RouteRule rule;
  rule.path = std::move(path);
  rule.status = status;
  return rule;
}

std::string fully_encoded(std::string_view text) {
  std::ostringstream encoded;
  for (const char c : text)
    encoded << '%' << std::hex << std::setw(2) << std::setfill('0')
            << static_cast<unsigned>(static_cast<unsigned char>(c));
  return encoded.str();
}

// Ways to write a path that mean the same.
std::vector<std::string> spellings(const std::string& path) {
  std::string all;
  std::string apart;
  std::vector<std::string> found{path, path + '/', path + "?a=b", '/' + path};
  for (std::size_t at = 0; at < path.size(); ++at) {
    if (path[at] == '/') {
      all += '/';
      apart += "//";
      continue;
    }
    const std::string encoded = fully_encoded(path.substr(at, 1));
    found.push_back(path.substr(0, at) + encoded + path.substr(at + 1));
    all += encoded;
    apart += path[at];
  }
  found.push_back(all);
  std::ranges::transform(all, all.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  found.push_back(all);
  found.push_back(apart);
  return found;
}

TEST_F(WhoMayConnectTest, NoSpellingOfAPathGetsPastItsRefusal) {
  const std::string paths[] = {
      "/v1/agents/open/secret",                // an object
      "/v1/agents/sampler/secret",             // any other agent
      "/v1/agents/open/a/sub/sampler/secret",  // one below another
      "/v1/agents/open/a/files/secret",        // a path of an agent's own
      "/team/secret",                          // ... that a row leads to
      "/nothing/here",
  };
  for (const std::string& path : paths) edge_.routes.push_back(refused(path, 410));
  edge_.routes.push_back(prefix("/v1/agents"));
  edge_.routes.push_back(leads_to("/team", "open", "a"));
  open();
  for (const std::string& path : paths) {
    for (const std::string& spelled : spellings(path)) {
      EXPECT_EQ(get(spelled).status, 410) << spelled;
      EXPECT_EQ(close_code(spelled), 4410) << spelled;
    }
    EXPECT_EQ(get(path + "/below").status, 410) << path;
  }
  const std::pair<const char*, int> others[] = {
      {"/v1/agents/open/secretly/echo", 200},
      {"/v1/agents/open/%2573ecret/echo", 200},  // the name is %73ecret
      {"/v1/agents/open%2Fsecret", 404},         // an encoded slash is part of a segment
      {"/%761/agents/open/a/echo", 200},
      {"/te%61m/echo", 200},
  };
  for (const auto& [path, status] : others) EXPECT_EQ(get(path).status, status) << path;
}

TEST_F(WhoMayConnectTest, AnUpgradeBelowWhatAsksForAKeyAsksForItToo) {
  edge_.routes = {leads_to("/admin/live", "open", "a"), leads_to("/live", "open", "a")};
  has_desks_ = true;
  open();
  for (const std::string& path : spellings("/admin/live")) {
    RawClient stranger(port());
    EXPECT_EQ(stranger.upgrade(path).status, 401) << path;
    EXPECT_EQ(get(path).status, 401) << path;
  }
  RawClient administrator(port());
  EXPECT_EQ(administrator.upgrade("/admin/live", bearer(kAdminToken)).status, 101);
  RawClient anybody(port());
  EXPECT_EQ(anybody.upgrade("/live").status, 101);
}

TEST_F(WhoMayConnectTest, AMethodThatIsCalledThroughObjectsSeesTheClaims) {
  open();
  const auto claims = [&](const std::string& path, const std::string& header) {
    return ask(http("POST", path + "/call/claims", header)).body;
  };
  EXPECT_TRUE(contains(claims("/objects/users/a", bearer(jwt("u1"))), R"("sub":"u1")"));
  EXPECT_TRUE(contains(claims("/objects/Mine/u1", bearer(jwt("u1"))), R"("sub":"u1")"));
  for (const std::string path : {"/objects/open/a", "/objects/guarded/a"})
    EXPECT_EQ(claims(path, bearer(kClientToken)), R"({"success":true,"data":null,"result":null})");
}

TEST_F(WhoMayConnectTest, AKeyIsOneClients) {
  open();
  const auto call = [&](const std::string& header) {
    return ask(http("POST", "/objects/users/a/call/claims", "Idempotency-Key: k\r\n" + header));
  };
  const Reply first = call(bearer(jwt("u1")));
  EXPECT_TRUE(contains(first.body, R"("sub":"u1")"));
  EXPECT_EQ(call(bearer(jwt("u1"))).body, first.body);
  EXPECT_EQ(call(bearer(jwt("u2"))).status, 422) << "not the answer of another one";
}

TEST_F(WhoMayConnectTest, AnUpgradeBelowObjectsIsRefusedInTheShapeOfErrorsThere) {
  open();
  const std::string handshake =
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  struct Case {
    std::string path, header;
    int status;
  };
  const Case cases[] = {{"/objects/guarded/a/call", "", 401},
                        {"/objects/mine/u1/call", bearer(jwt("u2")), 403},
                        {"/objects/guarded/a/call", bearer(kClientToken), 404},
                        {"/objects/open/a/nothing/at/all", "", 404}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.path);
    const Reply reply = ask(http("GET", each.path, handshake + each.header));
    EXPECT_EQ(reply.status, each.status);
    EXPECT_TRUE(reply.body.starts_with(R"({"success":false,"error":")")) << reply.body;
  }
}

TEST_F(WhoMayConnectTest, OneClaimHasOneAgentByEachWay) {
  edge_.routes = {leads_to("/user", "mine", "{sub}")};
  open();
  const std::pair<std::string, std::string> cases[] = {
      // the claim, and what a browser makes of its segment (WHATWG URL, path percent-encode set)
      {"auth0|1", "auth0|1"}, {"a@b.c", "a@b.c"},     {"[x]^`", "[x]%5E%60"},
      {"a b", "a%20b"},       {"\xC3\xA9", "%C3%A9"}, {"A\\b", "A%5Cb"},
      {"100%", "100%25"},     {"u/1", "u%2F1"},       {"#?{}<>\"", "%23%3F%7B%7D%3C%3E%22"},
  };
  for (const auto& [claim, name] : cases) {
    const std::string token = jwt(claim);
    const std::string shown = R"("name":)" + dump_json(Json(name));
    for (const std::string& path : {std::string("/user"), "/agents/mine/" + name}) {
      const std::string identity = connect(path + "?token=" + token).read_text();
      EXPECT_TRUE(contains(identity, shown)) << path << ' ' << identity;
    }
    const std::string by_id = "/objects/mine/" + fully_encoded(claim) + "/call/claims";
    EXPECT_EQ(ask(http("POST", by_id, bearer(token))).status, 200) << by_id;
  }
  EXPECT_TRUE(answers(ask(http("GET", "/agents/named/auth0%7C1/echo", bearer(jwt("auth0|1")))), 403,
                      "spell the agent's name as browsers do"));
}

TEST_F(WhoMayConnectTest, AClassHasTheServersRuleForNamesUnlessItSaysAnother) {
  edge_.auth.name = "{sub}";
  open(ProofKind::kJwt);
  serve_with("Free", {.type = ProofKind::kJwt, .name = ""});
  serve_with("Org", {.type = ProofKind::kJwt, .name = "{iss}:{sub}"});
  const std::string token = "?token=" + jwt("u1");
  const std::pair<std::string, int> cases[] = {
      {"/agents/sampler/u1", 0},  {"/agents/sampler/u2", 4403}, {"/agents/users/u1", 0},
      {"/agents/users/u2", 4403}, {"/agents/free/u2", 0},       {"/agents/open/u2", 0},
      {"/agents/org/me:u1", 0},   {"/agents/org/u1", 4403},
  };
  for (const auto& [path, code] : cases) EXPECT_EQ(close_code(path + token), code) << path;
  EXPECT_EQ(close_code("/agents/guarded/u2?token=" + kClientToken), 0) << "it has no claims";
}

TEST_F(WhoMayConnectTest, TwoClaimsAreNeverTheNameOfTwoOthers) {
  edge_.routes = {leads_to("/org", "open", "{header:x-org}-{header:x-user}")};
  open();
  const auto status = [this](const std::string& org, const std::string& user) {
    return ask(http("GET", "/org/echo", "X-Org: " + org + "\r\nX-User: " + user + "\r\n")).status;
  };
  EXPECT_EQ(status("a", "b-c"), 200);
  EXPECT_EQ(status("a-b", "c"), 403);
}

TEST_F(WhoMayConnectTest, RoutesLeadToAgents) {
  edge_.routes = {prefix("/api/agents"),
                  prefix("/custom-state", "open"),
                  prefix("/custom-guarded", "guarded"),
                  leads_to("/user", "mine", "{sub}"),
                  leads_to("/team", "open", "{header:x-team}-room"),
                  leads_to("/lobby", "guarded", "lobby"),
                  refused("/old", 410),
                  refused("/v1/agents/open/secret", 410),
                  prefix("/v1/agents"),
                  refused("/", 421)};
  open();
  const std::string u1 = bearer(jwt("u/1"));
  struct Case {
    std::string path, header;
    int status;
    std::string body;  // empty: not looked at
  };
  const Case cases[] = {
      {"/api/agents/open/a/target", "", 200, "/api/agents/open/a/target"},
      {"/api/agents/guarded/a/echo", "", 401, ""},
      {"/custom-state/a/target", "", 200, "/custom-state/a/target"},
      {"/custom-state?x=1", "", 200, R"({"class":"open","methods":[{"name":"set"}]})"},
      {"/custom-state/%2e%2e/target", "", 400, ""},
      {"/custom-guarded/a/echo", "", 401, ""},
      {"/api/agents/open?x=1", "", 200, R"({"class":"open","methods":[{"name":"set"}]})"},
      {"/api/agents/guarded", "", 401, ""},
      {"/api/agents/nobody", "", 404, ""},
      {"/api/agentsx/open/a/echo", "", 421, ""},
      {"/user/target?x=1&y=/target", u1, 200, "/user/target?x=1&y=/target"},
      {"/user/echo", "", 401, ""},
      {"/team/echo", "X-Team: red\r\n", 200, ""},
      {"/team/echo", "", 403, ""},
      {"/lobby/echo", bearer(kClientToken), 200, ""},
      {"/lobby/echo", "", 401, ""},
      {"/old", "", 410, ""},
      {"/old/x", "", 410, ""},
      {"//old", "", 410, ""},
      {"/v1/agents/open/secret", "", 410, ""},
      {"/v1/agents//open/secret/echo", "", 410, ""},
      {"/v1//agents/open///secret", "", 410, ""},
      {"/v1/agents//open/a/target", "", 200, "/v1/agents//open/a/target"},
      {"/anything", "", 421, ""},
      {"/healthz", "", 200, R"({"status":"ok"})"},
      {"/agents/open/a/target", "", 200, "/agents/open/a/target"},
  };
  for (const Case& each : cases) {
    const Reply reply = ask(http("GET", each.path, each.header));
    EXPECT_EQ(reply.status, each.status) << each.path << reply.body;
    if (!each.body.empty()) EXPECT_EQ(reply.body, each.body) << each.path;
  }
  Client user = connect("/user?token=" + jwt("u/1"));
  EXPECT_TRUE(contains(user.read_text(), R"("name":"u%2F1")"));
  EXPECT_EQ(close_code("/user"), 4401);
  EXPECT_EQ(close_code("/old"), 4410);
  EXPECT_EQ(close_code("/api/agents/mine/u2?token=" + jwt("u1")), 4403);
}

TEST_F(WhoMayConnectTest, AKeyIsOneClientsWhoseSubjectIsANumber) {
  open();
  const auto call = [&](const Json& sub) {
    return ask(
        http("POST", "/objects/users/a/call/claims", "Idempotency-Key: k\r\n" + bearer(jwt(sub))));
  };
  const Reply first = call(1);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(call(1).body, first.body);
  EXPECT_EQ(call(2).status, 422);
}

}  // namespace
}  // namespace hearth::api::testing

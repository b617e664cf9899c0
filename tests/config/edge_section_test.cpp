#include "config/edge_section.hpp"

#include "config/class_file.hpp"
#include "config/config_files.hpp"
#include "config/definitions.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace hearth::config {
namespace {

using Texts = std::vector<std::string>;

class EdgeSectionTest : public ConfigFilesTest {};

TEST_F(EdgeSectionTest, EachKeyOfAServerReachesItsField) {
  const ServerConfig config = server(R"(
routes:
  - prefix: /api/agents
  - {prefix: /custom, agent: user-agent}
  - {path: /user, agent: user-agent, name: "{sub}"}
  - {path: /, status: 410}
auth:
  type: jwt
  name: "{sub}"
  token_file: clients.tokens
  keys_file: keys.json
  issuer: https://id.example
  audience: [hearth]
  clock_skew: 5s
cors:
  origins: ["https://app.example"]
  methods: [GET, PURGE]
  headers: [X-A]
  credentials: true
  max_age: 10m
)");
  ASSERT_EQ(config.routes.size(), 4U);
  EXPECT_TRUE(config.routes[0].is_prefix);
  EXPECT_EQ(config.routes[0].path, "/api/agents");
  EXPECT_TRUE(config.routes[1].is_prefix);
  EXPECT_EQ(config.routes[1].agent_class, "user-agent");
  EXPECT_EQ(config.routes[2].path, "/user");
  EXPECT_EQ(config.routes[2].agent_class, "user-agent");
  EXPECT_EQ(config.routes[2].name, "{sub}");
  EXPECT_EQ(config.routes[3].status, 410);
  EXPECT_EQ(config.auth.rules.type, ProofKind::kJwt);
  EXPECT_EQ(config.auth.rules.name, "{sub}");
  EXPECT_EQ(config.auth.token_file, path("clients.tokens")) << "relative to the server file";
  EXPECT_EQ(config.auth.keys_file, path("keys.json"));
  EXPECT_EQ(config.auth.issuer, "https://id.example");
  EXPECT_EQ(config.auth.audiences, Texts{"hearth"});
  EXPECT_EQ(config.auth.clock_skew, std::chrono::seconds(5));
  EXPECT_EQ(config.cors.origins, Texts{"https://app.example"});
  EXPECT_EQ(config.cors.methods, (Texts{"GET", "PURGE"}));
  EXPECT_EQ(config.cors.headers, Texts{"X-A"});
  EXPECT_TRUE(config.cors.credentials);
  EXPECT_EQ(config.cors.max_age, std::chrono::minutes(10));
}

TEST_F(EdgeSectionTest, AClassSaysOnlyWhatIsDifferent) {
  const auto settings =
      class_c("auth: {type: jwt, name: '{sub}'}\ncors: {origins: ['*']}\n").settings;
  EXPECT_EQ(settings.auth.type, ProofKind::kJwt);
  EXPECT_EQ(settings.auth.name, "{sub}");
  EXPECT_EQ(settings.cors.origins, Texts{"*"});
  const auto defaults = class_c("").settings;
  EXPECT_EQ(defaults.auth.type, std::nullopt);
  EXPECT_TRUE(defaults.cors.origins.empty());
  EXPECT_EQ(defaults.auth.name, std::nullopt);
  EXPECT_EQ(class_c("auth: {name: ''}\n").settings.auth.name, "")
      << "any, whatever the server says";
  EXPECT_EQ(class_c("auth: {type: server}\n").settings.auth.type, std::nullopt);
  EXPECT_EQ(server("").auth.rules.type, ProofKind::kNone);
}

struct EdgeMistake {
  std::string text, part;  // of the message
};

TEST_F(EdgeSectionTest, WhatCannotBeMeantIsAMistakeAtItsLine) {
  const std::string jwt = "issuer: i, audience: [a]";
  const EdgeMistake cases[] = {
      {"auth: {type: basic}", "auth.type"},
      {"auth: {type: token}", "auth.type: \"token\" needs auth.token_file"},
      {"auth: {type: jwt}", "auth.type: \"jwt\" needs auth.keys_file or auth.keys_url"},
      {"auth: {keys_file: k}", "needs auth.issuer and auth.audience"},
      {"auth: {keys_file: k, issuer: i}", "needs auth.issuer and auth.audience"},
      {"auth: {keys_file: k, keys_url: 'https://id.example/k', " + jwt + "}", "name one of them"},
      {"auth: {keys_url: 'http://id.example/k', " + jwt + "}", "an https URL"},
      {"auth: {keys_url: 'id.example', " + jwt + "}", "an https URL"},
      {"auth: {name: '{sub}'}", "only with auth.type \"jwt\""},
      {"auth: {type: jwt, keys_file: k, name: '{sub', " + jwt + "}", "a template"},
      {"auth: {type: jwt, keys_file: k, name: '{a}{b}', " + jwt + "}", "a template"},
      {"cors: {origins: ['*'], credentials: true}", "not with the origin \"*\""},
      {"cors: {origins: [app.example]}", "cors.origins"},
      {"cors: {methods: ['A B']}", "cors.methods"},
      {"cors: {headers: ['A:']}", "cors.headers"},
      {"routes: /api", "expected a list"},
      {"routes: [{path: /a}]", "a row has"},
      {"routes: [{prefix: /a, status: 404}]", "a row has"},
      {"routes: [{prefix: /a, agent: b, name: c}]", "a row has"},
      {"routes: [{path: /a, agent: b}]", "a row has"},
      {"routes: [{path: /a, agent: b, name: c, status: 404}]", "a row has"},
      {"routes: [{prefix: a}]", "routes.prefix"},
  };
  for (const EdgeMistake& each : cases) {
    put("server.yaml", each.text + "\n");
    const auto found = mistakes();
    ASSERT_FALSE(found.empty()) << each.text;
    EXPECT_NE(found.front().find(each.part), std::string::npos)
        << each.text << ": " << found.front();
    EXPECT_EQ(found.front().find("server.yaml:1:"), 0U) << found.front();
  }
  EXPECT_TRUE(server("auth: {type: jwt, keys_url: 'http://127.0.0.1:1/k', " + jwt + "}")
                  .auth.token_file.empty());
}

TEST_F(EdgeSectionTest, ARouteIsNamedByClaimsOnlyWhereClientsHaveSome) {
  const std::string keys = "keys_file: k, issuer: i, audience: [a]}\n";
  const auto route = [](const std::string& name) {
    return "routes: [{path: /a, agent: room-b, name: '" + name + "'}]\nauth: {";
  };
  struct Case {
    std::string server, agent_class;
    bool is_right;
  };
  const Case cases[] = {
      {route("{sub}") + "type: jwt, " + keys, "", true},
      {route("{sub}") + keys, "auth: {type: jwt}", true},
      {route("{sub}") + keys, "", false},
      {route("{header:x}:{sub}") + keys, "", false},
      {route("{header:x}") + keys, "", true},
      {route("lobby") + keys, "", true},
      {route("{sub}") + "type: jwt, " + keys, "auth: {type: none}", false},
  };
  for (const Case& each : cases) {
    put("server.yaml", each.server);
    put("classes/b.yaml", "class: b\naliases: [room-b]\n" + each.agent_class + "\n");
    const Diagnostics found = check_routes(load(), {}, "server.yaml");
    EXPECT_EQ(found.empty(), each.is_right) << each.server << each.agent_class;
    if (!found.empty())
      EXPECT_EQ(to_string(found.front()),
                "server.yaml:1:9: routes: the name of \"/a\" has claims, only with auth.type "
                "\"jwt\": other clients have no claims");
  }
  put("server.yaml", "data: d\n" + route("{sub}") + keys);
  Config defined = load();
  defined.classes["b"].settings.auth.type = ProofKind::kNone;
  defined.classes["b"].file = definitions_directory(defined.server.data) / "b.yaml";
  EXPECT_TRUE(check_routes(defined, {}, "server.yaml").empty());
}

TEST_F(EdgeSectionTest, AClassKeepsTheClaimsThatARouteIsNamedBy) {
  const std::string jwt = "class: b\naliases: [room-b]\nauth: {type: jwt}\n";
  const std::string token = "class: b\naliases: [room-b]\nauth: {type: token}\n";
  const std::string silent = "class: b\naliases: [room-b]\n";
  struct Case {
    ProofKind servers;
    std::string before, now;  // the class's file; empty: there is none
    std::string name;
    std::string mistake_at;  // empty: there is none
  };
  const Case cases[] = {
      {ProofKind::kNone, jwt, token, "{sub}", "classes/b.yaml:3:14"},
      {ProofKind::kNone, jwt, silent, "{header:x}:{sub}", "classes/b.yaml"},
      {ProofKind::kNone, jwt, "class: b\nauth: {type: jwt}\n", "{sub}", "classes/b.yaml"},
      {ProofKind::kNone, jwt, "", "{sub}", "classes/b.yaml"},
      {ProofKind::kJwt, "", token, "{sub}", "classes/b.yaml:3:14"},
      {ProofKind::kJwt, jwt, silent, "{sub}", ""},
      {ProofKind::kJwt, jwt, "", "{sub}", ""},
      {ProofKind::kNone, jwt, jwt, "{sub}", ""},
      {ProofKind::kNone, jwt, token, "lobby", ""},
      {ProofKind::kNone, token, silent, "{sub}", ""},  // a definition, from the start
  };
  const auto read = [this](const std::string& text) {
    std::filesystem::remove(path("classes/b.yaml"));
    put("classes/other.yaml", "class: other\n");
    if (!text.empty()) put("classes/b.yaml", text);
    return load().classes;
  };
  put("server.yaml", "");
  for (const Case& each : cases) {
    SCOPED_TRACE(each.before + " -> " + each.now);
    RouteRule route;
    route.path = "/a";
    route.agent_class = "room-b";
    route.name = each.name;
    const AuthRules servers{.type = each.servers, .name = {}};
    const auto before = read(each.before);
    const Diagnostics found = lost_claims({route}, servers, before, read(each.now), {});
    ASSERT_EQ(found.empty(), each.mistake_at.empty());
    if (found.empty()) continue;
    const std::string text = to_string(found.front());
    EXPECT_NE(text.find(each.mistake_at), std::string::npos) << text;
    EXPECT_TRUE(
        text.ends_with(": auth.type: the name of the route \"/a\" has claims, only with "
                       "auth.type \"jwt\": other clients have no claims"))
        << text;
  }
}

TEST_F(EdgeSectionTest, AClassNamesAgentsByClaimsOnlyIfItsClientsMayHaveSome) {
  const std::string mistake =
      "classes/c.yaml:2:27: auth.name: only with auth.type \"jwt\": other clients have no claims";
  EXPECT_EQ(class_mistake("class: c\nauth: {type: none , name: '{sub}'}\n"), mistake);
  EXPECT_EQ(class_mistake("class: c\nauth: {type: token, name: '{sub}'}\n"), mistake);
  EXPECT_EQ(class_c("auth: {type: none, name: ''}\n").settings.auth.name, "");
  EXPECT_EQ(class_c("auth: {name: '{sub}'}\n").settings.auth.name, "{sub}") << "the server knows";
}

}  // namespace
}  // namespace hearth::config

// /objects of a real server: requests to an object other than calls, and their results. Limits:
// object_limits_test.cpp; lists and the audit log: objects_admin_test.cpp.

#include "process/agent_client.hpp"
#include "process/objects_fixture.hpp"

#include <cctype>
#include <csignal>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::testing {
namespace {

TEST_F(ObjectsTest, O4_O5_AnObjectHibernatesAndWakesWithItsStorage) {
  start();
  EXPECT_EQ(increment("user%2F1"), 1);
  EXPECT_EQ(data(200, "PATCH", "/objects/counter/user%2F1/storage", R"({"a":{"n":1}})"), nullptr);
  Json object = data(200, "GET", "/objects/counter/user%2F1");
  EXPECT_EQ(object["status"], "Active");
  EXPECT_EQ(object["class"], "counter");
  EXPECT_EQ(object["object_id"], "user/1");
  EXPECT_EQ(object["sandbox_name"], "do-counter-user/1");
  EXPECT_EQ(object["storage"], Json::parse(R"({"a":{"n":1}})"));
  EXPECT_EQ(object["id"].get<std::string>().size(), 36U);

  EXPECT_EQ(data(200, "POST", "/objects/counter/user%2f1/hibernate")["status"], "Hibernating");
  const Json cold = data(200, "GET", "/objects/counter/user%2F1");
  EXPECT_EQ(cold["status"], "Hibernating");
  EXPECT_EQ(cold["storage"], object["storage"]);
  EXPECT_EQ(cold["id"], object["id"]);
  EXPECT_EQ(data(200, "PATCH", "/objects/counter/user%2F1/storage", R"({"a":{"m":2}})"), nullptr);
  EXPECT_EQ(data(200, "GET", "/objects/counter/user%2F1")["status"], "Hibernating")
      << "reading and patching wakes nobody";
  EXPECT_EQ(increment("user%2F1"), 2);
  restart();
  const Json later = data(200, "GET", "/objects/" + object["id"].get<std::string>());
  EXPECT_EQ(later["storage"], Json::parse(R"({"a":{"m":2,"n":1}})"));
  EXPECT_EQ(later["created_at"], object["created_at"]);
  EXPECT_GE(later["last_active"].get<std::string>(), object["last_active"].get<std::string>());
}

TEST_F(ObjectsTest, O4_AnIdleObjectHibernatesByItself) {
  object_class("idle_timeout: 50ms\n");
  start();
  EXPECT_EQ(increment("a"), 1);
  server_->wait_for_log("agent.evicted class=Counter agent=a reason=idle");
  EXPECT_EQ(data(200, "GET", "/objects/counter/a")["status"], "Hibernating");
  EXPECT_EQ(increment("a"), 2);
}

TEST_F(ObjectsTest, O10_WhatACallHasWrittenSurvivesKillNineWithAndWithoutACheckpoint) {
  start();
  EXPECT_EQ(increment("a"), 1);
  EXPECT_EQ(data(200, "POST", "/objects/counter/a/checkpoint")["status"], "Active");
  EXPECT_EQ(increment("a"), 2);
  EXPECT_EQ(server_->kill(), kKilled);
  server_ = serve_ready({"--config", "hearth.yaml", "--shards", "1"});
  EXPECT_EQ(increment("a"), 3);
}

TEST_F(ObjectsTest, O15_ADeletedObjectIsGoneAndALaterCallStartsEmpty) {
  start();
  EXPECT_EQ(increment("a"), 1);
  EXPECT_EQ(increment("b"), 1);
  data(200, "PATCH", "/objects/counter/a/storage", R"({"k":1})");
  data(201, "POST", "/objects/counter/a/alarms", R"({"method":"reset","delay_seconds":3600})");
  EXPECT_EQ(data(200, "POST", "/objects/counter/b/hibernate")["status"], "Hibernating");
  const Json before = data(200, "GET", "/objects/counter/a");
  for (const char* id : {"a", "b"}) {
    EXPECT_EQ(data(200, "DELETE", "/objects/counter/" + std::string(id))["object_id"], id);
    EXPECT_EQ(data(404, "GET", "/objects/counter/" + std::string(id)), "object_not_found");
    EXPECT_EQ(data(404, "DELETE", "/objects/counter/" + std::string(id)), "object_not_found");
  }
  EXPECT_EQ(data(200, "GET", "/objects"), Json::array());
  EXPECT_EQ(increment("a"), 1);
  const Json after = data(200, "GET", "/objects/counter/a");
  EXPECT_EQ(after["storage"], Json::object());
  EXPECT_NE(after["id"], before["id"]);
  EXPECT_EQ(data(200, "GET", "/objects/counter/a/alarms")["alarms"], Json::array());
  EXPECT_EQ(data(200, "DELETE", "/objects/" + after["id"].get<std::string>())["object_id"], "a");
}

TEST_F(ObjectsTest, O16_AnObjectIsMadeOnce) {
  start();
  const Json made =
      data(201, "POST", "/objects", R"({"class":"counter","object_id":"a/b%","storage":{"k":1}})");
  EXPECT_EQ(made["object_id"], "a/b%");
  EXPECT_EQ(made["status"], "Hibernating");
  EXPECT_EQ(data(409, "POST", "/objects", R"({"class":"counter","object_id":"a/b%"})"),
            "object_exists");
  EXPECT_EQ(data(200, "GET", "/objects/counter/a%2Fb%25")["storage"], Json::parse(R"({"k":1})"));
  EXPECT_EQ(increment("a%2Fb%25"), 1);
  for (const char* wrong : {"", "{}", R"({"class":"counter"})", R"({"object_id":"a"})",
                            R"({"class":"counter","object_id":".."})",
                            R"({"class":"counter","object_id":"a","storage":5})"})
    EXPECT_EQ(data(400, "POST", "/objects", wrong), "invalid_argument") << wrong;
  for (const std::string name : {"nobody", "chat-room"})
    EXPECT_EQ(data(404, "POST", "/objects", R"({"object_id":"a","class":")" + name + "\"}"),
              "class_not_found");
}

TEST_F(ObjectsTest, O16_AnObjectWhoseStorageIsRefusedIsNotMade) {
  object_class("kv: {max_value: 1KiB}\n");
  start();
  const auto body = [](std::size_t bytes) {
    return R"({"class":"counter","object_id":"a","storage":{"k":")" + std::string(bytes, 'x') +
           "\"}}";
  };
  EXPECT_EQ(data(413, "POST", "/objects", body(1024)), "limit_exceeded");
  EXPECT_EQ(data(404, "GET", "/objects/counter/a"), "object_not_found");
  EXPECT_EQ(data(201, "POST", "/objects", body(1000))["object_id"], "a");
  EXPECT_EQ(data(200, "GET", "/objects/counter/a")["storage"]["k"].get<std::string>().size(),
            1000U);
}

TEST_F(ObjectsTest, AValueAsDeepAsABodyCanHaveItIsKeptAndShown) {
  start();
  EXPECT_EQ(increment("a"), 1);
  constexpr std::size_t kDeepest = kMaxJsonDepth - 1;  // the patch is one level
  const std::string path = "/objects/counter/a";
  const auto patch = [](std::size_t levels) {
    return R"({"k":)" + std::string(levels, '[') + std::string(levels, ']') + "}";
  };
  EXPECT_EQ(data(400, "PATCH", path + "/storage", patch(kDeepest + 1)), "invalid_argument");
  EXPECT_EQ(ask("PATCH", path + "/storage", patch(kDeepest)).status, 200);
  EXPECT_TRUE(answers(ask("GET", path), 200, "\"storage\":" + patch(kDeepest)));
}

// All its bytes, or those that a path may not hold, in hexadecimal digits.
std::string encoded(std::string_view id, const char* digits, bool all) {
  std::string path;
  for (const char each : id) {
    const auto byte = static_cast<unsigned char>(each);
    if (!all && (std::isalnum(byte) != 0 || each == '.' || each == '-')) {
      path += each;
    } else {
      path += {'%', digits[byte >> 4U], digits[byte & 15U]};
    }
  }
  return path;
}

TEST_F(ObjectsTest, O18_O20_AThousandOddIdsComeBackAndAddNoSeries) {
  start();
  constexpr std::string_view kParts[] = {
      "\u00e9", "/", "%",  " ",  ".", "..", "\u65e5\u672c", "%2F", "+",   "?",
      "#",      "&", "\\", "\"", "A", "a",  "\U0001F600",   "%zz", "../", "e\u0301"};
  constexpr std::size_t kCount = std::size(kParts);
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < 1000; ++i)
    ids.push_back(std::string(kParts[i % kCount]) + std::to_string(i / kCount) +
                  std::string(kParts[(i / kCount) % kCount]));
  RawClient client(server_->port());
  const auto one = [&](const char* method, const std::string& path, std::string_view body) {
    const Reply reply = client.request(
        std::string(method) + " " + path +
        " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token_ +
        "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
    EXPECT_EQ(reply.status, 200) << path << ' ' << reply.body;
    const auto json = parse_json(reply.body);
    return json ? json->value("data", Json()) : Json();
  };
  const auto series = [this] {
    std::set<std::string> names;
    std::istringstream lines(ask("GET", "/metrics").body);
    for (std::string line; std::getline(lines, line);)
      if (!line.starts_with('#')) names.insert(line.substr(0, line.rfind(' ')));
    return names;
  };
  const auto do_all = [&](const std::string& id) {
    const std::string lower = "/objects/counter/" + encoded(id, "0123456789abcdef", false);
    const std::string upper = "/objects/counter/" + encoded(id, "0123456789ABCDEF", true);
    EXPECT_EQ(one("POST", lower + "/call/increment", "[]"), 1) << id;
    EXPECT_EQ(one("GET", upper, "")["object_id"], id);
  };
  do_all("the first");
  std::set<std::string> before = series();
  EXPECT_GT(before.size(), 10U);
  for (const std::string& id : ids) do_all(id);
  // From the 201st on another one leaves.
  before.insert(R"(hearth_agent_evictions_total{class="Counter",reason="limit"})");
  EXPECT_EQ(series(), before);
  std::set<std::string> listed;
  std::string cursor;
  do {
    const Json page = parse_json(ask("GET", "/objects?limit=1000&cursor=" + cursor).body).value();
    for (const Json& object : page["data"]) listed.insert(object["object_id"].get<std::string>());
    cursor = page["next"].is_null() ? "" : page["next"].get<std::string>();
  } while (!cursor.empty());
  ids.emplace_back("the first");
  EXPECT_EQ(listed, std::set<std::string>(ids.begin(), ids.end()));
  for (const auto& file : std::filesystem::recursive_directory_iterator(root_)) {
    if (file.path().extension() == ".db")
      EXPECT_EQ(file.path().string().find((root_ / "data").string()), 0U) << file.path();
  }
}

TEST_F(ObjectsTest, TheCommandLineCallsAnObject) {
  start();
  const auto call = [this](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"call", "--data", "data", "counter", "a/b"});
    auto command = run(std::move(arguments));
    const int status = command->wait().status;
    return std::pair(status, command->out());
  };
  EXPECT_EQ(call({"increment", "5"}), std::pair(0, std::string("5\n")));
  EXPECT_EQ(increment("a%2Fb"), 6);
  const auto refused = call({"nothing"});
  EXPECT_EQ(refused.first, 1);
}

// As config/README.md prints it.
TEST_F(ObjectsTest, TheObjectsThatShipAreCalledAsPrinted) {
  for (const std::string name : {"rate-limiter", "session-cache"}) {
    install(bundled(name), name + ".so");
    put("classes/" + name + ".yaml", "class: " + name + "\nobjects: true\n");
  }
  start();
  EXPECT_EQ(data(200, "POST", "/objects/rate-limiter/user-1/call/take"),
            Json::parse(R"({"allowed":true,"remaining":9.0,"retry_after_ms":0})"));
  EXPECT_EQ(data(200, "POST", "/objects/session-cache/abc/call/set", R"(["user", {"id": 7}, 600])"),
            nullptr);
  EXPECT_EQ(data(200, "POST", "/objects/session-cache/abc/call/get", R"(["user"])"),
            Json::parse(R"({"id":7})"));
  const Json storage = data(200, "GET", "/objects/session-cache/abc")["storage"];
  EXPECT_EQ(storage["user"]["value"], Json::parse(R"({"id":7})"));
}

TEST_F(ObjectsTest, C3_WithAKeyOfItsOwnObjectsAreForWhoHasIt) {
  const std::string key = "0123456789abcdef-of-objects";
  put("key", key + "\n");
  start("objects:\n  token_file: key\n");
  server_->wait_for_log("admin.token_readable");
  const auto status = [this](const std::string& method, const std::string& path,
                             const std::string& header) {
    return RawClient(server_->port())
        .request(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + header +
                 "Content-Length: 0\r\n\r\n");
  };
  for (const auto& [method, path] :
       {std::pair("POST", "/objects/counter/a/call/get"), std::pair("GET", "/objects/counter/a"),
        std::pair("GET", "/objects"), std::pair("GET", "/objects/counter/a/alarms"),
        std::pair("DELETE", "/objects/counter/a")}) {
    for (const std::string& header :
         {std::string(), "Authorization: Bearer x" + key + "\r\n", "X-Api-Key: x" + key + "\r\n",
          "Authorization: Basic " + key + "\r\n"}) {
      const Reply refused = status(method, path, header);
      EXPECT_EQ(refused.status, 401) << method << ' ' << path << ' ' << header;
      const Json body = parse_json(refused.body).value();
      EXPECT_TRUE(body["error"].is_string()) << refused.body;
      EXPECT_EQ(body["code"], "unauthorized");
    }
    for (const std::string& header :
         {"Authorization: Bearer " + key + "\r\n", "x-api-key: " + key + "\r\n",
          "Authorization: Bearer " + token_ + "\r\n"}) {
      if (std::string(method) == "DELETE") status("POST", "/objects/counter/a/call/get", header);
      EXPECT_EQ(status(method, path, header).status, 200) << method << ' ' << path << ' ' << header;
    }
  }
  for (const char* open : {"/healthz", "/metrics"}) EXPECT_EQ(status("GET", open, "").status, 200);
  EXPECT_EQ(status("GET", "/admin/plugins", "x-api-key: " + key + "\r\n").status, 401);
  for (const auto& [header, code] : {std::pair(std::string(), 401),
                                     {"x-api-key: " + key + "\r\n", 200},
                                     {"Authorization: Bearer " + key + "\r\n", 200}})
    EXPECT_EQ(status("GET", "/agents/counter/a", header).status, code) << "as at /objects";
}

TEST_F(ObjectsTest, AnObjectIsPatchedByItsOwnId) {
  start();
  const Json made =
      data(201, "POST", "/objects", R"({"class":"counter","object_id":"a","storage":{"k":1}})");
  const std::string path = "/objects/" + made["id"].get<std::string>();
  EXPECT_EQ(data(200, "PATCH", path, R"({"storage":{"k":null,"l":2}})")["storage"],
            Json::parse(R"({"l":2})"));
  for (const char* wrong : {"", "[]", "{}", R"({"storage":1})", R"({"storage":{},"status":"x"})"})
    EXPECT_EQ(data(400, "PATCH", path, wrong), "invalid_argument") << wrong;
  EXPECT_EQ(data(404, "PATCH", "/objects/nothing", R"({"storage":{}})"), "object_not_found");
}

TEST_F(ObjectsTest, ErrorsBelowObjectsHaveOneShape) {
  start();
  const std::pair<std::string, int> cases[] = {{"PUT /objects/counter/a/call", 405},
                                               {"GET /objects", 401},
                                               {"POST /objects/a/b/c/d/e", 404}};
  for (const auto& [line, status] : cases) {
    const std::size_t space = line.find(' ');
    const Reply reply = ask(line.substr(0, space), line.substr(space + 1), "", false);
    EXPECT_EQ(reply.status, status) << line;
    const Json body = parse_json(reply.body).value();
    EXPECT_TRUE(body["error"].is_string()) << reply.body;
    EXPECT_FALSE(body.value("success", true));
  }
}

TEST_F(ObjectsTest, AClassThatNeverHadALibraryIsNotTheSameAsOneThatIsAway) {
  put("classes/never.yaml", "class: NeverThere\nobjects: true\naliases: [\"nowhere\"]\n");
  put("classes/chat-room.yaml", "class: ChatRoom\nobjects: true\n");
  start();
  EXPECT_EQ(increment("a"), 1);
  for (const char* name : {"never-there", "NeverThere", "nowhere"})
    EXPECT_EQ(data(422, "POST", "/objects/" + std::string(name) + "/a/call/get"),
              "library_missing");
  EXPECT_EQ(server_->stop(), kClean);
  std::filesystem::remove(root_ / "plugins/counter.so");
  std::filesystem::remove(root_ / "plugins/chat-room.so");
  server_ = serve_ready({"--config", "hearth.yaml", "--shards", "1"});
  for (int life = 0; life < 2; ++life) {
    // The first class has an object that was called, the other class has none.
    for (const char* name : {"counter", "chat-room"}) {
      const std::string path = "/objects/" + std::string(name) + "/a/call/get";
      EXPECT_EQ(data(503, "POST", path), "sandbox_unavailable") << name;
    }
    // Administrators need no library: the host has the object's storage.
    const std::string object = "/objects/counter/a";
    const std::string patch = R"({"life":)" + std::to_string(life) + "}";
    EXPECT_EQ(data(200, "PATCH", object + "/storage", patch), nullptr);
    EXPECT_EQ(data(200, "GET", object)["storage"]["life"], life);
    EXPECT_EQ(data(503, "POST", "/objects", R"({"class":"chat-room","object_id":"a"})"),
              "sandbox_unavailable");
    EXPECT_EQ(data(422, "POST", "/objects", R"({"class":"NeverThere","object_id":"a"})"),
              "library_missing");
    restart();
  }
}

TEST_F(ObjectsTest, AServerMayMakeAllClassesObjects) {
  put("classes/counter.yaml", "class: counter\nobjects: false\n");
  start("objects:\n  all_classes: true\n");
  EXPECT_EQ(data(404, "POST", "/objects/counter/a/call/get", "[]"), "class_not_found");
  EXPECT_EQ(data(201, "POST", "/objects", R"({"class":"chat-room","object_id":"a"})")["class"],
            "chat-room")
      << "one without a class file";
}

TEST_F(ObjectsTest, NoClassOfObjectsTakesThePathOfTheDefinitions) {
  install(built::agent("definitions"), "definitions.so");
  start("objects:\n  all_classes: true\n");
  server_->wait_for_log("class.not_served class=Definitions");
  EXPECT_EQ(data(200, "GET", "/objects/definitions"), Json::array());
  EXPECT_TRUE(answers(ask("POST", "/objects/definitions/a/call/count"), 503,
                      "the path of the definitions of classes"));
  EXPECT_EQ(server_->stop(), kClean);
  put("classes/definitions.yaml", "class: Definitions\nobjects: false\n");
  start("objects:\n  all_classes: true\n");
  EXPECT_EQ(AgentClient(*server_, "/agents/definitions/a").call("count"), 0)
      << "it may have agents";
}

// The command has the administrators' token, and no token of a client.
TEST_F(ObjectsTest, ACallByACommandWhereClientsNeedTokensSaysWhatToSet) {
  put("tokens", "0123456789abcdef\n");
  put("key", "0123456789abcdef-of-objects\n");
  const std::string auth = "auth: {type: token, token_file: tokens}\n";
  start(auth);
  const auto refused = run({"call", "counter", "a", "increment"});
  EXPECT_EQ(refused->wait(), kFailed);
  EXPECT_NE(refused->log().find("only if objects.token_file is set"), std::string::npos)
      << refused->log();
  EXPECT_EQ(server_->stop(), kClean);
  start(auth + "objects: {token_file: key}\n");
  const auto called = run({"call", "counter", "a", "increment"});
  EXPECT_EQ(called->wait(), kClean) << called->log();
  EXPECT_EQ(called->out(), "1\n");
  EXPECT_EQ(server_->stop(), kClean);
}

}  // namespace
}  // namespace hearth::testing

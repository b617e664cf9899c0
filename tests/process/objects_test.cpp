// /objects of a real server: requests to an object other than calls, and their results.

#include "process/agent_client.hpp"
#include "process/objects_fixture.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
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
  EXPECT_EQ(server_->kill(), (Ending{.status = -1, .signal = SIGKILL}));
  server_ = serve_ready({"--config", "hearth.yaml", "--shards", "1"});
  EXPECT_EQ(increment("a"), 3);
}

TEST_F(ObjectsTest, O14_BeyondTheLimitTheLeastRecentlyUsedIdleObjectHibernates) {
  start("limits:\n  max_active_objects: 2\n");
  EXPECT_EQ(increment("a"), 1);
  EXPECT_EQ(increment("b"), 1);
  EXPECT_EQ(increment("a"), 2);
  EXPECT_EQ(increment("c"), 1);
  server_->wait_for_log("agent.evicted class=Counter agent=b reason=limit");
  EXPECT_EQ(increment("b"), 2);
  // Two that are busy: the third is refused.
  std::vector<std::unique_ptr<RawClient>> busy;
  for (const char* id : {"x", "y"}) {
    busy.push_back(std::make_unique<RawClient>(server_->port()));
    busy.back()->send("POST /objects/counter/" + std::string(id) +
                      "/call/count_to HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
                      "[9,60000]");
    server_->wait_for_log("agent.started class=Counter agent=" + std::string(id));
  }
  const Reply refused = ask("POST", "/objects/counter/z/call/increment", "[]");
  EXPECT_EQ(refused.status, 503) << refused.body;
  EXPECT_NE(refused.head.find("Retry-After: 1\r\n"), std::string::npos);
  EXPECT_NE(refused.body.find("too many objects are active"), std::string::npos);
}

TEST_F(ObjectsTest, O13_EachLimitThatIsReachedHasItsStatusAndNothingIsLost) {
  object_class(
      "objects_call_timeout: 300ms\nkv:\n  max_keys: 3\n  max_value: 1KiB\n"
      "  max_total: 2KiB\n");
  start("limits:\n  max_body: 64KiB\n  max_name: 20\n");
  EXPECT_EQ(increment("a"), 1);
  EXPECT_EQ(data(200, "PATCH", "/objects/counter/a/storage", R"({"a":1,"b":2})"), nullptr);
  for (int i = 0; i < 100; ++i)
    data(201, "POST", "/objects/counter/a/alarms",
         R"({"method":"m)" + std::to_string(i) + R"(","delay_seconds":3600})");
  const auto value = [](std::size_t bytes) { return '"' + std::string(bytes, 'x') + '"'; };
  struct Case {
    std::string method, path, body;
    int status;
    std::string code;
  };
  const Case cases[] = {
      {"POST", "/a/call/echo", value(65 * 1024), 413, "limit_exceeded"},
      {"POST", "/" + std::string(21, 'n') + "/call/get", "", 400, "invalid_argument"},
      {"PATCH", "/a/storage", R"({"c":3,"d":4})", 429, "limit_exceeded"},
      {"PATCH", "/a/storage", R"({"a":)" + value(1025) + "}", 413, "limit_exceeded"},
      {"PATCH", "/a/storage",
       R"({"a":)" + value(1000) + R"(,"b":)" + value(1000) + R"(,"c":)" + value(100) + "}", 429,
       "limit_exceeded"},
      {"POST", "/a/alarms", R"({"method":"more","delay_seconds":1})", 429, "limit_exceeded"},
      {"POST", "/a/call/count_to", "[9,60000]", 504, "call_timeout"},
      {"POST", "/a/call/count_to", "[99,50]", 504, "call_timeout"},  // a part each 50 ms
  };
  for (const Case& each : cases)
    EXPECT_EQ(data(each.status, each.method, "/objects/counter" + each.path, each.body), each.code)
        << each.method << ' ' << each.path;
  EXPECT_EQ(data(200, "GET", "/objects/counter/a")["storage"], Json::parse(R"({"a":1,"b":2})"));
  EXPECT_EQ(data(200, "GET", "/objects/counter/a/alarms")["alarms"].size(), 100U);
  EXPECT_EQ(data(200, "POST", "/objects/counter/a/hibernate")["status"], "Hibernating");
  EXPECT_EQ(increment("a"), 2);
}

TEST_F(ObjectsTest, O13_ALimitThatAMethodReachesIsItsAnswerAndKeptUnderItsKey) {
  install(bundled("session-cache"), "session-cache.so");
  put("classes/session-cache.yaml", "class: SessionCache\nobjects: true\nkv: {max_keys: 1}\n");
  start();
  const std::string call = "/objects/session-cache/a/call/";
  const auto set_b = [&](const std::string& key) {
    const std::string body = R"(["b", 2])";
    return RawClient(server_->port())
        .request("POST " + call + "set HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: " + key +
                 "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  };
  EXPECT_EQ(data(200, "POST", call + "set", R"(["a", 1])"), nullptr);
  const Reply full = set_b("k");
  EXPECT_EQ(full.status, 429) << full.body;
  EXPECT_EQ(parse_json(full.body).value(),
            Json::parse(R"({"success":false,"error":"an agent has at most 1 keys",)"
                        R"("code":"limit_exceeded","retryable":false})"));
  EXPECT_EQ(full.head.find("Retry-After:"), std::string::npos) << full.head;
  AgentClient client(*server_, "/agents/session-cache/a");
  client.begin("set", R"(["b", 2])");
  EXPECT_EQ(client.answer()["error"], "an agent has at most 1 keys");
  EXPECT_EQ(data(200, "POST", call + "remove", R"(["a"])"), true);
  const Reply again = set_b("k");
  EXPECT_EQ(again.status, 429) << "the method ran, and runs once under a key";
  EXPECT_EQ(again.body, full.body);
  EXPECT_NE(again.head.find("Idempotency-Replayed: true\r\n"), std::string::npos) << again.head;
  EXPECT_EQ(set_b("l").status, 200);
}

// The limits of an object's storage, as large as they are by default.
TEST_F(ObjectsTest, O13_TheDefaultLimitsOfTheStorageAreReachedAndNothingIsLost) {
  start();
  const auto patch = [this](const std::string& id, const std::string& body) {
    return ask("PATCH", "/objects/counter/" + id + "/storage", body).status;
  };
  const auto key = [](const std::string& name, const std::string& value) {
    return '"' + name + "\":" + value;
  };
  for (const char* id : {"keys", "value", "total"})
    data(201, "POST", "/objects", R"({"class":"counter","object_id":")" + std::string(id) + "\"}");
  constexpr int kKeys = 10'000;
  std::string all;
  for (int i = 0; i < kKeys; ++i) all += (i == 0 ? "{" : ",") + key("k" + std::to_string(i), "1");
  EXPECT_EQ(patch("keys", all + "}"), 200);
  EXPECT_EQ(patch("keys", R"({"k0":2,"one too many":1})"), 429);
  EXPECT_EQ(patch("keys", R"({"k0":3})"), 200) << "no new key";
  EXPECT_EQ(patch("keys", R"({"k1":null,"another":1})"), 200);

  constexpr std::size_t kValue = std::size_t{1} << 20;
  const auto value = [](std::size_t bytes) { return '"' + std::string(bytes - 2, 'x') + '"'; };
  EXPECT_EQ(patch("value", '{' + key("a", value(kValue)) + '}'), 200);
  EXPECT_EQ(patch("value", '{' + key("a", value(kValue + 1)) + '}'), 413);

  // Each key has one byte, and the last value leaves room for all of them.
  constexpr int kValues = 50;
  for (int i = 0; i < kValues; ++i) {
    const std::size_t less = i + 1 < kValues ? 0 : kValues;
    const std::string name(1, static_cast<char>('#' + i));  // to 'T'
    ASSERT_EQ(patch("total", '{' + key(name, value(kValue - less)) + '}'), 200) << name;
  }
  EXPECT_EQ(patch("total", '{' + key("z", "1") + '}'), 429);
  EXPECT_EQ(patch("total", '{' + key("T", value(kValue - kValues + 1)) + '}'), 429) << "a byte";

  EXPECT_EQ(data(200, "POST", "/objects/counter/total/hibernate")["status"], "Hibernating");
  std::size_t found = 0;
  std::string after;
  do {
    const Json page = data(200, "GET", "/objects/counter/keys?limit=1000&after=" + after);
    found += page["storage"].size();
    if (after.empty()) EXPECT_EQ(page["storage"]["k0"], 3);
    after = page["storage_next"].is_null() ? "" : page["storage_next"].get<std::string>();
  } while (!after.empty());
  EXPECT_EQ(found, kKeys);
  const auto bytes_of = [this](const std::string& id, const std::string& query) {
    const Json kept = data(200, "GET", "/objects/counter/" + id + query)["storage"];
    return kept.empty() ? 0 : kept.front().get<std::string>().size() + 2;
  };
  EXPECT_EQ(bytes_of("value", ""), kValue);
  EXPECT_EQ(bytes_of("total", "?limit=1"), kValue);
  EXPECT_EQ(bytes_of("total", "?limit=1&after=S"), kValue - kValues) << "the last one";
}

TEST_F(ObjectsTest, O14_TheLimitHoldsOverAllEventLoops) {
  put("hearth.yaml", "log: {level: debug}\nlimits: {max_active_objects: 3}\n");
  server_ = serve_ready({"--config", "hearth.yaml", "--shards", "4"});
  token_ = read_token();
  const auto id = [](int number) { return "o" + std::to_string(number); };
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(increment(id(i)), 1);
    // Which one leaves is the business of object_places_test: a loop may answer too late.
    if (i >= 3)
      server_->wait_for_log("agent.evicted class=Counter ", static_cast<std::size_t>(i - 2));
  }
  std::set<std::string> active;
  const Json found = data(200, "GET", "/objects?status=active");
  for (const Json& object : found) active.insert(object["object_id"].get<std::string>());
  EXPECT_EQ(active.size(), 3U);
  EXPECT_TRUE(active.contains("o19"));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(increment(id(i)), 2) << "nothing is lost";
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
  const Reply shown = ask("GET", path);
  EXPECT_EQ(shown.status, 200) << shown.body;
  EXPECT_NE(shown.body.find("\"storage\":" + patch(kDeepest)), std::string::npos);
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

TEST_F(ObjectsTest, O17_AnAgentBelowAnObjectIsNoObject) {
  start();
  EXPECT_EQ(increment("x"), 1);
  EXPECT_EQ(AgentClient(*server_, "/agents/counter/x/sub/counter/kid").call("increment"), 1);
  const Json listed = data(200, "GET", "/objects?class=counter");
  ASSERT_EQ(listed.size(), 1U) << listed;
  EXPECT_EQ(listed[0]["object_id"], "x");
}

TEST_F(ObjectsTest, O17_AListHasFiltersAndPages) {
  start();
  constexpr int kObjects = 1000;
  for (int i = 0; i < kObjects; ++i)
    data(201, "POST", "/objects",
         R"({"class":"counter","object_id":"o)" + std::to_string(i) + "\"}");
  for (const char* id : {"o7", "o77", "only-called"})
    data(200, "POST", "/objects/counter/" + std::string(id) + "/call/get", "[]");
  std::set<std::string> seen;
  std::string cursor;
  int pages = 0;
  do {
    const Json page =
        parse_json(ask("GET", "/objects?class=counter&limit=300&cursor=" + cursor).body).value();
    for (const Json& object : page["data"])
      EXPECT_TRUE(seen.insert(object["object_id"].get<std::string>()).second)
          << object["object_id"];
    cursor = page["next"].is_null() ? "" : page["next"].get<std::string>();
    ++pages;
  } while (!cursor.empty() && pages < 10);
  EXPECT_EQ(seen.size(), kObjects + 1U);
  EXPECT_EQ(pages, 4);
  EXPECT_TRUE(seen.contains("only-called")) << "one that wrote nothing is listed";
  std::set<std::string> active;
  const Json found = data(200, "GET", "/objects?status=ACTIVE&limit=1000");
  for (const Json& object : found) active.insert(object["object_id"].get<std::string>());
  EXPECT_EQ(active, (std::set<std::string>{"o7", "o77", "only-called"}));
  EXPECT_EQ(data(200, "GET", "/objects?status=hibernating&limit=1000").size(), 998U);
  EXPECT_EQ(data(404, "GET", "/objects?class=nobody"), "class_not_found");
  EXPECT_EQ(data(404, "GET", "/objects/nobody/o7"), "class_not_found");
  EXPECT_EQ(data(400, "GET", "/objects?status=Deleted"), "invalid_argument");
  EXPECT_EQ(data(400, "GET", "/objects?limit=1001"), "invalid_argument");
  const std::string too_long(4097, 'x');
  for (const std::string key : {"class", "status", "limit", "cursor"})
    EXPECT_EQ(data(400, "GET", "/objects?" + key + "=" + too_long), "invalid_argument") << key;
  for (const std::string key : {"limit", "after"})
    EXPECT_EQ(data(400, "GET", "/objects/counter/o7?" + key + "=" + too_long), "invalid_argument")
        << key;
}

TEST_F(ObjectsTest, O1_O4_O15_TheAuditLogTellsTheLifeOfAnObject) {
  start();
  (void)data(201, "POST", "/objects", R"({"class":"counter","object_id":"a","storage":{"b":1}})");
  EXPECT_EQ(increment("a"), 1);
  (void)data(200, "PATCH", "/objects/counter/a/storage", R"({"b":2})");
  (void)data(200, "POST", "/objects/counter/a/hibernate");
  (void)data(200, "POST", "/objects/counter/a/checkpoint");
  EXPECT_EQ(increment("a"), 2);
  (void)data(200, "DELETE", "/objects/counter/a");
  const Json entries =
      parse_json(ask("GET", "/admin/audit?class=Counter&agent=a").body).value()["entries"];
  // The object's work and the note of the request have no order.
  std::vector<std::string> events;
  std::vector<std::string> acts;
  for (const Json& each : entries) {
    const auto event = each["event"].get<std::string>();
    (event.starts_with("Admin") ? acts : events).push_back(event);
    if (event.starts_with("Admin"))
      EXPECT_TRUE(each["actor"].get<std::string>().starts_with("client 127.0.0.1:")) << event;
  }
  EXPECT_EQ(events, (std::vector<std::string>{"ObjectCreated", "ObjectWoken", "ObjectHibernated",
                                              "ObjectWoken", "ObjectDeleted"}));
  EXPECT_EQ(acts, (std::vector<std::string>{"AdminObjectCreated", "AdminObjectPatched",
                                            "AdminObjectHibernated", "AdminObjectCheckpointed",
                                            "AdminObjectRemoved"}));
}

TEST_F(ObjectsTest, O21_TheAuditLogIsLinesOfJsonAndCanBeTurnedOff) {
  start("audit:\n  file: audit.jsonl\n");
  EXPECT_EQ(increment("a"), 1);
  EXPECT_EQ(server_->stop(), kClean);
  std::istringstream lines(read_file(root_ / "audit.jsonl", std::size_t{1} << 20U).value());
  std::set<std::string> events;
  for (std::string line; std::getline(lines, line);) {
    const auto entry = parse_json(line);
    ASSERT_TRUE(entry) << line;
    events.insert(text_member(*entry, "event"));
  }
  EXPECT_TRUE(events.contains("ObjectCreated") && events.contains("ServerReady"));
  start("audit:\n  max_entries: 0\n");
  EXPECT_EQ(increment("b"), 1);
  EXPECT_EQ(parse_json(ask("GET", "/admin/audit").body).value()["entries"], Json::array());
}

TEST_F(ObjectsTest, AnAgentsOwnEntriesStandInTheAuditLogUpToALimit) {
  install_durable_agent();
  start();
  const Json added = data(200, "POST", "/objects/durable-agent/a/call/note_for_operators",
                          R"(["price.changed", {"to": 7}, 200])");
  EXPECT_GE(added, 100);
  EXPECT_LT(added, 200);
  const Json entries =
      parse_json(ask("GET", "/admin/audit?event=AgentAudit&limit=1000").body).value()["entries"];
  ASSERT_EQ(entries.size(), added.get<std::size_t>());
  EXPECT_EQ(entries[0]["actor"], "agent");
  EXPECT_EQ(entries[0]["class"], "DurableAgent");
  EXPECT_EQ(entries[0]["agent"], "a");
  EXPECT_EQ(entries[0]["detail"], Json::parse(R"({"what":"price.changed","detail":{"to":7}})"));
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
  EXPECT_EQ(status("GET", "/agents/counter/a", "").status, 200) << "agents are as they were";
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
  const Reply refused = ask("POST", "/objects/definitions/a/call/count");
  EXPECT_EQ(refused.status, 503) << refused.body;
  EXPECT_NE(refused.body.find("the path of the definitions of classes"), std::string::npos);
  EXPECT_EQ(server_->stop(), kClean);
  put("classes/definitions.yaml", "class: Definitions\nobjects: false\n");
  start("objects:\n  all_classes: true\n");
  EXPECT_EQ(AgentClient(*server_, "/agents/definitions/a").call("count"), 0)
      << "it may have agents";
}

TEST_F(ObjectsTest, OnlyAdministratorsSeeAndRemoveObjects) {
  start();
  EXPECT_EQ(increment("a"), 1);
  for (const auto& [method, path] :
       {std::pair("GET", "/objects"), std::pair("POST", "/objects"),
        std::pair("GET", "/objects/counter/a"), std::pair("DELETE", "/objects/counter/a"),
        std::pair("POST", "/objects/counter/a/hibernate"),
        std::pair("POST", "/objects/counter/a/checkpoint"),
        std::pair("PATCH", "/objects/counter/a/storage"), std::pair("GET", "/objects/some-id"),
        std::pair("DELETE", "/objects/some-id")})
    EXPECT_EQ(ask(method, path, "", false).status, 401) << method << ' ' << path;
  EXPECT_EQ(ask("POST", "/objects/counter/a/call/get", "[]", false).status, 200);
  EXPECT_EQ(ask("GET", "/objects/counter/a/alarms", "", false).status, 200);
}

}  // namespace
}  // namespace hearth::testing

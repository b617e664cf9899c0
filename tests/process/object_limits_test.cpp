// Limits of objects on a real server: how many are active, and what they may store.
#include "process/agent_client.hpp"
#include "process/objects_fixture.hpp"
#include "support/exposition.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

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
  EXPECT_TRUE(contains(refused.head, "Retry-After: 1\r\n"));
  EXPECT_TRUE(contains(refused.body, "too many objects are active"));
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
  EXPECT_TRUE(lacks(full.head, "Retry-After:"));
  AgentClient client(*server_, "/agents/session-cache/a");
  client.begin("set", R"(["b", 2])");
  EXPECT_EQ(client.answer()["error"], "an agent has at most 1 keys");
  EXPECT_EQ(data(200, "POST", call + "remove", R"(["a"])"), true);
  const Reply again = set_b("k");
  EXPECT_EQ(again.status, 429) << "the method ran, and runs once under a key";
  EXPECT_EQ(again.body, full.body);
  EXPECT_TRUE(contains(again.head, "Idempotency-Replayed: true\r\n"));
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

class ObjectBurstTest : public ObjectsTest {
 protected:
  // A call that is sent, and whose answer is read later.
  std::unique_ptr<RawClient> begin(const std::string& path, const std::string& body) const {
    auto client = std::make_unique<RawClient>(server_->port());
    client->send("POST /objects/" + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                 std::to_string(body.size()) + "\r\n\r\n" + body);
    return client;
  }
  // How many notifications of the class have been delivered, of how many.
  std::pair<double, double> notifications(const std::string& agent_class) const {
    const Exposition seen(ask("GET", "/metrics").body);
    const auto count = [&](const std::string& event) {
      return seen.value("hearth_durable_events_total", {{"class", agent_class}, {"event", event}})
          .value_or(0);
    };
    return {count("notify:delivered"), count("notify:create")};
  }
  double active() const {
    return Exposition(ask("GET", "/metrics").body).sum("agentkernel_objects_active", {});
  }
};

// An object that is just leaving still has its place.
TEST_F(ObjectBurstTest, O14_InABurstNoMoreObjectsAreInMemoryThanThereArePlaces) {
  constexpr int kPlaces = 5;
  start("limits:\n  max_active_objects: 5\n");
  std::vector<std::unique_ptr<RawClient>> burst;
  double most = 0;
  for (int i = 0; i < 200; ++i) {
    burst.push_back(begin("counter/b" + std::to_string(i) + "/call/increment", "[]"));
    if (i % 5 == 0) most = std::max(most, active());
  }
  int served = 0;
  for (const auto& each : burst) {
    const int status = each->read_reply().status;
    served += status == 200 ? 1 : 0;
    EXPECT_TRUE(status == 200 || status == 503) << status;
    most = std::max(most, active());
  }
  EXPECT_LE(most, kPlaces);
  EXPECT_GE(most, 1);
  EXPECT_GE(served, kPlaces);
}

// A call of another object waits for a place and for its file, and each of these takes its turn on
// the loop behind a step of the tree. A busy machine delays the client between two calls, so there
// are three blocks. A call that waited for the tree would see tens of thousands.
TEST_F(ObjectBurstTest, O14_CallsOfOtherObjectsDoNotWaitBehindATreeOfNotifications) {
  install(built::agent("calling-1"), "calling.so");
  put("classes/calling-agent.yaml", "class: CallingAgent\nobjects: true\n");
  start("limits:\n  max_active_objects: 20\n");
  constexpr int kOthers = 40;  // so each of them is cold when its turn comes
  constexpr int kCalls = 100;
  for (int i = 0; i < kOthers; ++i) (void)increment("o" + std::to_string(i));
  EXPECT_EQ(begin("calling-agent/root/call/spread", "[16,4]")->read_reply().status, 200);
  double least = 1e9;
  for (int block = 0; block < 3; ++block) {
    const double before = notifications("CallingAgent").first;
    for (int i = 0; i < kCalls; ++i) (void)increment("o" + std::to_string(i % kOthers));
    const auto [delivered, created] = notifications("CallingAgent");
    least = std::min(least, (delivered - before) / kCalls);
    EXPECT_GT(delivered, 0) << "the tree grows too";
    EXPECT_GT(created, delivered) << "and is not done";
  }
  EXPECT_LE(least, 2) << "notifications delivered while one call was answered";
}

}  // namespace
}  // namespace hearth::testing

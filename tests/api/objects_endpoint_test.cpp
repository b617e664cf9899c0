#include "api/objects_endpoint.hpp"

#include "api/api_fixture.hpp"
#include "support/built.hpp"
#include "support/edge_table.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hearth::api::testing {
namespace {

// Counts in its state. "hang" is never answered; other methods answer as answer_call().
Result<void> tally(HostCalls& host, const AgentEvent& event) {
  if (event.kind != EventKind::kCall) return nothing(host, event);
  if (event.name == "increment") {
    const auto state = host.state();
    const int next = (state ? std::stoi(std::string(*state)) : 0) + 1;
    const std::string text = std::to_string(next);
    (void)host.set_state(0, text);
    return host.complete(event.call, std::string_view(text));
  }
  if (event.name == "hang") return {};
  if (event.name == "set") return host.complete(event.call, Error{Errc::kConflict, "taken"});
  if (event.name == "missing") return Error{Errc::kNotFound, "no such row"};
  return answer_call(host, event);
}

class ObjectsEndpointTest : public ApiFixture {
 protected:
  static runtime::ClassSettings object_settings(runtime::ClassSettings settings = {}) {
    settings.is_object = true;
    settings.serial_calls = true;
    return settings;
  }
  void start_objects(unsigned loops = 1, runtime::ClassSettings settings = {}) {
    start(loops);
    serve("Tally", tally, object_settings(std::move(settings)));
  }
  Reply post(std::string_view target, std::string_view body = "", std::string_view extra = "") {
    return ask(http("POST", target, extra, body));
  }
  // Asked on the agent's loop.
  bool is_in_memory(const storage::AgentKey& key) const {
    std::promise<bool> told;
    const unsigned index = runtime_->shard_index(key);
    runtime_->loop(index).post(
        [&] { told.set_value(runtime_->shard(index).admin().standing(key).in_memory); });
    return told.get_future().get();
  }
  static std::string keyed(std::string_view key) {
    return "Idempotency-Key: " + std::string(key) + "\r\n";
  }
  static std::string result(std::string_view json) {
    return R"({"success":true,"data":)" + std::string(json) + R"(,"result":)" + std::string(json) +
           "}";
  }
};

TEST_F(ObjectsEndpointTest, O1_ACallMakesTheObjectAndGivesItsResult) {
  start_objects();
  const Reply reply = post("/objects/tally/a/call", R"({"method":"increment"})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, result("1"));
  EXPECT_TRUE(contains(reply.head, "Content-Type: application/json\r\n"));
  EXPECT_EQ(post("/objects/tally/a/call", R"({"method":"increment"})").body, result("2"));
  EXPECT_EQ(post("/objects/tally/b/call", R"({"method":"increment"})").body, result("1"));
  EXPECT_EQ(post("/objects/Tally/a/call", R"({"method":"increment"})").body, result("3"));
}

TEST_F(ObjectsEndpointTest, O3_BothPathsGiveTheSameAnswer) {
  start_objects();
  EXPECT_EQ(post("/objects/tally/a/call", R"({"method":"arguments","args":{"n":5}})").body,
            result(R"([{"n":5}])"));
  EXPECT_EQ(post("/objects/tally/a/call/arguments", R"({"n":5})").body, result(R"([{"n":5}])"));
  EXPECT_EQ(post("/objects/tally/a/call/arguments", "[1, 2]").body, result("[1, 2]"));
  EXPECT_EQ(post("/objects/tally/a/call/arguments").body, result("[]"));
  EXPECT_EQ(post("/objects/tally/a/call/nothing").body, result("null"));
  EXPECT_EQ(post("/objects/tally/a/call/stream").body, result("4")) << "the end of a stream";
}

TEST_F(ObjectsEndpointTest, O2_EachRefusalHasItsStatusAndItsCode) {
  start_objects();
  runtime_->classes().expect("hoped-for");
  struct Case {
    std::string_view target;
    std::string_view body;
    int status;
    std::string_view code;
    std::string_view extra = {};
  };
  const std::string key = "Idempotency-Key: a b\r\n";
  const std::string long_key = keyed(std::string(256, 'k'));
  const Case cases[] = {
      {"/objects/nobody/a/call", R"({"method":"get"})", 404, "class_not_found"},
      {"/objects/sampler/a/call", R"({"method":"get"})", 404, "class_not_found"},
      {"/objects/hoped-for/a/call", R"({"method":"get"})", 422, "library_missing"},
      {"/objects/tally/a/call", "{", 400, "invalid_argument"},
      {"/objects/tally/a/call", R"({"args":[]})", 400, "invalid_argument"},
      {"/objects/tally/%00/call", R"({"method":"get"})", 400, "invalid_argument"},
      {"/objects/tally/%2e%2e/call", R"({"method":"get"})", 400, "invalid_argument"},
      {"/objects/tally/%ff/call", R"({"method":"get"})", 400, "invalid_argument"},
      {"/objects/tally/a/call/get", "{", 400, "invalid_argument"},
      {"/objects/tally/a/call/unknown", "", 404, "invalid_method"},
      {"/objects/tally/a/call/__storage", "", 404, "invalid_method"},
      {"/objects/tally/a/call/set", "", 409, "conflict"},
      {"/objects/tally/a/call/fail", "", 500, "method_error"},
      {"/objects/tally/a/call/set", "", 400, "invalid_argument", key},
      {"/objects/tally/a/call/set", "", 400, "invalid_argument", long_key},
  };
  for (const Case& each : cases) {
    const Reply reply = post(each.target, each.body, each.extra);
    EXPECT_EQ(reply.status, each.status) << each.target << ' ' << each.body;
    EXPECT_EQ(error_code(reply), each.code) << reply.body;
    EXPECT_TRUE(contains(reply.body, R"("success":false,"error":")"));
  }
  EXPECT_EQ(get("/objects/tally/a/call").status, 405);
  readiness_.set(Readiness::Phase::kStopping);
  EXPECT_EQ(post("/objects/tally/a/call/get").status, 503);
}

TEST_F(ObjectsEndpointTest, O11_AnErrorOfTheMethodIsPassedOnAndTheMethodRanOnce) {
  std::atomic<int> runs = 0;
  // The method's argument is the error that it answers. "refuse" answers it inside the event.
  serve(
      "Failing",
      [&runs](HostCalls& host, const AgentEvent& event) -> Result<void> {
        if (event.kind != EventKind::kCall) return nothing(host, event);
        ++runs;
        if (event.name == "leave") return host.evict();
        Error error{static_cast<Errc>(std::stoi(std::string(event.body.substr(1)))), "why"};
        if (event.name == "refuse") return error;
        return host.complete(event.call, error);
      },
      object_settings());
  struct Case {
    Errc error;
    int status;
    std::string_view code;
  };
  constexpr Case kCases[] = {
      {Errc::kInvalidArgument, 400, "invalid_argument"},
      {Errc::kForbidden, 403, "forbidden"},
      {Errc::kConflict, 409, "conflict"},
      {Errc::kLimitExceeded, 429, "limit_exceeded"},
      {Errc::kPlugin, 500, "method_error"},
      {Errc::kUnavailable, 503, "sandbox_unavailable"},
  };
  for (const Case& each : kCases) {
    for (const std::string method : {"answer", "refuse"}) {
      runs = 0;
      const Reply reply =
          post("/objects/failing/a/call/" + method, std::to_string(static_cast<int>(each.error)));
      EXPECT_EQ(reply.status, each.status) << method << ' ' << reply.body;
      EXPECT_EQ(error_code(reply), each.code) << method;
      EXPECT_EQ(runs, 1) << method << ' ' << each.code;
    }
  }
  runs = 0;
  EXPECT_EQ(post("/objects/failing/a/call/leave").status, 503) << "cut off in its middle";
  EXPECT_EQ(post("/objects/failing/b/call/leave").status, 503);
  EXPECT_EQ(runs, 2);
}

TEST_F(ObjectsEndpointTest, O12_AStartThatFailsIsUnavailableAndASlowMethodTimesOut) {
  runtime::ClassSettings settings;
  settings.object_call_timeout = std::chrono::milliseconds(50);
  start_objects(1, settings);
  runtime::ClassSettings object;
  object.is_object = true;
  serve("Stillborn", broken, object);
  const Reply unavailable = post("/objects/stillborn/a/call/get");
  EXPECT_EQ(unavailable.status, 503);
  EXPECT_EQ(error_code(unavailable), "sandbox_unavailable");
  EXPECT_EQ(logger_.count("object.hibernated"), 0U) << "it was never awake";
  EXPECT_TRUE(contains(unavailable.head, "Retry-After: 1\r\n"));
  const Reply slow = post("/objects/tally/a/call/hang");
  EXPECT_EQ(slow.status, 504);
  EXPECT_EQ(error_code(slow), "call_timeout");
  EXPECT_EQ(post("/objects/tally/a/call/increment").body, result("1")) << "it goes on";
}

TEST_F(ObjectsEndpointTest, AKeyMakesASecondTrySafe) {
  start_objects();
  const Reply first = post("/objects/tally/a/call/increment", "[]", keyed("k"));
  EXPECT_EQ(first.body, result("1"));
  EXPECT_TRUE(lacks(first.head, "Idempotency-Replayed"));
  const Reply again = post("/objects/tally/a/call", R"({"method":"increment"})", keyed("k"));
  EXPECT_EQ(again.body, first.body);
  EXPECT_TRUE(contains(again.head, "Idempotency-Replayed: true\r\n"));
  const Reply other = post("/objects/tally/a/call/increment", "[2]", keyed("k"));
  EXPECT_EQ(other.status, 422);
  EXPECT_EQ(error_code(other), "idempotency_key_reused");
  EXPECT_EQ(post("/objects/tally/b/call/increment", "[]", keyed("k")).body, result("1"))
      << "a key is one object's";
  EXPECT_EQ(post("/objects/tally/a/call/increment", "[]", keyed("l")).body, result("2"));
}

TEST_F(ObjectsEndpointTest, EachRowOfSameRequestsIsComparedAsItSays) {
  start_objects();
  const auto file = hearth::testing::built::sources() / "tests/api/same_requests.txt";
  int object = 0;
  for (const std::vector<std::string>& row : hearth::testing::read_edge_table(file, 3)) {
    const std::string target = "/objects/tally/" + std::to_string(object++) + "/";
    const auto send = [&](const std::string& call) {
      const std::size_t space = call.find(' ');
      return post(target + call.substr(0, space),
                  hearth::testing::unescaped(call.substr(space + 1)), keyed("k"));
    };
    const Reply first = send(row[0]);
    const Reply second = send(row[1]);
    EXPECT_EQ(first.status, 200) << row[0] << first.body;
    const bool is_replayed = second.head.find("Idempotency-Replayed") != std::string::npos;
    const std::string heard = second.status == 422                       ? "other"
                              : is_replayed && second.body == first.body ? "same"
                                                                         : second.body;
    EXPECT_EQ(heard, row[2]) << row[0] << " | " << row[1];
  }
}

TEST_F(ObjectsEndpointTest, AKeyWhoseCallRunsIsRefused) {
  start_objects();
  RawClient first(port());
  first.send(http("POST", "/objects/tally/a/call/hang", keyed("k")));
  const Reply second = post("/objects/tally/a/call/hang", "", keyed("k"));
  EXPECT_EQ(second.status, 409);
  EXPECT_EQ(error_code(second), "call_in_progress");
}

TEST_F(ObjectsEndpointTest, O18_AnIdAndTheNameInAgentsAreOneObject) {
  start_objects();
  EXPECT_EQ(post("/objects/tally/u%2f1/call/increment").body, result("1"));
  EXPECT_EQ(post("/objects/tally/u%2F1/call/increment").body, result("2"));
  int calls = 2;
  for (const std::string name : {"u%2F1", "u%2f1", "%75%2F1"}) {
    auto client = greet("/agents/tally/" + name);
    client.say(Client::call_text("c", "increment"));
    const std::string state = R"("state":)" + std::to_string(++calls);
    EXPECT_TRUE(contains(client.read_text(), state)) << name;
  }
  EXPECT_TRUE(answers(get("/agents/tally/" + std::string(100, '^')), 400, "too long"));
  for (const std::string_view id : {"a%20b", "%2e%2e%2fetc", "%C3%A9", "x%5cy", "100%25"})
    EXPECT_EQ(post("/objects/tally/" + std::string(id) + "/call/increment").body, result("1"));
}

TEST_F(ObjectsEndpointTest, O7_ClientsThatShareAnObjectCountExactly) {
  start_objects(2);
  constexpr int kClients = 100;
  constexpr int kEach = 100;
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < kClients; ++i) {
      clients.emplace_back([&] {
        RawClient client(port());
        for (int n = 0; n < kEach; ++n) {
          if (client.request(http("POST", "/objects/tally/shared/call/increment")).status != 200)
            ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(post("/objects/tally/shared/call/increment").body, result("10001"));
}

TEST_F(ObjectsEndpointTest, O13_CallsBeyondThoseThatMayWaitAreUnavailable) {
  limits_.max_waiting = 1;
  runtime::ClassSettings settings;
  settings.object_call_timeout = std::chrono::milliseconds(500);
  start_objects(1, settings);
  EXPECT_EQ(post("/objects/tally/a/call/increment").body, result("1"));
  // One runs, one waits, and the third is refused, whichever comes first.
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->send(http("POST", "/objects/tally/a/call/hang"));
  }
  int refused = 0;
  for (const auto& client : clients) {
    const Reply reply = client->read_reply();
    if (reply.status == 504) continue;
    ++refused;
    EXPECT_EQ(reply.status, 503) << reply.body;
    EXPECT_EQ(error_code(reply), "sandbox_unavailable");
    EXPECT_TRUE(contains(reply.head, "Retry-After: 1\r\n"));
  }
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(post("/objects/tally/a/call/increment").body, result("2"));
}

TEST_F(ObjectsEndpointTest, O6_CallsAtOnceMakeOrWakeOneInstance) {
  start(2);
  std::atomic<int> starts = 0;
  serve(
      "Newborn",
      [&starts](HostCalls& host, const AgentEvent& event) {
        if (event.kind == EventKind::kStart) ++starts;
        if (event.kind == EventKind::kCall && event.name == "leave") return host.evict();
        return tally(host, event);
      },
      object_settings());
  const auto call_at_once = [this] {
    std::atomic<int> answered = 0;
    std::vector<std::jthread> clients;
    for (int i = 0; i < 100; ++i) {
      clients.emplace_back([&] {
        if (post("/objects/newborn/a/call/increment").status == 200) ++answered;
      });
    }
    clients.clear();
    return answered.load();
  };
  EXPECT_EQ(call_at_once(), 100);
  EXPECT_EQ(starts, 1);
  EXPECT_EQ(post("/objects/newborn/a/call/leave").status, 503);
  while (is_in_memory({"Newborn", "a"})) {
  }
  EXPECT_EQ(call_at_once(), 100);
  EXPECT_EQ(starts, 2) << "it hibernated, and woke once";
  EXPECT_EQ(post("/objects/newborn/a/call/increment").body, result("201"));
}

}  // namespace
}  // namespace hearth::api::testing

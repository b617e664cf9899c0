// Agents of a real server that send requests to a provider: allowed hosts, credentials, limits, and
// kills.

#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"
#include "support/provider.hpp"

#include <hearth/ext/fetch.h>

#include <sys/stat.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::testing {
namespace {

class FetchProcessTest : public ProcessTest {
 protected:
  FetchProcessTest() {
    install(built::agent("fetch-agent"), "fetch-agent.so");
    put("hearth.yaml", "egress: {ca_file: " + provider_.certificate().string() + "}\n");
    configure("");
  }

  // The class file: the settings for the provider, and more lines of `egress`.
  void configure(const std::string& more) const {
    put("classes/fetcher.yaml",
        "class: Fetcher\negress:\n  allow: [localhost, 127.0.0.1]\n" + more);
  }
  [[nodiscard]] std::unique_ptr<ServerProcess> serve_with(
      std::vector<std::string> environment) const {
    environment.insert(environment.begin(), "env");
    return serve_under(environment, {"--config", "hearth.yaml", "--shards", "1"});
  }
  [[nodiscard]] std::unique_ptr<ServerProcess> serve_fetchers(
      const std::vector<std::string>& environment = {}) const {
    auto server = serve_with(environment);
    server->wait_until_ready();
    return server;
  }
  [[nodiscard]] std::string http(std::string_view path) const {
    return "http://127.0.0.1:" + std::to_string(provider_.http()) + std::string(path);
  }
  [[nodiscard]] std::string https(std::string_view path) const {
    return "https://localhost:" + std::to_string(provider_.https()) + std::string(path);
  }
  static std::string arguments(const std::vector<Json>& all) { return dump_json(Json(all)); }
  static Json get(const ServerProcess& server, const std::string& url) {
    return AgentClient(server, "/agents/fetcher/a").call("get", arguments({url}));
  }
  [[nodiscard]] Json of_provider(const std::string& path) const {
    RawClient client(provider_.http());
    const Reply reply =
        client.request("GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    return parse_json(reply.body).value();
  }
  // How many requests of each key the provider has had.
  [[nodiscard]] std::map<std::string, int> counts() const {
    return of_provider("/counts").get<std::map<std::string, int>>();
  }
  // Of the answer to the next chat of this key only that part comes: "none" or "some".
  void hold(const std::string& key, const std::string& part) const {
    static_cast<void>(of_provider("/hold?key=" + key + "&part=" + part));
  }
  void wait_for_chat(const std::string& key) {
    while (provider_.wait_for_request() != "chat " + key) {
    }
  }
  // How many requests the provider has had.
  [[nodiscard]] int requests() const { return of_provider("/stats").at("requests").get<int>(); }
  // How often each step was tried. Each has its text.
  static std::map<std::string, int> attempts_of(const Json& transcript) {
    std::map<std::string, int> attempts;
    for (const Json& each : transcript) {
      const std::string key = "step-" + std::to_string(each.at("step").get<int>());
      EXPECT_EQ(each.at("text"), "You said: this is " + key);
      attempts[key] = each.at("attempts").get<int>();
    }
    return attempts;
  }
  static Json transcript_of(const ServerProcess& server) {
    return AgentClient(server, "/agents/fetcher/a").call("transcript");
  }

  Provider provider_;
};

TEST_F(FetchProcessTest, AChatIsStreamedOverTls) {
  const auto server = serve_fetchers();
  AgentClient client(*server, "/agents/fetcher/a");
  EXPECT_EQ(client.call("chat", arguments({https("/v1/chat/completions"), "hello there"})),
            "You said: hello there");
  const Json echo = client.call("get", arguments({https("/echo?x=1")}));
  EXPECT_EQ(echo.at("status"), 200);
  EXPECT_TRUE(contains(echo.at("body").get<std::string>(), R"("url":"/echo?x=1")"));
  EXPECT_EQ(client.call("get", arguments({http("/status?code=429")})).at("status"), 429);
}

TEST_F(FetchProcessTest, TheRulesAreKeptAlsoAfterARedirect) {
  const auto server = serve_fetchers();
  AgentClient client(*server, "/agents/fetcher/a");
  const Json refused = client.call("get", arguments({"http://example.com/"}));
  EXPECT_EQ(refused.at("code"), HEARTH_E_FORBIDDEN);
  EXPECT_EQ(refused.at("phase"), HEARTH_FETCH_PHASE_RULES);
  EXPECT_EQ(refused.at("sent"), false);
  const Json redirected = client.call(
      "get_with", arguments({http("/redirect?to=http://169.254.169.254/latest"), "", true}));
  EXPECT_EQ(redirected.at("code"), HEARTH_E_FORBIDDEN);
  EXPECT_EQ(redirected.at("phase"), HEARTH_FETCH_PHASE_RULES);
  EXPECT_EQ(redirected.at("sent"), true) << "the first hop was";
  server->wait_for_log("fetch.refused");
}

TEST_F(FetchProcessTest, WithoutRulesNoPrivateAddressIsReached) {
  put("classes/fetcher.yaml", "class: Fetcher\n");
  const auto server = serve_fetchers();
  for (const std::string& url : {http("/echo"), https("/echo")}) {
    const Json refused = get(*server, url);
    EXPECT_EQ(refused.at("code"), HEARTH_E_FORBIDDEN) << url;
    EXPECT_EQ(refused.at("sent"), false) << url;
  }
  RawClient client(provider_.http());
  const Reply stats = client.request("GET /stats HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(contains(stats.body, R"("http":1,)")) << stats.body << ": this alone";
}

// The other settings are on trial, and the crash takes them back.
TEST_F(FetchProcessTest, ACrashOpensNoWayThatWasClosed) {
  put("hearth.yaml",
      "reload: {quiet_time: 50ms}\negress: {ca_file: " + provider_.certificate().string() + "}\n");
  auto server = serve_fetchers();
  EXPECT_EQ(get(*server, http("/echo")).at("status"), 200);
  put("classes/fetcher.yaml",
      "class: Fetcher\nidle_timeout: 1h\negress: {allow: [elsewhere.example]}\n");
  server->wait_for_log("config.done class=Fetcher");
  EXPECT_EQ(get(*server, http("/echo")).at("code"), HEARTH_E_FORBIDDEN);
  AgentClient(*server, "/agents/fetcher/a").begin("crash");
  EXPECT_EQ(server->wait().signal, SIGSEGV);
  server = serve_fetchers();
  server->wait_for_log("config.taken_back");
  const Json refused = get(*server, http("/echo"));
  ASSERT_TRUE(refused.contains("code")) << dump_json(refused);
  EXPECT_EQ(refused.at("code"), HEARTH_E_FORBIDDEN);
}

TEST_F(FetchProcessTest, TheCredentialReachesTheProviderAndNothingElse) {
  put("classes/key", "X-Api-Key: s3cret-and-long-enough\n");
  std::filesystem::permissions(root_ / "classes/key", std::filesystem::perms{0644});
  configure("  secrets: {provider: key}\n");
  const auto server = serve_fetchers();
  AgentClient client(*server, "/agents/fetcher/a");
  const Json echo = client.call("get_with", arguments({https("/echo"), "provider", false}));
  EXPECT_TRUE(
      contains(echo.at("body").get<std::string>(), R"("x-api-key":"**********************")"))
      << "what the provider repeats is hidden from the agent: " << dump_json(echo);
  const std::string away = http("/redirect?to=" + https("/echo"));
  const Json redirected = client.call("get_with", arguments({away, "provider", true}));
  EXPECT_TRUE(lacks(redirected.at("body").get<std::string>(), "s3cret")) << "another origin";
  EXPECT_EQ(client.call("get_with", arguments({https("/echo"), "other", false})).at("code"),
            HEARTH_E_NOT_FOUND);
  const Json failed =
      client.call("get_with", arguments({http("/cut-before-head"), "provider", false}));
  EXPECT_EQ(failed.at("code"), HEARTH_E_BUSY);
  EXPECT_TRUE(lacks(dump_json(failed), "s3cret"));
  EXPECT_EQ(server->kill(), kKilled);
  EXPECT_TRUE(lacks(server->log(), "s3cret"));
  EXPECT_TRUE(contains(server->log(), "class.secret_readable"));
}

TEST_F(FetchProcessTest, TheBytesOfADayAreKnownAfterAKill) {
  configure("  limits: {bytes_per_day: 4KiB}\n");
  auto server = serve_fetchers();
  const Json cut = get(*server, http("/bytes?n=5000"));
  EXPECT_EQ(cut.at("code"), HEARTH_E_LIMIT);
  EXPECT_EQ(cut.at("phase"), HEARTH_FETCH_PHASE_BODY);
  const auto is_refused = [](const Json& answer) {
    return answer.contains("code") && answer.at("code") == HEARTH_E_LIMIT &&
           answer.at("phase") == HEARTH_FETCH_PHASE_RULES && answer.at("sent") == false;
  };
  EXPECT_TRUE(is_refused(get(*server, http("/echo"))));
  EXPECT_EQ(server->stop(), kClean);
  server = serve_fetchers();
  EXPECT_TRUE(is_refused(get(*server, http("/echo"))));
  EXPECT_EQ(server->kill(), kKilled);
  server = serve_fetchers();
  const Json refused = get(*server, http("/echo"));
  EXPECT_TRUE(is_refused(refused));
  EXPECT_TRUE(contains(refused.at("text").get<std::string>(), "bytes_per_day is 4096"));
}

TEST_F(FetchProcessTest, NoShardWaitsForTheRecordOfLimits) {
  configure("  limits: {requests_per_minute: 1000000, bytes_per_day: 1GiB}\n");
  const auto record = root_ / "syncs";
  {
    const auto server = serve_fetchers(
        {"LD_PRELOAD=" + built::sync_recorder().string(), "SYNC_RECORD=" + record.string()});
    for (int i = 0; i < 5; ++i) EXPECT_EQ(get(*server, http("/echo")).at("status"), 200);
    EXPECT_EQ(server->stop(), kClean);
  }
  int of_shards = 0;
  int all = 0;
  std::ifstream file(record);
  for (std::string thread, call; file >> thread >> call; ++all)
    of_shards += thread.find("shard") != std::string::npos ? 1 : 0;
  EXPECT_EQ(of_shards, 0);
  EXPECT_GT(all, 0);
}

TEST_F(FetchProcessTest, MetricsCountRequests) {
  const auto server = serve_fetchers();
  EXPECT_EQ(get(*server, http("/echo")).at("status"), 200);
  static_cast<void>(get(*server, "http://example.com/"));
  const std::string text = request(*server, "GET", "/metrics").body;
  EXPECT_TRUE(contains(text, R"(hearth_fetch_requests_total{class="Fetcher",outcome="answered"} 1)",
                       R"(hearth_fetch_requests_total{class="Fetcher",outcome="refused"} 1)",
                       R"(hearth_fetch_in_flight{class="Fetcher"} 0)"));
}

TEST_F(FetchProcessTest, AShutdownEndsRequestsInProgress) {
  put("hearth.yaml", "limits: {shutdown_grace: 10ms}\n");
  const auto server = serve_fetchers();
  AgentClient(*server, "/agents/fetcher/a").begin("get", arguments({http("/stall")}));
  AgentClient(*server, "/agents/fetcher/b").begin("get", arguments({http("/never")}));
  const std::set<std::string> both = {provider_.wait_for_request(), provider_.wait_for_request()};
  EXPECT_EQ(both, (std::set<std::string>{"never", "stall"}));
  EXPECT_EQ(server->stop(), kClean);
}

// With `power`, earlier writes must be on the device first.
TEST_F(FetchProcessTest, NoRequestLeavesWhileASyncOfItsAgentIsHeldBack) {
  configure("durability: power\n");
  const std::string pipe = root_ / "held-syncs";
  const auto server =
      serve_fetchers({"LD_PRELOAD=" + built::held_sync().string(), "HELD_SYNCS=" + pipe});
  AgentClient writer(*server, "/agents/fetcher/writer");
  AgentClient reader(*server, "/agents/fetcher/reader");
  for (AgentClient* const each : {&writer, &reader})
    EXPECT_EQ(each->call("write_and_get", arguments({http("/echo")})).at("status"), 200);
  EXPECT_EQ(requests(), 2);

  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  writer.begin("write_and_get", arguments({http("/bytes?n=1")}));
  server->wait_for_log("a sync is held back");
  // The shard goes on meanwhile: it is this request that waits.
  EXPECT_EQ(reader.call("get", arguments({http("/echo")})).at("status"), 200);
  EXPECT_EQ(requests(), 3);

  std::ofstream let_go(pipe);
  std::filesystem::remove(pipe);
  EXPECT_EQ(writer.result().at("status"), 200);
  EXPECT_EQ(requests(), 4);
  EXPECT_EQ(server->stop(), kClean);
}

// ---- kills ----

TEST_F(FetchProcessTest, KilledAfterTheCommitNothingWasSentAndTheFiberAsksAgain) {
  auto server = serve_fetchers({"HEARTH_STOP_AT=fetch.start.committed"});
  AgentClient client(*server, "/agents/fetcher/a");
  client.begin("run", arguments({http("/v1/chat/completions"), 2}));
  server->wait_for_log("stopped at fetch.start.committed\n");
  EXPECT_EQ(server->kill(), kKilled);
  EXPECT_TRUE(counts().empty());
  server = serve_fetchers();
  server->wait_for_log("the run is over");
  EXPECT_EQ(counts(), (std::map<std::string, int>{{"step-1", 1}, {"step-2", 1}}));
  EXPECT_EQ(attempts_of(transcript_of(*server)),
            (std::map<std::string, int>{{"step-1", 2}, {"step-2", 1}}));
}

TEST_F(FetchProcessTest, KilledBeforeTheAnswerTheFiberAsksAgainUnderItsKey) {
  hold("step-1", "none");
  auto server = serve_fetchers();
  AgentClient(*server, "/agents/fetcher/a")
      .begin("run", arguments({http("/v1/chat/completions"), 2}));
  wait_for_chat("step-1");
  EXPECT_EQ(server->kill(), kKilled);
  server = serve_fetchers();
  server->wait_for_log("the run is over");
  const std::map<std::string, int> both = {{"step-1", 2}, {"step-2", 1}};
  EXPECT_EQ(counts(), both);
  EXPECT_EQ(attempts_of(transcript_of(*server)), both);
}

// An attempt is written before its request is sent. So the transcript has, for each step, the count
// of the provider, and one more for each kill between the two.
TEST_F(FetchProcessTest, ARunThatIsKilledTenTimesAgreesWithTheProvider) {
  constexpr int kSteps = 30;
  enum class Place { kCommitted, kSent, kAnswering };
  using enum Place;
  struct Kill {
    int step;
    Place place;  // kCommitted: the next request of that life, so behind another kill of the step
  };
  constexpr std::array<Kill, 10> kKills = {{{2, kSent},
                                            {5, kAnswering},
                                            {5, kCommitted},
                                            {8, kSent},
                                            {11, kAnswering},
                                            {14, kSent},
                                            {14, kCommitted},
                                            {19, kAnswering},
                                            {24, kSent},
                                            {28, kAnswering}}};
  std::map<std::string, int> attempts;
  for (int step = 1; step <= kSteps; ++step) attempts["step-" + std::to_string(step)] = 1;
  std::map<std::string, int> counted = attempts;

  configure("fibers: {retry_base: 1ms}\n");
  bool has_begun = false;
  for (const auto& [step, place] : kKills) {
    const std::string key = "step-" + std::to_string(step);
    if (place != kCommitted) hold(key, place == kSent ? "none" : "some");
    const auto server = place == kCommitted ? serve_with({"HEARTH_STOP_AT=fetch.start.committed"})
                                            : serve_fetchers();
    if (!std::exchange(has_begun, true)) {
      AgentClient(*server, "/agents/fetcher/a")
          .begin("run", arguments({http("/v1/chat/completions"), kSteps}));
    }
    if (place == kCommitted) {
      server->wait_for_log("stopped at fetch.start.committed\n");
    } else {
      wait_for_chat(key);
      ++counted[key];
    }
    ++attempts[key];
    EXPECT_EQ(server->kill(), kKilled);
  }
  const auto server = serve_fetchers();
  server->wait_for_log("the run is over");
  EXPECT_EQ(counts(), counted);
  EXPECT_EQ(attempts_of(transcript_of(*server)), attempts);
  EXPECT_EQ(server->stop(), kClean);
}

}  // namespace
}  // namespace hearth::testing

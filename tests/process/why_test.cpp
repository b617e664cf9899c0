// `hearth why` and `hearth stuck`: agents are brought into states in which they wait, and each wait
// must be named right.
#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"
#include "support/exposition.hpp"

#include <sqlite3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace hearth::testing {
namespace {

using std::chrono::milliseconds;

// Takes connections and never answers.
class SilentServer {
 public:
  SilentServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const its = reinterpret_cast<sockaddr*>(&address);  // NOLINT: the system's interface
    if (::bind(socket_, its, size) != 0 || ::listen(socket_, 16) != 0 ||
        ::getsockname(socket_, its, &size) != 0)
      throw std::runtime_error("no silent server");
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~SilentServer() { ::close(socket_); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  const int socket_;
  std::string url_;
};

class WhyTest : public ProcessTest {
 protected:
  void give(const std::string& agent_class, const std::string& more) const {
    put("classes/" + agent_class + ".yaml", "class: " + agent_class + "\n" + more);
  }
  void put_in_place(const std::string& library, const std::string& name) const {
    replace(built::agent(library), name);
  }
  [[nodiscard]] std::unique_ptr<ServerProcess> start() const {
    return serve_ready({"--config", "hearth.yaml", "--log-level", "debug"});
  }
  Json admin(const std::string& method, const std::string& target) const {
    const Reply reply = request(*server_, method, target, bearer());
    if (reply.status != 200) throw std::runtime_error(target + ": " + reply.body);
    return parse_json(reply.body).value();
  }
  Json why(const std::string& agent) const {
    return admin("GET", "/admin/agents/" + agent + "/why");
  }
  // A command that only looks must work as it is printed.
  void run_it(const Json& command) const {
    if (!command.is_string()) return;
    const std::string text = command.get<std::string>();
    if (text.find("show") == std::string::npos && text.find("operations") == std::string::npos &&
        text.find("hearth why") == std::string::npos)
      return;
    ServerProcess shell({"sh", "-c", built::server().string() + text.substr(6) + " --data data"},
                        root_);
    EXPECT_EQ(shell.wait(), kClean) << text << shell.log();
  }
  // Sends a call without waiting for the answer, over a connection that stays.
  AgentClient& begin(const std::string& agent, const std::string& method,
                     const std::string& arguments = "[]") {
    clients_.push_back(std::make_unique<AgentClient>(*server_, "/agents/" + agent));
    clients_.back()->begin(method, arguments);
    return *clients_.back();
  }
  Json call(const std::string& agent, const std::string& method,
            const std::string& arguments = "[]") const {
    return AgentClient(*server_, "/agents/" + agent).call(method, arguments);
  }
  // Its client may still be leaving, and wakes it once more.
  void evict(const std::string& agent) const {
    while (admin("POST", "/admin/agents/" + agent + "/evict").at("state") != "cold")
      std::this_thread::sleep_for(milliseconds(50));
  }
  static bool has(const Json& answer, const std::string& kind) {
    return std::ranges::any_of(answer.at("waits"),
                               [&](const Json& wait) { return wait.at("kind") == kind; });
  }
  // Until the agent is in that state (empty: in any) and has such a wait.
  Json wait_for(const std::string& agent, const std::string& state, const std::string& kind) const {
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    for (;;) {
      std::string said;
      try {
        Json answer = why(agent);
        if ((state.empty() || answer.at("state") == state) && has(answer, kind)) return answer;
        said = dump_json(answer);
      } catch (const std::runtime_error& refused) {  // it may not exist yet
        said = refused.what();
      }
      if (std::chrono::steady_clock::now() > deadline)
        throw std::runtime_error("no " + kind + ": " + said);
      std::this_thread::sleep_for(
          milliseconds(100));  // a look counts as use: the agent could not rest
    }
  }
  // Of all pages.
  std::set<std::string> stuck(const std::string& agent_class = "") const {
    std::set<std::string> names;
    Json next = "";
    while (!next.is_null()) {
      const Json page = admin(
          "GET", "/admin/stuck?limit=2&class=" + agent_class + "&after=" + next.get<std::string>());
      for (const Json& each : page.at("agents"))
        names.insert(each.at("class").get<std::string>() + "/" +
                     each.at("agent").get<std::string>());
      next = page.at("next");
    }
    return names;
  }

  // Into a table of the directory, while no server runs: 10,000 of the class, a0, a1, ...
  void add_agents(const std::string& into, const std::string& agent_class,
                  const std::string& values) const;

  const SilentServer silent_;
  std::unique_ptr<ServerProcess> server_;
  std::vector<std::unique_ptr<AgentClient>> clients_;
};

struct Scenario {
  const char* agent;
  const char* state;
  const char* kind;
  const char* urgency;
  std::function<void()> seed;  // null: an earlier server has left it so
};

class StuckStatesTest : public WhyTest {
 protected:
  StuckStatesTest() {
    for (const char* library : {"durable-agent", "probe-agent", "streams", "calling-1",
                                "fetch-agent", "steps-agent", "crashes", "buyer-agent"})
      put_in_place(library, std::string(library) + ".so");
    put_in_place("fragile-1", "fragile.so");
    put_in_place("versioned-1", "versioned.so");
    install(bundled("counter"), "counter.so");
    put("hearth.yaml", "shards: 2\nreload: {quiet_time: 50ms}\n");
    give("Fetcher", "egress: {allow: [127.0.0.1]}\n");
    give("Buyer", "egress: {allow: [127.0.0.1]}\noptions: {provider: \"" + silent_.url() + "\"}\n");
    give("Fragile", "idle_timeout: 50ms\n");
    give("DurableAgent", "fibers: {max_attempts: 1, retry_base: 1ms}\n");
    give("StepsAgent", "operations: {kinds: {nothing: {per_day: 1}}}\n");
    give("SlowStart", "code: ProbeAgent\noptions: {start_ms: 3600000}\n");
    give("Versioned", "evict_grace: 5m\noptions: {evict_ms: 3600000}\n");
  }

  // What only an earlier server can leave: an operation that was cut off, and a class in
  // quarantine.
  void leave_from_before() {
    server_ = start();
    EXPECT_EQ(increment(*server_, "a"), R"({"count":1})");
    EXPECT_EQ(request(*server_, "POST", "/agents/buyer/a?kind=unsafe").status, 202);
    (void)wait_for("Buyer/a", "live", "request");
    EXPECT_EQ(request(*server_, "GET", "/agents/crashes/a?how=loop").status, 200);
    (void)server_->wait();
    for (int starts = 0; starts < 3; ++starts) {
      server_ = serve({"--config", "hearth.yaml"});
      (void)server_->wait();
    }
    std::filesystem::remove(root_ / "plugins/counter.so");
  }
};

TEST_F(StuckStatesTest, EachIsNamedRightAlsoColdAndWhatIsHealthyIsNotCalledStuck) {
  leave_from_before();
  server_ = start();
  const std::string url = "[\"" + silent_.url() + "/\"]";
  const auto durable = [this](const char* name, const char* method, const char* arguments,
                              bool is_cold) {
    call(std::string("durable-agent/") + name, method, arguments);
    if (is_cold) evict(std::string("DurableAgent/") + name);
  };
  // Dead first: only then the agent rests.
  const auto dead = [this](const char* name, const char* method, const char* arguments,
                           const char* kind, bool is_cold) {
    call(std::string("durable-agent/") + name, method, arguments);
    const std::string agent = std::string("DurableAgent/") + name;
    (void)wait_for(agent, "live", kind);
    if (is_cold) evict(agent);
  };
  constexpr const char* kHopeless = R"(["hopeless", 0])";
  constexpr const char* kTomorrow = R"(["note", 86400000, "x"])";
  const std::vector<Scenario> scenarios = {
      // ---- left from before
      {"Counter/a", "cold", "no_class", "person", nullptr},
      {"Crashes/a", "cold", "quarantine", "person", nullptr},
      {"Buyer/a", "", "unknown", "person", nullptr},
      // ---- durable work
      {"DurableAgent/runs", "live", "fiber", "none",
       [&] { durable("runs", "begin", R"(["w", null, {"ms": 3600000}])", false); }},
      {"DurableAgent/retries", "live", "retry", "none",
       [&] {
         durable("retries", "begin",
                 R"(["w", null, {"steps": 99, "failures": 90, "max_retries": 95}])", false);
       }},
      {"DurableAgent/lane", "live", "lane", "none",
       [&] {
         for (const char* const name : {"first", "second"})
           durable(
               "lane", "begin",
               (R"([")" + std::string(name) + R"(", null, {"ms": 3600000, "lane": "l"}])").c_str(),
               false);
       }},
      {"DurableAgent/gave-up", "", "dead_fiber", "person",
       [&] {
         durable("gave-up", "begin", R"(["w", null, {"ms": 3600000, "hook": "throw"}])", false);
         (void)admin("POST", "/admin/agents/DurableAgent/gave-up/evict");
       }},
      {"DurableAgent/paused", "live", "paused", "none",
       [&] {
         durable("paused", "later", kTomorrow, false);
         const std::string work = "/admin/agents/DurableAgent/paused/work";
         const Json all = admin("GET", work + "?kind=schedule").at("work");
         (void)admin("POST",
                     work + "/schedule/" + all.at(0).at("id").get<std::string>() + "/pause");
       }},
      {"DurableAgent/paused", "cold", "paused", "none", [&] { evict("DurableAgent/paused"); }},
      {"DurableAgent/letter", "live", "dead_letter", "person",
       [&] { dead("letter", "push", kHopeless, "dead_letter", false); }},
      {"DurableAgent/cold-letter", "cold", "dead_letter", "person",
       [&] { dead("cold-letter", "push", kHopeless, "dead_letter", true); }},
      {"DurableAgent/asks", "live", "person", "person",
       [&] { durable("asks", "asks_person", R"(["the contract is signed"])", false); }},
      {"DurableAgent/cold-asks", "cold", "person", "person",
       [&] { durable("cold-asks", "asks_person", R"(["the contract is signed"])", true); }},
      {"DurableAgent/tomorrow", "live", "schedule", "none",
       [&] { durable("tomorrow", "later", kTomorrow, false); }},
      {"DurableAgent/cold-tomorrow", "cold", "schedule", "none",
       [&] { durable("cold-tomorrow", "later", kTomorrow, true); }},
      {"DurableAgent/cold-alarm", "cold", "alarm", "none",
       [&] { durable("cold-alarm", "alarm_in", R"([86400000, "x"])", true); }},
      {"CallingAgent/notifies", "live", "notice", "none",
       [&] { call("calling-agent/notifies", "notify", R"(["SlowStart", "told", 1, 1])"); }},
      {"Fragile/a", "cold", "code", "person",
       [&] {
         call("fragile/a", "begin", R"(["later"])");
         call("fragile/mixed", "tomorrow");
         call("fragile/mixed", "begin", R"(["later"])");
         put_in_place("fragile-2", "fragile.so");
         server_->wait_for_log("fiber:unknown");
       }},
      {"Fragile/mixed", "cold", "code", "person", nullptr},
      {"StepsAgent/a", "live", "budget", "none", [&] { call("steps-agent/a", "operate", "[1]"); }},
      {"StepsAgent/a", "cold", "budget", "none", [&] { evict("StepsAgent/a"); }},
      // ---- in memory
      {"ProbeAgent/never", "live", "call", "none", [&] { begin("probe-agent/never", "never"); }},
      {"SlowStart/a", "waking", "start", "none", [&] { begin("slow-start/a", "get"); }},
      {"Versioned/a", "evicting", "eviction", "none",
       [&] {
         call("versioned/a", "version");
         (void)admin("POST", "/admin/agents/Versioned/a/evict");
       }},
      {"Streams/a", "live", "client", "none",
       [&] { begin("streams/a?_pk=deaf", "flood", R"(["deaf", 1000, 65536])"); }},
      {"Fetcher/a", "live", "request", "none", [&] { begin("fetcher/a", "get", url); }},
      {"CallingAgent/asks", "live", "agent_call", "none",
       [&] {
         begin("calling-agent/asks", "ask", R"(["CallingAgent", "held", "hold", [3600000]])");
       }},
      {"CallingAgent/held", "live", "call", "none", nullptr},
  };
  for (const Scenario& each : scenarios) {
    SCOPED_TRACE(each.agent);
    try {
      if (each.seed) each.seed();
      const Json answer = wait_for(each.agent, each.state, each.kind);
      const Json& waits = answer.at("waits");
      const auto found = std::ranges::find_if(
          waits, [&each](const Json& wait) { return wait.at("kind") == each.kind; });
      EXPECT_EQ(found->at("urgency"), each.urgency) << dump_json(answer);
      EXPECT_TRUE(found->at("since_ms").is_number()) << dump_json(answer);
      EXPECT_EQ(waits.front().at("urgency"), each.urgency) << dump_json(answer);
      EXPECT_EQ(found->at("do").is_null() && found->at("run").is_null(),
                std::string(each.urgency) == "none" && std::string(each.kind) != "budget")
          << dump_json(answer);
      run_it(found->at("run"));
    } catch (const std::exception& failure) {
      ADD_FAILURE() << failure.what();
    }
  }

  // With a class each of its agents is looked at; nothing else of it is stuck.
  EXPECT_EQ(
      stuck("DurableAgent"),
      (std::set<std::string>{"DurableAgent/asks", "DurableAgent/cold-asks", "DurableAgent/letter",
                             "DurableAgent/cold-letter", "DurableAgent/gave-up"}));
  // With "*" each agent of each class.
  const std::set<std::string> each = stuck("*");
  for (const char* wanted : {"DurableAgent/cold-letter", "DurableAgent/gave-up", "Counter/a",
                             "Crashes/a", "Buyer/a", "Fragile/a"})
    EXPECT_TRUE(each.contains(wanted)) << wanted;
  EXPECT_FALSE(each.contains("DurableAgent/cold-tomorrow"));
  for (const char* healthy : {"CallingAgent", "ProbeAgent", "StepsAgent", "Streams", "Fetcher"})
    EXPECT_EQ(stuck(healthy), std::set<std::string>()) << healthy;
  // Without one, those that the wake index hints at.
  const std::set<std::string> hinted = stuck();
  for (const char* wanted :
       {"Buyer/a", "Fragile/a", "Fragile/mixed", "DurableAgent/asks", "DurableAgent/cold-asks",
        "DurableAgent/letter", "DurableAgent/cold-letter", "DurableAgent/gave-up"})
    EXPECT_TRUE(hinted.contains(wanted)) << wanted;
  EXPECT_FALSE(hinted.contains("DurableAgent/tomorrow"));
  // The figure is of the look that its first reading has caused.
  const auto figure = [this] {
    return Exposition(request(*server_, "GET", "/metrics").body).value("hearth_agents_stuck");
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (figure() != hinted.size() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(20));  // the server has the processor
  EXPECT_EQ(figure(), hinted.size());

  EXPECT_TRUE(contains(dump_json(why("DurableAgent/cold-asks")),
                       "It waits for a person. Its code says: \\\"the contract is signed\\\"."));
  call("durable-agent/cold-asks", "asks_person", R"([""])");
  evict("DurableAgent/cold-asks");
  EXPECT_FALSE(stuck().contains("DurableAgent/cold-asks"));
  EXPECT_TRUE(why("DurableAgent/cold-asks").at("waits").empty());

  EXPECT_TRUE(contains(ask({"why", "DurableAgent/cold-letter"}),
                       "DurableAgent/cold-letter is cold:\n! An item of the queue for "
                       "\"hopeless\" has used up its tries."));
  EXPECT_EQ(why("DurableAgent/cold-letter").at("state"), "cold") << "it was not woken";
  clients_.clear();
  (void)server_->kill();
}

TEST_F(WhyTest, DeadWorkIsFoundAlsoOfAgentsThatAKillHasLeftCold) {
  put_in_place("durable-agent", "durable-agent.so");
  put("hearth.yaml", "shards: 2\n");
  server_ = start();
  const std::set<std::string> dead{"DurableAgent/cold", "DurableAgent/live"};
  for (const std::string& agent : dead) {
    call("durable-agent/" + agent.substr(agent.find('/') + 1), "push", R"(["hopeless", 0])");
    (void)wait_for(agent, "live", "dead_letter");
  }
  evict("DurableAgent/cold");
  EXPECT_EQ(stuck(), dead);
  (void)server_->kill();
  server_ = start();
  EXPECT_EQ(stuck(), dead);
  for (const std::string& agent : dead) {
    EXPECT_EQ(why(agent).at("state"), "cold") << "it was not woken";
    const std::string work = "/admin/agents/" + agent + "/work";
    const Json letters = admin("GET", work + "?state=dead").at("work");
    (void)admin("POST", work + "/item/" + letters.at(0).at("id").get<std::string>() + "/cancel");
  }
  EXPECT_EQ(stuck(), std::set<std::string>());
}

TEST_F(WhyTest, CodeThatHoldsItsLoopUpIsNamedWithItsStack) {
  put_in_place("probe-agent", "probe-agent.so");
  put("hearth.yaml", "shards: 2\n");
  server_ = start();
  const auto kept = call("probe-agent/a", "journal");  // it has a file
  Json answer;
  // The loop that is held up may also be the one that got the administrator's connection: then the
  // answer comes when the call is over.
  for (int tries = 0; tries < 20 && !(answer.is_object() && answer.at("state") == "unknown");
       ++tries) {
    begin("probe-agent/a", "spin", "[2000]");
    answer = why("ProbeAgent/a");
  }
  ASSERT_EQ(answer.at("state"), "unknown") << dump_json(answer);
  const Json& wait = answer.at("waits").at(0);
  EXPECT_EQ(wait.at("kind"), "call") << dump_json(answer);
  EXPECT_TRUE(contains(wait.at("what").get<std::string>(), "\"spin\" is in progress"))
      << dump_json(answer);
  EXPECT_TRUE(contains(wait.at("what").get<std::string>(), "ProbeAgent::spin"))
      << dump_json(answer);
}

void WhyTest::add_agents(const std::string& into, const std::string& agent_class,
                         const std::string& values) const {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open((root_ / "data/host.db").c_str(), &database), SQLITE_OK);
  const std::string sql =
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) "
      "INSERT OR IGNORE INTO " +
      into + " SELECT '" + agent_class + "', 'a' || i, " + values + " FROM n";
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  sqlite3_close(database);
}

// The time is what matters here, with as many agents as an operator may well have.
TEST_F(WhyTest, OneOfTenThousandAgentsIsExplainedInTime) {
  install(bundled("counter"), "counter.so");
  put("hearth.yaml", "shards: 2\n");
  server_ = start();
  for (int i = 0; i < 21; ++i) increment(*server_, "a" + std::to_string(i * 476));
  EXPECT_EQ(server_->stop(), kClean);
  add_agents("agents(class, name, created_at)", "Counter", "1");
  // In a hundred years.
  add_agents("wakes(class, name, working, at)", "Counter", "0, 4900000000000");
  server_ = start();
  std::vector<milliseconds> times;
  for (int i = 0; i < 21; ++i) {
    const auto began = std::chrono::steady_clock::now();
    const Json answer = why("Counter/a" + std::to_string(i * 476));
    times.push_back(
        std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began));
    EXPECT_TRUE(answer.at("waits").empty()) << dump_json(answer);
  }
  std::ranges::sort(times);
#ifdef NDEBUG
  EXPECT_LT(times[times.size() / 2].count(), 100);
#endif
  EXPECT_EQ(stuck(), std::set<std::string>());
}

// ---- on the way into memory ---------------------------------------------------------------------

TEST_F(WhyTest, AnAgentThatWaitsForRoomIsNamed) {
  put_in_place("probe-agent", "probe-agent.so");
  put_in_place("versioned-1", "versioned.so");
  give("Versioned", "evict_grace: 5m\noptions: {evict_ms: 3600000}\n");
  put("hearth.yaml", "shards: 1\nlimits: {max_live_agents: 1}\n");
  server_ = start();
  call("versioned/a", "version");  // it leaves for the other, which takes long
  begin("probe-agent/b", "journal");
  const Json answer = wait_for("ProbeAgent/b", "cold", "room");
  EXPECT_EQ(answer.at("waits").front().at("what"), "It waits for room in memory.");
  EXPECT_EQ(answer.at("waits").front().at("urgency"), "none") << "not yet";
  clients_.clear();
  (void)server_->kill();
}

TEST_F(WhyTest, AgentsWhoseTimeHasComeWaitForTheirTurnToStart) {
  put_in_place("probe-agent", "probe-agent.so");
  give("SlowStart", "code: ProbeAgent\noptions: {start_ms: 3600000}\n");
  put("hearth.yaml", "shards: 2\n");
  server_ = start();
  EXPECT_EQ(server_->stop(), kClean);
  add_agents("agents(class, name, created_at)", "SlowStart", "1");
  add_agents("wakes(class, name, working, at)", "SlowStart", "0, 1");
  server_ = start();
  // All of these are looked at at once, and only so many may start.
  const auto how_many = [this](const std::string& kind) {
    int count = 0;
    for (int i = 0; i < 200; ++i) count += has(why("SlowStart/a" + std::to_string(i)), kind);
    return count;
  };
  const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
  int starting = how_many("start");
  while (starting + how_many("permit") < 200 && std::chrono::steady_clock::now() < deadline)
    starting = how_many("start");
  EXPECT_EQ(starting + how_many("permit"), 200);
  EXPECT_LE(starting, 64);
  for (int i = 0; i < 200; ++i) {
    const Json answer = why("SlowStart/a" + std::to_string(i));
    if (!has(answer, "permit")) continue;
    EXPECT_EQ(answer.at("state"), "cold") << dump_json(answer);
    EXPECT_EQ(answer.at("waits").front().at("kind"), "permit") << dump_json(answer);
    break;
  }
  (void)server_->kill();
}

TEST_F(WhyTest, AnAgentThatCannotStartOnAVersionUnderTrialIsNamed) {
  put_in_place("versioned-1", "versioned.so");
  put("hearth.yaml",
      "shards: 2\nreload: {quiet_time: 50ms, policy: drain, trial_agents: 2, max_failed_percent: "
      "50}\n");
  server_ = start();
  // Its client stays: it is woken for it.
  EXPECT_EQ(begin("versioned/idle", "version").result(), "1.0.0");
  // The idle one tries the version, and the trial is decided once this one has tried it, too.
  begin("versioned/busy", "hold", dump_json(Json::array({(root_ / "never").string()})));
  (void)wait_for("Versioned/busy", "live", "call");
  put_in_place("versioned-bad", "versioned.so");
  const Json answer = wait_for("Versioned/idle", "cold", "trial");
  EXPECT_TRUE(contains(answer.at("waits").front().at("what").get<std::string>(),
                       "It failed to start on the new version, which is under trial."))
      << dump_json(answer);
  clients_.clear();
  (void)server_->kill();
}

TEST_F(WhyTest, AnAgentThatRunsOnAVersionUnderTrialIsNamed) {
  put_in_place("versioned-1", "versioned.so");
  put("hearth.yaml", "shards: 2\nreload: {quiet_time: 50ms}\n");
  server_ = start();
  EXPECT_EQ(call("versioned/a", "version"), Json("1.0.0"));
  EXPECT_FALSE(has(why("Versioned/a"), "on_trial")) << "nothing replaced anything";
  put_in_place("versioned-2", "versioned.so");
  const Json answer = wait_for("Versioned/a", "live", "on_trial");
  EXPECT_EQ(call("versioned/a", "version"), Json("2.0.0"));
  EXPECT_EQ(answer.at("waits").front().at("urgency"), "none");
  EXPECT_EQ(answer.at("waits").front().at("what"),
            "It runs on a version of its library, or of its settings, that is on trial. On trial: "
            "\"library\".");
}

}  // namespace
}  // namespace hearth::testing

// Agents in Rust on the real server: the example of plugin-api/rust, and a class that panics.

#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

constexpr Ending kKilledBySignal{.status = -1, .signal = SIGKILL};
const std::string kPanicked = "the agent's code panicked; the server's log says where";

// Asks until the answer is as wanted; throws if it never is.
Json ask_until(AgentClient& client, const std::string& method,
               const std::function<bool(const Json&)>& wanted) {
  const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
  for (;;) {
    const Json answer = client.call(method);
    if (wanted(answer)) return answer;
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("asked in vain: " + dump_json(answer));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // only spares the processor
  }
}

class RustTest : public ProcessTest {
 protected:
  RustTest() { put("hearth.yaml", "reload: {quiet_time: 20ms}\nlog: {level: debug}\n"); }
  ~RustTest() override {
    if (server_) server_->stop();
  }

  static fs::path library(const std::string& name) {
    return fs::path(HEARTH_RUST_LIBRARIES) / (name + ".so");
  }
  void start() { server_ = serve_ready({"--config", "hearth.yaml", "--show-failures"}); }
  [[nodiscard]] Json state_of(const std::string& agent) const {
    return parse_json(request(*server_, "GET", "/agents/" + agent).body).value();
  }

  std::unique_ptr<ServerProcess> server_;
};

// ---- the example --------------------------------------------------------------------------------

class RustWatcherTest : public RustTest {
 protected:
  RustWatcherTest() {
    install(library("watcher"), "watcher.so");
    put("classes/watcher.yaml",
        "class: watcher\nidle_timeout: 100ms\nfibers: {retry_base: 10ms}\n"
        "options: {longest_walk: 50}\n");
    start();
  }

  static std::vector<int> up_to(int last) {
    std::vector<int> steps;
    for (int step = 1; step <= last; ++step) steps.push_back(step);
    return steps;
  }
};

TEST_F(RustWatcherTest, AMethodAnswersAndChangesTheState) {
  AgentClient client(*server_, "/agents/watcher/gate");
  EXPECT_EQ(client.call("report", R"(["a fox"])"), 1);
  EXPECT_EQ(client.call("report", R"(["an \u00e4lg"])"), 2);
  EXPECT_EQ(state_of("watcher/gate").at("reports"), 2);
  EXPECT_EQ(state_of("watcher/other").at("reports"), 0) << "another agent";

  const auto error = [&client](const std::string& method, const std::string& arguments) {
    client.begin(method, arguments);
    return client.answer().at("error").get<std::string>();
  };
  EXPECT_EQ(error("report", "[7]"), "argument 1: expected string");
  EXPECT_EQ(error("walk", "[51,1]"), "argument 1: expected integer from 1 to 50") << "an option";
  EXPECT_EQ(error("fly", "[]"), "Method fly does not exist");

  // Out of memory and back.
  server_->wait_for_log("agent.evicted class=Watcher agent=gate reason=idle");
  EXPECT_EQ(client.call("report", R"(["an owl"])"), 3);
}

TEST_F(RustWatcherTest, AClientCannotReplaceTheState) {
  RawClient client(server_->port());
  ASSERT_EQ(client.upgrade("/agents/watcher/gate").status, 101);
  client.send(RawClient::text_frame(R"({"type":"cf_agent_state","state":{"reports":9}})"));
  while (client.read_text().find("cf_agent_state_error") == std::string::npos) {
  }
  EXPECT_EQ(state_of("watcher/gate").at("reports"), 0);
}

TEST_F(RustWatcherTest, AScheduleComesThoughTheServerWasKilled) {
  AgentClient(*server_, "/agents/watcher/gate").call("remind", R"(["the gate",300])");
  EXPECT_EQ(server_->kill(), kKilledBySignal);
  start();
  server_->wait_for_log("agent.evicted class=Watcher agent=gate");
  EXPECT_EQ(state_of("watcher/gate").at("reminder"), "the gate");
}

TEST_F(RustWatcherTest, AFiberGoesOnAfterKillsWithNoStepMissingAndNoneTwice) {
  constexpr int kSteps = 12;
  AgentClient(*server_, "/agents/watcher/gate").call("walk", "[12,50]");
  for (std::size_t kill = 1; kill <= 3; ++kill) {
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    while (state_of("watcher/gate").at("steps").size() < 3 * kill) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << server_->log();
    }
    EXPECT_EQ(server_->kill(), kKilledBySignal);
    start();
  }
  server_->wait_for_log("walked " + std::to_string(kSteps) + " steps");  // without a request
  const Json state = state_of("watcher/gate");
  EXPECT_EQ(state.at("steps").get<std::vector<int>>(), up_to(kSteps));
  EXPECT_EQ(state.at("walks"), 1);
}

// ---- panics -------------------------------------------------------------------------------------

class RustPanicTest : public RustTest {
 protected:
  RustPanicTest() {
    install(library("clumsy-1"), "clumsy.so");
    put("classes/clumsy.yaml", "class: clumsy\nfibers: {retry_base: 10ms}\n");
    start();
  }

  void replace() {
    fs::copy_file(library("clumsy-2"), root_ / "plugins/.new");
    fs::rename(root_ / "plugins/.new", root_ / "plugins/clumsy.so");
    server_->wait_for_log("reload.done");
  }
  // The versions of the library whose code is in the server's memory.
  [[nodiscard]] std::size_t mapped() const {
    std::ifstream maps("/proc/" + std::to_string(server_->pid()) + "/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);)
      if (line.find("/staged/") != std::string::npos && line.find("r-xp") != std::string::npos)
        ++count;
    return count;
  }
  [[nodiscard]] std::string metrics() const { return request(*server_, "GET", "/metrics").body; }
  // What a client reads whose call panics.
  static std::string error_of_panic(AgentClient& client) {
    client.begin("panic", R"(["the secret is 42"])");
    return client.answer().at("error").get<std::string>();
  }
};

TEST_F(RustPanicTest, ItsCallerReadsAnErrorAndTheNextCallWorks) {
  constexpr std::size_t kRounds = 20;
  {
    AgentClient client(*server_, "/agents/clumsy/a");
    AgentClient bystander(*server_, "/agents/clumsy/b");
    EXPECT_EQ(bystander.call("calls"), 1);
    for (std::size_t round = 1; round <= kRounds; ++round) {
      EXPECT_EQ(error_of_panic(client), kPanicked);
      EXPECT_EQ(client.call("calls"), 1) << "an instance that has panicked is not used again";
    }
    EXPECT_EQ(bystander.call("calls"), 2) << "another agent has lost nothing";
  }
  server_->wait_for_log("clumsy.rs:", kRounds);
  EXPECT_EQ(server_->stop(), kClean);
  EXPECT_NE(server_->log().find("the secret is 42"), std::string::npos) << server_->log();
}

TEST_F(RustPanicTest, APanicAnywhereCostsOnlyItsAgent) {
  for (const std::string agent : {"create", "start", "any"}) {
    const Reply reply = request(*server_, "GET", "/agents/clumsy/" + agent);
    EXPECT_EQ(reply.status, agent == "any" ? 500 : 503) << agent << reply.body;
    EXPECT_EQ(reply.body.find("as told"), std::string::npos) << reply.body;
  }
  {
    AgentClient client(*server_, "/agents/clumsy/destroy");
    EXPECT_EQ(error_of_panic(client), kPanicked) << "so it is evicted, and its destructor panics";
    EXPECT_EQ(client.call("calls"), 1);
  }
  server_->wait_for_log("clumsy.rs:", 5);
  EXPECT_EQ(server_->stop(), kClean);
}

TEST_F(RustPanicTest, WorkThatPanicsIsTriedAgain) {
  AgentClient client(*server_, "/agents/clumsy/a");
  client.call("soon");
  client.call("fiber");
  EXPECT_EQ(error_of_panic(client), kPanicked) << "the instance goes, and the work goes on";
  const Json state = ask_until(client, "state", [](const Json& now) {
    return now.is_object() && now.contains("attempt") && now.contains("steps") &&
           now.at("steps").size() >= 4;
  });
  EXPECT_EQ(state.at("attempt"), 2);
  EXPECT_EQ(state.at("steps"), Json::array({1, 2, 2, 3}));
}

TEST_F(RustPanicTest, ALibraryThatHasPanickedIsUnmappedWhenItIsReplaced) {
  AgentClient client(*server_, "/agents/clumsy/a");
  EXPECT_EQ(client.call("version"), "1.0.0");
  EXPECT_EQ(error_of_panic(client), kPanicked);
  EXPECT_EQ(request(*server_, "GET", "/agents/clumsy/a").status, 500);
  EXPECT_EQ(mapped(), 1U);
  replace();
  EXPECT_EQ(client.call("version"), "2.0.0");
  const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
  while (mapped() != 1) ASSERT_LT(std::chrono::steady_clock::now(), deadline) << server_->log();
  EXPECT_NE(metrics().find("\nhearth_pinned_generations 0\n"), std::string::npos);
  EXPECT_EQ(server_->log().find("plugin.pinned"), std::string::npos) << server_->log();
  EXPECT_EQ(error_of_panic(client), kPanicked) << "the new one catches its panics, too";
}

TEST_F(RustPanicTest, ALibraryThatHasNamedTheCurrentThreadIsPinnedAndCounted) {
  AgentClient client(*server_, "/agents/clumsy/a");
  client.call("touch_thread");
  replace();
  EXPECT_EQ(client.call("version"), "2.0.0");
  server_->wait_for_log("plugin.pinned");
  EXPECT_EQ(mapped(), 2U);
  EXPECT_NE(metrics().find("\nhearth_pinned_generations 1\n"), std::string::npos);
  const auto command = run({"plugins", "--all"});
  EXPECT_EQ(command->wait(), kClean) << command->log();
  EXPECT_NE(command->out().find("pinned"), std::string::npos) << command->out();
}

// ---- hearth check -------------------------------------------------------------------------------

class RustCheckTest : public ProcessTest {
 protected:
  // The report on a library. One case, T402, takes half of the time limit, whatever that is.
  [[nodiscard]] Json check(const std::string& name, const std::vector<std::string>& arguments,
                           const Ending& ending = kClean) const {
    std::vector<std::string> command{"check", "--json", "--time-limit", "3s"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.push_back((fs::path(HEARTH_RUST_LIBRARIES) / (name + ".so")).native());
    const auto checked = run(command);
    EXPECT_EQ(checked->wait(), ending) << checked->out() << checked->log();
    return parse_json(checked->out()).value();
  }
  // The rules and cases with this verdict.
  static std::vector<std::string> ids(const Json& report, const std::string& verdict) {
    std::vector<std::string> found;
    for (const Json& each : report.at("results"))
      if (each.at("verdict") == verdict) found.push_back(each.at("id").get<std::string>());
    return found;
  }
};

using Ids = std::vector<std::string>;

TEST_F(RustCheckTest, TheExamplePasses) {
  const Json report = check("watcher", {"--call", "report", "--call", "remind", "--call", "walk"});
  EXPECT_EQ(report.at("counts").at("failed"), 0);
  // The standard library imports functions that name threads; none of them is called.
  EXPECT_EQ(ids(report, "warning"), Ids{"E17"});
  EXPECT_EQ(ids(report, "skipped"), (Ids{"T208", "T310"})) << "no schema, and no offload";
}

TEST_F(RustCheckTest, ALibraryThatPanicsAllTheTimePassesUnloadingIncluded) {
  // Without the method that pins it.
  const Json report = check("clumsy-1", {"--call", "version", "--call", "panic", "--call", "fiber",
                                         "--call", "soon", "--call", "state"});
  EXPECT_EQ(report.at("passed"), true);
  const Ids passed = ids(report, "passed");
  EXPECT_NE(std::ranges::find(passed, "T106"), passed.end()) << "dlclose unmaps it";
  EXPECT_NE(std::ranges::find(passed, "T108"), passed.end()) << "200 times";
}

// So the case above does go through a panic, and the crate's own hook is what makes it pass.
TEST_F(RustCheckTest, TheHookOfTheStandardLibraryWouldPinIt) {
  const Json report = check("clumsy-hook", {"--only", "T106"}, {.status = 1, .signal = 0});
  EXPECT_EQ(ids(report, "failed"), Ids{"T106"});
}

}  // namespace
}  // namespace hearth::testing

// Libraries that pass their trial and crash the server while it loads or unloads them, and
// libraries that cannot be unloaded.
#include "process/supervised_fixture.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hearth::testing {
namespace {

class LoadContainmentTest : public SupervisedTest {
 protected:
  LoadContainmentTest() {
    install(bundled("counter"), "counter.so");
    install(made_for_tests("faulty_when_served"), "faulty.so");
    put("hearth.yaml", "");
  }

  // `crash init`: the fault of the library in a server from now on.
  void let_it(const std::string& fault) const { put("fault", fault); }
  void mend_it() const { std::filesystem::remove(root_ / "fault"); }

  [[nodiscard]] std::unique_ptr<ServerProcess> start() const {
    return serve({"--config", "hearth.yaml"});
  }
  std::string hearth(std::vector<std::string> arguments) const {
    const auto process = run(std::move(arguments));
    process->wait();
    return process->out() + process->log();
  }

  // The next server serves the other libraries, and logs what to do about this one.
  void expect_contained(ServerProcess& server, std::uint16_t port, const std::string& call) {
    EXPECT_EQ(request(port, "POST", "/agents/counter/" + call).body, R"({"count":1})");
    EXPECT_NE(request(port, "GET", "/agents/faulty/a").status, 200);
    const std::string& log = server.log();
    const std::size_t refused = log.rfind("plugin.refused");
    ASSERT_NE(refused, std::string::npos) << log;
    const std::string line = log.substr(refused, log.find('\n', refused) - refused);
    for (const std::string& part : {std::string("faulty.so"), std::string("rule=R2"), " in " + call,
                                    std::string("hearth quarantine release")})
      EXPECT_NE(line.find(part), std::string::npos) << part << " in " << line;
    const std::string list = hearth({"quarantine", "list"});
    EXPECT_NE(list.find("Faulty"), std::string::npos) << list;
    EXPECT_NE(list.find("Bystander"), std::string::npos) << list;
    EXPECT_NE(list.find(" in " + call), std::string::npos) << list;
  }
};

TEST_F(LoadContainmentTest, ALibraryThatCrashesOnlyInTheServerCostsTheOthersAFewRestarts) {
  let_it("crash init");
  const auto supervisor = supervise({"--config", "hearth.yaml"});
  const std::uint16_t port = wait_for_server(*supervisor, 1);
  EXPECT_NE(supervisor->log().find("class.quarantined class=Faulty"), std::string::npos);
  expect_contained(*supervisor, port, "init");
  // Nothing is wrong with it any more, and it is served without a restart.
  mend_it();
  const std::string said = hearth({"quarantine", "release", "faulty"});
  EXPECT_NE(said.find("is released and served again"), std::string::npos) << said;
  supervisor->wait_for_log("reload.done class=Bystander");
  EXPECT_EQ(request(port, "GET", "/agents/faulty/a").body, "ok");
  EXPECT_EQ(request(port, "GET", "/agents/bystander/a").body, "ok");
  EXPECT_EQ(hearth({"quarantine", "list"}), "no class is in quarantine\n");
  EXPECT_EQ(supervisor->stop(), kClean);
}

TEST_F(LoadContainmentTest, WhereverItCrashesAsItIsLoaded) {
  for (const std::string call : {"load", "get_class"}) {
    let_it("crash " + call);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(start()->wait().signal, SIGSEGV) << call;
    auto server = start();
    server->wait_until_ready();
    expect_contained(*server, server->port(), call);
    EXPECT_EQ(server->stop(), kClean);
    mend_it();
    hearth({"quarantine", "release", "Bystander"});
    server = start();
    server->wait_until_ready();
    EXPECT_EQ(request(*server, "GET", "/agents/faulty/a").body, "ok") << "released with the other";
    EXPECT_EQ(server->stop(), kClean);
  }
}

TEST_F(LoadContainmentTest, AndWhereverItCrashesAsItIsUnloaded) {
  for (const std::string call : {"deinit", "unload"}) {
    let_it("crash " + call);
    for (int i = 0; i < 4; ++i) {
      const auto server = start();
      server->wait_until_ready();
      EXPECT_EQ(server->stop().signal, SIGSEGV) << call;
    }
    const auto server = start();
    server->wait_until_ready();
    expect_contained(*server, server->port(), call);
    EXPECT_EQ(server->stop(), kClean);
    mend_it();
    hearth({"quarantine", "release", "Faulty"});
  }
}

TEST_F(LoadContainmentTest, OneThatHangsOnlyInTheServerEndsItOnce) {
  put("hearth.yaml", "limits:\n  hard_hang: 400ms\n");
  for (const std::string call : {"load", "init", "deinit"}) {
    let_it("hang " + call);
    auto server = start();
    if (call == "deinit") {
      server->wait_until_ready();
      EXPECT_EQ(server->stop(), (Ending{.status = 3, .signal = 0})) << call;
    } else {
      EXPECT_EQ(server->wait(), (Ending{.status = 3, .signal = 0})) << call;
    }
    server = start();
    server->wait_until_ready();
    expect_contained(*server, server->port(), call);
    EXPECT_EQ(server->stop(), kClean);
    mend_it();
    hearth({"quarantine", "release", "Faulty"});
  }
}

// ---- those that cannot be unloaded --------------------------------------------------------------

TEST_F(LoadContainmentTest, VersionsThatStayInMemoryAreCountedAndLimited) {
  put("hearth.yaml", "reload:\n  quiet_time: 20ms\n  max_pinned: 2\n");
  install(made_for_tests("no_delete"), "stays.so");
  const auto server = start();
  server->wait_until_ready();
  const auto drop = [this](const std::string& library) {
    std::filesystem::copy_file(made_for_tests(library), root_ / "plugins/.new");
    std::filesystem::rename(root_ / "plugins/.new", root_ / "plugins/stays.so");
  };
  for (std::size_t i = 1; i <= 2; ++i) {
    drop("plain");
    server->wait_for_log("plugin.pinned", i);
    server->wait_for_log("reload.done", 2 * i - 1);
    if (i == 2) break;
    drop("no_delete");
    server->wait_for_log("reload.done", 2 * i);
  }
  EXPECT_NE(request(*server, "GET", "/metrics").body.find("\nhearth_pinned_generations 2\n"),
            std::string::npos);
  drop("no_delete");
  server->wait_for_log("rule=R3");
  EXPECT_NE(server->log().find("restart the server", server->log().find("rule=R3")),
            std::string::npos);
  EXPECT_EQ(server->stop(), kClean);
}

}  // namespace
}  // namespace hearth::testing

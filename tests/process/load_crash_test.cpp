// Libraries that pass their trial and crash the server while it loads or unloads them, and
// libraries that cannot be unloaded.
#include "process/supervised_fixture.hpp"

#include <filesystem>
#include <memory>
#include <string>

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
  [[nodiscard]] std::unique_ptr<ServerProcess> start_ready() const {
    return serve_ready({"--config", "hearth.yaml"});
  }

  // The next server serves the other libraries, and logs what to do about this one.
  void expect_contained(ServerProcess& server, std::uint16_t port, const std::string& call) {
    EXPECT_EQ(request(port, "POST", "/agents/counter/" + call).body, R"({"count":1})");
    EXPECT_NE(request(port, "GET", "/agents/faulty/a").status, 200);
    EXPECT_TRUE(contains(line_of(server.log(), "plugin.refused"), "faulty.so", "rule=R2",
                         " in " + call, "hearth quarantine release"));
    EXPECT_TRUE(contains(hearth({"quarantine", "list"}), "Faulty", "Bystander", " in " + call));
  }
};

TEST_F(LoadContainmentTest, ALibraryThatCrashesOnlyInTheServerCostsTheOthersAFewRestarts) {
  let_it("crash init");
  const auto supervisor = supervise({"--config", "hearth.yaml"});
  const std::uint16_t port = wait_for_server(*supervisor, 1);
  EXPECT_TRUE(contains(supervisor->log(), "class.quarantined class=Faulty"));
  expect_contained(*supervisor, port, "init");
  // Nothing is wrong with it any more, and it is served without a restart.
  mend_it();
  EXPECT_TRUE(
      contains(hearth({"quarantine", "release", "faulty"}), "is released and served again"));
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
    auto server = start_ready();
    expect_contained(*server, server->port(), call);
    EXPECT_EQ(server->stop(), kClean);
    mend_it();
    hearth({"quarantine", "release", "Bystander"});
    server = start_ready();
    EXPECT_EQ(request(*server, "GET", "/agents/faulty/a").body, "ok") << "released with the other";
    EXPECT_EQ(server->stop(), kClean);
  }
}

TEST_F(LoadContainmentTest, AndWhereverItCrashesAsItIsUnloaded) {
  for (const std::string call : {"deinit", "unload"}) {
    let_it("crash " + call);
    for (int i = 0; i < 4; ++i) {
      const auto server = start_ready();
      EXPECT_EQ(server->stop().signal, SIGSEGV) << call;
    }
    const auto server = start_ready();
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
    server = start_ready();
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
  const auto server = start_ready();
  const auto drop = [this](const std::string& library) {
    replace(made_for_tests(library), "stays.so");
  };
  for (std::size_t i = 1; i <= 2; ++i) {
    drop("plain");
    server->wait_for_log("plugin.pinned", i);
    server->wait_for_log("reload.done", 2 * i - 1);
    if (i == 2) break;
    drop("no_delete");
    server->wait_for_log("reload.done", 2 * i);
  }
  EXPECT_TRUE(
      contains(request(*server, "GET", "/metrics").body, "\nhearth_pinned_generations 2\n"));
  drop("no_delete");
  server->wait_for_log("rule=R3");
  EXPECT_NE(server->log().find("restart the server", server->log().find("rule=R3")),
            std::string::npos);
  EXPECT_EQ(server->stop(), kClean);
}

}  // namespace
}  // namespace hearth::testing

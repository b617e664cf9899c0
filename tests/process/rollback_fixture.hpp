#pragma once
// A supervised server with the class Crashes, whose next version crashes it.

#include "base/files.hpp"
#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "process/supervised_fixture.hpp"
#include "support/built.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

namespace hearth::testing {

class RollbackTest : public SupervisedTest {
 protected:
  RollbackTest() {
    install(agent_library("crashes-mended"), "crashes.so");
    configure("");
  }

  static std::filesystem::path agent_library(const std::string& name) { return built::agent(name); }
  // Another class, in the same place.
  void install_versioned() const {
    std::filesystem::remove(root_ / "plugins/crashes.so");
    install(agent_library("versioned-1"), "crashes.so");
  }
  // The version that crashes comes, and ends the server: "segv" or "hang".
  void replace_and_crash(ServerProcess& server, const std::string& how) const {
    replace_by_the_one_that_crashes(server);
    crash(server, how);
    const Ending end = server.wait();
    if (how == "segv") EXPECT_EQ(end.signal, SIGSEGV);
  }
  // A server that serves the earlier version again, after a crash of the new one.
  [[nodiscard]] std::unique_ptr<ServerProcess> start_and_go_back() const {
    auto server = start();
    replace_and_crash(*server, "segv");
    return start();
  }
  // `more`: further settings of reloads.
  void configure(const std::string& more, const std::string& limits = "") const {
    put("hearth.yaml", "limits: {" + limits + "}\nreload: {quiet_time: 20ms" + more + "}\n");
  }
  // Only for tests of a hang: a crash with a record that the disk delays would count as a hang.
  void let_a_hang_end_the_server() const { configure("", "hard_hang: 400ms"); }
  [[nodiscard]] std::unique_ptr<ServerProcess> start() const {
    return serve_ready({"--config", "hearth.yaml"});
  }
  // As `mv` does.
  void replace(const std::filesystem::path& library) const {
    ProcessTest::replace(library, "crashes.so");
  }
  void replace_by_the_one_that_crashes() const { replace(agent_library("crashes")); }
  void replace_by_the_one_that_crashes(ServerProcess& server) const {
    replace_by_the_one_that_crashes();
    server.wait_for_log("reload.done class=Crashes version=1.0.0");
  }

  static std::string ask(const ServerProcess& server, const std::string& how) {
    return request(server, "GET", "/agents/crashes/a?how=" + how).body;
  }
  static Json version_of(const ServerProcess& server) {
    return AgentClient(server, "/agents/versioned/a").call("version");
  }
  // A request that crashes the server: there is no answer.
  template <class Server>
  static void crash(const Server& server, const std::string& how) {
    EXPECT_THROW((void)request(server, "GET", "/agents/crashes/a?how=" + how), std::runtime_error);
  }
  static void expect_crash(ServerProcess& server, const std::string& how = "segv") {
    crash(server, how);
    EXPECT_EQ(server.wait().signal, SIGSEGV) << how;
  }
  // The next server serves the version that does not crash.
  void expect_mended_start() const {
    const auto server = start();
    EXPECT_EQ(ask(*server, "segv"), "ok");
    EXPECT_EQ(server->stop(), kClean);
  }
  // Those in the ledger.
  [[nodiscard]] Json trials() const {
    return parse_json(read_file(root_ / "data/versions.json", 1U << 20U).value())
        .value()
        .at("trials");
  }
  // Waits until a version is proven.
  void wait_for_no_trial() const {
    (void)soon([this] { return trials(); }, [](const Json& now) { return now.empty(); });
  }
  void expect_taken_back(ServerProcess& server, const std::string& reason) const {
    server.wait_for_log("reload.taken_back");
    EXPECT_TRUE(contains(line_of(server.log(), "reload.taken_back"), reason, "hearth reload"));
    EXPECT_TRUE(contains(hearth({"plugins"}), reason, "1.0.1"));
  }
};

}  // namespace hearth::testing

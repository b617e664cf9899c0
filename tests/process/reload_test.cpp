// Libraries are replaced while the server runs: clients stay, agents move, work goes on.

#include "json/json.hpp"
#include "process/versioned_fixture.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace hearth::testing {
namespace {

using std::chrono::milliseconds;

class ReloadTest : public VersionedTest {
 protected:
  ReloadTest() { start("reload: {quiet_time: 50ms, trial_time: 5s, removal_grace: 1s}\n"); }

  void remove_and_wait() const {
    std::filesystem::remove(file());
    server_->wait_for_log("reload.removed");
  }

  // The class is not loaded now: the answers let clients come back.
  void expect_strangers_are_to_come_back() const {
    const Reply reply = request(*server_, "GET", "/agents/versioned/b");
    EXPECT_EQ(reply.status, 503);
    EXPECT_TRUE(contains(reply.head, "Retry-After: "));
    EXPECT_TRUE(contains(reply.body, "is not loaded now"));
    RawClient socket(server_->port());
    EXPECT_EQ(socket.request(RawClient::upgrade_text("/agents/versioned/b")).status, 503);
    EXPECT_EQ(request(*server_, "GET", "/agents/nobody/b").status, 400) << "a name never known";
  }
};

TEST_F(ReloadTest, ANewVersionAnswersOnTheOldSocket) {
  Client client(*server_, "a", "1.0.0");
  EXPECT_EQ(client.call("add"), 1);
  replace_and_wait("2");
  EXPECT_EQ(client.call("version"), "2.0.0");
  EXPECT_EQ(client.call("add"), 2) << "what was stored is there";
}

TEST_F(ReloadTest, ALibraryWrittenInPlaceIsReplacedAsWell) {
  Client client(*server_, "a", "1.0.0");
  {
    std::ifstream from(version_file("2"), std::ios::binary);
    std::ofstream to(file(), std::ios::binary | std::ios::trunc);
    to << from.rdbuf();
  }
  server_->wait_for_log("reload.done");
  EXPECT_EQ(client.call("version"), "2.0.0");
}

TEST_F(ReloadTest, OnlyTheAgentsOfTheClassMove) {
  install(bundled("counter"), "counter.so");
  server_->wait_for_log("reload.done", ++reloads_);
  EXPECT_EQ(increment(*server_, "x"), R"({"count":1})");
  Client client(*server_, "a", "1.0.0");
  replace_and_wait("2");
  EXPECT_EQ(increment(*server_, "x"), R"({"count":2})");
  EXPECT_TRUE(lacks(server_->log(), "agent=x reason=code_update"));
}

TEST_F(ReloadTest, R10_AFiberGoesOnOnTheNewVersion) {
  Client client(*server_, "a");
  client.call("work", "[100000,10]");  // longer than any replacement takes
  const auto look = [&client] { return client.call("steps"); };
  (void)soon(look, [](const Json& steps) { return steps.size() >= 5; });
  replace_and_wait("2");
  const Json steps =
      soon(look, [](const Json& now) { return now.back().at("version") == "2.0.0"; });
  for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i].at("step"), i + 1);
  EXPECT_EQ(steps.front().at("version"), "1.0.0");
  EXPECT_EQ(steps.back().at("version"), "2.0.0");
  server_->wait_for_log("fiber:recovery:handled class=Versioned agent=a ");  // as after a crash
}

TEST_F(ReloadTest, FramesThatComeMeanwhileAreAnsweredInOrder) {
  Client client(*server_, "a", "1.0.0");
  replace("2");
  // Until the new version answers: each frame once, in order, by one version after the other.
  bool moved = false;
  const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
  for (int i = 0; !moved && std::chrono::steady_clock::now() < deadline; ++i) {
    client.send(std::to_string(i));
    const std::string answer = client.read();
    moved = answer == "2.0.0 " + std::to_string(i);
    if (!moved) {
      ASSERT_EQ(answer, "1.0.0 " + std::to_string(i));
    }
  }
  EXPECT_TRUE(moved);
}

TEST_F(ReloadTest, ACallInProgressIsToldToTryAgain) {
  Client client(*server_, "a");
  client.begin("slow", "[60000]");
  replace_and_wait("2");
  const Json answer = client.answer();
  EXPECT_EQ(answer.at("success"), false);
  EXPECT_TRUE(contains(answer.at("error").get<std::string>(), "try again"));
  EXPECT_EQ(client.call("version"), "2.0.0");
}

TEST_F(ReloadTest, ARequestInProgressIsToldToTryAgain) {
  Client other(*server_, "a");
  RawClient socket(server_->port());
  socket.send("GET /agents/versioned/a?until=" + gate("never") +
              " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  wait_for_attempt(other, "request");
  replace_and_wait("2");
  const Reply reply = socket.read_reply();
  EXPECT_EQ(reply.status, 503);
  EXPECT_TRUE(contains(reply.head, "Retry-After: "));
  EXPECT_TRUE(contains(reply.body, "the agent was evicted (code_update); try again"));
  EXPECT_EQ(request(*server_, "GET", "/agents/versioned/a").body, "2.0.0");
}

TEST_F(ReloadTest, AnIdempotentCallInProgressIsAnsweredByTheNewVersion) {
  Client client(*server_, "a");
  Client other(*server_, "a");
  client.begin("slow_get", "[60000]");
  wait_for_attempt(other, "slow_get");
  replace_and_wait("2");
  EXPECT_EQ(client.result(), "2.0.0");
  EXPECT_EQ(other.call("attempts", R"(["slow_get"])"), 2);
  EXPECT_EQ(client.call("version"), "2.0.0") << "and there is no second answer to it";
}

TEST_F(ReloadTest, AClientThatIsConnectingStaysAndIsConnectedByTheNewVersion) {
  Client other(*server_, "a");
  Client client(*server_, "a?wait=60000");
  client.send("hello");
  wait_for_attempt(other, "connect");
  replace_and_wait("2");
  EXPECT_EQ(client.read(), "connected 2.0.0");
  EXPECT_EQ(client.read(), "2.0.0 hello");
  EXPECT_EQ(client.frames_of_type("cf_agent_identity"), 1);
  EXPECT_EQ(other.call("attempts", R"(["connect"])"), 2);
}

TEST_F(ReloadTest, AnIdempotentCallWaitsForALibraryThatComesBack) {
  put("hearth.yaml", "reload: {quiet_time: 50ms, removal_grace: 1m}\n");
  server_->stop();
  server_ = serve_ready({"--config", "hearth.yaml"});
  Client client(*server_, "a");
  Client other(*server_, "a");
  client.begin("slow_get", "[60000]");
  wait_for_attempt(other, "slow_get");
  std::filesystem::remove(file());
  server_->wait_for_log("reload.removed");
  replace_and_wait("2");
  EXPECT_EQ(client.result(), "2.0.0");
}

TEST_F(ReloadTest, ALibraryThatIsRefusedLeavesTheOldOne) {
  Client client(*server_, "a");
  std::filesystem::resize_file(file(), std::filesystem::file_size(file()) / 2);
  server_->wait_for_log("plugin.refused");
  EXPECT_EQ(client.call("version"), "1.0.0");
  replace_and_wait("2");
  EXPECT_EQ(client.call("version"), "2.0.0");
}

TEST_F(ReloadTest, AVersionThatComesWhileAnotherOneComesInIsTheOneThatStays) {
  Client client(*server_, "a", "1.0.0");
  replace("2");
  server_->wait_for_log("plugin.loaded", 2);
  replace("3");
  server_->wait_for_log("reload.done class=Versioned version=3.0.0");
  EXPECT_EQ(client.call("version"), "3.0.0");
  EXPECT_TRUE(lacks(server_->log(), "plugin.refused"));
  // The figure follows the line of the log.
  (void)soon([this] { return Json(request(*server_, "GET", "/metrics").body); },
             [](const Json& now) {
               return contains(now.get<std::string>(), "\nhearth_reloads_total 2\n");
             });
}

TEST_F(ReloadTest, AVersionOnWhichAgentsFailIsTakenBack) {
  Client client(*server_, "a");
  EXPECT_EQ(client.call("add"), 1);
  replace("bad");
  server_->wait_for_log("reload.taken_back");
  EXPECT_EQ(client.call("version"), "1.0.0");
  EXPECT_EQ(client.call("add"), 2);
}

TEST_F(ReloadTest, RemovedAndPutBackClientsNoticeOnlyAWait) {
  put("hearth.yaml", "reload: {quiet_time: 50ms, removal_grace: 1m}\n");
  server_->stop();
  server_ = serve_ready({"--config", "hearth.yaml"});
  Client client(*server_, "a");
  EXPECT_EQ(client.call("add"), 1);
  remove_and_wait();
  expect_strangers_are_to_come_back();
  client.begin("add");
  replace_and_wait("2");
  EXPECT_EQ(client.result(), 2);
}

TEST_F(ReloadTest, ClientsOfALibraryThatStaysAwayAreClosed) {
  Client client(*server_, "a", "1.0.0");
  std::filesystem::remove(file());
  const Frame end = client.close_frame();
  EXPECT_EQ(end.close_code(), 1012);
}

TEST_F(ReloadTest, PutBackAfterTheGraceTheAgentsAreServedWithTheirData) {
  {
    Client client(*server_, "a");
    EXPECT_EQ(client.call("add"), 1);
    remove_and_wait();
    EXPECT_EQ(client.close_frame().close_code(), 1012);
  }
  expect_strangers_are_to_come_back();
  replace_and_wait("2");
  EXPECT_EQ(Client(*server_, "a").call("add"), 2);
}

TEST_F(ReloadTest, AfterARestartWithoutItsLibraryClientsOfAClassWithAgentsAreToComeBack) {
  EXPECT_EQ(Client(*server_, "a").call("add"), 1);
  server_->stop();
  std::filesystem::resize_file(file(), std::filesystem::file_size(file()) / 2);
  server_ = serve_ready({"--config", "hearth.yaml"});
  EXPECT_TRUE(contains(server_->log(), "plugin.refused"));
  expect_strangers_are_to_come_back();
  replace_and_wait("1");
  EXPECT_EQ(Client(*server_, "a").call("add"), 2);
}

TEST_F(ReloadTest, ClientsOfAClassThatHasSettingsOnlyAreToComeBack) {
  server_->stop();
  std::filesystem::remove(file());
  put("classes/versioned.yaml", "class: Versioned\n");
  server_ = serve_ready({"--config", "hearth.yaml"});
  expect_strangers_are_to_come_back();
  EXPECT_EQ(request(*server_, "GET", "/agents/counter/a").status, 400) << "another has none";
  put("classes/counter.yaml", "class: counter\nidle_timeout: 1h\n");
  server_->wait_for_log("class.not_found class=counter");
  EXPECT_EQ(request(*server_, "GET", "/agents/counter/a").status, 503)
      << "settings that came later";
}

TEST_F(ReloadTest, AHangupLooksAtOnceAlsoWithoutAWatch) {
  put("hearth.yaml", "reload: {watch: false}\n");
  server_->stop();
  server_ = serve_ready({"--config", "hearth.yaml"});
  Client client(*server_, "a", "1.0.0");
  replace("2");
  server_->signal(SIGHUP);
  server_->wait_for_log("reload.done");
  EXPECT_EQ(client.call("version"), "2.0.0");
}

TEST_F(ReloadTest, ManyVersionsLeaveNoLibraryMapped) {
  Client client(*server_, "a");
  for (int round = 0; round < 10; ++round) {
    const std::string version = round % 2 == 0 ? "2" : "1";
    replace_and_wait(version);
    EXPECT_EQ(client.call("version"), version + ".0.0");
  }
  const auto mapped = [this] {
    std::ifstream maps("/proc/" + std::to_string(server_->pid()) + "/maps");
    int count = 0;
    for (std::string line; std::getline(maps, line);) {
      if (line.find("/staged/") != std::string::npos && line.find("r-xp") != std::string::npos)
        ++count;
    }
    return count;
  };
  const auto staged = [this] {
    return std::distance(std::filesystem::directory_iterator(root_ / "data" / "staged"), {});
  };
  const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
  while ((mapped() > 1 || staged() > 1) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(
        milliseconds(5));  // unloading follows soon; this only spares the processor
  EXPECT_EQ(mapped(), 1);
  EXPECT_EQ(staged(), 1);
}

TEST_F(ReloadTest, ALibraryThatWasRefusedForAClassOfAnotherFollowsOnceThatOneIsGone) {
  ProcessTest::replace(version_file("2"), "zz.so");
  server_->wait_for_log("rule=C1");
  std::filesystem::remove(file());
  server_->wait_for_log("reload.done class=Versioned version=2.0.0");
  EXPECT_EQ(Client(*server_, "a").call("version"), "2.0.0");
  EXPECT_TRUE(lacks(hearth({"plugins"}), "refused"));
}

TEST_F(ReloadTest, AClassMayGoToALibraryThatIsReadBeforeTheOneThatLosesIt) {
  ProcessTest::replace(built::bundled("counter"), "a.so");
  server_->wait_for_log("reload.done class=Counter");
  ProcessTest::replace(version_file("2"), "a.so");
  ProcessTest::replace(built::bundled("session-cache"), "versioned.so");
  server_->wait_for_log("reload.done class=Versioned version=2.0.0");
  EXPECT_EQ(Client(*server_, "a").call("version"), "2.0.0");
}

TEST_F(ReloadTest, AClassThatATakeBackFreesGoesToTheLibraryThatWaitsForIt) {
  ProcessTest::replace(built::bundled("counter"), "a.so");
  server_->wait_for_log("reload.done class=Counter");
  ProcessTest::replace(version_file("2"), "a.so");
  ProcessTest::replace(built::bundled("session-cache"), "versioned.so");
  server_->wait_for_log("reload.done class=Versioned version=2.0.0");
  ProcessTest::replace(version_file("1"), "versioned.so");
  EXPECT_TRUE(contains(hearth({"reload"}), "REFUSED")) << "a.so has its class";
  EXPECT_TRUE(contains(hearth({"take-back", "Versioned"}), "is being taken back"));
  server_->wait_for_log("reload.done class=Versioned version=1.0.0");
  EXPECT_EQ(Client(*server_, "a").call("version"), "1.0.0");
}

TEST_F(ReloadTest, ClientsOfAClassThatIsNotInTheLibraryThatIsPutBackAreClosed) {
  Client client(*server_, "a", "1.0.0");
  remove_and_wait();
  ProcessTest::replace(built::bundled("counter"), "versioned.so");
  EXPECT_EQ(client.close_frame().close_code(), 1012);
}

}  // namespace
}  // namespace hearth::testing

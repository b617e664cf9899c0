#include "server/server.hpp"

#include "config/parse.hpp"
#include "net/raw_client.hpp"
#include "server/whole_server_fixture.hpp"
#include "support/built.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace hearth::server {
namespace {

namespace fs = std::filesystem;

class ServerTest : public WholeServerTest {
 protected:
  ServerTest() { config_.server.plugins = {testing::built::bundled_directory()}; }

  // Why it does not start; empty if it does.
  std::string start_problem() {
    auto started = Server::start(config_, logger_);
    if (!started) return started.error().message;
    (*started)->stop();
    return "";
  }

  [[nodiscard]] testing::Reply get(const std::string& path) const { return request("GET", path); }
  [[nodiscard]] testing::Reply post(const std::string& path) const { return request("POST", path); }
};

TEST_F(ServerTest, ServesTheClassesOfTheLibraries) {
  start();
  const std::vector<std::string> classes = server_->classes();
  EXPECT_NE(std::ranges::find(classes, "counter"), classes.end());
  EXPECT_TRUE(server_->address().starts_with("127.0.0.1:"));
  EXPECT_EQ(post("/agents/counter/a").body, R"({"count":1})");
  EXPECT_EQ(get("/readyz").status, 200);
}

TEST_F(ServerTest, WhatWasAcknowledgedIsThereAfterARestart) {
  start();
  EXPECT_EQ(post("/agents/counter/a").body, R"({"count":1})");
  stop();
  start();
  EXPECT_EQ(get("/agents/counter/a").body, R"({"count":1})");
}

TEST_F(ServerTest, StartsAndStopsAsOftenAsAsked) {
  for (int round = 1; round <= 20; ++round) {
    start();
    ASSERT_EQ(post("/agents/counter/a").body, "{\"count\":" + std::to_string(round) + "}");
    stop();
  }
  EXPECT_FALSE(logger_.contains("plugin.pinned"));
}

TEST_F(ServerTest, StopsWithSocketsOpenAndTellsThemWhy) {
  start();
  testing::RawClient client(port());
  ASSERT_EQ(client.upgrade("/agents/counter/a").status, 101);
  testing::RawClient idle(port());  // has said nothing yet
  std::jthread polite([&client] {
    testing::Frame frame = client.read_frame();
    while (frame.opcode == 1) frame = client.read_frame();
    EXPECT_EQ(frame.close_code(), 1001);
    client.send(testing::RawClient::close_frame(1001));
  });
  stop();
  EXPECT_TRUE(idle.at_end());
}

TEST_F(ServerTest, WithoutLibrariesItServesNothingAndSaysSo) {
  config_.server.plugins = {temporary_.path() / "none"};
  start();
  EXPECT_TRUE(server_->classes().empty());
  EXPECT_TRUE(logger_.contains("warn server.no_plugins"));
  EXPECT_EQ(get("/healthz").status, 200);
}

TEST_F(ServerTest, TheOptionsOfAClassReachItsAgents) {
  config::ClassConfig settings;
  settings.settings.options = R"({"start":41})";
  config_.classes.emplace("counter", settings);  // the class is Counter: files may use either
  start();
  EXPECT_EQ(post("/agents/counter/a").body, R"({"count":42})");
  EXPECT_FALSE(logger_.contains("class.not_found"));
}

TEST_F(ServerTest, SettingsForAClassThatNobodyHasAreAWarning) {
  config::ClassConfig settings;
  settings.file = "classes/ghost.yaml";
  config_.classes.emplace("ghost", settings);
  start();
  EXPECT_TRUE(logger_.contains("warn class.not_found class=ghost file=classes/ghost.yaml"));
  EXPECT_EQ(get("/agents/counter/a").status, 200);
}

TEST_F(ServerTest, APortInUseIsAnErrorThatSaysWhatToDo) {
  start();
  config::Config taken = config_;
  taken.server.net.port = port();
  taken.server.data = temporary_.path() / "other";
  const auto second = Server::start(taken, logger_);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(server_->address()), std::string::npos)
      << second.error().message;
  EXPECT_NE(second.error().message.find("--listen 127.0.0.1:0"), std::string::npos);
}

TEST_F(ServerTest, AFailedStartLeavesNothingBehind) {
  start();
  const std::uint16_t taken = port();
  config::Config second = config_;
  second.server.net.port = taken;
  second.server.data = temporary_.path() / "other";
  ASSERT_FALSE(Server::start(second, logger_));
  second.server.net.port = 0;  // neither the lock nor a thread of the first attempt is in the way
  auto started = Server::start(second, logger_);
  ASSERT_TRUE(started) << started.error().message;
  (*started)->stop();
}

TEST_F(ServerTest, ADataDirectoryServesOneServer) {
  start();
  EXPECT_NE(start_problem().find("is in use by another server"), std::string::npos);
  stop();
  EXPECT_EQ(start_problem(), "");
}

TEST_F(ServerTest, ADataDirectoryThatCannotBeMadeSaysWhy) {
  config_.server.data = temporary_.path() / "absent" / "data";
  EXPECT_NE(start_problem().find("cannot create it"), std::string::npos) << start_problem();
}

TEST_F(ServerTest, ADataDirectoryThatOthersCanReadIsAWarning) {
  start();
  EXPECT_FALSE(logger_.contains("server.data_readable"));
  stop();
  fs::permissions(config_.server.data, fs::perms{0755});
  start();
  EXPECT_TRUE(logger_.contains("warn server.data_readable"));
  EXPECT_TRUE(logger_.contains("chmod 700"));
  EXPECT_EQ(get("/healthz").status, 200);
}

TEST_F(ServerTest, AStagingAreaThatCannotBeMadeStopsTheStart) {
  fs::create_directory(config_.server.data);
  std::ofstream(config_.server.data / "staged") << "in the way";
  EXPECT_NE(start_problem().find("staged"), std::string::npos) << start_problem();
}

TEST_F(ServerTest, AnAddressThatIsNotThisMachinesSaysWhatToDo) {
  config_.server.net.host = "192.0.2.1";  // RFC 5737: no host has it
  const std::string problem = start_problem();
  EXPECT_NE(problem.find("192.0.2.1"), std::string::npos) << problem;
  EXPECT_NE(problem.find("--listen"), std::string::npos) << problem;
}

}  // namespace
}  // namespace hearth::server

// The last work of an agent whose library is replaced: on_evict has the grace that its class
// configures, and no more.
#include "json/json.hpp"
#include "process/versioned_fixture.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

using std::chrono::milliseconds;

class ReloadGraceTest : public VersionedTest {
 protected:
  void start_with(const std::string& grace, const std::string& options) {
    put("classes/versioned.yaml",
        "class: Versioned\nevict_grace: " + grace + "\noptions: {" + options + "}\n");
    start("reload: {quiet_time: 50ms}\nlimits: {shutdown_grace: 100ms}\n");
  }
  // What a command says that an administrator gives.
  [[nodiscard]] std::string says(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--data", "data"});
    return ask(arguments);
  }
};

TEST_F(ReloadGraceTest, WhatOnEvictWritesWithinItsGraceIsThereOnTheNewVersion) {
  start_with("60s", "evict_ms: 300");
  Client client(*server_, "a", "1.0.0");
  replace("2");
  server_->wait_for_log("leaving");
  EXPECT_EQ(client.call("farewells"), Json::array({"1.0.0 begun", "1.0.0 done"}));
  EXPECT_EQ(client.call("version"), "2.0.0");
}

TEST_F(ReloadGraceTest, OnEvictThatTakesLongerIsCutOffAndTheNewVersionComes) {
  start_with("300ms", "evict_ms: 60000");
  Client client(*server_, "a", "1.0.0");
  const auto began = std::chrono::steady_clock::now();
  replace("2");
  server_->wait_for_log("leaving");
  EXPECT_EQ(client.call("farewells"), Json::array({"1.0.0 begun"})) << "what it had written stays";
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(took, milliseconds(300));
  EXPECT_LT(took, milliseconds(20'000)) << "far less than it wanted";
  EXPECT_EQ(client.call("version"), "2.0.0");
  server_->wait_for_log("reload.done");
}

TEST_F(ReloadGraceTest, ACallThatEndsWithinTheGraceIsAnsweredByTheVersionThatItBeganOn) {
  start_with("60s", "evict_gate: \"" + gate("left") + "\"");
  Client caller(*server_, "a");
  Client other(*server_, "a");
  caller.begin("hold", arguments(gate("held")));
  wait_for_attempt(other, "hold");
  replace("2");
  server_->wait_for_log("leaving");
  other.begin("version");
  open("held");
  EXPECT_EQ(caller.result(), "1.0.0");
  open("left");
  EXPECT_EQ(other.result(), "2.0.0") << "what came meanwhile has waited";
  EXPECT_EQ(caller.call("attempts", arguments("hold")), 1);
}

// The watcher, or an earlier `hearth reload`, may have begun the reload already.
TEST_F(ReloadGraceTest, AReloadTellsOfAVersionThatIsComingInAlreadyAndWaitsForIt) {
  start_with("60s", "evict_gate: \"" + gate("left") + "\"");
  Client client(*server_, "a", "1.0.0");
  replace("2");
  server_->wait_for_log("leaving");
  const std::string coming = "version 2.0.0 (generation 2) is coming in";
  EXPECT_TRUE(contains(says({"reload"}), coming));
  EXPECT_TRUE(contains(says({"reload", "versioned"}), coming));
  const auto waiting = run({"reload", "--wait", "--data", "data"});
  open("left");
  EXPECT_EQ(waiting->wait(), kClean);
  EXPECT_TRUE(lacks(says({"agents", "versioned"}), "1.0.0"));
  server_->wait_for_log("reload.done");
}

TEST_F(ReloadGraceTest, AnAdministratorTakesBackAVersionThatComesIn) {
  start_with("60s", "evict_gate: \"" + gate("left") + "\"");
  Client client(*server_, "a", "1.0.0");
  replace("2");
  server_->wait_for_log("leaving");
  EXPECT_TRUE(contains(says({"take-back", "versioned"}), "the one before goes on"));
  open("left");
  EXPECT_EQ(client.call("version"), "1.0.0");
  EXPECT_TRUE(contains(says({"plugins"}), "an administrator has taken it back"));
}

TEST_F(ReloadGraceTest, OrOneInItsProbationAndItsAgentsKeepWhatTheyHaveStored) {
  start_with("1s", "");
  Client client(*server_, "a");
  const std::vector<std::string> take_back{"take-back", "versioned", "--data", "data"};
  EXPECT_TRUE(contains(refused(take_back), "not on trial"));
  EXPECT_EQ(client.call("add"), 1);
  replace_and_wait("2");
  EXPECT_EQ(client.call("add"), 2);
  (void)says({"take-back", "versioned"});
  wait_for_version(client, "1.0.0");
  EXPECT_EQ(client.call("add"), 3);
  EXPECT_TRUE(contains(refused(take_back), "not on trial"));
  (void)says({"reload", "--wait"});
  EXPECT_EQ(client.call("version"), "2.0.0") << "an administrator tries it again";
}

TEST_F(ReloadGraceTest, AReloadTellsOfSettingsThatAreComingInAlreadyAndWaitsForThem) {
  start_with("60s", "evict_gate: \"" + gate("left") + "\"");
  Client client(*server_, "a", "1.0.0");
  put("classes/versioned.yaml", "class: Versioned\nevict_grace: 60s\n");
  server_->wait_for_log("leaving");
  const std::string coming = "new settings of Versioned (options.evict_gate) are coming in";
  EXPECT_TRUE(contains(says({"reload"}), coming));
  EXPECT_TRUE(contains(says({"reload", "versioned"}), coming));
  const auto waiting = run({"reload", "--wait", "--data", "data"});
  open("left");
  EXPECT_EQ(waiting->wait(), kClean);
  EXPECT_TRUE(contains(says({"plugins", "--json"}), "\"moving\":[]"));
  server_->wait_for_log("config.done");
}

TEST_F(ReloadGraceTest, OneThatDoesNotIsToldToTryAgainWhenTheGraceIsOver) {
  start_with("300ms", "evict_ms: 60000");
  Client caller(*server_, "a");
  Client repeated(*server_, "a");
  Client other(*server_, "a");
  caller.begin("hold", arguments(gate("never")));
  repeated.begin("hold_get", arguments(gate("held")));
  wait_for_attempt(other, "hold");
  wait_for_attempt(other, "hold_get");
  replace("2");
  const Json answer = caller.answer();
  EXPECT_EQ(answer.at("success"), false);
  EXPECT_EQ(answer.value("error", ""), "the agent was evicted (code_update); try again");
  wait_for_attempt(other, "hold_get", 2);
  open("held");
  const Json again = repeated.answer();
  EXPECT_EQ(again.value("result", Json()), "2.0.0") << dump_json(again);
  EXPECT_EQ(other.call("attempts", arguments("hold")), 1) << "nobody ran it again";
}

TEST_F(ReloadGraceTest, WithoutAGraceOnEvictIsNotAsked) {
  start_with("0s", "evict_ms: 60000");
  Client client(*server_, "a", "1.0.0");
  replace_and_wait("2");
  EXPECT_EQ(client.call("version"), "2.0.0");
  EXPECT_EQ(client.call("farewells"), Json::array());
}

}  // namespace
}  // namespace hearth::testing

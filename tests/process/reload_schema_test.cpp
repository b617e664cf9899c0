// Versions of a library with schema versions: each agent is migrated once, at its first wake on the
// new code, or not at all.
#include "process/versioned_fixture.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace hearth::testing {
namespace {

class ReloadSchemaTest : public VersionedTest {
 protected:
  ReloadSchemaTest() { start("reload: {quiet_time: 50ms, trial_time: 5s}\n"); }

  // In what was collected of the log.
  [[nodiscard]] std::size_t times_in_log(std::string_view text) const {
    return times_in(server_->log(), text);
  }
  void expect_is_refused(const std::string& name) const {
    Client client(*server_, name);
    const Frame end = client.close_frame();
    EXPECT_EQ(end.close_code(), 1011);
    EXPECT_EQ(end.close_reason(),
              "the agent's data has schema version 2, but this version of the class has none");
    EXPECT_TRUE(
        answers(request(*server_, "GET", "/agents/versioned/" + name), 503, end.close_reason()));
  }
};

TEST_F(ReloadSchemaTest, DataAreMigratedAndTheVersionBeforeCannotComeBack) {
  Client client(*server_, "a");
  EXPECT_EQ(client.call("add"), 1);
  replace_and_wait("schema");
  EXPECT_EQ(client.call("marks"), 1);
  EXPECT_EQ(client.call("add"), 2);
  EXPECT_EQ(client.call("marks"), 1) << "the new row is none that was brought over";
  replace("1");
  server_->wait_for_log("reload.taken_back");
  EXPECT_EQ(client.call("version"), "5.0.0");
  EXPECT_EQ(client.call("add"), 3);
}

TEST_F(ReloadSchemaTest, AVersionThatCannotMigrateIsTakenBackAndHasChangedNothing) {
  Client client(*server_, "a");
  EXPECT_EQ(client.call("add"), 1);
  replace("schema-bad");
  server_->wait_for_log("reload.taken_back");
  EXPECT_EQ(client.call("version"), "1.0.0");
  EXPECT_EQ(client.call("add"), 2);
  EXPECT_TRUE(contains(server_->log(), "this version cannot migrate"));
}

TEST_F(ReloadSchemaTest, ClientsOfAnAgentWithNewerDataAreToldSo) {
  replace_and_wait("schema");
  {
    Client client(*server_, "a");
    EXPECT_EQ(client.call("add"), 1);
  }
  server_->stop();
  replace("1");
  start_again();
  Client client(*server_, "a");
  const Frame end = client.close_frame();
  EXPECT_EQ(end.close_code(), 1011);
  EXPECT_TRUE(contains(end.payload,
                       "the agent's data has schema version 2, but this version of the "
                       "class has none"));
  Client other(*server_, "b");
  EXPECT_EQ(other.call("add"), 1) << "other agents of the class are served";
}

TEST_F(ReloadSchemaTest, EachAgentIsMigratedOnceAtItsFirstWakeOnTheNewVersion) {
  EXPECT_EQ(Client(*server_, "cold").call("add"), 1);
  server_->stop();
  start_again();
  {
    Client live(*server_, "live");
    EXPECT_EQ(live.call("add"), 1);
    replace_and_wait("schema");
    EXPECT_EQ(times_in_log("agent.migrated class=Versioned agent=live from=0 to=2"), 1U);
    EXPECT_EQ(times_in_log("agent.migrated class=Versioned agent=cold"), 0U) << "nobody needs it";
    EXPECT_EQ(live.call("marks"), 1);
  }
  EXPECT_EQ(Client(*server_, "cold").call("marks"), 1);
  server_->wait_for_log("agent.migrated class=Versioned agent=cold from=0 to=2");
  // And never again.
  server_->stop();
  EXPECT_EQ(times_in_log("agent.migrated"), 2U);
  start_again();
  for (const char* name : {"live", "cold"}) {
    Client client(*server_, name);
    EXPECT_EQ(client.call("marks"), 1);
    EXPECT_EQ(client.call("attempts", R"(["migrate"])"), 1);
  }
  server_->stop();
  EXPECT_EQ(times_in_log("agent.migrated"), 0U);
}

TEST_F(ReloadSchemaTest, FramesWaitForAMigrationAndAreAnsweredInOrder) {
  put("classes/versioned.yaml",
      "class: Versioned\noptions: {migrate_gate: \"" + gate("migrated") + "\"}\n");
  server_->stop();
  start_again();
  Client client(*server_, "a");
  EXPECT_EQ(client.call("add"), 1);
  replace("schema");
  server_->wait_for_log("migrating");
  client.send_numbers(0, 40);
  open("migrated");
  for (int i = 0; i < 40; ++i) ASSERT_EQ(client.read(), "5.0.0 " + std::to_string(i));
  EXPECT_EQ(client.call("marks"), 1);
}

TEST_F(ReloadSchemaTest, AMigrationThatFailsWithNoVersionToGoBackToIsToldAndChangesNothing) {
  EXPECT_EQ(Client(*server_, "a").call("add"), 1);
  server_->stop();
  replace("schema-bad");
  start_again();
  {
    Client client(*server_, "a");
    const Frame end = client.close_frame();
    EXPECT_EQ(end.close_code(), 1011);
    EXPECT_EQ(end.close_reason(), "the agent failed to start; the server's log says why");
    EXPECT_TRUE(answers(request(*server_, "GET", "/agents/versioned/a"), 503, end.close_reason()));
  }
  server_->wait_for_log("could not be brought from schema version 0 to 2: ");
  EXPECT_EQ(Client(*server_, "new").call("add"), 1) << "one without data need not be migrated";
  server_->stop();
  replace("1");
  start_again();
  Client client(*server_, "a");
  EXPECT_EQ(client.call("add"), 2) << "its data are those of the old version";
  EXPECT_EQ(client.call("attempts", R"(["migrate"])"), 0) << "nothing of the migration is left";
}

TEST_F(ReloadSchemaTest, AMigrationThatIsKilledHalfWayHasChangedNothing) {
  put("classes/versioned.yaml",
      "class: Versioned\noptions: {migrate_gate: \"" + gate("migrated") + "\"}\n");
  EXPECT_EQ(Client(*server_, "a").call("add"), 1);
  server_->stop();
  replace("schema");
  start_again();
  {
    Client client(*server_, "a");
    server_->wait_for_log("migrating");
    server_->kill();
  }
  replace("1");
  start_again();
  EXPECT_EQ(Client(*server_, "a").call("add"), 2);
  EXPECT_EQ(Client(*server_, "a").call("attempts", R"(["migrate"])"), 0);
  open("migrated");
  replace_and_wait("schema");
  Client client(*server_, "a");
  EXPECT_EQ(client.call("marks"), 2);
  EXPECT_EQ(client.call("attempts", R"(["migrate"])"), 1);
}

TEST_F(ReloadSchemaTest, ColdAgentsWithNewerDataAreRefusedUntilTheNewerVersionIsBack) {
  replace_and_wait("schema");
  put("classes/versioned.yaml", "class: Versioned\nidle_timeout: 10ms\n");
  server_->wait_for_log("config.done");
  EXPECT_EQ(Client(*server_, "a").call("add"), 1);
  server_->wait_for_log("agent=a reason=idle");
  replace_and_wait("1");  // no agent is live to try it
  expect_is_refused("a");
  EXPECT_EQ(Client(*server_, "b").call("add"), 1) << "other agents of the class are served";
  replace_and_wait("schema");
  EXPECT_EQ(Client(*server_, "a").call("add"), 2) << "it has kept its data";
}

}  // namespace
}  // namespace hearth::testing

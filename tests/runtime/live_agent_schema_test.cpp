// The schema version of an agent's data: the class migrates older data, and never gets newer data.
#include "runtime/fakes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hearth::runtime::testing {
namespace {

using std::chrono::milliseconds;

Result<void> make_table(HostCalls& host) {
  run_sql(host, "CREATE TABLE IF NOT EXISTS t(a)");
  return {};
}

class LiveAgentSchemaTest : public ::testing::TestWithParam<Durability> {
 protected:
  LiveAgentSchemaTest() : shard_({}, settings()) {
    shard_.script.on_event = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kMigrate) return on_migrate_(host, event);
      if (event.kind == EventKind::kCall) {
        if (event.name == "write") EXPECT_TRUE(host.set_state(0, std::string(event.body)));
        const std::string state(host.state().value_or("null"));
        return host.complete(event.call, std::string_view(state));
      }
      return complete(host, event);
    };
  }
  static ClassSettings settings() { return settings_with(&ClassSettings::durability, GetParam()); }

  // What an agent of `version` leaves behind meets code of `next`.
  void leave_data_of(std::uint32_t version, std::uint32_t next) {
    shard_.script.schema_version = version;
    EXPECT_EQ(call("write", "[1]"), "ok [1]");
    wake_as(next);
  }
  // The next wake is on code of `version`.
  void wake_as(std::uint32_t version) {
    shard_.restart({}, settings());
    shard_.script.schema_version = version;
    shard_.script.history.clear();
  }
  // What a client of an agent that may be cold is answered.
  std::string call(const std::string& method, const std::string& arguments = "[]") {
    const auto client = shard_.connect();
    const auto answer = shard_.call(client, method, arguments);
    EXPECT_TRUE(shard_.loop.settle_until([&] { return answer->end.has_value(); }));
    return answer->end.value_or("nothing");
  }
  [[nodiscard]] std::vector<std::string> migrations() const {
    std::vector<std::string> found;
    std::ranges::copy_if(shard_.script.history, std::back_inserter(found),
                         [](const std::string& line) { return line.starts_with("migrate"); });
    return found;
  }

  ShardFixture shard_;
  std::function<Result<void>(HostCalls&, const AgentEvent&)> on_migrate_ =
      [](HostCalls& host, const AgentEvent& event) {
        EXPECT_TRUE(host.set_state(0, "[2]"));
        return complete(host, event);
      };
};

INSTANTIATE_TEST_SUITE_P(Each, LiveAgentSchemaTest,
                         ::testing::Values(Durability::kProcess, Durability::kPower));

TEST_P(LiveAgentSchemaTest, ANewAgentHasNothingToMigrate) {
  leave_data_of(2, 2);
  EXPECT_EQ(call("read"), "ok [1]");
  EXPECT_EQ(migrations(), std::vector<std::string>{});
}

TEST_P(LiveAgentSchemaTest, OlderDataAreMigratedOnceAndBeforeStart) {
  leave_data_of(1, 3);
  EXPECT_EQ(call("read"), "ok [2]");
  ASSERT_GE(shard_.script.history.size(), 2U);
  EXPECT_EQ(shard_.script.history[0], R"(migrate |{"from":1,"to":3})");
  EXPECT_EQ(shard_.script.history[1], "start |");
  EXPECT_TRUE(shard_.logger.contains("agent.migrated"));
  EXPECT_EQ(shard_.logger.count("from=1 to=3 call="), 1U) << "and its trace";
  wake_as(3);
  EXPECT_EQ(call("read"), "ok [2]");
  EXPECT_EQ(migrations(), std::vector<std::string>{});
}

TEST_P(LiveAgentSchemaTest, ALogIsNotFilledWithTheAgentsThatMigrate) {
  constexpr std::size_t kMany = 50;
  std::vector<std::shared_ptr<Answer>> answers;
  const auto write_all = [&] {
    answers.clear();
    for (std::size_t i = 0; i < kMany; ++i)
      answers.push_back(shard_.call(shard_.connect("a" + std::to_string(i)), "write", "[1]"));
    const auto is_answered = [](const auto& each) { return each->end.has_value(); };
    EXPECT_TRUE(
        shard_.loop.settle_until([&] { return std::ranges::all_of(answers, is_answered); }));
  };
  wake_as(1);
  write_all();
  wake_as(2);
  write_all();
  EXPECT_EQ(migrations().size(), kMany);
  EXPECT_LT(shard_.logger.count("agent.migrated"), kMany);
}

TEST_P(LiveAgentSchemaTest, WhatCreateWritesDoesNotHideThatDataAreOld) {
  leave_data_of(1, 2);
  shard_.script.on_create = make_table;
  EXPECT_EQ(call("read"), "ok [2]");
  EXPECT_EQ(migrations().size(), 1U);
}

TEST_P(LiveAgentSchemaTest, ANewAgentWhoseCreateWritesIsNotMigrated) {
  shard_.script.schema_version = 2;
  shard_.script.on_create = make_table;
  EXPECT_EQ(call("read"), "ok null");
  wake_as(2);
  EXPECT_EQ(call("read"), "ok null");
  EXPECT_EQ(migrations(), std::vector<std::string>{});
}

TEST_P(LiveAgentSchemaTest, OlderCodeIsRefusedAndClientsAreToldWhy) {
  leave_data_of(3, 2);
  const std::string why =
      "the agent's data has schema version 3, but this version of the class knows only 2";
  EXPECT_EQ(call("write", "[9]"), "error unavailable: " + why);
  EXPECT_TRUE(shard_.logger.contains(why));
  EXPECT_EQ(shard_.script.history, std::vector<std::string>{}) << "no instance is made";
  wake_as(0);
  EXPECT_EQ(call("read"),
            "error unavailable: the agent's data has schema version 3, but this version of the "
            "class has none");
  wake_as(3);
  EXPECT_EQ(call("read"), "ok [1]");
}

TEST_P(LiveAgentSchemaTest, AMigrationThatFailsIsUndoneAndTriedAgain) {
  leave_data_of(1, 2);
  const auto migrate = on_migrate_;
  on_migrate_ = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    run_sql(host, "CREATE TABLE half(a)");
    EXPECT_TRUE(host.set_state(0, "[5]"));
    return host.complete(event.call, Error{Errc::kPlugin, "no such column"});
  };
  EXPECT_EQ(call("read"), kFailedToStart);
  EXPECT_TRUE(
      shard_.logger.contains("could not be brought from schema version 1 to 2: no such column"));
  on_migrate_ = [migrate](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_EQ(host.state(), "[1]");
    run_sql(host, "CREATE TABLE half(a)");
    return migrate(host, event);
  };
  EXPECT_EQ(call("read"), "ok [2]");
  EXPECT_EQ(migrations().size(), 2U);
}

TEST_P(LiveAgentSchemaTest, OlderCodeGoesOnAfterAMigrationThatFailed) {
  leave_data_of(1, 2);
  on_migrate_ = [](HostCalls& host, const AgentEvent&) -> Result<void> {
    EXPECT_TRUE(host.set_state(0, "[5]"));
    return Error{Errc::kPlugin, "no"};
  };
  EXPECT_EQ(call("read"), kFailedToStart);
  wake_as(1);
  EXPECT_EQ(call("read"), "ok [1]");
}

TEST_P(LiveAgentSchemaTest, AMigrationMayWaitAndNothingIsCommittedMeanwhile) {
  leave_data_of(1, 2);
  CallId open = 0;
  on_migrate_ = [&open](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_TRUE(host.set_state(0, "[4]"));
    const std::uint64_t job = 1;
    std::string request(sizeof job, '\0');
    std::memcpy(request.data(), &job, sizeof job);
    EXPECT_TRUE(host.submit(2, request, 7)) << "a job runs though what was written is not durable";
    open = event.call;
    return {};
  };
  bool job_is_done = false;
  shard_.script.on_result = [&](HostCalls& host, const OperationResult& result) {
    EXPECT_TRUE(result.outcome);
    run_sql(host, "CREATE TABLE later(a)");
    job_is_done = true;
  };
  const auto answer = shard_.call(shard_.connect(), "read");
  EXPECT_TRUE(shard_.loop.settle_until([&] { return job_is_done; }));
  EXPECT_FALSE(answer->end);
  // As if the server had died here, but that the WAL is closed in order.
  wake_as(1);
  EXPECT_EQ(call("read"), "ok [1]");
}

TEST_P(LiveAgentSchemaTest, AMigrationThatTakesTooLongIsUndone) {
  leave_data_of(1, 2);
  on_migrate_ = [](HostCalls& host, const AgentEvent&) -> Result<void> {
    EXPECT_TRUE(host.set_state(0, "[4]"));
    return {};
  };
  const auto answer = shard_.call(shard_.connect(), "read");
  shard_.loop.advance(RuntimeLimits().start_timeout);
  EXPECT_TRUE(shard_.loop.settle_until([&] { return answer->end.has_value(); }));
  EXPECT_EQ(answer->end, kFailedToStart);
  wake_as(1);
  EXPECT_EQ(call("read"), "ok [1]");
}

// A version on trial sets the state in MIGRATE, and is taken back.
class MigrationOnTrialTest : public LiveAgentSchemaTest {
 protected:
  MigrationOnTrialTest() {
    leave_data_of(1, 1);
    stays_ = shard_.runtime().classes().find("counter");
    shard_.script.watches_state = true;
    next_script_.schema_version = 2;
    next_script_.watches_state = true;
    next_script_.on_event = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
      EXPECT_TRUE(host.set_state(0, "[5]"));
      if (hangs_) return {};
      return host.complete(event.call, Error{Errc::kPlugin, "no such column"});
    };
    tried_ = std::make_shared<const ServedClass>(
        ServedClass{"counter", std::make_shared<ScriptedClass>(next_script_), settings()});
    tried_->starts->undecided_until = shard_.loop.clock().steady_now() + milliseconds(1'000);
    shard_.runtime().classes().put(tried_);
  }
  ~MigrationOnTrialTest() override { shard_.restart(); }  // its agents run next_script_

  bool reaches(AgentState state) {
    return shard_.loop.settle_until(
        [&] { return shard_.admin().standing(kUsualAgent).state == state; });
  }
  // The version that stays answers, and gets no state of the other version.
  void expect_no_news(const std::shared_ptr<Answer>& answer) {
    EXPECT_TRUE(shard_.loop.settle_until([&] { return answer->end.has_value(); }));
    shard_.settle();
    EXPECT_EQ(answer->end, "ok [1]");
    EXPECT_EQ(std::ranges::count(shard_.script.history, "state_changed |[5]"), 0);
  }

  bool hangs_ = false;
  Script next_script_;
  std::shared_ptr<const ServedClass> stays_;
  std::shared_ptr<const ServedClass> tried_;
};

INSTANTIATE_TEST_SUITE_P(Each, MigrationOnTrialTest,
                         ::testing::Values(Durability::kProcess, Durability::kPower));

TEST_P(MigrationOnTrialTest, WhatFailedIsNoNewsToTheVersionThatStays) {
  const auto answer = shard_.call(shard_.connect(), "read");
  ASSERT_TRUE(reaches(AgentState::kAwaitingVersion));
  shard_.runtime().classes().put(stays_);
  shard_.loop.advance(milliseconds(1'000));
  expect_no_news(answer);
}

TEST_P(MigrationOnTrialTest, WhatWasCutOffIsNoNewsToTheVersionThatStays) {
  hangs_ = true;
  const auto answer = shard_.ask(shard_.connect(), "read");
  ASSERT_EQ(next_script_.history.size(), 1U);
  shard_.runtime().classes().put(stays_);
  shard_.versions().expel(tried_, EvictReason::kCodeUpdate);
  expect_no_news(answer);
}

TEST_P(LiveAgentSchemaTest, UnsupportedCountsOnlyForDataWithoutAVersion) {
  on_migrate_ = fail_with(Errc::kUnsupported, "no");
  leave_data_of(0, 1);
  EXPECT_EQ(call("read"), "ok [1]");
  EXPECT_EQ(migrations(), std::vector<std::string>{R"(migrate |{"from":0,"to":1})"});
  wake_as(2);
  EXPECT_EQ(call("read"), kFailedToStart);
  EXPECT_TRUE(shard_.logger.contains("from schema version 1 to 2: the class does not say how"));
}

TEST_P(LiveAgentSchemaTest, AMigrationThatBeganAndSaysUnsupportedHasFailed) {
  leave_data_of(0, 1);
  on_migrate_ = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_TRUE(host.set_state(0, "[4]"));
    return host.complete(event.call, Error{Errc::kUnsupported, "not this"});
  };
  EXPECT_EQ(call("read"), kFailedToStart);
  wake_as(0);
  EXPECT_EQ(call("read"), "ok [1]");
}

TEST_P(LiveAgentSchemaTest, DurableWorkHasToWaitForStart) {
  leave_data_of(1, 2);
  on_migrate_ = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_EQ(host.start_fiber("work").error().code, Errc::kInvalidArgument);
    return complete(host, event);
  };
  EXPECT_EQ(call("read"), "ok [1]");
}

}  // namespace
}  // namespace hearth::runtime::testing

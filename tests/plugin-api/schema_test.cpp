// on_migrate and schema_version: data of an older version of a class.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using hearth::Json;
using hearth::Task;
using hearth::testing::CallError;
using hearth::testing::Host;

// Code from before schema versions.
class Unversioned : public hearth::Agent {
 public:
  Unversioned() { sql("CREATE TABLE IF NOT EXISTS words (word TEXT)"); }
  static void methods(hearth::Methods<Unversioned>& m) { m.add("put", &Unversioned::put); }
  void put(std::string word) { sql("INSERT INTO words VALUES (?)", word); }
};

class First : public Unversioned {
 public:
  static constexpr unsigned schema_version = 1;
};

// Counts the letters of each word, in a column of its own.
class Second : public hearth::Agent {
 public:
  static constexpr unsigned schema_version = 2;
  static void methods(hearth::Methods<Second>& m) { m.add("seen", &Second::seen); }
  Task<void> on_migrate(unsigned from, unsigned to) override {
    came_from = from;
    sql("ALTER TABLE words ADD COLUMN letters INTEGER");
    co_await sleep(std::chrono::seconds(1));
    sql("UPDATE words SET letters = length(word)");
    set_state(to);
    if (broken) throw std::runtime_error("no such alphabet");
  }
  Task<void> on_start() override {
    started_with = state().get<unsigned>();
    return {};
  }
  std::vector<unsigned> seen() { return {came_from, started_with}; }

  static inline bool broken = false;
  unsigned came_from = 99;
  unsigned started_with = 99;
};

class Lazy : public hearth::Agent {
 public:
  static constexpr unsigned schema_version = 2;
  static void methods(hearth::Methods<Lazy>& m) { m.add("ping", &Lazy::ping); }
  int ping() { return 1; }
};

class SchemaTest : public ::testing::Test {
 protected:
  SchemaTest() { Second::broken = false; }
  Host host_;
};

TEST_F(SchemaTest, ANewAgentHasTheVersionOfItsClass) {
  auto agent = host_.create<First>("a");
  EXPECT_EQ(agent.schema_version(), 1U);
}

TEST_F(SchemaTest, EventsWaitForTheMigrationAndForTheStart) {
  auto agent = host_.create<First>("a");
  agent.call("put", "four");
  agent.become<Second>();
  auto seen = agent.start("seen");
  EXPECT_FALSE(seen.done());
  host_.advance(std::chrono::seconds(1));
  EXPECT_EQ(seen.value(), Json({1, 2}));
  EXPECT_EQ(agent.sql("SELECT * FROM words"), Json::array({Json::array({"four", 4})}));
  EXPECT_EQ(agent.schema_version(), 2U);
}

TEST_F(SchemaTest, DataOfAClassWithoutVersionsComeFromZero) {
  auto agent = host_.create<Unversioned>("a");
  agent.become<Second>();
  auto seen = agent.start("seen");
  host_.advance(std::chrono::seconds(1));
  EXPECT_EQ(seen.value(), Json({0, 2}));
}

TEST_F(SchemaTest, AMigrationThatFailsLeavesNothing) {
  auto agent = host_.create<First>("a");
  agent.call("put", "four");
  agent.become<Second>();
  Second::broken = true;
  agent.wake();
  host_.advance(std::chrono::seconds(1));
  EXPECT_FALSE(agent.is_live());
  EXPECT_EQ(agent.sql("SELECT * FROM words"), Json::array({Json::array({"four"})}));
  EXPECT_EQ(agent.state(), Json());
  EXPECT_EQ(agent.schema_version(), 1U);
}

TEST_F(SchemaTest, AnEvictionUndoesWhatAMigrationHasWrittenSoFar) {
  auto agent = host_.create<First>("a");
  agent.call("put", "four");
  agent.become<Second>();
  agent.wake();
  agent.evict();
  EXPECT_EQ(agent.sql("SELECT * FROM words"), Json::array({Json::array({"four"})}));
  EXPECT_EQ(agent.schema_version(), 1U);
}

TEST_F(SchemaTest, OlderCodeIsRefused) {
  auto agent = host_.create<First>("a");
  agent.become<Second>();
  agent.wake();
  host_.advance(std::chrono::seconds(1));
  EXPECT_EQ(agent.schema_version(), 2U);
  agent.become<First>();
  const auto put = agent.start("put", "x");
  EXPECT_TRUE(put.failed());
  EXPECT_EQ(put.error(),
            "the agent's data has schema version 2, but this version of the class knows only 1");
}

TEST_F(SchemaTest, WithoutTheHookOnlyDataWithoutAVersionAreTaken) {
  auto unversioned = host_.create<Unversioned>("a");
  unversioned.become<Lazy>();
  EXPECT_EQ(unversioned.call("ping"), 1);
  EXPECT_EQ(unversioned.schema_version(), 2U);

  auto versioned = host_.create<First>("b");
  versioned.become<Lazy>();
  EXPECT_THROW(versioned.call("ping"), CallError);
  EXPECT_EQ(versioned.schema_version(), 1U);
}

}  // namespace

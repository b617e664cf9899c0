#include "runtime/migration.hpp"

#include "fakes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace hearth::runtime {
namespace {

class MigrationTest : public ::testing::Test, public MovingAgents {
 protected:
  struct Agent final : MovingAgent {
    Agent(MigrationTest& of_test, std::string name, const ServedClass* code)
        : test(of_test), own_key{"Counter", std::move(name)}, code(code) {}
    [[nodiscard]] const storage::AgentKey& key() const override { return own_key; }
    [[nodiscard]] const ServedClass* version() const override { return code; }
    void must_leave(EvictReason, bool when_idle) override {
      test.seen_.push_back((when_idle ? "when idle " : "must leave ") + own_key.name);
    }
    void leave_here() override {
      test.seen_.push_back("leaves " + own_key.name);
      code = nullptr;
    }
    void leave_suddenly(EvictReason) override { test.seen_.push_back("expelled " + own_key.name); }
    void may_try(const std::shared_ptr<VersionTrial>& trial) override {
      if (trial->take_place()) test.seen_.push_back("tries " + own_key.name);
    }

    MigrationTest& test;
    storage::AgentKey own_key;
    const ServedClass* code;
  };

  [[nodiscard]] std::vector<MovingAgent*> in_memory() const override { return agents_; }
  [[nodiscard]] MovingAgent* find(const storage::AgentKey& key) const override {
    const auto found =
        std::ranges::find_if(agents_, [&](const MovingAgent* each) { return each->key() == key; });
    return found == agents_.end() ? nullptr : *found;
  }
  Agent& add(const std::string& name, const std::shared_ptr<const ServedClass>& version) {
    Agent& made = made_.emplace_back(*this, name, version.get());
    agents_.push_back(&made);
    return made;
  }

  using Sights = std::vector<std::string>;

  std::shared_ptr<const ServedClass> old_ = std::make_shared<ServedClass>();
  std::shared_ptr<const ServedClass> next_ = std::make_shared<ServedClass>();
  std::deque<Agent> made_;
  std::vector<MovingAgent*> agents_;
  Sights seen_;
  testing::ManualLoop loop_;
  PacedSteps steps_{loop_, 20};
  Migration migration_{*this, steps_};
};

TEST_F(MigrationTest, AllThatHaveTheVersionLeaveItOneAfterTheOther) {
  add("a", old_);
  add("b", next_);
  add("c", old_);
  EXPECT_EQ(migration_.leave_version(old_, EvictReason::kCodeUpdate, false), 2U);
  EXPECT_EQ(seen_, (Sights{"must leave a", "must leave c"}));
  loop_.step();
  EXPECT_EQ(seen_.back(), "leaves a") << "a step each";
  loop_.settle();
  EXPECT_EQ(seen_.back(), "leaves c");
}

TEST_F(MigrationTest, DrainingLeavesItToTheIdleMomentOfEach) {
  add("a", old_);
  EXPECT_EQ(migration_.leave_version(old_, EvictReason::kCodeUpdate, true), 1U);
  loop_.settle();
  EXPECT_EQ(seen_, Sights{"when idle a"});
}

TEST_F(MigrationTest, OneThatHasLeftByItselfMeanwhileStays) {
  add("a", old_);
  add("b", old_);
  migration_.leave_version(old_, EvictReason::kCodeUpdate, false);
  made_[0].code = next_.get();
  agents_.pop_back();  // and this one is gone
  seen_.clear();
  loop_.settle();
  EXPECT_TRUE(seen_.empty());
}

TEST_F(MigrationTest, AVersionIsExpelledAtOnce) {
  add("a", old_);
  add("b", next_);
  migration_.expel_version(*old_, EvictReason::kPluginRemoved);
  EXPECT_EQ(seen_, Sights{"expelled a"});
}

TEST_F(MigrationTest, TheMostRecentlyUsedTryTheNextVersionWhileThereArePlaces) {
  for (const char* name : {"a", "b", "c"}) add(name, old_);
  const auto trial = std::make_shared<VersionTrial>(1, 2, false);
  migration_.try_version(*old_, trial);
  EXPECT_EQ(seen_, (Sights{"tries c", "tries b"}));
  EXPECT_EQ(trial->places, 0U);
  EXPECT_EQ(trial->tried, 2U);
}

}  // namespace
}  // namespace hearth::runtime

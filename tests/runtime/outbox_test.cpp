#include "runtime/outbox.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::runtime {
namespace {

class ManualGate final : public DurabilityGate {
 public:
  void request(std::function<void(bool)> done) override { waiting.push_back(std::move(done)); }
  void directory_written() override {}
  void answer(bool durable) {
    auto first = std::move(waiting.front());
    waiting.erase(waiting.begin());
    first(durable);
  }
  std::vector<std::function<void(bool)>> waiting;
};

class OutboxTest : public ::testing::Test, protected OutboxOwner {
 protected:
  [[nodiscard]] bool dirty() const override { return dirty_; }
  void commit() override {
    if (commit_fails_) throw StorageError("disk full");
    dirty_ = false;
    seen_.emplace_back("commit");
  }
  void apply(Effect& effect) override {
    const auto& frame = std::get<FrameEffect>(effect);
    if (!frame.payload.empty()) seen_.push_back(frame.payload);
  }
  void discard(Effect& effect) override {
    seen_.push_back("discarded " + std::get<FrameEffect>(effect).payload);
  }
  void all_durable() override { seen_.emplace_back("all durable"); }
  void durability_lost() override { seen_.emplace_back("lost"); }

  static FrameEffect frame(std::string text) {
    return FrameEffect{{1}, std::move(text), FrameKind::kText};
  }

  using Seen = std::vector<std::string>;
  bool dirty_ = false;
  bool commit_fails_ = false;
  Seen seen_;
  ManualGate gate_;
};

TEST_F(OutboxTest, P3_WithNothingWrittenEffectsLeaveAtOnce) {
  Outbox outbox(*this, nullptr);
  outbox.push(frame("a"));
  EXPECT_EQ(seen_, Seen{"a"});
  EXPECT_TRUE(outbox.open());
}

TEST_F(OutboxTest, P1_NothingLeavesBeforeTheCommit) {
  Outbox outbox(*this, nullptr);
  dirty_ = true;
  outbox.push(frame("a"));
  EXPECT_FALSE(outbox.open());
  EXPECT_TRUE(seen_.empty());
  outbox.flush();
  EXPECT_EQ(seen_, (Seen{"commit", "a"}));
}

TEST_F(OutboxTest, StatesThatWereRolledBackAreNotShownAndAllElseIs) {
  Outbox outbox(*this, &gate_);
  const auto state = [](std::string text, std::uint64_t write) {
    return FrameEffect{{1}, std::move(text), FrameKind::kText, write};
  };
  dirty_ = true;
  outbox.push(state("first", 1));
  outbox.flush();
  dirty_ = true;
  outbox.push(state("second", 2));
  outbox.push(frame("a"));
  outbox.push(state("third", 3));
  outbox.push(frame("b"));
  outbox.withdraw_states(2);
  outbox.push(state("fourth", 4));
  outbox.flush();
  gate_.answer(true);
  EXPECT_EQ(seen_, (Seen{"commit", "commit", "first"}));
  gate_.answer(true);
  EXPECT_EQ(seen_,
            (Seen{"commit", "commit", "first", "second", "a", "b", "fourth", "all durable"}));
}

TEST_F(OutboxTest, P1_WithAGateNothingLeavesBeforeItsAnswer) {
  Outbox outbox(*this, &gate_);
  dirty_ = true;
  outbox.push(frame("a"));
  outbox.flush();
  EXPECT_EQ(seen_, Seen{"commit"});
  gate_.answer(true);
  EXPECT_EQ(seen_, (Seen{"commit", "a", "all durable"}));
}

TEST_F(OutboxTest, P1_AnEarlierAnswerDoesNotFreeWhatFollowsALaterCommit) {
  Outbox outbox(*this, &gate_);
  dirty_ = true;
  outbox.push(frame("a"));
  outbox.flush();
  dirty_ = true;
  outbox.flush();  // nothing new is held
  outbox.push(frame("b"));
  gate_.answer(true);
  EXPECT_EQ(seen_, (Seen{"commit", "commit", "a"})) << "b follows the second commit";
  outbox.push(frame("c"));
  EXPECT_EQ(seen_.back(), "a");
  gate_.answer(true);
  EXPECT_EQ(seen_, (Seen{"commit", "commit", "a", "b", "c", "all durable"}));
}

TEST_F(OutboxTest, WhatIsPushedAfterHoldBackWaitsAtTheGate) {
  Outbox outbox(*this, &gate_);
  outbox.hold_back();
  outbox.push(frame("a"));
  EXPECT_FALSE(outbox.open());
  EXPECT_TRUE(seen_.empty());
  gate_.answer(true);
  EXPECT_EQ(seen_, (Seen{"a", "all durable"}));
}

TEST_F(OutboxTest, WhatIsHeldBackInVainIsLost) {
  Outbox outbox(*this, &gate_);
  outbox.hold_back();
  outbox.push(frame("a"));
  gate_.answer(false);
  EXPECT_EQ(seen_, Seen{"lost"});
  outbox.discard_all();
}

TEST_F(OutboxTest, P1_ACommitWithoutEffectsHoldsBackWhatIsPushedLater) {
  Outbox outbox(*this, &gate_);
  dirty_ = true;
  outbox.flush();
  outbox.push(frame("later"));
  EXPECT_EQ(seen_, Seen{"commit"});
  gate_.answer(true);
  EXPECT_EQ(seen_, (Seen{"commit", "later", "all durable"}));
  EXPECT_TRUE(outbox.empty());
}

TEST_F(OutboxTest, P1_EachAnswerFreesOnlyWhatWasWrittenBeforeItsRequest) {
  Outbox outbox(*this, &gate_);
  dirty_ = true;
  outbox.push(frame("a"));
  outbox.flush();
  dirty_ = true;
  outbox.push(frame("b"));
  gate_.answer(true);
  EXPECT_EQ(seen_, (Seen{"commit", "a", "all durable"}))
      << "b follows a write that is not committed";
  outbox.flush();
  gate_.answer(true);
  EXPECT_EQ(seen_, (Seen{"commit", "a", "all durable", "commit", "b", "all durable"}));
}

TEST_F(OutboxTest, P2_OrderIsKeptAcrossHeldAndFree) {
  Outbox outbox(*this, &gate_);
  dirty_ = true;
  outbox.push(frame("a"));
  outbox.flush();
  outbox.push(frame("b"));  // clean, but behind a
  gate_.answer(true);
  outbox.push(frame("c"));
  EXPECT_EQ(seen_, (Seen{"commit", "a", "b", "all durable", "c"}));
}

TEST_F(OutboxTest, P4_AfterAFailedCommitEverythingIsDiscarded) {
  Outbox outbox(*this, nullptr);
  dirty_ = true;
  commit_fails_ = true;
  outbox.push(frame("a"));
  EXPECT_THROW(outbox.flush(), StorageError);
  outbox.discard_all();
  outbox.push(frame("b"));
  EXPECT_EQ(seen_, (Seen{"discarded a", "discarded b"}));
}

TEST_F(OutboxTest, AFailedSyncLetsNothingOut) {
  Outbox outbox(*this, &gate_);
  dirty_ = true;
  outbox.push(frame("a"));
  outbox.flush();
  gate_.answer(false);
  EXPECT_EQ(seen_, (Seen{"commit", "lost"}));
  outbox.discard_all();
}

TEST_F(OutboxTest, AnAnswerAfterDestructionIsIgnored) {
  {
    Outbox outbox(*this, &gate_);
    dirty_ = true;
    outbox.push(frame("a"));
    outbox.flush();
    outbox.discard_all();
  }
  gate_.answer(true);
  EXPECT_EQ(seen_, (Seen{"commit", "discarded a"}));
}

}  // namespace
}  // namespace hearth::runtime

#include "runtime/outbox.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace hearth::runtime {
namespace {

constexpr std::size_t kLimit = std::size_t{1} << 20;

class OutboxTest : public ::testing::Test, protected EffectPort {
 protected:
  void apply(Effect& effect) override {
    if (takes_all_kinds_) return;
    const auto& frame = std::get<FrameEffect>(effect);
    if (!frame.payload.empty()) seen_.push_back(frame.payload);
  }
  void discard(Effect& effect) override {
    seen_.push_back("discarded " + std::get<FrameEffect>(effect).payload);
  }

  [[nodiscard]] Outbox make(bool awaits_device) {
    return {*this, [this] { return dirty_; }, awaits_device, memory_};
  }
  void commit(Outbox& outbox) {
    const bool wrote = std::exchange(dirty_, false);
    if (wrote) seen_.emplace_back("commit");
    await(outbox.committed(wrote));
  }
  void await(Outbox::Mark mark) {
    if (mark != 0) awaited_.push_back(mark);
  }
  // The device has all up to the first mark that is awaited.
  void sync(Outbox& outbox) {
    const Outbox::Mark mark = awaited_.at(0);
    awaited_.erase(awaited_.begin());
    if (outbox.durable(mark)) seen_.emplace_back("all durable");
  }

  static FrameEffect frame(std::string text) {
    return FrameEffect{{1}, std::move(text), FrameKind::kText};
  }

  using Seen = std::vector<std::string>;
  bool dirty_ = false;
  bool takes_all_kinds_ = false;
  Seen seen_;
  std::vector<Outbox::Mark> awaited_;
  ClientMemory memory_{kLimit};
};

TEST_F(OutboxTest, P3_WithNothingWrittenEffectsLeaveAtOnce) {
  Outbox outbox = make(false);
  outbox.push(frame("a"));
  EXPECT_EQ(seen_, Seen{"a"});
  EXPECT_TRUE(outbox.open());
}

TEST_F(OutboxTest, P1_NothingLeavesBeforeTheCommit) {
  Outbox outbox = make(false);
  dirty_ = true;
  outbox.push(frame("a"));
  EXPECT_FALSE(outbox.open());
  EXPECT_TRUE(seen_.empty());
  commit(outbox);
  EXPECT_EQ(seen_, (Seen{"commit", "a"}));
}

TEST_F(OutboxTest, StatesThatWereRolledBackAreNotShownAndAllElseIs) {
  Outbox outbox = make(true);
  const auto state = [](std::string text, std::uint64_t write) {
    return FrameEffect{{1}, std::move(text), FrameKind::kText, write};
  };
  dirty_ = true;
  outbox.push(state("first", 1));
  commit(outbox);
  dirty_ = true;
  outbox.push(state("second", 2));
  outbox.push(frame("a"));
  outbox.push(state("third", 3));
  outbox.push(frame("b"));
  outbox.withdraw_states(2);
  outbox.push(state("fourth", 4));
  commit(outbox);
  sync(outbox);
  EXPECT_EQ(seen_, (Seen{"commit", "commit", "first"}));
  sync(outbox);
  EXPECT_EQ(seen_,
            (Seen{"commit", "commit", "first", "second", "a", "b", "fourth", "all durable"}));
}

TEST_F(OutboxTest, P1_WithAGateNothingLeavesBeforeItsAnswer) {
  Outbox outbox = make(true);
  dirty_ = true;
  outbox.push(frame("a"));
  commit(outbox);
  EXPECT_EQ(seen_, Seen{"commit"});
  sync(outbox);
  EXPECT_EQ(seen_, (Seen{"commit", "a", "all durable"}));
}

TEST_F(OutboxTest, P1_AnEarlierAnswerDoesNotFreeWhatFollowsALaterCommit) {
  Outbox outbox = make(true);
  dirty_ = true;
  outbox.push(frame("a"));
  commit(outbox);
  dirty_ = true;
  commit(outbox);  // nothing new is held
  outbox.push(frame("b"));
  sync(outbox);
  EXPECT_EQ(seen_, (Seen{"commit", "commit", "a"})) << "b follows the second commit";
  outbox.push(frame("c"));
  EXPECT_EQ(seen_.back(), "a");
  sync(outbox);
  EXPECT_EQ(seen_, (Seen{"commit", "commit", "a", "b", "c", "all durable"}));
}

TEST_F(OutboxTest, WhatIsPushedAfterHoldBackWaitsAtTheGate) {
  Outbox outbox = make(true);
  await(outbox.hold_back());
  outbox.push(frame("a"));
  EXPECT_FALSE(outbox.open());
  EXPECT_TRUE(seen_.empty());
  sync(outbox);
  EXPECT_EQ(seen_, (Seen{"a", "all durable"}));
}

TEST_F(OutboxTest, WhatIsHeldBackInVainIsLost) {
  Outbox outbox = make(true);
  await(outbox.hold_back());
  outbox.push(frame("a"));
  outbox.discard_all();  // the sync has failed
  EXPECT_EQ(seen_, (Seen{"discarded ", "discarded a"})) << "first what stands for the old commits";
}

TEST_F(OutboxTest, P1_ACommitWithoutEffectsHoldsBackWhatIsPushedLater) {
  Outbox outbox = make(true);
  dirty_ = true;
  commit(outbox);
  outbox.push(frame("later"));
  EXPECT_EQ(seen_, Seen{"commit"});
  sync(outbox);
  EXPECT_EQ(seen_, (Seen{"commit", "later", "all durable"}));
  EXPECT_TRUE(outbox.empty());
}

TEST_F(OutboxTest, P1_EachAnswerFreesOnlyWhatWasWrittenBeforeItsRequest) {
  Outbox outbox = make(true);
  dirty_ = true;
  outbox.push(frame("a"));
  commit(outbox);
  dirty_ = true;
  outbox.push(frame("b"));
  sync(outbox);
  EXPECT_EQ(seen_, (Seen{"commit", "a", "all durable"}))
      << "b follows a write that is not committed";
  commit(outbox);
  sync(outbox);
  EXPECT_EQ(seen_, (Seen{"commit", "a", "all durable", "commit", "b", "all durable"}));
}

TEST_F(OutboxTest, P2_OrderIsKeptAcrossHeldAndFree) {
  Outbox outbox = make(true);
  dirty_ = true;
  outbox.push(frame("a"));
  commit(outbox);
  outbox.push(frame("b"));  // clean, but behind a
  sync(outbox);
  outbox.push(frame("c"));
  EXPECT_EQ(seen_, (Seen{"commit", "a", "b", "all durable", "c"}));
}

TEST_F(OutboxTest, P4_DiscardAllDiscardsWhatIsHeldAndWhatIsPushedLater) {
  Outbox outbox = make(false);
  dirty_ = true;
  outbox.push(frame("a"));
  outbox.discard_all();
  outbox.push(frame("b"));
  EXPECT_EQ(seen_, (Seen{"discarded a", "discarded b"}));
}

TEST_F(OutboxTest, AFailedSyncLetsNothingOut) {
  Outbox outbox = make(true);
  dirty_ = true;
  outbox.push(frame("a"));
  commit(outbox);
  outbox.discard_all();
  EXPECT_EQ(seen_, (Seen{"commit", "discarded a"}));
}

TEST_F(OutboxTest, ASyncThatComesAfterTheEndLetsNothingOut) {
  Outbox outbox = make(true);
  dirty_ = true;
  outbox.push(frame("a"));
  commit(outbox);
  outbox.discard_all();
  sync(outbox);
  EXPECT_EQ(seen_, (Seen{"commit", "discarded a"}));
}

TEST_F(OutboxTest, P5_TheBytesOfEachKindAreOnTheAccountUntilTheyLeave) {
  const std::string text(100, 'x');
  const ResponseHead head{200, {{"name", "value"}}};
  const std::vector<std::pair<Effect, std::size_t>> effects = {
      {FrameEffect{{1, 2}, text, FrameKind::kText}, 100 + 2 * sizeof(ConnectionId)},
      {CloseEffect{1, 1000, text}, 100},
      {HandshakeEffect{1, text}, 100},
      {HandshakeEffect{1, std::nullopt}, 0},
      {PartEffect{nullptr, 0, head, text}, 109},
      {FinishEffect{nullptr, 0, head, text}, 109},
      {FinishEffect{nullptr, 0, {}, Error{Errc::kInternal, text}}, 100},
      {OffloadEffect{}, 0},
      {DrainEffect{}, 0},
      {RemoteEffect{}, 0},
  };
  takes_all_kinds_ = true;
  Outbox outbox = make(true);
  std::size_t sum = 0;
  dirty_ = true;
  for (const auto& [effect, bytes] : effects) {
    outbox.push(effect);
    sum += bytes;
    EXPECT_EQ(memory_.used(), sum) << "alternative " << effect.index();
  }
  outbox.push(FrameEffect{{1}, text, FrameKind::kText, 2});
  outbox.withdraw_states(1);
  EXPECT_EQ(memory_.used(), sum);
  commit(outbox);
  EXPECT_EQ(memory_.used(), sum) << "the device has not answered";
  sync(outbox);
  EXPECT_EQ(memory_.used(), 0U);

  dirty_ = true;
  outbox.push(frame(text));
  outbox.discard_all();
  EXPECT_EQ(memory_.used(), 0U);
}

TEST_F(OutboxTest, P5_WithoutAGateNothingIsHeldForLongAndNothingIsEntered) {
  Outbox outbox = make(false);
  dirty_ = true;
  outbox.push(frame(std::string(std::size_t{8} << 20, 'x')));
  EXPECT_EQ(memory_.used(), 0U);
  EXPECT_FALSE(outbox.is_crowded());
  commit(outbox);
}

TEST_F(OutboxTest, ItIsCrowdedByEffectsByBytesAndWhileTheAccountIsOverdrawn) {
  struct Case {
    const char* what;
    std::size_t effects, bytes_each, others_hold;
    bool is_crowded;
  };
  constexpr std::size_t kFree = ClientMemory::kFree;
  const Case cases[] = {
      {"few", 4095, 1, 0, false},
      {"many effects", 4096, 1, 0, true},
      {"bytes, within the account", 1, kLimit / 2, 0, false},
      {"bytes, past the account", 1, kLimit + 1, 0, true},
      {"others have overdrawn it", 1, kFree + 1, kLimit + 1, true},
      {"... and it holds little", 1, kFree - sizeof(ConnectionId), kLimit + 1, false},
  };
  for (const Case& each : cases) {
    const HeldBytes others(memory_, each.others_hold);
    dirty_ = true;
    Outbox outbox = make(true);
    for (std::size_t i = 0; i < each.effects; ++i)
      outbox.push(frame(std::string(each.bytes_each, 'x')));
    EXPECT_EQ(outbox.is_crowded(), each.is_crowded) << each.what;
    outbox.discard_all();
    EXPECT_FALSE(outbox.is_crowded()) << each.what;
  }
  ClientMemory large(std::size_t{1} << 30);
  Outbox outbox(*this, [this] { return dirty_; }, true, large);
  dirty_ = true;
  outbox.push(frame(std::string(std::size_t{4} << 20, 'x')));
  EXPECT_TRUE(outbox.is_crowded()) << "4 MiB, whatever the account";
  outbox.discard_all();
}

}  // namespace
}  // namespace hearth::runtime

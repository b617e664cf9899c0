#include "runtime/outbox.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <sstream>
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
    seen_.push_back("-" + std::get<FrameEffect>(effect).payload);
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
    seen_.emplace_back("sync");
    if (outbox.durable(mark)) seen_.emplace_back("durable");
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

struct OutboxRow {
  const char* name;
  bool awaits_device;
  // "write", "commit", "sync", "hold" back, "discard" all, "open?", "empty?"; any other word is the
  // text of a frame that is pushed.
  const char* steps;
  // Each commit, sync and discard, and what left after it. "a": the frame; "-a": it was discarded;
  // "-": so was what stands for earlier commits; "durable": nothing more is awaited.
  const char* seen;
};

void PrintTo(const OutboxRow& row, std::ostream* out) {
  *out << row.steps;
}

constexpr OutboxRow kOutboxRows[] = {
    {"P3_WithNothingWrittenEffectsLeaveAtOnce", false, "a open?", "a open"},
    {"P1_NothingLeavesBeforeTheCommit", false, "write a open? commit", "shut commit a"},
    {"P1_WithAGateNothingLeavesBeforeItsAnswer", true, "write a commit sync",
     "commit sync a durable"},
    {"P1_AnEarlierAnswerDoesNotFreeWhatFollowsALaterCommit", true,
     "write a commit write commit b sync c sync", "commit commit sync a sync b c durable"},
    {"P1_ACommitWithoutEffectsHoldsBackWhatIsPushedLater", true, "write commit a sync empty?",
     "commit sync a durable empty"},
    {"P1_EachAnswerFreesOnlyWhatWasWrittenBeforeItsRequest", true,
     "write a commit write b sync commit sync", "commit sync a durable commit sync b durable"},
    {"P2_OrderIsKeptAcrossHeldAndFree", true, "write a commit b sync c",
     "commit sync a b durable c"},
    {"P4_DiscardAllDiscardsWhatIsHeldAndWhatIsPushedLater", false, "write a discard b",
     "discard -a -b"},
    {"AFailedSyncLetsNothingOut", true, "write a commit discard", "commit discard -a"},
    {"ASyncThatComesAfterTheEndLetsNothingOut", true, "write a commit discard sync",
     "commit discard -a sync"},
    {"WhatIsPushedAfterHoldBackWaitsAtTheGate", true, "hold a open? sync", "shut sync a durable"},
    {"WhatIsHeldBackInVainIsLost", true, "hold a discard", "discard - -a"},
};

class OutboxStepsTest : public OutboxTest, public ::testing::WithParamInterface<OutboxRow> {};

TEST_P(OutboxStepsTest, EffectsLeaveAsTheTableSays) {
  Outbox outbox = make(GetParam().awaits_device);
  std::istringstream steps(GetParam().steps);
  for (std::string step; steps >> step;) {
    if (step == "write") {
      dirty_ = true;
    } else if (step == "commit") {
      commit(outbox);
    } else if (step == "sync") {
      sync(outbox);
    } else if (step == "hold") {
      await(outbox.hold_back());
    } else if (step == "discard") {
      seen_.push_back(step);
      outbox.discard_all();
    } else if (step == "open?") {
      seen_.emplace_back(outbox.open() ? "open" : "shut");
    } else if (step == "empty?") {
      seen_.emplace_back(outbox.empty() ? "empty" : "full");
    } else {
      outbox.push(frame(step));
    }
  }
  std::string seen;
  for (const std::string& each : seen_) seen += (seen.empty() ? "" : " ") + each;
  EXPECT_EQ(seen, GetParam().seen);
}

INSTANTIATE_TEST_SUITE_P(Rows, OutboxStepsTest, ::testing::ValuesIn(kOutboxRows),
                         [](const auto& row) { return row.param.name; });

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
  sync(outbox);
  EXPECT_EQ(seen_, (Seen{"commit", "commit", "sync", "first", "sync", "second", "a", "b", "fourth",
                         "durable"}));
}

TEST_F(OutboxTest, P5_TheBytesOfEachKindAreOnTheAccountUntilTheyLeave) {
  const std::string text(100, 'x');
  const ResponseHead head{200, {{"name", "value"}}};
  const std::vector<std::pair<Effect, std::size_t>> effects = {
      {FrameEffect{{1, 2}, text, FrameKind::kText}, 100 + 2 * sizeof(ConnectionId)},
      {CloseEffect{1, 1000, text}, 100},
      {HandshakeEffect{1, text}, 100},
      {HandshakeEffect{1, std::nullopt}, 0},
      {PartEffect{nullptr, 0, head, text}, 109 + sizeof(Headers::value_type)},
      {FinishEffect{nullptr, 0, head, text}, 109 + sizeof(Headers::value_type)},
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

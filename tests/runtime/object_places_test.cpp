#include "runtime/object_places.hpp"

#include "fakes.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <optional>
#include <utility>

namespace hearth::runtime {
namespace {

using std::chrono::seconds;
using PlaceAnswer = ObjectPlaces::Answer;

struct AskedShard final : ObjectPlaces::Member {
  std::optional<SteadyTime> object_idle_since() override { return idle_since; }
  bool spare_object(std::function<void()> left) override {
    if (!idle_since) return false;
    ++spared;
    leaves = std::move(left);
    if (leaves_at_once) has_left();
    return true;
  }
  void has_left() { std::exchange(leaves, {})(); }
  testing::ManualLoop loop;
  bool leaves_at_once = true;
  std::function<void()> leaves;
  std::optional<SteadyTime> idle_since;
  int spared = 0;
};

class ObjectPlacesTest : public ::testing::Test {
 protected:
  AskedShard& shard(std::optional<int> idle_since = {}) {
    AskedShard& made = shards_.emplace_back();
    if (idle_since) made.idle_since = SteadyTime(seconds(*idle_since));
    places_.join(made.loop, made);
    return made;
  }
  // Asks as the first shard, with all loops running, but that of `stuck`. No time passes.
  std::optional<PlaceAnswer> asked(const AskedShard* stuck = nullptr) {
    answer_.reset();
    EXPECT_EQ(places_.ask(shards_.front().loop, [this](PlaceAnswer later) { answer_ = later; }),
              PlaceAnswer::kLater);
    run(stuck);
    return answer_;
  }
  void run(const AskedShard* stuck = nullptr) {
    for (int i = 0; i < 4; ++i) {
      for (AskedShard& each : shards_) {
        if (&each != stuck) each.loop.settle();
      }
    }
  }
  // The asker has waited long enough.
  std::optional<PlaceAnswer> answered_after_patience(const AskedShard* stuck) {
    shards_.front().loop.advance(ObjectPlaces::kPatience);
    run(stuck);
    return answer_;
  }

  ObjectPlaces places_{2};
  std::deque<AskedShard> shards_;
  std::optional<PlaceAnswer> answer_;
};

TEST_F(ObjectPlacesTest, P1_NoMoreThanThereAreAreTaken) {
  EXPECT_TRUE(places_.take());
  EXPECT_TRUE(places_.take());
  EXPECT_FALSE(places_.take());
  places_.give_back();
  EXPECT_TRUE(places_.take());
  EXPECT_FALSE(places_.take());
}

TEST_F(ObjectPlacesTest, APlaceWhoseObjectIsLeavingIsFreeSoon) {
  EXPECT_TRUE(places_.may_be_free_soon());
  EXPECT_TRUE(places_.take());
  EXPECT_TRUE(places_.take());
  EXPECT_FALSE(places_.may_be_free_soon());
  places_.leaving();
  EXPECT_FALSE(places_.take());
  EXPECT_TRUE(places_.may_be_free_soon());
  places_.has_left(true);
  EXPECT_FALSE(places_.take()) << "it was passed on";
  EXPECT_FALSE(places_.may_be_free_soon());
  places_.leaving();
  places_.has_left(false);
  EXPECT_TRUE(places_.take());
  EXPECT_FALSE(places_.may_be_free_soon());
}

TEST(ObjectPlacesWorkTest, AFewNotificationsOnTheirWayLeaveMostPlacesToCalls) {
  for (const auto& [max, most] : {std::pair(1, 1), {5, 1}, {20, 2}, {200, 16}, {10'000, 16}}) {
    ObjectPlaces places(static_cast<std::size_t>(max));
    for (int work = 0; work < most; ++work) {
      EXPECT_FALSE(places.is_crowded()) << max;
      places.work_waits();
    }
    EXPECT_TRUE(places.is_crowded()) << max;
    places.work_goes_on();
    EXPECT_FALSE(places.is_crowded()) << max;
  }
}

TEST_F(ObjectPlacesTest, AShardAloneIsAnsweredAtOnce) {
  AskedShard& alone = shard();
  const auto never = [](PlaceAnswer) { ADD_FAILURE(); };
  EXPECT_EQ(places_.ask(alone.loop, never), PlaceAnswer::kNone);
  alone.idle_since = SteadyTime{};
  EXPECT_EQ(asked(), PlaceAnswer::kPlace);
  EXPECT_EQ(alone.spared, 1);
}

TEST_F(ObjectPlacesTest, P3_ThePlaceComesOnceTheObjectHasLeftAndNotBefore) {
  AskedShard& own = shard();
  AskedShard& other = shard(1);
  for (AskedShard* const spares : {&other, &own}) {
    own.idle_since.reset();
    spares->idle_since = SteadyTime{};
    spares->leaves_at_once = false;
    EXPECT_EQ(asked(), std::nullopt);
    EXPECT_EQ(spares->spared, 1);
    EXPECT_EQ(answered_after_patience(nullptr), std::nullopt) << "it is still leaving";
    spares->has_left();
    run();
    EXPECT_EQ(answer_, PlaceAnswer::kPlace);
    spares->idle_since.reset();
  }
}

TEST_F(ObjectPlacesTest, P2_TheShardWithTheLeastRecentlyUsedIdleObjectSparesIt) {
  const AskedShard& own = shard(5);
  const AskedShard& older = shard(3);
  const AskedShard& newer = shard(4);
  const AskedShard& busy = shard();
  EXPECT_EQ(asked(), PlaceAnswer::kPlace);
  EXPECT_EQ(older.spared, 1);
  EXPECT_EQ(own.spared + newer.spared + busy.spared, 0);
}

TEST_F(ObjectPlacesTest, P2_ItMayBeTheAskersOwn) {
  const AskedShard& own = shard(1);
  const AskedShard& other = shard(2);
  EXPECT_EQ(asked(), PlaceAnswer::kPlace);
  EXPECT_EQ(own.spared, 1);
  EXPECT_EQ(other.spared, 0);
}

TEST_F(ObjectPlacesTest, WithNoneIdleThereIsNone) {
  shard();
  shard();
  EXPECT_EQ(asked(), PlaceAnswer::kNone);
}

TEST_F(ObjectPlacesTest, P2_AShardThatStandsStillIsWaitedForOnce) {
  shard();
  AskedShard& stuck = shard(1);
  const AskedShard& other = shard(2);
  EXPECT_EQ(asked(&stuck), std::nullopt);
  EXPECT_EQ(answered_after_patience(&stuck), PlaceAnswer::kPlace);
  EXPECT_EQ(asked(&stuck), PlaceAnswer::kPlace) << "without waiting for it anew";
  EXPECT_EQ(other.spared, 2);
  EXPECT_EQ(stuck.spared, 0);
  stuck.loop.settle();
  EXPECT_EQ(asked(), PlaceAnswer::kPlace);
  EXPECT_EQ(stuck.spared, 1) << "it goes on, and is asked again";
}

TEST_F(ObjectPlacesTest, P2_WhileAllOthersStandStillAShardIsAlone) {
  AskedShard& own = shard();
  AskedShard& stuck = shard(1);
  EXPECT_EQ(asked(&stuck), std::nullopt);
  EXPECT_EQ(answered_after_patience(&stuck), PlaceAnswer::kNone);
  const auto never = [](PlaceAnswer) { ADD_FAILURE(); };
  EXPECT_EQ(places_.ask(own.loop, never), PlaceAnswer::kNone);
  own.idle_since = SteadyTime(seconds(2));
  EXPECT_EQ(asked(&stuck), PlaceAnswer::kPlace);
  EXPECT_EQ(own.spared, 1);
}

TEST_F(ObjectPlacesTest, P3_AShardThatStandsStillOnceItIsChosenIsNotWaitedFor) {
  AskedShard& own = shard();
  AskedShard& stuck = shard(1);
  const AskedShard& other = shard(2);
  EXPECT_EQ(asked(&stuck), std::nullopt);
  stuck.loop.settle();  // it says what is idle, and no more
  run(&stuck);
  EXPECT_EQ(answer_, std::nullopt);
  EXPECT_EQ(answered_after_patience(&stuck), PlaceAnswer::kLater);
  EXPECT_EQ(asked(&stuck), PlaceAnswer::kPlace);
  EXPECT_EQ(other.spared, 1);
  answer_.reset();
  run();
  own.loop.advance(ObjectPlaces::kPatience);
  EXPECT_EQ(stuck.spared, 0) << "an order that has been given up is not carried out";
  EXPECT_EQ(answer_, std::nullopt) << "no question is answered twice";
}

TEST_F(ObjectPlacesTest, AnObjectThatIsUsedMeanwhileStays) {
  shard();
  AskedShard& other = shard(1);
  EXPECT_EQ(asked(&other), std::nullopt);
  other.loop.settle();
  shards_.front().loop.settle();
  other.idle_since.reset();
  run();
  EXPECT_EQ(answer_, PlaceAnswer::kLater);
}

}  // namespace
}  // namespace hearth::runtime

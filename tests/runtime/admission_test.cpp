#include "runtime/admission.hpp"

#include "fakes.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;
using Said = Admission::Answer;

class AdmissionTest : public ::testing::Test {
 protected:
  explicit AdmissionTest(std::size_t places = 1) : places_(places) {}

  struct Agent final : Admission::Applicant {
    explicit Agent(AdmissionTest& of_test) : test(of_test) {}
    [[nodiscard]] bool may_leave_for_room() const override { return idle && !leaving; }
    void leave_for_room() override {
      leaving = true;
      test.admission_.leaving(*this);
      test.admission_.residents().ending();
    }
    [[nodiscard]] Admission::Need need() const override { return {object, awaited, wanted}; }
    void take_turn(const Admission::Verdict& verdict) override {
      if (verdict.answer == Said::kRefused) {
        refused = verdict.lack;
        test.admission_.drop_out(*this);
        return;
      }
      if (test.admission_.ask(*this).answer != Said::kComeIn) return;
      test.admission_.residents().enter(*this);
      if (test.all_leave_) leave_for_room();
    }

    AdmissionTest& test;
    bool object = false;
    bool awaited = true;
    bool idle = false;
    bool leaving = false;
    bool wanted = true;
    std::optional<RoomLack> refused;
  };

  Agent& agent() { return agents_.emplace_back(*this); }
  Agent& object() {
    Agent& made = agent();
    made.object = true;
    return made;
  }
  Agent& resident() {
    Agent& made = agent();
    admission_.residents().enter(made);
    return made;
  }
  // The one resident that leaves, beside a busy one.
  Agent& resident_that_leaves() {
    Agent& made = resident();
    (void)resident();
    made.leave_for_room();
    return made;
  }
  // An agent that has asked, and waits.
  Agent& waiter(bool is_object = false) {
    Agent& made = is_object ? object() : agent();
    EXPECT_EQ(admission_.ask(made).answer, Said::kWait);
    return made;
  }
  void expect_refused(Agent& refused, RoomLack lack) {
    const Admission::Verdict verdict = admission_.ask(refused);
    EXPECT_EQ(verdict.answer, Said::kRefused);
    EXPECT_EQ(verdict.lack, lack);
  }
  void has_left(Agent& gone) {
    admission_.left(gone);
    loop_.settle();
  }

  testing::ManualLoop loop_;
  bool has_files_ = true;
  bool all_leave_ = false;
  ObjectPlaces places_;
  Admission admission_{loop_, 2, places_, [this](unsigned) { return has_files_; }};
  std::deque<Agent> agents_;
};

TEST_F(AdmissionTest, WhereThereIsRoomAnAgentComesIn) {
  EXPECT_EQ(admission_.ask(agent()).answer, Said::kComeIn);
  (void)resident();
  EXPECT_EQ(admission_.ask(agent()).answer, Said::kComeIn);
}

TEST_F(AdmissionTest, P1_WithAllBusyAnAgentIsRefused) {
  (void)resident();
  (void)resident();
  expect_refused(agent(), RoomLack::kAgents);
}

TEST_F(AdmissionTest, P1_NoneComesInWithoutDescriptors) {
  has_files_ = false;
  expect_refused(agent(), RoomLack::kFiles);
}

TEST_F(AdmissionTest, P1_WithoutDescriptorsAnIdleOneLeavesAndOneWaitsForThem) {
  Agent& idle = resident();
  idle.idle = true;
  has_files_ = false;
  Agent& comes = waiter();
  EXPECT_TRUE(idle.leaving);
  has_files_ = true;
  has_left(idle);
  EXPECT_TRUE(comes.is_resident());
}

// However slowly those leave.
TEST_F(AdmissionTest, P1_AResidentThatLeavesKeepsItsRoomUntilItHasLeft) {
  Agent& first = resident();
  Agent& second = resident();
  first.idle = second.idle = true;
  std::vector<Agent*> comes;
  for (int i = 0; i < 5; ++i) comes.push_back(&waiter());
  EXPECT_TRUE(first.leaving && second.leaving) << "several leave at a time";
  loop_.advance(milliseconds(1'000));
  EXPECT_EQ(admission_.residents().size(), 2U);
  has_left(first);
  has_left(second);
  EXPECT_EQ(admission_.residents().size(), 2U);
  EXPECT_TRUE(comes[0]->is_resident() && comes[1]->is_resident());
}

TEST_F(AdmissionTest, O14_ForAnObjectTooManyAnIdleObjectLeavesOrItIsRefused) {
  Agent& object = this->object();
  EXPECT_EQ(admission_.ask(object).answer, Said::kComeIn);
  admission_.residents().enter(object);
  Agent& next = this->object();
  expect_refused(next, RoomLack::kObjects);  // the only object is busy
  EXPECT_EQ(admission_.ask(agent()).answer, Said::kComeIn) << "others have room";
  object.idle = true;
  admission_.may_be_idle(object);
  EXPECT_EQ(admission_.ask(next).answer, Said::kWait);
  EXPECT_TRUE(object.leaving);
  loop_.advance(milliseconds(1'000));
  EXPECT_FALSE(next.is_resident()) << "the place is free once the object has left";
  has_left(object);
  EXPECT_TRUE(next.is_resident());
  EXPECT_FALSE(places_.take()) << "the next one has it";
  next.leave_for_room();
  admission_.left(next);
  EXPECT_TRUE(places_.take());
}

// Another shard, which has one object.
class OtherShard final : public ObjectPlaces::Member {
 public:
  std::optional<SteadyTime> object_idle_since() override { return idle_since; }
  bool spare_object(std::function<void()> left) override {
    was_asked_to_spare = true;
    if (!idle_since.has_value() || is_used_meanwhile) return false;
    spared = true;
    left();
    return true;
  }
  std::optional<SteadyTime> idle_since;
  bool is_used_meanwhile = false;
  bool was_asked_to_spare = false;
  bool spared = false;
};

// The only place is taken by the object of another shard.
class AdmissionElsewhereTest : public AdmissionTest {
 protected:
  AdmissionElsewhereTest() {
    places_.join(elsewhere_, other_);
    EXPECT_TRUE(places_.take());
  }
  void run() {
    for (int i = 0; i < 3; ++i) {
      loop_.settle();
      elsewhere_.settle();
    }
    loop_.settle();
  }
  void other_is_idle() { other_.idle_since = SteadyTime{}; }

  testing::ManualLoop elsewhere_;
  OtherShard other_;
};

TEST_F(AdmissionElsewhereTest, O14_AnObjectWaitsForAPlaceThatAnotherShardSpares) {
  other_is_idle();
  Agent& comes = waiter(true);
  loop_.settle();
  EXPECT_FALSE(other_.spared);
  run();
  EXPECT_TRUE(other_.spared);
  EXPECT_TRUE(comes.is_resident());
  EXPECT_FALSE(places_.take());
}

TEST_F(AdmissionElsewhereTest, O14_TheShardsAreAskedAgainIfThatObjectIsInUseMeanwhile) {
  other_is_idle();
  other_.is_used_meanwhile = true;
  Agent& comes = waiter(true);
  elsewhere_.settle();
  loop_.settle();
  elsewhere_.settle();  // it does not spare its object
  EXPECT_TRUE(other_.was_asked_to_spare);
  other_.is_used_meanwhile = false;
  run();
  EXPECT_FALSE(comes.refused);
  EXPECT_TRUE(comes.is_resident());
}

TEST_F(AdmissionElsewhereTest, O14_AnObjectIsRefusedIfNoneIsIdleAndOthersForAMoment) {
  Agent& comes = waiter(true);
  run();
  EXPECT_EQ(comes.refused, RoomLack::kObjects);
  Agent& next = object();
  EXPECT_EQ(admission_.ask(next).answer, Said::kRefused) << "nobody is asked for a moment";
  loop_.advance(milliseconds(100));
  EXPECT_EQ(admission_.ask(next).answer, Said::kWait);
}

TEST_F(AdmissionElsewhereTest, APlaceThatTheFirstOfTheLineCannotUseIsGivenBack) {
  other_is_idle();
  Agent& comes = waiter(true);
  comes.wanted = false;
  run();
  EXPECT_FALSE(comes.is_resident());
  EXPECT_TRUE(places_.take());
}

TEST_F(AdmissionElsewhereTest, O14_APlaceThatIsBeingFreedIsWaitedFor) {
  places_.leaving();  // of the other shard
  Agent& comes = waiter(true);
  run();
  loop_.advance(milliseconds(1'000));
  run();
  EXPECT_FALSE(comes.refused);
  EXPECT_FALSE(comes.is_resident());
  places_.has_left(false);
  loop_.advance(milliseconds(10));
  EXPECT_TRUE(comes.is_resident());
}

TEST_F(AdmissionElsewhereTest, P4_APlaceThatIsBeingFreedIsNotWaitedForForEver) {
  places_.leaving();
  Agent& comes = waiter(true);
  run();
  loop_.advance(Admission::kLongestWait - milliseconds(100));
  run();
  EXPECT_FALSE(comes.refused);
  loop_.advance(milliseconds(200));
  EXPECT_EQ(comes.refused, RoomLack::kObjects);
}

TEST_F(AdmissionElsewhereTest, P2_AgentsThatNeedNoPlaceDoNotWaitForObjects) {
  other_is_idle();
  (void)waiter(true);
  EXPECT_EQ(admission_.ask(agent()).answer, Said::kComeIn);
  EXPECT_EQ(admission_.ask(object()).answer, Said::kWait) << "behind the first object";
}

TEST_F(AdmissionElsewhereTest, P2_AnObjectWithItsPlaceStandsBehindThoseThatWaitForRoom) {
  Agent& leaves = resident();
  Agent& leaves_later = resident();
  leaves.leave_for_room();
  leaves_later.leave_for_room();
  Agent& first = waiter();
  other_is_idle();
  Agent& comes = waiter(true);
  run();
  EXPECT_TRUE(other_.spared);
  has_left(leaves);
  EXPECT_TRUE(first.is_resident());
  EXPECT_FALSE(comes.is_resident());
  has_left(leaves_later);
  EXPECT_TRUE(comes.is_resident());
  EXPECT_FALSE(places_.take());
}

TEST_F(AdmissionElsewhereTest, AnObjectThatWaitsForRoomInVainGivesItsPlaceBack) {
  (void)resident_that_leaves();
  other_is_idle();
  Agent& comes = waiter(true);
  run();
  ASSERT_TRUE(other_.spared);
  loop_.advance(Admission::kLongestWait);
  loop_.settle();
  EXPECT_EQ(comes.refused, RoomLack::kAgents);
  EXPECT_TRUE(places_.take());
}

TEST_F(AdmissionElsewhereTest, AnObjectThatIsRefusedForRoomGivesItsPlaceBack) {
  places_.give_back();
  (void)resident();
  (void)resident();
  expect_refused(object(), RoomLack::kAgents);
  EXPECT_TRUE(places_.take());
}

class AdmissionWithPlacesTest : public AdmissionTest {
 protected:
  static constexpr int kPlaces = 10;
  AdmissionWithPlacesTest() : AdmissionTest(kPlaces) {}
};

// Otherwise objects of other shards would leave for places that stay unused.
TEST_F(AdmissionWithPlacesTest, P2_ObjectsThatWaitForRoomHoldOnePlace) {
  (void)resident_that_leaves();
  EXPECT_EQ(admission_.ask(agent()).answer, Said::kWait);
  std::vector<Agent*> objects;
  for (int i = 0; i < 5; ++i) objects.push_back(&waiter(true));
  loop_.settle();
  int free = 0;
  while (places_.take()) ++free;
  EXPECT_EQ(free, kPlaces - 1);
  for (; free > 0; --free) places_.give_back();
  loop_.advance(Admission::kLongestWait);
  loop_.settle();
  for (const Agent* const object : objects) EXPECT_TRUE(object->refused);
  while (places_.take()) ++free;
  EXPECT_EQ(free, kPlaces);
}

TEST_F(AdmissionTest, P2_WhoeverComesWhileOthersWaitStandsBehindThem) {
  Agent& busy = resident();
  Agent& leaves = resident();
  leaves.leave_for_room();
  Agent& first = agent();
  Agent& second = agent();
  EXPECT_EQ(admission_.ask(first).answer, Said::kWait);
  busy.idle = true;
  admission_.may_be_idle(busy);
  EXPECT_EQ(admission_.ask(second).answer, Said::kWait) << "though one could leave for it";
  EXPECT_EQ(admission_.ask(first).answer, Said::kWait) << "its place is kept";
  busy.idle = false;
  has_left(leaves);
  EXPECT_TRUE(first.is_resident());
  EXPECT_FALSE(second.is_resident());
}

TEST_F(AdmissionTest, P4_ItWaitsWhileOneIsLeavingAndNotForEver) {
  (void)resident_that_leaves();
  Agent& comes = waiter();
  loop_.advance(Admission::kLongestWait - milliseconds(100));
  EXPECT_FALSE(comes.refused);
  loop_.advance(milliseconds(200));
  EXPECT_EQ(comes.refused, RoomLack::kAgents);
}

TEST_F(AdmissionTest, WhatIsNotWantedAnyMoreLeavesTheLine) {
  Agent& leaves = resident_that_leaves();
  Agent& comes = waiter();
  Agent& next = waiter();
  comes.wanted = false;
  has_left(leaves);
  EXPECT_EQ(comes.refused, RoomLack::kNothing);
  EXPECT_TRUE(next.is_resident());
}

TEST_F(AdmissionTest, OneWhoseDescriptorsWereTakenIsFirstAgain) {
  Agent& leaves = resident_that_leaves();
  Agent& waits = waiter();
  Agent& unlucky = agent();
  EXPECT_TRUE(admission_.ask_again(unlucky));
  has_left(leaves);
  EXPECT_TRUE(unlucky.is_resident());
  EXPECT_FALSE(waits.is_resident());
}

TEST_F(AdmissionTest, P4_TheWaitOfOneWhoseDescriptorsWereTakenGoesOn) {
  Agent& leaves = resident_that_leaves();
  Agent& unlucky = waiter();
  loop_.advance(milliseconds(3'000));
  has_left(leaves);
  ASSERT_TRUE(unlucky.is_resident());
  loop_.advance(milliseconds(3'000));
  unlucky.leave_for_room();
  admission_.left_without_files(unlucky);
  EXPECT_FALSE(admission_.ask_again(unlucky)) << "five seconds are over";
}

TEST_F(AdmissionTest, TheWaitOfOneThatHasLeftIsForgotten) {
  Agent& leaves = resident_that_leaves();
  Agent& comes = waiter();
  loop_.advance(milliseconds(3'000));
  has_left(leaves);
  ASSERT_TRUE(comes.is_resident());
  loop_.advance(milliseconds(3'000));
  comes.leave_for_room();
  has_left(comes);
  EXPECT_TRUE(admission_.ask_again(comes)) << "this wait begins now";
  EXPECT_TRUE(comes.stands_in_line());
}

TEST_F(AdmissionTest, DroppingOutIsToldOnce) {
  Agent& leaves = resident_that_leaves();
  Agent& comes = agent();
  EXPECT_FALSE(admission_.drop_out(comes));
  (void)admission_.ask(comes);
  EXPECT_TRUE(admission_.drop_out(comes));
  EXPECT_FALSE(admission_.drop_out(comes));
  has_left(leaves);
  EXPECT_FALSE(comes.is_resident());
}

// ---- callers, and work --------------------------------------------------------------------------

// One resident is busy. The other leaves, as does each agent that comes in after it, so that there
// is always one to wait for.
class AdmissionLanesTest : public AdmissionTest {
 protected:
  void SetUp() override {
    (void)resident();
    room_ = &resident();
    room_->leave_for_room();
    all_leave_ = true;
  }
  Agent& waiting(bool is_awaited) {
    Agent& made = agent();
    made.awaited = is_awaited;
    EXPECT_EQ(admission_.ask(made).answer, Said::kWait);
    return made;
  }
  // The agent that comes in once the last one has left.
  Agent* next() {
    has_left(*room_);
    for (Agent& each : agents_) {
      if (each.is_resident() && &each != &agents_.front()) return room_ = &each;
    }
    return nullptr;
  }

 private:
  Agent* room_ = nullptr;
};

TEST_F(AdmissionLanesTest, P2_AgentsWhoseCallersWaitTakeTurnsWithThoseThatHaveWork) {
  std::vector<Agent*> work;
  for (int i = 0; i < 10; ++i) work.push_back(&waiting(false));
  Agent& called = waiting(true);
  Agent& called_next = waiting(true);
  EXPECT_EQ(next(), &called) << "it does not stand behind the work";
  EXPECT_EQ(next(), work[0]);
  EXPECT_EQ(next(), &called_next);
  EXPECT_EQ(next(), work[1]);
  EXPECT_EQ(next(), work[2]) << "in turn";
}

TEST_F(AdmissionLanesTest, P2_AnAgentThatWaitsForWorkChangesItsLaneWithItsFirstCaller) {
  (void)waiting(false);
  Agent& comes = waiting(false);
  comes.awaited = true;
  EXPECT_EQ(admission_.ask(comes).answer, Said::kWait);
  EXPECT_EQ(next(), &comes);
}

TEST_F(AdmissionLanesTest, NotificationsWaitWhileWorkWaits) {
  (void)waiting(true);
  EXPECT_FALSE(places_.is_crowded()) << "a caller is no work";
  Agent& work = waiting(false);
  EXPECT_TRUE(places_.is_crowded());
  work.awaited = true;
  EXPECT_EQ(admission_.ask(work).answer, Said::kWait);
  EXPECT_FALSE(places_.is_crowded()) << "a caller waits for it now";
  (void)waiting(false);
  EXPECT_TRUE(places_.is_crowded());
  loop_.advance(Admission::kLongestWait);
  loop_.settle();
  EXPECT_FALSE(places_.is_crowded());
}

// Not only the first: the last of a long line too, while others come in before it.
TEST_F(AdmissionLanesTest, P4_NoAgentOfALineWaitsLonger) {
  std::vector<Agent*> all;
  for (int i = 0; i < 100; ++i) all.push_back(&waiting(i % 2 == 0));
  for (int i = 0; i < 6; ++i) {
    (void)next();
    loop_.advance(milliseconds(1'000));
  }
  loop_.settle();
  for (const Agent* const each : all) EXPECT_FALSE(each->stands_in_line());
  EXPECT_EQ(all.back()->refused, RoomLack::kAgents);
}

}  // namespace
}  // namespace hearth::runtime

#include "runtime/interruptible_events.hpp"

#include "runtime/fakes.hpp"

#include <gtest/gtest.h>

namespace hearth::runtime {
namespace {

OwnedEvent begun_call(const std::string& name, const std::string& body = "[]") {
  OwnedEvent event;
  event.kind = EventKind::kCall;
  event.name = name;
  event.body = body;
  return event;
}

std::vector<std::string> names_of(const std::vector<OwnedEvent>& events) {
  std::vector<std::string> names;
  for (const OwnedEvent& event : events) names.push_back(event.name);
  return names;
}

class InterruptibleEventsTest : public ::testing::Test {
 protected:
  ClientMemory memory_{std::size_t{64} << 10};
};

TEST_F(InterruptibleEventsTest, P1_WhatWasCutOffComesInTheOrderInWhichItBegan) {
  InterruptibleEvents events(memory_, 10, 1000);
  const auto first = events.keep(begun_call("first"));
  const auto over = events.keep(begun_call("over"));
  const auto last = events.keep(begun_call("last"));
  events.drop(over);
  events.interrupt(last, nullptr);
  events.interrupt(first, nullptr);
  EXPECT_EQ(names_of(events.take_interrupted()), (std::vector<std::string>{"first", "last"}));
}

TEST_F(InterruptibleEventsTest, WhatWasNotCutOffDoesNotComeAgain) {
  InterruptibleEvents events(memory_, 10, 1000);
  events.keep(begun_call("answered otherwise"));
  EXPECT_TRUE(events.take_interrupted().empty());
}

TEST_F(InterruptibleEventsTest, TheAnswerGoesToWhoWaitsForIt) {
  InterruptibleEvents events(memory_, 10, 1000);
  const auto sink = std::make_shared<testing::FakeSink>(std::make_shared<testing::Answer>());
  events.interrupt(events.keep(begun_call("x")), sink);
  EXPECT_EQ(events.take_interrupted().at(0).sink, sink);
}

TEST_F(InterruptibleEventsTest, P2_TheNumberOfCallsIsBounded) {
  InterruptibleEvents events(memory_, 2, 1000);
  const auto first = events.keep(begun_call("a"));
  EXPECT_NE(events.keep(begun_call("b")), 0U);
  EXPECT_EQ(events.keep(begun_call("c")), 0U);
  events.drop(first);
  EXPECT_NE(events.keep(begun_call("c")), 0U);
}

TEST_F(InterruptibleEventsTest, P2_TheirBytesAreBounded) {
  InterruptibleEvents events(memory_, 10, 20);
  const auto first = events.keep(begun_call("a", std::string(19, ' ')));
  EXPECT_NE(first, 0U);
  EXPECT_EQ(events.keep(begun_call("b", "")), 0U);
  events.drop(first);
  EXPECT_EQ(events.keep(begun_call("c", std::string(20, ' '))), 0U);
  EXPECT_NE(events.keep(begun_call("d", std::string(19, ' '))), 0U);
}

TEST_F(InterruptibleEventsTest, P2_OtherEventsTakeNoPlaceOfCalls) {
  InterruptibleEvents events(memory_, 1, 10);
  for (int i = 0; i < 2; ++i) {
    OwnedEvent connect;
    connect.kind = EventKind::kConnect;
    EXPECT_NE(events.keep(std::move(connect)), 0U);
  }
  EXPECT_NE(events.keep(begun_call("a")), 0U);
}

TEST_F(InterruptibleEventsTest, P2_TheirBytesAreOnTheAccount) {
  InterruptibleEvents events(memory_, 10, 1000);
  const auto first = events.keep(begun_call("a", std::string(99, ' ')));
  events.keep(begun_call("b", std::string(99, ' ')));
  EXPECT_EQ(memory_.used(), 200U);
  events.drop(first);
  EXPECT_EQ(memory_.used(), 100U);
  EXPECT_TRUE(events.take_interrupted().empty());
  EXPECT_EQ(memory_.used(), 0U);
}

TEST_F(InterruptibleEventsTest, P2_WhileTheAccountIsOverdrawnLargeCallsAreNotKept) {
  const HeldBytes others(memory_, std::size_t{65} << 10);
  InterruptibleEvents events(memory_, 10, 100'000);
  EXPECT_EQ(events.keep(begun_call("large", std::string(ClientMemory::kFree, ' '))), 0U);
  EXPECT_NE(events.keep(begun_call("small")), 0U);
}

TEST_F(InterruptibleEventsTest, DroppingNothingIsNothing) {
  InterruptibleEvents events(memory_, 1, 10);
  events.drop(0);
  EXPECT_TRUE(events.take_interrupted().empty());
}

}  // namespace
}  // namespace hearth::runtime

#include "runtime/timer_queue.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::runtime {
namespace {

const SteadyTime kStart{std::chrono::hours(1)};

std::string run_due(TimerQueue& timers, SteadyTime now) {
  std::string order;
  while (auto task = timers.take_due(now)) {
    task();
    order += '.';
  }
  return order;
}

TEST(TimerQueueTest, RunsInDueOrderAndEqualTimesInTheOrderAdded) {
  TimerQueue timers;
  std::string ran;
  timers.add(kStart + std::chrono::seconds(2), [&] { ran += 'c'; });
  timers.add(kStart + std::chrono::seconds(1), [&] { ran += 'a'; });
  timers.add(kStart + std::chrono::seconds(1), [&] { ran += 'b'; });
  EXPECT_EQ(run_due(timers, kStart), "");
  EXPECT_EQ(timers.next_due(), kStart + std::chrono::seconds(1));
  EXPECT_EQ(run_due(timers, kStart + std::chrono::seconds(2)), "...");
  EXPECT_EQ(ran, "abc");
  EXPECT_EQ(timers.next_due(), std::nullopt);
}

TEST(TimerQueueTest, ATaskMayCancelOneThatIsDueAsWell) {
  TimerQueue timers;
  std::string ran;
  TimerId second = 0;
  timers.add(kStart, [&] {
    ran += 'a';
    timers.cancel(second);
  });
  second = timers.add(kStart, [&] { ran += 'b'; });
  run_due(timers, kStart);
  EXPECT_EQ(ran, "a");
}

TEST(TimerQueueTest, WhatARoundAddsIsLeftForTheNextOne) {
  TimerQueue timers;
  std::string ran;
  timers.add(kStart, [&] {
    ran += 'a';
    timers.add(kStart, [&] { ran += 'c'; });
  });
  timers.add(kStart, [&] { ran += 'b'; });
  const TimerId last = timers.last();
  while (auto task = timers.take_due(kStart, last)) task();
  EXPECT_EQ(ran, "ab");
  EXPECT_EQ(timers.next_due(), kStart);
  run_due(timers, kStart);
  EXPECT_EQ(ran, "abc");
}

TEST(TimerQueueTest, CancellingTwiceOrAfterTheRunDoesNothing) {
  TimerQueue timers;
  const TimerId timer = timers.add(kStart, [] {});
  run_due(timers, kStart);
  timers.cancel(timer);
  timers.cancel(timer);
  EXPECT_EQ(timers.next_due(), std::nullopt);
}

}  // namespace
}  // namespace hearth::runtime

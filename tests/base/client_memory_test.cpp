#include "base/client_memory.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace hearth {
namespace {

TEST(ClientMemoryTest, HoldersEnterWhatTheyHoldAndTakeItBackWhenTheyGo) {
  ClientMemory memory(1'000'000);
  {
    HeldBytes one(memory, 100);
    HeldBytes other(memory);
    other.set(50);
    EXPECT_EQ(memory.used(), 150U);
    one.set(10);
    EXPECT_EQ(memory.used(), 60U);
  }
  EXPECT_EQ(memory.used(), 0U);
}

TEST(ClientMemoryTest, RefusesLargeHoldersOnlyWhileItIsOverdrawn) {
  ClientMemory memory(100'000);
  const HeldBytes first(memory, 100'000);
  HeldBytes large(memory, ClientMemory::kFree + 1);
  EXPECT_TRUE(large.refused());
  EXPECT_TRUE(first.refused());
  large.set(ClientMemory::kFree);
  EXPECT_FALSE(large.refused()) << "what each may have";
  large.set(0);
  EXPECT_FALSE(first.refused());
  EXPECT_FALSE(memory.refuses(1'000'000)) << "not overdrawn yet: the next look tells";
}

TEST(ClientMemoryTest, SharedBytesAreHeldOnceUntilTheLastLetsGo) {
  ClientMemory memory(1'000'000);
  std::optional<SharedBytes> one(std::in_place, memory, std::string(1000, 'x'));
  std::vector<SharedBytes> others(10, *one);
  EXPECT_EQ(memory.used(), 1000U);
  one.reset();
  EXPECT_EQ(others.back().view(), std::string(1000, 'x'));
  EXPECT_EQ(memory.used(), 1000U);
  others.clear();
  EXPECT_EQ(memory.used(), 0U);
}

TEST(ClientMemoryTest, ManyThreadsMayEnterAtOnce) {
  ClientMemory memory(1'000'000);
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i <= 4; ++i) {
    threads.emplace_back([&memory, i] {
      HeldBytes held(memory);
      for (std::size_t round = 0; round < 10'000; ++round) held.set(round * i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory.used(), 0U);
}

}  // namespace
}  // namespace hearth

#include "base/slot_map.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace hearth {
namespace {

TEST(SlotMapTest, P1_AnErasedIdFindsNothingAlsoWhenItsPlaceIsTakenAgain) {
  SlotMap<std::string> map;
  const auto first = map.emplace("a").first;
  EXPECT_NE(first, 0U);
  EXPECT_TRUE(map.erase(first));
  const auto second = map.emplace("b").first;
  EXPECT_NE(first, second);
  EXPECT_EQ(map.find(first), nullptr);
  EXPECT_EQ(*map.find(second), "b");
  EXPECT_FALSE(map.erase(first));
}

TEST(SlotMapTest, P2_ValuesDoNotMove) {
  SlotMap<int> map;
  const auto [id, value] = map.emplace(7);
  for (int i = 0; i < 1000; ++i) map.emplace(i);
  EXPECT_EQ(map.find(id), &value);
  EXPECT_EQ(map.size(), 1001U);
}

TEST(SlotMapTest, UnknownNumbersFindNothing) {
  SlotMap<int> map;
  EXPECT_EQ(map.find(0), nullptr);
  EXPECT_EQ(map.find(~std::uint64_t{0}), nullptr);
  map.emplace(1);
  EXPECT_EQ(map.find(0), nullptr) << "0 is never an id";
}

TEST(SlotMapTest, AVisitorMayEraseWhatItIsGiven) {
  SlotMap<std::unique_ptr<int>> map;
  for (int i = 0; i < 10; ++i) map.emplace(std::make_unique<int>(i));
  int seen = 0;
  map.for_each([&](auto id, std::unique_ptr<int>& value) {
    ++seen;
    if (*value % 2 == 0) map.erase(id);
  });
  EXPECT_EQ(seen, 10);
  EXPECT_EQ(map.size(), 5U);
}

TEST(SlotMapTest, IdsStayBelowTwoToThe56) {
  SlotMap<int> map;
  for (int i = 0; i < 100; ++i) {
    const auto id = map.emplace(i).first;
    EXPECT_LT(id, std::uint64_t{1} << 56);
    map.erase(id);
  }
}

}  // namespace
}  // namespace hearth

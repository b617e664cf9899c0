#include "base/random.hpp"

#include "support/seeded_random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

namespace hearth {
namespace {

class FixedRandom final : public Random {
 public:
  explicit FixedRandom(std::byte byte) : byte_(byte) {}
  void fill(std::span<std::byte> out) override { std::ranges::fill(out, byte_); }

 private:
  std::byte byte_;
};

TEST(RandomTest, AUuidHasTheFormVersionAndVariantOfRfc9562) {
  FixedRandom ones(std::byte{0xFF});
  FixedRandom zeros(std::byte{0x00});
  EXPECT_EQ(make_uuid(ones), "ffffffff-ffff-4fff-bfff-ffffffffffff");
  EXPECT_EQ(make_uuid(zeros), "00000000-0000-4000-8000-000000000000");
}

TEST(RandomTest, UuidsDiffer) {
  SystemRandom random;
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(make_uuid(random)).second);
}

TEST(RandomTest, TheSystemFillsMoreThanOneCallMayReturn) {
  // getrandom() may return early above 256 bytes; the tail must not stay zero.
  SystemRandom random;
  std::vector<std::byte> bytes(1 << 20, std::byte{0});
  random.fill(bytes);
  const auto tail = std::span(bytes).last(64);
  EXPECT_TRUE(std::ranges::any_of(tail, [](std::byte b) { return b != std::byte{0}; }));
}

TEST(RandomTest, FillingNothingIsAllowed) {
  SystemRandom random;
  random.fill({});
}

TEST(RandomTest, UpToReachesBothEndsAndNothingElse) {
  testing::SeededRandom random(7);
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_up_to(3, random));
  EXPECT_EQ(seen, (std::set<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(random_up_to(0, random), 0U);
  EXPECT_NE(random_up_to(0xFFFF'FFFF, random), random_up_to(0xFFFF'FFFF, random));
}

TEST(SeededRandomTest, TheSameSeedGivesTheSameBytes) {
  testing::SeededRandom first(7);
  testing::SeededRandom second(7);
  testing::SeededRandom other(8);
  const std::string uuid = make_uuid(first);
  EXPECT_EQ(uuid, make_uuid(second));
  EXPECT_NE(uuid, make_uuid(other));
}

}  // namespace
}  // namespace hearth

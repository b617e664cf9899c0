#include "net/message_deflate.hpp"

#include "net/deflate_terms.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace hearth::net {
namespace {

using namespace std::string_literals;

constexpr std::size_t kMost = std::size_t{1} << 20;

class MessageDeflateTest : public ::testing::Test {
 protected:
  Unpacked unpack(std::string_view packed, std::size_t most = kMost) {
    return inflater_.unpack(packed, most, message_, held_);
  }
  std::string pack(std::string_view message) {
    std::string packed;
    deflater_.pack(message, packed);
    return packed;
  }

  ClientMemory memory_{std::size_t{64} << 20};
  HeldBytes held_{memory_};
  MessageDeflater deflater_;
  MessageInflater inflater_{kDeflateWindowBits};
  std::string message_;
};

// RFC 7692 section 7.2.3, in the order of the sections.
TEST_F(MessageDeflateTest, ReadsTheExamplesOfTheRfc) {
  const std::vector<std::string> examples = {
      "\xf2\x48\xcd\xc9\xc9\x07\x00"s,                          // one block
      "\xf2\x00\x11\x00\x00"s,                                  // the context of the one before
      "\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"s,          // a block without compression
      "\xf3\x48\xcd\xc9\xc9\x07\x00\x00"s,                      // a block marked as the last one
      "\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"s,  // two blocks
  };
  for (const std::string& each : examples) {
    ASSERT_EQ(unpack(each), Unpacked::kWhole) << &each - examples.data();
    EXPECT_EQ(message_, "Hello");
  }
  ASSERT_EQ(unpack("\x00"s), Unpacked::kWhole) << "7.2.3.6, an empty message";
  EXPECT_EQ(message_, "");
}

TEST_F(MessageDeflateTest, MessagesComeBackWithContextAndWithout) {
  std::mt19937 random(7);
  std::string noise(70'000, '\0');
  for (char& each : noise) each = static_cast<char>(random());
  const std::string json(R"({"type":"cf_agent_state","state":{"count":12345}})");
  for (const bool with_context : {true, false}) {
    std::vector<std::size_t> sizes;
    for (const std::string& message :
         {"x"s, json, json, std::string(300'000, 'a'), noise, json, noise.substr(0, 4096)}) {
      const std::string packed = pack(message);
      sizes.push_back(packed.size());
      ASSERT_EQ(unpack(packed), Unpacked::kWhole);
      EXPECT_EQ(message_, message);
      if (with_context) continue;
      deflater_.forget();
      inflater_.forget();
    }
    EXPECT_EQ(sizes[2] < sizes[1], with_context) << "the second time it is known";
    EXPECT_LT(sizes[3], 2000U);
  }
}

TEST_F(MessageDeflateTest, ABombGrowsToTheBoundAndNoFurther) {
  const std::string bomb = pack(std::string(kMost + 1, '\0'));
  EXPECT_LT(bomb.size(), kMost / 200);
  EXPECT_EQ(unpack(bomb), Unpacked::kTooLong);
  EXPECT_LE(message_.capacity(), 2 * kMost);
  EXPECT_LE(held_.bytes(), kMost + 1);
  inflater_.forget();
  deflater_.forget();
  EXPECT_EQ(unpack(pack(std::string(kMost, '\0'))), Unpacked::kWhole) << "the bound itself fits";
  EXPECT_EQ(message_.size(), kMost);
  EXPECT_EQ(unpack(pack("x"), 0), Unpacked::kTooLong);
}

TEST_F(MessageDeflateTest, AnOverdrawnAccountStopsItAtOnce) {
  memory_.enter(0, std::size_t{65} << 20);
  EXPECT_EQ(unpack(pack(std::string(kMost, 'a'))), Unpacked::kNoMemory);
  EXPECT_LE(message_.size(), 4 * ClientMemory::kFree);
  inflater_.forget();
  deflater_.forget();
  EXPECT_EQ(unpack(pack("small")), Unpacked::kWhole) << "what is small is answered all the same";
  memory_.enter(std::size_t{65} << 20, 0);
}

TEST_F(MessageDeflateTest, WhatIsNotDeflateDataIsBroken) {
  const std::string whole = pack("a message that is long enough to be cut somewhere");
  const std::vector<std::string> cases = {
      ""s,                                // not even an empty block
      "\x07"s,                            // a kind of block that does not exist
      "\x00\x05\x00\x00\x00Hello"s,       // lengths that do not agree
      "\x00\x05\x00\xfa\xffHel"s,         // a block that takes the tail for its own
      "\xf2\x00\x91\x00\x00"s,            // refers to what was never sent
      whole.substr(0, whole.size() / 2),  // cut
  };
  for (const std::string& each : cases) {
    inflater_.forget();
    EXPECT_EQ(unpack(each), Unpacked::kBroken) << &each - cases.data();
  }
}

}  // namespace
}  // namespace hearth::net

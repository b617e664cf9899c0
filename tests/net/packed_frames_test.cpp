#include "net/packed_frames.hpp"

#include "net/raw_client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hearth::net {
namespace {

using hearth::testing::RawClient;

// Frames of each length, a fragmented message with a ping inside, bits where they may not stand.
std::string conversation(bool before) {
  const int text = before ? RawClient::kPackedText : 2;
  const int binary = before ? RawClient::kPackedBinary : 2;
  return RawClient::frame(1, "plain") + RawClient::frame(text, "packed") +
         RawClient::frame(2, std::string(126, 'b')) +
         RawClient::frame(binary, std::string(70'000, '\x41')) +
         RawClient::frame(text, "one", false) + RawClient::frame(9, std::string(125, '\xC1')) +
         RawClient::frame(0, "", false) + RawClient::frame(0x40, "wrong") +
         RawClient::frame(0x49, "wrong") + RawClient::frame(text, "", true, false) +
         RawClient::frame(8, "\x03\xE8");
}

TEST(PackedFramesTest, MakeCompressedMessagesBinaryHoweverTheBytesAreCut) {
  const std::string before = conversation(true);
  const std::string after = conversation(false);
  for (const std::size_t step :
       {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{1536}, before.size()}) {
    PackedFrames frames;
    std::string bytes = before;
    std::size_t begun = 0;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      begun += frames.pass(std::span(bytes).subspan(at, std::min(step, bytes.size() - at)));
    }
    EXPECT_EQ(bytes, after) << step;
    EXPECT_EQ(begun, 11U) << step;
    const std::vector<std::pair<bool, bool>> wanted = {{false, true}, {true, true}, {false, false},
                                                       {true, false}, {true, true}, {true, true}};
    for (const auto& [is_packed, is_text] : wanted) {
      const PackedFrames::Mark mark = frames.take();
      EXPECT_EQ(mark.is_packed, is_packed);
      EXPECT_EQ(mark.is_text, is_text);
    }
    EXPECT_DEATH((void)frames.take(), "without a frame");
  }
}

TEST(PackedFramesTest, KeepNothingOnceTheyAreStopped) {
  PackedFrames frames;
  std::string bytes = RawClient::frame(RawClient::kPackedText, "one");
  frames.pass(bytes);
  frames.stop();
  std::string more = RawClient::frame(RawClient::kPackedText, "two");
  frames.pass(more);
  EXPECT_EQ(more, RawClient::frame(2, "two")) << "Beast still reads until the end";
  EXPECT_DEATH((void)frames.take(), "without a frame");
}

}  // namespace
}  // namespace hearth::net

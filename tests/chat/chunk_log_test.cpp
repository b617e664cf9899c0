// Chunks of turns in an agent's database, on the mock host. The agent is killed between any two
// steps.
#include "rows.hpp"

#include <hearth/chat/chunk_log.hpp>
#include <hearth/chat/message.hpp>
#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::chat {
namespace {

using Texts = std::vector<std::string>;

class Teller : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Teller>& m) { m.add("commit", &Teller::commit); }
  void commit() {}

  ChunkLog log{*this};
};

class ChunkLogTest : public ::testing::Test {
 protected:
  // Of an agent that was killed after the last step.
  [[nodiscard]] ChunkLog& log() {
    agent_.call("commit");
    agent_.kill();
    return agent_.as<Teller>().log;
  }
  // All chunks behind the cursor, whose numbers have no gap.
  [[nodiscard]] Texts read(std::string_view turn, std::uint64_t first, std::uint64_t after,
                           std::size_t page_bytes) {
    Texts texts;
    for (LogPage page = log().page(turn, after, page_bytes); !page.chunks.empty();
         page = log().page(turn, page.cursor, page_bytes)) {
      for (LoggedChunk& chunk : page.chunks) {
        EXPECT_EQ(chunk.seq, first + texts.size());
        texts.push_back(std::move(chunk.text));
      }
    }
    return texts;
  }

  testing::Host host_;
  testing::AgentHandle agent_ = host_.create<Teller>("t");
};

TEST_F(ChunkLogTest, ChunksHaveNumbersWithoutAGapInEachTurn) {
  EXPECT_EQ(log().append("t1", Texts{"{\"a\":1}", "{\"b\":2}"}), 0U);
  EXPECT_EQ(log().append("t1", Texts{"3"}), 2U);
  EXPECT_EQ(log().append("t1", Texts{}), 3U);
  EXPECT_EQ(log().append("t2", Texts{"4"}), 0U);
  EXPECT_EQ(log().append("t1", Texts{"\"\u00e9\\n\"", ""}), 3U);
  EXPECT_EQ(read("t1", 0, 0, 1'000), (Texts{"{\"a\":1}", "{\"b\":2}", "3", "\"\u00e9\\n\"", ""}));
  EXPECT_EQ(read("t1", 0, 0, 1), read("t1", 0, 0, 1'000));
  EXPECT_EQ(read("t2", 0, 0, 1'000), Texts{"4"});
  EXPECT_TRUE(read("t3", 0, 0, 1'000).empty());
  EXPECT_EQ(log().tally("t1").chunks, 5U);
  EXPECT_EQ(log().tally("t3").chunks, 0U);
}

TEST_F(ChunkLogTest, AReaderGoesOnBehindItsPage) {
  for (const char* chunk : {"0", "1", "2"}) log().append("t1", Texts{chunk});
  const LogPage page = log().page("t1", 0, 1);
  ASSERT_EQ(page.chunks.size(), 1U);
  EXPECT_EQ(read("t1", 1, page.cursor, 1'000), (Texts{"1", "2"}));
  const std::uint64_t end = log().tally("t1").cursor;
  EXPECT_TRUE(read("t1", 3, end, 1'000).empty());
  log().append("t1", Texts{"3", "4"});
  EXPECT_EQ(read("t1", 3, end, 1'000), (Texts{"3", "4"}));
}

TEST_F(ChunkLogTest, ALongChunkIsOneChunkOfManyRows) {
  // The first piece would end in each byte of a character, and at the end of a chunk.
  for (std::size_t shift = 0; shift < 4; ++shift) {
    const std::string turn = "t" + std::to_string(shift);
    std::string text = text_of('a', shift);
    while (text.size() < 2 * kPieceBytes + 8) text += "\U0001F600";
    const Texts chunks = {"0", text, "2", text_of('b', kPieceBytes - 1), "4"};
    log().append(turn, Texts{chunks.begin(), chunks.begin() + 3});
    log().append(turn, Texts{chunks.begin() + 3, chunks.end()});
    for (const std::size_t bytes : {std::size_t{1}, 3 * kPieceBytes})
      EXPECT_TRUE(read(turn, 0, 0, bytes) == chunks) << shift;
    EXPECT_EQ(log().tally(turn).chunks, chunks.size());
    log().drop(turn);
  }
}

TEST_F(ChunkLogTest, TheSourceOfTheLastChunksIsKnown) {
  const auto source = [&] {
    const ChunkSource found = log().tally("t1").source;
    return std::to_string(found.call) + ":" + std::to_string(found.events);
  };
  EXPECT_EQ(source(), "0:0");
  log().append("t1", Texts{"1"}, ChunkSource{1, 3});
  EXPECT_EQ(source(), "1:3");
  log().append("t1", Texts{"2"}, ChunkSource{1, 7});
  log().append("t1", Texts{"3"});
  EXPECT_EQ(source(), "1:7");
  log().append("t1", Texts{}, ChunkSource{1, 9});
  EXPECT_EQ(source(), "1:7") << "no chunk has come of them";
  log().append("t1", Texts{text_of('a', 2 * kPieceBytes)}, ChunkSource{UINT64_MAX, UINT64_MAX});
  EXPECT_EQ(source(), "18446744073709551615:18446744073709551615");
}

TEST_F(ChunkLogTest, ADroppedLogIsGone) {
  log().append("t1", Texts{"1"}, ChunkSource{1, 3});
  log().append("t2", Texts{"2"});
  EXPECT_TRUE(log().drop("t1"));
  EXPECT_FALSE(log().drop("t1"));
  EXPECT_TRUE(read("t1", 0, 0, 1'000).empty());
  EXPECT_EQ(log().tally("t1").source.events, 0U);
  EXPECT_EQ(read("t2", 0, 0, 1'000), Texts{"2"});
}

}  // namespace
}  // namespace hearth::chat

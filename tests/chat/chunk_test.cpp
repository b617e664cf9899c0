// Chunks that are applied to a message: one row for each thing that a chunk can do. Those about
// tool calls are in tool_chunk_test.cpp.
#include "chunk_rows.hpp"

#include <hearth/chat/chunk.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

// clang-format off
const std::vector<ChunkRow> kChunkRows = {
    // ---- text
    {R"([])", R"({"type":"text-start","id":"t1"})", Use::kStored,
     R"([{"type":"text","id":"t1","text":"","state":"streaming"}])"},
    {R"([])", R"({"type":"text-start","id":"t1","providerMetadata":{"openai":{"itemId":"i"}}})", Use::kStored,
     R"([{"type":"text","id":"t1","text":"","state":"streaming","providerMetadata":{"openai":{"itemId":"i"}}}])"},
    {R"([])", R"({"type":"text-start"})", Use::kBad},
    {R"([])", R"({"type":"text-start","id":7})", Use::kBad},
    {R"([{"type":"text","id":"t1","text":"Hel","state":"streaming"}])", R"({"type":"text-delta","id":"t1","delta":"lo"})", Use::kStored,
     R"([{"type":"text","id":"t1","text":"Hello","state":"streaming"}])"},
    // two open parts: the one with the id
    {R"([{"type":"text","id":"t1","text":"a","state":"streaming"},{"type":"text","id":"t2","text":"b","state":"streaming"}])",
     R"({"type":"text-delta","id":"t1","delta":"c"})", Use::kStored,
     R"([{"type":"text","id":"t1","text":"ac","state":"streaming"},{"type":"text","id":"t2","text":"b","state":"streaming"}])"},
    // another id: the last open part; without an open part a new one
    {R"([{"type":"text","id":"t1","text":"a","state":"streaming"}])", R"({"type":"text-delta","id":"t9","delta":"c"})", Use::kStored,
     R"([{"type":"text","id":"t1","text":"ac","state":"streaming"}])"},
    {R"([{"type":"text","text":"a","state":"done"}])", R"({"type":"text-delta","id":"t1","delta":"c"})", Use::kStored,
     R"([{"type":"text","text":"a","state":"done"},{"type":"text","id":"t1","text":"c","state":"streaming"}])"},
    {R"([])", R"({"type":"text-delta","id":"t1","delta":7})", Use::kBad},
    {R"([])", R"({"type":"text-delta","delta":"a"})", Use::kBad},
    {R"([{"type":"text","id":"t1","text":"a","state":"streaming"}])", R"({"type":"text-end","id":"t1"})", Use::kStored,
     R"([{"type":"text","text":"a","state":"done"}])"},
    {R"([{"type":"text","id":"t1","text":"a","state":"streaming"}])", R"({"type":"text-end","id":"t1","citations":[{"url":"u"}]})", Use::kStored,
     R"([{"type":"text","text":"a","state":"done","citations":[{"url":"u"}]}])"},
    {R"([{"type":"text","text":"a","state":"done"}])", R"({"type":"text-end","id":"t1"})", Use::kBad},

    // ---- reasoning: what a provider signs is spread over start, delta and end
    {R"([])", R"({"type":"reasoning-start","id":"r1","providerMetadata":{"anthropic":{"redactedData":"x"}}})", Use::kStored,
     R"([{"type":"reasoning","id":"r1","text":"","state":"streaming","providerMetadata":{"anthropic":{"redactedData":"x"}}}])"},
    {R"([{"type":"reasoning","id":"r1","text":"a","state":"streaming","providerMetadata":{"p":{"a":1}}}])",
     R"({"type":"reasoning-delta","id":"r1","delta":"b","providerMetadata":{"p":{"b":2}}})", Use::kStored,
     R"([{"type":"reasoning","id":"r1","text":"ab","state":"streaming","providerMetadata":{"p":{"a":1,"b":2}}}])"},
    {R"([{"type":"reasoning","id":"r1","text":"a","state":"streaming","providerMetadata":{"p":{"a":1}}}])",
     R"({"type":"reasoning-end","id":"r1","providerMetadata":{"anthropic":{"signature":"s"}}})", Use::kStored,
     R"([{"type":"reasoning","id":"r1","text":"a","state":"done","providerMetadata":{"p":{"a":1},"anthropic":{"signature":"s"}}}])"},
    {R"([{"type":"text","id":"r1","text":"a","state":"streaming"}])", R"({"type":"reasoning-end","id":"r1"})", Use::kBad},

    // ---- steps
    {R"([])", R"({"type":"start-step"})", Use::kStored, R"([{"type":"step-start"}])"},
    {R"([])", R"({"type":"step-start"})", Use::kStored, R"([{"type":"step-start"}])"},
    {R"([{"type":"text","id":"t1","text":"a","state":"streaming"}])", R"({"type":"finish-step"})", Use::kPassed},
    {R"([{"type":"step-start"},{"type":"text","text":"a"},{"type":"step-start"},{"type":"text","text":"b"},{"type":"file","url":"u","mediaType":"m"}])",
     R"({"type":"reset-step"})", Use::kStored,
     R"([{"type":"step-start"},{"type":"text","text":"a"},{"type":"step-start"}])"},
    {R"([{"type":"text","text":"a"}])", R"({"type":"reset-step"})", Use::kStored, R"([])"},

    // ---- parts that come whole
    {R"([])", R"({"type":"source-url","sourceId":"s1","url":"https://a","title":"A","other":1})", Use::kStored,
     R"([{"type":"source-url","sourceId":"s1","url":"https://a","title":"A"}])"},
    {R"([])", R"({"type":"source-url","sourceId":"s1","url":"https://a","title":null})", Use::kStored,
     R"([{"type":"source-url","sourceId":"s1","url":"https://a"}])"},
    {R"([])", R"({"type":"source-url","sourceId":"s1"})", Use::kBad},
    {R"([])", R"({"type":"source-document","sourceId":"s1","mediaType":"text/plain","title":"A","filename":"a.txt","providerMetadata":{"p":{}}})", Use::kStored,
     R"([{"type":"source-document","sourceId":"s1","mediaType":"text/plain","title":"A","filename":"a.txt","providerMetadata":{"p":{}}}])"},
    {R"([])", R"({"type":"source-document","sourceId":"s1","mediaType":"text/plain"})", Use::kBad},
    {R"([])", R"({"type":"file","url":"data:,a","mediaType":"image/png"})", Use::kStored, R"([{"type":"file","url":"data:,a","mediaType":"image/png"}])"},
    {R"([])", R"({"type":"file","url":"data:,a"})", Use::kBad},
    {R"([])", R"({"type":"reasoning-file","url":"data:,a","mediaType":"image/png"})", Use::kStored,
     R"([{"type":"reasoning-file","url":"data:,a","mediaType":"image/png"}])"},
    {R"([])", R"({"type":"custom","kind":"openai.compaction","providerMetadata":{"openai":{"a":1}}})", Use::kStored,
     R"([{"type":"custom","kind":"openai.compaction","providerMetadata":{"openai":{"a":1}}}])"},
    {R"([])", R"({"type":"custom"})", Use::kBad},
    {R"([])", R"({"type":"steering-message","id":"u1","parts":[]})", Use::kPassed},

    // ---- data
    {R"([])", R"({"type":"data-status","data":{"p":1}})", Use::kStored, R"([{"type":"data-status","data":{"p":1}}])"},
    {R"([])", R"({"type":"data-status","id":"d1","data":null})", Use::kStored, R"([{"type":"data-status","id":"d1","data":null}])"},
    {R"([{"type":"data-status","id":"d1","data":1},{"type":"text","text":"a"}])", R"({"type":"data-status","id":"d1","data":2})", Use::kStored,
     R"([{"type":"data-status","id":"d1","data":2},{"type":"text","text":"a"}])"},
    {R"([{"type":"data-status","id":"d1","data":1}])", R"({"type":"data-other","id":"d1","data":2})", Use::kStored,
     R"([{"type":"data-status","id":"d1","data":1},{"type":"data-other","id":"d1","data":2}])"},
    {R"([{"type":"data-status","id":"d1","data":1},{"type":"data-status","data":1}])", R"({"type":"data-status","id":"d2","data":2})", Use::kStored,
     R"([{"type":"data-status","id":"d1","data":1},{"type":"data-status","data":1},{"type":"data-status","id":"d2","data":2}])"},
    {R"([{"type":"data-status","data":1}])", R"({"type":"data-status","data":2})", Use::kStored,
     R"([{"type":"data-status","data":1},{"type":"data-status","data":2}])"},
    {R"([{"type":"data-status","id":"d1","data":1}])", R"({"type":"data-status","id":"d1","data":2,"transient":true})", Use::kPassed},
    {R"([])", R"({"type":"data-status","id":"d1","data":2,"transient":false})", Use::kStored, R"([{"type":"data-status","id":"d1","data":2}])"},
    {R"([])", R"({"type":"data-status"})", Use::kBad},

    // ---- ends
    {R"([])", R"({"type":"abort","reason":"stopped"})", Use::kPassed},
    {R"([])", R"({"type":"error","errorText":"The model is busy."})", Use::kPassed},
    {R"([])", R"({"type":"error"})", Use::kBad},

    // ---- no chunk
    {R"([])", R"({"type":"text"})", Use::kBad},
    {R"([])", R"({"type":"tool-"})", Use::kBad},
    {R"([])", R"({"type":null})", Use::kBad},
    {R"([])", R"({})", Use::kBad},
    {R"([])", R"([])", Use::kBad},
    {R"([])", R"("text-start")", Use::kBad},
    {R"([])", R"(null)", Use::kBad},
};
// clang-format on

TEST(ChunkTest, EachChunkDoesToTheMessageWhatItsRowSays) {
  for (const ChunkRow& row : kChunkRows) check_row(row);
}

TEST(ChunkTest, MetadataIsMergedByThreeChunks) {
  Json message = json(R"({"role":"assistant","parts":[]})");
  const auto apply = [&](const char* chunk) { return apply_chunk(message, json(chunk)).use; };
  EXPECT_EQ(apply(R"({"type":"start","messageId":"m1","messageMetadata":{"a":1,"deep":{"x":1}}})"),
            Use::kStored);
  EXPECT_EQ(apply(R"({"type":"start","messageId":"m2"})"), Use::kStored);
  EXPECT_EQ(apply(R"({"type":"message-metadata","messageMetadata":{"deep":{"y":2}}})"),
            Use::kStored);
  EXPECT_EQ(apply(R"({"type":"finish","messageMetadata":{"a":3}})"), Use::kStored);
  EXPECT_EQ(apply(R"({"type":"finish"})"), Use::kPassed);
  EXPECT_EQ(message, json(R"({"id":"m1","role":"assistant","parts":[],
                              "metadata":{"a":3,"deep":{"x":1,"y":2}}})"));
}

TEST(ChunkTest, EveryTypeOfTheAiSdkHasARow) {
  std::set<std::string> seen{"start", "message-metadata", "finish"};  // above
  for (const ChunkRow& row : kChunkRows)
    if (row.use != Use::kBad) seen.insert(json(row.chunk)["type"]);
  for (const std::string type : {"start",
                                 "start-step",
                                 "text-start",
                                 "text-delta",
                                 "text-end",
                                 "reasoning-start",
                                 "reasoning-delta",
                                 "reasoning-end",
                                 "source-url",
                                 "source-document",
                                 "file",
                                 "reasoning-file",
                                 "custom",
                                 "steering-message",
                                 "data-status",
                                 "finish-step",
                                 "reset-step",
                                 "message-metadata",
                                 "finish",
                                 "abort",
                                 "error"})
    EXPECT_TRUE(seen.contains(type)) << type;
}

TEST(ChunkTest, AMessageThatIsFullTakesNoFurtherPart) {
  Json message = assistant("[]");
  for (std::size_t i = 0; i < kMaxParts; ++i)
    ASSERT_EQ(apply_chunk(message, {{"type", "start-step"}}).use, Use::kStored);
  EXPECT_EQ(message_fault(message), "");
  for (const char* const chunk :
       {R"({"type":"start-step"})", R"({"type":"text-start","id":"t"})",
        R"({"type":"text-delta","id":"t","delta":"a"})", R"({"type":"data-a","data":1})",
        R"({"type":"file","url":"u","mediaType":"m"})",
        R"({"type":"tool-input-start","toolCallId":"c","toolName":"t"})",
        R"({"type":"tool-input-available","toolCallId":"c","toolName":"t","input":{}})"})
    EXPECT_EQ(apply_chunk(message, json(chunk)).use, Use::kBad) << chunk;
}

TEST(ChunkTest, AChunkOfTooManyLevelsIsBad) {
  Json message = assistant("[]");
  Json chunk{{"type", "data-a"}, {"id", "d"}, {"data", nested(kMaxValueDepth - 1)}};
  EXPECT_EQ(apply_chunk(message, chunk).use, Use::kStored);
  EXPECT_EQ(message_fault(message), "");
  chunk["data"] = nested(kMaxValueDepth);
  EXPECT_EQ(apply_chunk(message, chunk).use, Use::kBad);
}

// ---- what the server changes --------------------------------------------------------------------

TEST(ChunkTest, TheServerNamesTheMessageAndKeepsTheReason) {
  struct Row {
    const char* chunk;
    const char* message_id;
    const char* prepared;
  };
  for (const Row& row : {
           Row{R"({"type":"start"})", "m1", R"({"type":"start","messageId":"m1"})"},
           Row{R"({"type":"start","messageId":"x"})", "m1", R"({"type":"start","messageId":"m1"})"},
           Row{R"({"type":"start","messageId":"x"})", "", R"({"type":"start"})"},
           Row{R"({"type":"finish","finishReason":"stop"})", "m1",
               R"({"type":"finish","messageMetadata":{"finishReason":"stop"}})"},
           Row{R"({"type":"finish","finishReason":"stop","messageMetadata":{"a":1}})", "m1",
               R"({"type":"finish","messageMetadata":{"a":1,"finishReason":"stop"}})"},
           Row{R"({"type":"finish"})", "m1", R"({"type":"finish"})"},
           Row{R"({"type":"text-start","id":"t"})", "m1", R"({"type":"text-start","id":"t"})"},
       }) {
    Json chunk = json(row.chunk);
    prepare_chunk(chunk, row.message_id);
    EXPECT_EQ(chunk, json(row.prepared)) << row.chunk;
  }
}

// ---- parts that are open ------------------------------------------------------------------------

TEST(ChunkTest, OpenPartsAreClosedByChunks) {
  const char* const open_parts = R"([
    {"type":"text","id":"t1","text":"a","state":"streaming"},
    {"type":"text","text":"b","state":"done"},
    {"type":"reasoning","id":"r1","text":"c","state":"streaming"},
    {"type":"tool-geo","toolCallId":"c1","state":"input-streaming","inputText":"{\"a\""},
    {"type":"tool-geo","toolCallId":"c2","state":"input-available","input":{}}])";
  const auto types = [](const std::vector<Json>& chunks) {
    std::vector<std::string> found;
    found.reserve(chunks.size());
    for (const Json& chunk : chunks) found.push_back(chunk["type"]);
    return found;
  };
  Json message = assistant(open_parts);
  EXPECT_EQ(types(closing_chunks(message, Closing::kTurn)),
            (std::vector<std::string>{"text-end", "reasoning-end"}));
  const std::vector<Json> chunks = closing_chunks(message, Closing::kContinuation);
  EXPECT_EQ(types(chunks), (std::vector<std::string>{"reasoning-end", "tool-output-error"}));

  for (const Json& chunk : chunks) EXPECT_EQ(apply_chunk(message, chunk).use, Use::kStored);
  EXPECT_EQ(types(closing_chunks(message, Closing::kContinuation)), std::vector<std::string>{});
  // The text goes on.
  EXPECT_EQ(apply_chunk(message, json(R"({"type":"text-delta","id":"t1","delta":"!"})")).use,
            Use::kStored);
  EXPECT_EQ(message["parts"][0]["text"], "a!");
}

// A stream as providers send it, one chunk a line.
const char* const kStream[] = {
    R"({"type":"start","messageId":"m1"})",
    R"({"type":"start-step"})",
    R"({"type":"reasoning-start","id":"r1"})",
    R"({"type":"reasoning-delta","id":"r1","delta":"Let "})",
    R"({"type":"reasoning-delta","id":"r1","delta":"me"})",
    R"({"type":"reasoning-delta","id":"r1","delta":"","providerMetadata":{"anthropic":{"signature":"s"}}})",
    R"({"type":"reasoning-end","id":"r1"})",
    R"({"type":"text-start","id":"t1"})",
    R"({"type":"text-delta","id":"t1","delta":"Hel"})",
    R"({"type":"text-delta","id":"t1","delta":"lo"})",
    R"({"type":"text-start","id":"t2"})",
    R"({"type":"text-delta","id":"t2","delta":"side"})",
    R"({"type":"text-delta","id":"t1","delta":"!"})",
    R"({"type":"text-end","id":"t1"})",
    R"({"type":"text-end","id":"t2"})",
    R"({"type":"tool-input-start","toolCallId":"c1","toolName":"geo"})",
    R"({"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"{\"a\""})",
    R"({"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":":1}"})",
    R"({"type":"tool-input-available","toolCallId":"c1","toolName":"geo","input":{"a":1}})",
    R"({"type":"tool-output-available","toolCallId":"c1","output":{"lat":1}})",
    R"({"type":"finish-step"})",
    R"({"type":"finish","messageMetadata":{"finishReason":"stop"}})",
};

Json applied(const std::vector<Json>& chunks) {
  Json message = json(R"({"role":"assistant","parts":[]})");
  for (const Json& chunk : chunks)
    EXPECT_NE(apply_chunk(message, chunk).use, Use::kBad) << to_text(chunk);
  return message;
}

TEST(ChunkTest, AStreamBecomesAMessage) {
  std::vector<Json> chunks;
  for (const char* const chunk : kStream) chunks.push_back(json(chunk));
  EXPECT_EQ(applied(chunks), json(R"({"id":"m1","role":"assistant","parts":[
    {"type":"step-start"},
    {"type":"reasoning","id":"r1","text":"Let me","state":"done",
     "providerMetadata":{"anthropic":{"signature":"s"}}},
    {"type":"text","text":"Hello!","state":"done"},
    {"type":"text","text":"side","state":"done"},
    {"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{"a":1},
     "output":{"lat":1}}],
    "metadata":{"finishReason":"stop"}})"));
}

TEST(ChunkTest, DeltasOfOnePartInARowAreOneChunk) {
  std::vector<Json> chunks;
  std::vector<Json> merged;
  for (const char* const chunk : kStream) {
    chunks.push_back(json(chunk));
    append_chunk(merged, json(chunk));
  }
  // "Let " and "me", "Hel" and "lo", the two pieces of the input.
  EXPECT_EQ(merged.size(), chunks.size() - 3);
  EXPECT_EQ(merged[3], json(R"({"type":"reasoning-delta","id":"r1","delta":"Let me"})"));
  EXPECT_EQ(applied(merged), applied(chunks));
}

TEST(ChunkTest, AStreamThatIsCutAnywhereClosesToAMessageWithoutFault) {
  std::vector<Json> chunks;
  for (const char* const chunk : kStream) {
    chunks.push_back(json(chunk));
    for (const Closing closing : {Closing::kTurn, Closing::kContinuation}) {
      Json message = applied(chunks);
      for (const Json& close : closing_chunks(message, closing))
        EXPECT_EQ(apply_chunk(message, close).use, Use::kStored) << to_text(close);
      EXPECT_EQ(message_fault(message), "");
      EXPECT_TRUE(closing_chunks(message, closing).empty()) << to_text(message);
    }
  }
}

}  // namespace
}  // namespace hearth::chat

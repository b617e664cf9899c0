// Chunks about tool calls, one row for each thing that a chunk can do in each state of a call.
#include "chunk_rows.hpp"

#include <hearth/chat/chunk.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

// clang-format off
const std::vector<ChunkRow> kToolRows = {
    // ---- input
    {R"([])", R"({"type":"tool-input-start","toolCallId":"c1","toolName":"geo"})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"input-streaming","inputText":""}])"},
    {R"([])", R"({"type":"tool-input-start","toolCallId":"c1","toolName":"geo","dynamic":true,"title":"Where","providerExecuted":true,"toolMetadata":{"a":1},"providerMetadata":{"p":{"b":2}}})", Use::kStored,
     R"([{"type":"dynamic-tool","toolName":"geo","toolCallId":"c1","state":"input-streaming","inputText":"","title":"Where","providerExecuted":true,"toolMetadata":{"a":1},"callProviderMetadata":{"p":{"b":2}}}])"},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1}])", R"({"type":"tool-input-start","toolCallId":"c1","toolName":"geo"})", Use::kReplayed},
    {R"([])", R"({"type":"tool-input-start","toolCallId":"c1"})", Use::kBad},
    {R"([])", R"({"type":"tool-input-start","toolName":"geo"})", Use::kBad},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"input-streaming","inputText":"{"}])", R"({"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"}"})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"input-streaming","inputText":"{}"}])"},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"input-streaming"}])", R"({"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"}"})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"input-streaming","inputText":"}"}])"},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{}}])", R"({"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"}"})", Use::kReplayed},
    {R"([])", R"({"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"}"})", Use::kBad},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"input-streaming"}])", R"({"type":"tool-input-delta","toolCallId":"c1"})", Use::kBad},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"input-streaming","inputText":"{}"}])", R"({"type":"tool-input-available","toolCallId":"c1","toolName":"geo","input":{"a":1},"providerMetadata":{"p":{}}})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{"a":1},"callProviderMetadata":{"p":{}}}])"},
    {R"([])", R"({"type":"tool-input-available","toolCallId":"c1","toolName":"geo","input":{"a":1}})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{"a":1}}])"},
    {R"([])", R"({"type":"tool-input-available","toolCallId":"c1","toolName":"geo"})", Use::kBad},
    {R"([])", R"({"type":"tool-input-available","toolCallId":"c1","input":{}})", Use::kBad},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{"a":1}}])", R"({"type":"tool-input-available","toolCallId":"c1","toolName":"geo","input":{"a":2}})", Use::kReplayed},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"output-error","input":{},"errorText":"e"}])", R"({"type":"tool-input-available","toolCallId":"c1","toolName":"geo","input":{}})", Use::kReplayed},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"input-streaming","inputText":"{"}])", R"({"type":"tool-input-error","toolCallId":"c1","toolName":"geo","input":"{","errorText":"no JSON"})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"output-error","rawInput":"{","errorText":"no JSON"}])"},
    {R"([])", R"({"type":"tool-input-error","toolCallId":"c1","toolName":"geo","dynamic":true,"input":"{","errorText":"no JSON"})", Use::kStored,
     R"([{"type":"dynamic-tool","toolName":"geo","toolCallId":"c1","state":"output-error","input":"{","errorText":"no JSON"}])"},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"output-denied","input":{}}])", R"({"type":"tool-input-error","toolCallId":"c1","toolName":"geo","input":"{","errorText":"no JSON"})", Use::kReplayed},
    {R"([])", R"({"type":"tool-input-error","toolCallId":"c1","toolName":"geo","input":"{"})", Use::kBad},

    // ---- approval
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{"a":1}}])",
     R"({"type":"tool-approval-request","approvalId":"a1","toolCallId":"c1","approvalDescriptor":{"d":1},"reason":"costs","isAutomatic":false,"signature":"s"})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"approval-requested","input":{"a":1},"approval":{"id":"a1","descriptor":{"d":1},"requestReason":"costs","isAutomatic":false,"signature":"s"}}])"},
    // before the input: what was streamed stands in for it, and the request comes again
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"input-streaming","inputText":"{\"a\":1}"}])", R"({"type":"tool-approval-request","approvalId":"a1","toolCallId":"c1"})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"approval-requested","input":{"a":1},"inputText":"{\"a\":1}","approval":{"id":"a1"}}])"},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"input-streaming","inputText":"{\"a"}])", R"({"type":"tool-approval-request","approvalId":"a1","toolCallId":"c1"})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"approval-requested","input":{},"inputText":"{\"a","approval":{"id":"a1"}}])"},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"approval-requested","input":{},"inputText":"{\"a","approval":{"id":"a1","descriptor":{"d":1},"requestReason":"costs","signature":"s"}}])",
     R"({"type":"tool-input-available","toolCallId":"c1","toolName":"geo","input":{"a":2}})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"approval-requested","input":{"a":2},"approval":{"id":"a1","descriptor":{"d":1},"requestReason":"costs","signature":"s"}}])",
     R"({"type":"tool-approval-request","approvalId":"a1","toolCallId":"c1","approvalDescriptor":{"d":1},"reason":"costs","signature":"s"})"},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"approval-requested","input":{"a":1},"approval":{"id":"a1"}}])", R"({"type":"tool-input-available","toolCallId":"c1","toolName":"geo","input":{"a":2}})", Use::kReplayed},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"approval-responded","input":{},"approval":{"id":"a1","approved":true}}])", R"({"type":"tool-approval-request","approvalId":"a1","toolCallId":"c1"})", Use::kReplayed},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1}])", R"({"type":"tool-approval-request","approvalId":"a1","toolCallId":"c1"})", Use::kReplayed},
    {R"([])", R"({"type":"tool-approval-request","approvalId":"a1","toolCallId":"c1"})", Use::kBad},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{}}])", R"({"type":"tool-approval-request","toolCallId":"c1"})", Use::kBad},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"approval-requested","input":{},"approval":{"id":"a1"}}])", R"({"type":"tool-approval-response","approvalId":"a1","approved":false,"reason":"no"})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"approval-responded","input":{},"approval":{"id":"a1","approved":false,"reason":"no"}}])"},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"output-denied","input":{},"approval":{"id":"a1","approved":false}}])", R"({"type":"tool-approval-response","approvalId":"a1","approved":true})", Use::kReplayed},
    {R"([])", R"({"type":"tool-approval-response","approvalId":"a1","approved":true})", Use::kElsewhere},
    {R"([])", R"({"type":"tool-approval-response","approvalId":"a1"})", Use::kBad},

    // ---- results: the last one wins
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{}}])", R"({"type":"tool-output-available","toolCallId":"c1","output":1,"preliminary":true,"providerMetadata":{"p":{}}})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1,"preliminary":true,"resultProviderMetadata":{"p":{}}}])"},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1,"preliminary":true}])", R"({"type":"tool-output-available","toolCallId":"c1","output":null})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":null}])"},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"output-error","input":{},"errorText":"e"}])", R"({"type":"tool-output-available","toolCallId":"c1","output":2})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":2}])"},
    {R"([])", R"({"type":"tool-output-available","toolCallId":"c1","output":1})", Use::kElsewhere},
    {R"([])", R"({"type":"tool-output-available","toolCallId":"c1"})", Use::kBad},
    {R"([])", R"({"type":"tool-output-available","toolCallId":"","output":1})", Use::kBad},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1}])", R"({"type":"tool-output-error","toolCallId":"c1","errorText":"e"})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"output-error","input":{},"errorText":"e"}])"},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"input-streaming","inputText":"{\"a\":1}"}])", R"({"type":"tool-output-error","toolCallId":"c1","errorText":"e"})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"output-error","input":{"a":1},"errorText":"e"}])"},
    {R"([])", R"({"type":"tool-output-error","toolCallId":"c1","errorText":"e"})", Use::kElsewhere},
    {R"([])", R"({"type":"tool-output-error","toolCallId":"c1"})", Use::kBad},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"approval-requested","input":{},"approval":{"id":"a1"}}])", R"({"type":"tool-output-denied","toolCallId":"c1"})", Use::kStored,
     R"([{"type":"tool-geo","toolCallId":"c1","state":"output-denied","input":{},"approval":{"id":"a1"}}])"},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"approval-responded","input":{},"approval":{"id":"a1"}}])", R"({"type":"tool-output-denied","toolCallId":"c1"})", Use::kReplayed},
    {R"([{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1}])", R"({"type":"tool-output-denied","toolCallId":"c1"})", Use::kReplayed},
    {R"([])", R"({"type":"tool-output-denied","toolCallId":"c1"})", Use::kElsewhere},

    // ---- no chunk
    {R"([])", R"({"type":"tool-geo","toolCallId":"c1"})", Use::kBad},
};
// clang-format on

TEST(ToolChunkTest, EachChunkDoesToTheCallWhatItsRowSays) {
  for (const ChunkRow& row : kToolRows) check_row(row);
}

TEST(ToolChunkTest, EveryTypeOfTheAiSdkHasARow) {
  std::set<std::string> seen;
  for (const ChunkRow& row : kToolRows)
    if (row.use == Use::kStored) seen.insert(json(row.chunk)["type"]);
  EXPECT_EQ(seen, (std::set<std::string>{
                      "tool-input-start", "tool-input-delta", "tool-input-available",
                      "tool-input-error", "tool-approval-request", "tool-approval-response",
                      "tool-output-available", "tool-output-error", "tool-output-denied"}));
}

TEST(ToolChunkTest, IdsAndNamesOfTooManyBytesAreBad) {
  for (const char* const key : {"toolCallId", "toolName"}) {
    for (const std::size_t size : {kMaxIdBytes, kMaxIdBytes + 1}) {
      Json message = assistant("[]");
      Json chunk{{"type", "tool-input-start"}, {"toolCallId", "c1"}, {"toolName", "geo"}};
      chunk[key] = text_of('a', size);
      EXPECT_EQ(apply_chunk(message, chunk).use, size > kMaxIdBytes ? Use::kBad : Use::kStored)
          << key << size;
      EXPECT_EQ(message_fault(message), "");
    }
  }
}

TEST(ToolChunkTest, AResultGoesToTheLastCallOfItsId) {
  Json message = assistant(R"([
    {"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},
    {"type":"step-start"},
    {"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{"a":2}}])");
  EXPECT_EQ(apply_chunk(message, json(R"({"type":"tool-output-available","toolCallId":"c1",
                                          "output":2})"))
                .use,
            Use::kStored);
  EXPECT_EQ(message["parts"][0]["output"], 1);
  EXPECT_EQ(message["parts"][2]["output"], 2);
}

}  // namespace
}  // namespace hearth::chat

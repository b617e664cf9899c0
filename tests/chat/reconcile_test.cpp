// What a client sends again, and what it is of what is stored.
#include "rows.hpp"

#include <hearth/chat/message.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

struct ReconcileRow {
  const char* name;
  const char* stored;
  const char* incoming;
  const char* reconciled;  // null: as it came
  bool are_all_stored;
};

// clang-format off
const std::vector<ReconcileRow> kReconcileRows = {
    {"nothing", R"([])", R"([])", nullptr, true},
    {"a first message", R"([])", R"([{"id":"u1","role":"user","parts":[{"type":"text","text":"hi"}]}])", nullptr, false},
    {"all with their ids",
     R"([{"id":"u1","role":"user","parts":[]},{"id":"a1","role":"assistant","parts":[{"type":"text","text":"hi"}]}])",
     R"([{"id":"u1","role":"user","parts":[]},{"id":"a1","role":"assistant","parts":[{"type":"text","text":"hi"}]}])", nullptr, true},
    {"a shorter list, as for regenerate",
     R"([{"id":"u1","role":"user","parts":[]},{"id":"a1","role":"assistant","parts":[]}])", R"([{"id":"u1","role":"user","parts":[]}])", nullptr, true},

    // ---- by content
    {"an id of the client, with equal parts",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"hi","state":"done"}]}])",
     R"([{"id":"x","role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"hi","state":"streaming","providerMetadata":{"openai":{"itemId":"i"}}}]},{"id":"u2","role":"user","parts":[]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"hi","state":"done"}]},{"id":"u2","role":"user","parts":[]}])", false},
    {"two equal answers stay two, in order",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"ok"}]},{"id":"a2","role":"assistant","parts":[{"type":"text","text":"ok"}]}])",
     R"([{"id":"x","role":"assistant","parts":[{"type":"text","text":"ok"}]},{"id":"y","role":"assistant","parts":[{"type":"text","text":"ok"}]},{"id":"z","role":"assistant","parts":[{"type":"text","text":"ok"}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"ok"}]},{"id":"a2","role":"assistant","parts":[{"type":"text","text":"ok"}]},{"id":"z","role":"assistant","parts":[{"type":"text","text":"ok"}]}])", false},
    {"an id goes before equal content",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"ok"}]},{"id":"a2","role":"assistant","parts":[{"type":"text","text":"ok"}]}])",
     R"([{"id":"x","role":"assistant","parts":[{"type":"text","text":"ok"}]},{"id":"a1","role":"assistant","parts":[{"type":"text","text":"ok"}]}])",
     R"([{"id":"a2","role":"assistant","parts":[{"type":"text","text":"ok"}]},{"id":"a1","role":"assistant","parts":[{"type":"text","text":"ok"}]}])", true},
    {"another text is another message",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"ok"}]}])", R"([{"id":"x","role":"assistant","parts":[{"type":"text","text":"OK"}]}])", nullptr, false},
    {"a message of a user is found by id alone",
     R"([{"id":"u1","role":"user","parts":[{"type":"text","text":"ok"}]}])", R"([{"id":"x","role":"user","parts":[{"type":"text","text":"ok"}]}])", nullptr, false},
    {"an assistant's is not a user's",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"ok"}]}])", R"([{"id":"x","role":"user","parts":[{"type":"text","text":"ok"}]}])", nullptr, false},
    {"nor is a user's an assistant's",
     R"([{"id":"u1","role":"user","parts":[{"type":"text","text":"ok"}]}])", R"([{"id":"x","role":"assistant","parts":[{"type":"text","text":"ok"}]}])", nullptr, false},

    // ---- by calls
    {"a shared call, whatever the text; the keys of the input in another order",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"a"},{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{"a":1,"b":2},"output":1}]}])",
     R"([{"id":"x","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{"b":2,"a":1},"output":1}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{"b":2,"a":1},"output":1}]}])", true},
    {"a provider has used the id again: other input",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{"a":1},"output":1}]}])",
     R"([{"id":"x","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{"a":2},"output":2}]}])", nullptr, false},
    {"other tool",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1}]}])",
     R"([{"id":"x","role":"assistant","parts":[{"type":"tool-map","toolCallId":"c1","state":"output-available","input":{},"output":1}]}])", nullptr, false},
    {"one of two shared calls differs",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},{"type":"tool-geo","toolCallId":"c2","state":"output-available","input":{"a":1},"output":1}]}])",
     R"([{"id":"x","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},{"type":"tool-geo","toolCallId":"c2","state":"output-available","input":{"a":2},"output":1}]}])", nullptr, false},
    {"the second stored one fits",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{"a":1},"output":1}]},{"id":"a2","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{"a":2},"output":2}]}])",
     R"([{"id":"x","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{"a":2}}]}])",
     R"([{"id":"a2","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{"a":2},"output":2}]}])", true},
    {"each stored message is found once",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},{"type":"tool-geo","toolCallId":"c2","state":"output-available","input":{"a":1},"output":1}]},{"id":"a2","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1}]}])",
     R"([{"id":"x","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},{"type":"tool-geo","toolCallId":"c2","state":"output-available","input":{"a":2},"output":1}]},{"id":"y","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},{"type":"tool-geo","toolCallId":"c2","state":"output-available","input":{"a":2},"output":1}]}])",
     R"([{"id":"a2","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},{"type":"tool-geo","toolCallId":"c2","state":"output-available","input":{"a":2},"output":1}]},{"id":"y","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},{"type":"tool-geo","toolCallId":"c2","state":"output-available","input":{"a":2},"output":1}]}])", false},
    {"calls of two stored messages: the first of them",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1}]},{"id":"a2","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c2","state":"output-available","input":{},"output":1}]}])",
     R"([{"id":"x","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},{"type":"tool-geo","toolCallId":"c2","state":"output-available","input":{},"output":1}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},{"type":"tool-geo","toolCallId":"c2","state":"output-available","input":{},"output":1}]}])", true},
    {"also if its call comes last",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c2","state":"output-available","input":{},"output":1}]},{"id":"a2","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1}]}])",
     R"([{"id":"x","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},{"type":"tool-geo","toolCallId":"c2","state":"output-available","input":{},"output":1}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},{"type":"tool-geo","toolCallId":"c2","state":"output-available","input":{},"output":1}]}])", true},
    {"with calls, equal content does not count",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"ok"}]}])",
     R"([{"id":"x","role":"assistant","parts":[{"type":"text","text":"ok"},{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{}}]}])", nullptr, false},

    // ---- results of the server stay
    {"a call that is settled here",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-error","input":{},"errorText":"e"}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"new"},{"type":"tool-geo","toolCallId":"c1","state":"approval-responded","input":{}}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"new"},{"type":"tool-geo","toolCallId":"c1","state":"output-error","input":{},"errorText":"e"}]}])", true},
    {"an approval that is answered here",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"approval-responded","input":{},"approval":{"id":"p","approved":true}}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"approval-requested","input":{},"approval":{"id":"p"}}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"approval-responded","input":{},"approval":{"id":"p","approved":true}}]}])", true},
    {"a client that has approved",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"approval-requested","input":{},"approval":{"id":"p"}}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"approval-responded","input":{},"approval":{"id":"p","approved":true}}]}])",
     nullptr, true},
    {"a client that is further",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{}}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1}]}])", nullptr, true},

    // ---- copies from the middle of a stream
    {"an open text that goes on here",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"one two","state":"done"}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"one","state":"streaming"}]},{"id":"u2","role":"user","parts":[]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"one two","state":"done"}]},{"id":"u2","role":"user","parts":[]}])", false},
    {"an open text that is longer than here, where a turn goes on",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"one","state":"done"}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"one two","state":"streaming"}]}])", nullptr, true},
    {"a text that is open here too",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"one two","state":"streaming"}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"one","state":"streaming"}]}])", nullptr, true},
    {"an open text that a user has changed",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"dog","state":"done"}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"cat","state":"streaming"}]}])", nullptr, true},
    {"another text beside a call that is further here",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"long","state":"done"},{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"x","state":"done"},{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{}}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"x","state":"done"},{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1}]}])", true},
    {"a text that a user has cut",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"one two","state":"done"}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"one","state":"done"}]}])", nullptr, true},
    {"a call behind which the text goes on here",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},{"type":"text","text":"so","state":"done"}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{}}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},{"type":"text","text":"so","state":"done"}]}])", true},
    {"one call is further here, the other one there",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},{"type":"tool-map","toolCallId":"c2","state":"input-available","input":{}}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{}},{"type":"tool-map","toolCallId":"c2","state":"output-available","input":{},"output":2}]}])",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1},{"type":"tool-map","toolCallId":"c2","state":"output-available","input":{},"output":2}]}])", true},

    // ---- what is left over from a stream
    {"pending calls that ended in another message",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1}]}])",
     R"([{"id":"x","role":"assistant","parts":[{"type":"step-start"},{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{}}]},{"id":"a1","role":"assistant","parts":[]},{"id":"u2","role":"user","parts":[]}])",
     R"([{"id":"a1","role":"assistant","parts":[]},{"id":"u2","role":"user","parts":[]}])", false},
    {"not if it has more",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1}]}])",
     R"([{"id":"x","role":"assistant","parts":[{"type":"text","text":"a"},{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{}}]},{"id":"a1","role":"assistant","parts":[]}])", nullptr, false},
    {"not the last one",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{},"output":1}]}])",
     R"([{"id":"a1","role":"assistant","parts":[]},{"id":"x","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{}}]}])", nullptr, false},
    {"not if the other message was not found",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"output-available","input":{"a":1},"output":1}]}])",
     R"([{"id":"x","role":"assistant","parts":[{"type":"tool-geo","toolCallId":"c1","state":"input-available","input":{}}]},{"id":"u2","role":"user","parts":[]}])", nullptr, false},
    {"steps alone are no call",
     R"([{"id":"a1","role":"assistant","parts":[{"type":"text","text":"a"}]}])", R"([{"id":"x","role":"assistant","parts":[{"type":"step-start"}]},{"id":"u2","role":"user","parts":[]}])", nullptr, false},

    {"one id twice: the first one counts",
     R"([{"id":"u1","role":"user","parts":[]}])", R"([{"id":"u1","role":"user","parts":[{"type":"text","text":"a"}]},{"id":"u1","role":"user","parts":[]}])",
     R"([{"id":"u1","role":"user","parts":[{"type":"text","text":"a"}]}])", true},
};
// clang-format on

TEST(ReconcileTest, EachListBecomesWhatItsRowSays) {
  for (const ReconcileRow& row : kReconcileRows) {
    SCOPED_TRACE(row.name);
    const Json stored = json(row.stored);
    const Reconciled result = reconcile(json(row.incoming), stored);
    EXPECT_EQ(result.messages, json(row.reconciled == nullptr ? row.incoming : row.reconciled));
    EXPECT_EQ(result.are_all_stored, row.are_all_stored);
    for (const Json& message : result.messages) EXPECT_EQ(message_fault(message), "");
  }
}

TEST(ReconcileTest, WhatWasReconciledStaysAsItIs) {
  for (const ReconcileRow& row : kReconcileRows) {
    SCOPED_TRACE(row.name);
    const Json stored = json(row.stored);
    const Json once = reconcile(json(row.incoming), stored).messages;
    EXPECT_EQ(reconcile(once, stored).messages, once);
  }
}

TEST(ReconcileTest, EqualMessagesMayBeLeftOutOfBothLists) {
  const char* const ok = R"({"id":"a1","role":"assistant","parts":[{"type":"text","text":"ok"}]})";
  const char* const twin =
      R"({"id":"a2","role":"assistant","parts":[{"type":"text","text":"ok"}]})";
  Json incoming = json(twin);
  incoming["id"] = "x";
  const Json whole = reconcile({json(ok), incoming}, {json(ok), json(twin)}).messages;
  const Json rest = reconcile(Json::array({incoming}), Json::array({json(twin)})).messages;
  EXPECT_EQ(rest, Json::array({whole[1]}));
  EXPECT_EQ(rest[0]["id"], "a2");
}

// A client that wants to cost time: many equal messages, and many calls with one id.
TEST(ReconcileTest, TheTimeGrowsWithTheSizeOfTheLists) {
  const auto list = [](int count, const char* prefix, const char* part, int inputs) {
    Json messages = Json::array();
    for (int i = 0; i < count; ++i) {
      Json other = json(part);
      if (inputs > 0) other["input"] = {{"n", i % inputs}};
      messages.push_back({{"id", prefix + std::to_string(i)},
                          {"role", "assistant"},
                          {"parts", Json::array({other, {{"type", "step-start"}}})}});
    }
    return messages;
  };
  const char* const text = R"({"type":"text","text":"ok"})";
  const char* const call =
      R"({"type":"tool-a","toolCallId":"c","state":"output-available","output":1})";
  for (const auto& [part, inputs] : {std::pair{text, 0}, std::pair{call, 1}, std::pair{call, 7}}) {
    const auto begin = std::chrono::steady_clock::now();
    const Reconciled result =
        reconcile(list(2'000, "x", part, inputs), list(2'000, "a", part, inputs));
    EXPECT_TRUE(result.are_all_stored);
    // Each with each would be 4 million comparisons of texts.
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  }
}

}  // namespace
}  // namespace hearth::chat

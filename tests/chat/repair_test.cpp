// Calls without a result: repaired before a call of the model, or answered by a client.
#include "rows.hpp"

#include <hearth/chat/message.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

// The fields of a tool part, without those that all rows have.
Json tool_part(const char* fields) {
  Json part = json(fields);
  part["type"] = "tool-geo";
  part["toolCallId"] = "c1";
  return part;
}

Json with_part(const char* fields) {
  Json message = assistant("[]");
  message["parts"].push_back(tool_part(fields));
  return message;
}

enum class Where { kLast, kEarlier, kLastOfClient, kEarlierOfClient };

struct RepairRow {
  Where where;
  const char* before;
  const char* after;  // null: as before
};

constexpr const char* kInterruptedPart =
    R"({"state":"output-error","input":{},"errorText":"The call was interrupted before its result was recorded."})";

// clang-format off
const std::vector<RepairRow> kRepairs = {
    {Where::kLast, R"({"state":"input-available","input":{}})", kInterruptedPart},
    {Where::kEarlier, R"({"state":"input-available","input":{}})", kInterruptedPart},
    {Where::kLast, R"({"state":"input-streaming"})", kInterruptedPart},
    {Where::kLast, R"({"state":"input-streaming","inputText":"{\"a\":1}"})",
     R"({"state":"output-error","input":{"a":1},"errorText":"The call was interrupted before its result was recorded."})"},
    {Where::kLast, R"({"state":"input-streaming","inputText":"{\"a\""})", kInterruptedPart},
    // a client can still answer
    {Where::kLastOfClient, R"({"state":"input-available","input":{}})", nullptr},
    {Where::kEarlierOfClient, R"({"state":"input-available","input":{}})", nullptr},
    {Where::kLastOfClient, R"({"state":"input-streaming"})", kInterruptedPart},
    {Where::kLast, R"({"state":"approval-requested","input":{},"approval":{"id":"a"}})", nullptr},
    {Where::kEarlier, R"({"state":"approval-requested","input":{},"approval":{"id":"a"}})", nullptr},
    // has answered
    {Where::kLast, R"({"state":"approval-responded","input":{},"approval":{"id":"a","approved":true}})", nullptr},
    {Where::kLast, R"({"state":"approval-responded","input":{},"approval":{"id":"a","approved":false}})", nullptr},
    {Where::kEarlier, R"({"state":"approval-responded","input":{},"approval":{"id":"a","approved":true}})",
     R"({"state":"output-error","input":{},"approval":{"id":"a","approved":true},"errorText":"The call was approved, but it did not run before the next turn."})"},
    {Where::kEarlier, R"({"state":"approval-responded","input":{},"approval":{"id":"a","approved":false}})",
     R"({"state":"output-denied","input":{},"approval":{"id":"a","approved":false}})"},
    // settled: only the input may need it
    {Where::kEarlier, R"({"state":"output-available","input":{},"output":1})", nullptr},
    {Where::kEarlier, R"({"state":"output-denied","input":{}})", nullptr},
    {Where::kEarlier, R"({"state":"output-available","input":"{\"a\":1}","output":1})", R"({"state":"output-available","input":{"a":1},"output":1})"},
    {Where::kEarlier, R"({"state":"output-available","input":"{","output":1})", R"({"state":"output-available","input":{},"output":1})"},
    {Where::kEarlier, R"({"state":"output-available","input":[1],"output":1})", R"({"state":"output-available","input":{},"output":1})"},
    {Where::kEarlier, R"({"state":"output-error","rawInput":"{","errorText":"e"})", R"({"state":"output-error","rawInput":"{","input":{},"errorText":"e"})"},
    {Where::kLast, R"({"state":"approval-requested","input":null,"approval":{"id":"a"}})", R"({"state":"approval-requested","input":{},"approval":{"id":"a"}})"},
};
// clang-format on

RepairRules rules_for(Where where) {
  RepairRules rules;
  rules.is_last = where == Where::kLast || where == Where::kLastOfClient;
  if (where == Where::kLastOfClient || where == Where::kEarlierOfClient)
    rules.client_tools = {"other", "geo"};
  return rules;
}

TEST(RepairTest, EachPartIsRepairedAsItsRowSays) {
  for (const RepairRow& row : kRepairs) {
    Json message = with_part(row.before);
    EXPECT_EQ(repair(message, rules_for(row.where)), row.after != nullptr) << row.before;
    EXPECT_EQ(message, with_part(row.after == nullptr ? row.before : row.after)) << row.before;
    EXPECT_EQ(message_fault(message), "");
    EXPECT_FALSE(repair(message, rules_for(row.where))) << "the second time: " << row.before;
  }
}

TEST(RepairTest, OtherPartsStay) {
  Json message = assistant(R"([{"type":"text","text":"a","state":"streaming"},
                               {"type":"data-a","data":{"state":"input-available"}}])");
  const Json before = message;
  EXPECT_FALSE(repair(message, {}));
  EXPECT_EQ(message, before);
}

TEST(RepairTest, TheHookOfTheAuthorGivesAnotherPart) {
  const char* const pending = R"({"state":"input-available","input":{}})";
  struct Row {
    std::optional<Json> replaced;
    Json after;
  };
  const Json text = json(R"({"type":"text","text":"The search was cut off."})");
  const Json settled =
      tool_part(R"({"state":"output-available","input":{},"output":"from cache"})");
  const Json own = tool_part(kInterruptedPart);
  for (const Row& row : {
           Row{text, text},
           Row{settled, settled},
           Row{std::nullopt, own},
           Row{tool_part(pending), own},          // not settled
           Row{json(R"({"type":"text"})"), own},  // no part
           Row{Json(7), own},
       }) {
    Json message = with_part(pending);
    RepairRules rules;
    rules.replace = [&](const Json& part) {
      EXPECT_EQ(part, tool_part(pending));
      return row.replaced;
    };
    EXPECT_TRUE(repair(message, rules));
    EXPECT_EQ(message["parts"][0], row.after);
  }
}

// ---- answers of clients -------------------------------------------------------------------------

struct AnswerRow {
  const char* answer;  // result, failure, yes or no
  const char* before;
  Answer expected;
  const char* after = nullptr;  // none: as before
};

Answer answered(Json& message, const std::string& answer) {
  if (answer == "result") return answer_call(message, "c1", {{"lat", 1}});
  if (answer == "failure") return fail_call(message, "c1", "no signal");
  return approve_call(message, "c1", answer == "yes");
}

// clang-format off
const std::vector<AnswerRow> kAnswers = {
    {"result", R"({"state":"input-available","input":{}})", Answer::kTaken, R"({"state":"output-available","input":{},"output":{"lat":1},"preliminary":false})"},
    {"result", R"({"state":"approval-requested","input":{}})", Answer::kTaken, R"({"state":"output-available","input":{},"output":{"lat":1},"preliminary":false})"},
    {"result", R"({"state":"approval-responded","input":{}})", Answer::kTaken, R"({"state":"output-available","input":{},"output":{"lat":1},"preliminary":false})"},
    {"result", R"({"state":"input-streaming"})", Answer::kLate},
    {"result", R"({"state":"output-available","input":{},"output":2})", Answer::kLate},
    {"result", R"({"state":"output-error","input":{},"errorText":"e"})", Answer::kLate},
    {"result", R"({"state":"output-denied","input":{}})", Answer::kLate},
    {"failure", R"({"state":"input-available","input":{}})", Answer::kTaken, R"({"state":"output-error","input":{},"errorText":"no signal"})"},
    {"failure", R"({"state":"output-available","input":{},"output":2})", Answer::kLate},
    {"yes", R"({"state":"approval-requested","input":{},"approval":{"id":"a1","reason":"r"}})", Answer::kTaken, R"({"state":"approval-responded","input":{},"approval":{"id":"a1","reason":"r","approved":true}})"},
    {"no", R"({"state":"approval-requested","input":{},"approval":{"id":"a1"}})", Answer::kTaken, R"({"state":"output-denied","input":{},"approval":{"id":"a1","approved":false}})"},
    {"yes", R"({"state":"input-available","input":{}})", Answer::kTaken, R"({"state":"approval-responded","input":{},"approval":{"id":"c1","approved":true}})"},
    {"yes", R"({"state":"approval-requested","input":{"a":1},"inputText":"{","approval":{"id":"a1"}})", Answer::kTaken, R"({"state":"approval-responded","input":{"a":1},"approval":{"id":"a1","approved":true}})"},
    {"no", R"({"state":"approval-responded","input":{},"approval":{"id":"a1","approved":true}})", Answer::kLate},
    {"yes", R"({"state":"output-denied","input":{}})", Answer::kLate},
    {"yes", R"({"state":"output-available","input":{},"output":1})", Answer::kLate},
};
// clang-format on

TEST(RepairTest, AClientAnswersOnceAndTheFirstAnswerStays) {
  for (const AnswerRow& row : kAnswers) {
    Json message = with_part(row.before);
    EXPECT_EQ(answered(message, row.answer), row.expected) << row.answer << row.before;
    EXPECT_EQ(message, with_part(row.after == nullptr ? row.before : row.after)) << row.before;
    EXPECT_EQ(message_fault(message), "");
    const bool has_result = is_settled(message["parts"][0]);
    if (has_result)
      EXPECT_EQ(answered(message, "result"), Answer::kLate) << "the second time: " << row.before;
  }
}

TEST(RepairTest, ACallOfAnotherMessageIsNotAnswered) {
  Json message = assistant(R"([{"type":"data-a","toolCallId":"c1","data":1}])");
  const Json before = message;
  for (const char* const answer : {"result", "failure", "yes", "no"})
    EXPECT_EQ(answered(message, answer), Answer::kNoCall);
  EXPECT_EQ(message, before);
}

TEST(RepairTest, AFailureWithoutATextHasOne) {
  Json message = with_part(R"({"state":"input-available","input":{}})");
  EXPECT_EQ(fail_call(message, "c1", ""), Answer::kTaken);
  EXPECT_EQ(message["parts"][0]["errorText"], "The tool failed.");
}

}  // namespace
}  // namespace hearth::chat

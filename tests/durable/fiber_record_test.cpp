#include "durable/fiber_record.hpp"

#include "durable/json_members.hpp"
#include "json/json.hpp"

#include <gtest/gtest.h>

namespace hearth::durable {
namespace {

TEST(FiberRecordTest, StatusesHaveTheirWordsAndTheSettledOnesAreKnown) {
  for (const std::uint32_t bit : {1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
    const auto status = static_cast<FiberStatus>(bit);
    EXPECT_EQ(fiber_status(to_string(status)), status);
    EXPECT_EQ(is_settled(status), bit >= 8);
  }
  EXPECT_EQ(to_string(FiberStatus::kRecovering), "recovering");
  EXPECT_EQ(fiber_status("Completed"), std::nullopt);
  EXPECT_EQ(to_string(static_cast<FiberStatus>(3)), "");
}

TEST(FiberRecordTest, TheJsonHasEveryMemberAndNullForWhatThereIsNot) {
  FiberRecord record{.job = {}, .status = FiberStatus::kRunning};
  record.job.id = "a\"b";
  record.job.name = "n";
  record.job.created_at_ms = 5;
  EXPECT_EQ(record_json(record),
            R"({"id":"a\"b","name":"n","status":"running","key":null,"input":null,)"
            R"("metadata":null,"snapshot":null,"result":null,"error":null,"dead":false,)"
            R"("created_at":5,"started_at":null,"completed_at":null,"attempts":0,"failures":0,)"
            R"("max_retries":0,"next_at":null})");
  record.job.key = "k";
  record.input = "[1]";
  record.error = "no";
  record.next_at_ms = 9;
  const Json json = *parse_json(record_json(record));
  EXPECT_TRUE(
      has(json, {{"key", "k"}, {"input", Json::parse("[1]")}, {"error", "no"}, {"next_at", 9}}));
}

TEST(FiberRecordTest, AnOutcomeSaysItsStatusAndWhatChanges) {
  const auto outcome = parse_outcome(
      R"({"status":"error","error":"no\n","result":null,"snapshot":{"s":1},"more":1})", 100);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status, FiberStatus::kError);
  EXPECT_EQ(outcome->error, "no\n");
  EXPECT_EQ(outcome->result, "null");
  EXPECT_EQ(outcome->snapshot, R"({"s":1})");
  EXPECT_EQ(outcome->metadata, std::nullopt);
  const std::string deepest = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  const std::string deep = R"({"status":"completed","result":)" + deepest + "}";
  EXPECT_EQ(parse_outcome(deep, 1'000)->result, deepest) << "the outcome around it does not count";
  const std::string too_deep = R"({"status":"completed","result":[)" + deepest + "]}";
  EXPECT_EQ(parse_outcome(too_deep, 1'000).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(parse_outcome("", 100)->status, FiberStatus::kInterrupted);
  EXPECT_EQ(parse_outcome(R"({"status":"aborted","error":null})", 100)->error, std::nullopt);
}

TEST(FiberRecordTest, WhatIsNoOutcomeIsRefused) {
  for (const char* text : {"null", "[]", "{", "{}", R"({"status":"pending"})", R"({"status":"x"})",
                           R"({"status":5})", R"({"status":"error","error":5})"}) {
    EXPECT_EQ(parse_outcome(text, 100).error().code, Errc::kInvalidArgument) << text;
  }
  EXPECT_EQ(parse_outcome(R"({"status":"completed","result":123456})", 5).error().code,
            Errc::kLimitExceeded);
}

TEST(FiberRecordTest, TheSameJsonIsTheSameHoweverItIsSpelled) {
  EXPECT_TRUE(same_json("null", " null "));
  EXPECT_TRUE(same_json(R"({"a":1,"b":"\u0041"})", R"({ "b":"A", "a":1.0 })"));
  EXPECT_FALSE(same_json("[1,2]", "[2,1]"));
  EXPECT_FALSE(same_json(R"({"a":1})", R"({"a":1,"b":null})"));
  EXPECT_FALSE(same_json("{", "{"));
  EXPECT_FALSE(same_json("1", "x"));
}

}  // namespace
}  // namespace hearth::durable

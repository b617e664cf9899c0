#include "server/otlp_json.hpp"

#include "json/json.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hearth::server {
namespace {

using extensions::SpanKind;
using extensions::SpanRecord;

TEST(OtlpJsonTest, SpansHaveTheFormOfTheProtocol) {
  std::vector<SpanRecord> spans(2);
  spans[0].span = {
      .trace = {0x0af7651916cd43dd, 0x8448eb211c80319c}, .id = 0xb7ad6b7169203331, .parent = 0x12};
  spans[0].kind = SpanKind::kClient;
  spans[0].name = "a \"b\"";
  spans[0].began = WallTime(std::chrono::duration_cast<WallTime::duration>(
      std::chrono::nanoseconds(1'544'712'660'300'000'000)));
  spans[0].length = std::chrono::nanoseconds(1'000'000'001);
  spans[0].attributes = {
      {"text", "x"}, {"number", std::int64_t{-5}}, {"share", 0.5}, {"flag", true}};
  spans[0].error = "timeout";
  spans[1].span = {.trace = {1, 2}, .id = 3};
  const Json json = parse_json(otlp_json("shop", spans)).value();
  const Json& resource = json.at("resourceSpans").at(0);
  EXPECT_EQ(resource.at("resource").at("attributes").at(0),
            parse_json(R"({"key":"service.name","value":{"stringValue":"shop"}})").value());
  const Json& list = resource.at("scopeSpans").at(0).at("spans");
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list.at(0), parse_json(R"({
      "traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331",
      "parentSpanId":"0000000000000012","name":"a \"b\"","kind":3,
      "startTimeUnixNano":"1544712660300000000","endTimeUnixNano":"1544712661300000001",
      "attributes":[{"key":"text","value":{"stringValue":"x"}},
                    {"key":"number","value":{"intValue":"-5"}},
                    {"key":"share","value":{"doubleValue":0.5}},
                    {"key":"flag","value":{"boolValue":true}},
                    {"key":"error.type","value":{"stringValue":"timeout"}}],
      "status":{"code":2}})")
                            .value());
  EXPECT_FALSE(list.at(1).contains("parentSpanId"));
  EXPECT_FALSE(list.at(1).contains("status"));
}

TEST(OtlpJsonTest, AnAnswerMayRejectSpans) {
  struct Case {
    std::string answer;
    std::uint64_t rejected;
  };
  const Case cases[] = {{"", 0},
                        {"{}", 0},
                        {"[]", 0},
                        {R"({"partialSuccess":{}})", 0},
                        {R"({"partialSuccess":{"rejectedSpans":"7","errorMessage":"no"}})", 7},
                        {R"({"partialSuccess":{"rejectedSpans":7}})", 7},
                        {R"({"partialSuccess":{"rejectedSpans":"x"}})", 0},
                        {R"({"partialSuccess":3})", 0}};
  for (const Case& each : cases)
    EXPECT_EQ(rejected_spans(each.answer), each.rejected) << each.answer;
}

}  // namespace
}  // namespace hearth::server

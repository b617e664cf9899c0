#include "rows.hpp"

#include <hearth/chat/failure.hpp>

#include <gtest/gtest.h>

namespace hearth::chat {
namespace {

using std::chrono::milliseconds;

const Time kNow = Time(std::chrono::seconds(1'800'000'000));  // 2027-01-15T08:00:00Z

struct Row {
  unsigned status;
  const char* body;
  FailureKind kind;
  HeaderList headers = {};
  std::optional<milliseconds> retry_after = {};
};

const Row kRows[] = {
    // OpenAI
    {429,
     R"({"error":{"message":"Rate limit reached, too many tokens","type":"tokens","code":"rate_limit_exceeded"}})",
     FailureKind::kRateLimit,
     {{"Retry-After", "7"}},
     milliseconds(7000)},
    {429,
     R"({"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}})",
     FailureKind::kBilling},
    {400,
     R"({"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}})",
     FailureKind::kContextOverflow},
    {401, R"({"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}})",
     FailureKind::kAuth},
    {404, R"({"error":{"message":"The model does not exist","code":"model_not_found"}})",
     FailureKind::kInvalid},
    {400, R"({"error":{"message":"Refused","code":"invalid_prompt"}})", FailureKind::kRefused},
    {500,
     R"({"error":{"message":"Sorry","type":"server_error"}})",
     FailureKind::kTransient,
     {{"retry-after-ms", "250.5"}, {"retry-after", "9"}},
     milliseconds(250)},
    {503,
     "",
     FailureKind::kTransient,
     {{"Retry-After", "Fri, 15 Jan 2027 08:00:30 GMT"}},
     milliseconds(30'000)},
    {503,
     "",
     FailureKind::kTransient,
     {{"Retry-After", "Fri, 15 Jan 2027 07:00:00 GMT"}},
     milliseconds(0)},
    {503, "", FailureKind::kTransient, {{"Retry-After", "Fri, 15 Jax 2027 08:00:30 GMT"}}},
    {503, "", FailureKind::kTransient, {{"Retry-After", "-1"}}},
    {500, "", FailureKind::kInvalid, {{"x-should-retry", "false"}}},
    {400, "", FailureKind::kTransient, {{"X-Should-Retry", "true"}}},
    {408, "", FailureKind::kTransient},
    {409, "", FailureKind::kTransient},
    // Anthropic
    {529, R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})",
     FailureKind::kTransient},
    {400,
     R"({"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}})",
     FailureKind::kContextOverflow},
    {400,
     R"({"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API"}})",
     FailureKind::kBilling},
    {429,
     R"({"type":"error","error":{"type":"rate_limit_error","message":"limit","details":{"reason":"enforced_spend_limit_reached"}}})",
     FailureKind::kBilling},
    {402, R"({"type":"error","error":{"type":"billing_error","message":"x"}})",
     FailureKind::kBilling},
    {403, R"({"type":"error","error":{"type":"permission_error","message":"x"}})",
     FailureKind::kAuth},
    {413, R"({"type":"error","error":{"type":"request_too_large","message":"x"}})",
     FailureKind::kInvalid},
    // vLLM
    {400,
     R"({"error":{"message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}})",
     FailureKind::kContextOverflow},
    {422, R"({"detail":[{"loc":["body"],"msg":"field required"}]})", FailureKind::kInvalid},
    // llama.cpp
    {503, R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error"}})",
     FailureKind::kTransient},
    {400,
     R"({"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":4096}})",
     FailureKind::kContextOverflow},
    {501, R"({"error":{"code":501,"message":"no","type":"not_supported_error"}})",
     FailureKind::kInvalid},
    // Ollama, gateways
    {404, R"({"error":{"message":"model \"x\" not found","type":"not_found_error"}})",
     FailureKind::kInvalid},
    {500, R"({"error":"llama runner process has terminated"})", FailureKind::kTransient},
    {502, "<html>Bad gateway</html>", FailureKind::kTransient},
    {400, R"(["odd"])", FailureKind::kInvalid},
};

TEST(FailureTest, C35_C39_AnAnswerOfAnErrorHasItsKindAndWait) {
  for (const Row& row : kRows) {
    const Failure failure = classify(row.status, row.headers, row.body, kNow);
    EXPECT_EQ(failure_name(failure.kind), failure_name(row.kind)) << row.status << " " << row.body;
    EXPECT_EQ(failure.retry_after, row.retry_after) << row.status << " " << row.body;
  }
}

TEST(FailureTest, C34_AnErrorInAStreamHasItsKindWithoutAStatus) {
  const std::pair<const char*, FailureKind> rows[] = {
      {R"({"type":"overloaded_error","message":"Overloaded"})", FailureKind::kTransient},
      {R"({"type":"rate_limit_error","message":"x"})", FailureKind::kRateLimit},
      {R"({"type":"authentication_error","message":"x"})", FailureKind::kAuth},
      {R"({"type":"invalid_request_error","message":"x"})", FailureKind::kInvalid},
      {R"({"code":"image_parse_error","message":"x"})", FailureKind::kInvalid},
      {R"({"code":"bio_policy","message":"x"})", FailureKind::kRefused},
      {R"({"code":500,"message":"x","type":"invalid_request_error"})", FailureKind::kTransient},
      {R"({"code":429,"message":"too many tokens"})", FailureKind::kRateLimit},
      {R"({"message":"never seen before"})", FailureKind::kTransient},
      {R"("text")", FailureKind::kTransient},
      {"null", FailureKind::kTransient},
      {"[]", FailureKind::kTransient},
  };
  for (const auto& [error, kind] : rows)
    EXPECT_EQ(failure_name(classify(json(error)).kind), failure_name(kind)) << error;
}

TEST(FailureTest, C35_OnlyWhatMayPassIsRetried) {
  for (const FailureKind kind :
       {FailureKind::kCut, FailureKind::kTransient, FailureKind::kRateLimit})
    EXPECT_TRUE(may_pass(kind)) << failure_name(kind);
  for (const FailureKind kind : {FailureKind::kContextOverflow, FailureKind::kRefused,
                                 FailureKind::kAuth, FailureKind::kBilling, FailureKind::kInvalid})
    EXPECT_FALSE(may_pass(kind)) << failure_name(kind);
}

TEST(FailureTest, C55_ClientsGetASentenceOfTheKindAlone) {
  const Failure failure =
      classify(401, {}, R"({"error":{"message":"Incorrect API key sk-secret at 10.0.0.1"}})", kNow);
  EXPECT_EQ(client_text(failure.kind), "The model's provider did not accept the server's key.");
  EXPECT_EQ(failure.text, "HTTP 401: Incorrect API key sk-secret at 10.0.0.1");
}

TEST(FailureTest, TheTextForTheLogIsBounded) {
  EXPECT_EQ(classify(500, {}, std::string(100'000, 'x'), kNow).text.size(), kMaxFailureText);
}

TEST(FailureTest, TheTextForTheLogIsUtf8) {
  EXPECT_EQ(classify(500, {}, "\xe9t\xe9", kNow).text, "HTTP 500: \uFFFDt\uFFFD");
  EXPECT_EQ(classify(500, {}, "été", kNow).text, "HTTP 500: été");
}

}  // namespace
}  // namespace hearth::chat

#include "api/object_answer.hpp"

#include "extensions/call_answers.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hearth::api {
namespace {

TEST(ObjectAnswerTest, O11_EachErrorHasItsStatusAndItsCode) {
  struct Case {
    Errc error;
    int status;
    std::string_view code;
    bool is_retryable;
  };
  constexpr Case kCases[] = {
      {Errc::kNotFound, 404, "not_found", false},
      {Errc::kUnsupported, 404, "not_found", false},
      {Errc::kInvalidArgument, 400, "invalid_argument", false},
      {Errc::kForbidden, 403, "forbidden", false},
      {Errc::kConflict, 409, "conflict", false},
      {Errc::kLimitExceeded, 429, "limit_exceeded", true},
      {Errc::kTooLarge, 413, "limit_exceeded", false},
      {Errc::kTimeout, 504, "call_timeout", false},
      {Errc::kUnavailable, 503, "sandbox_unavailable", true},
      {Errc::kClosing, 503, "sandbox_unavailable", true},
      {Errc::kCancelled, 503, "sandbox_unavailable", true},
      {Errc::kPlugin, 500, "method_error", false},
      {Errc::kInternal, 500, "internal", false},
  };
  for (const Case& each : kCases) {
    const net::HttpResponse response = object_error(Error{each.error, "why"});
    EXPECT_EQ(response.status, each.status) << each.code;
    const std::string text = each.error == Errc::kPlugin ? "the method failed" : "why";
    EXPECT_EQ(response.body, R"({"success":false,"error":")" + text + R"(","code":")" +
                                 std::string(each.code) + R"(","retryable":)" +
                                 (each.is_retryable ? "true}" : "false}"));
    EXPECT_EQ(net::find_header(response.headers, "Retry-After").has_value(), each.is_retryable);
  }
}

TEST(ObjectAnswerTest, WhatIsKeptUnderAKeyIsNotToldToBeTriedAgain) {
  for (int number = 1; number <= static_cast<int>(Errc::kTooLarge); ++number) {
    const Error error{static_cast<Errc>(number), "why"};
    const net::HttpResponse response = call_error(error);
    const bool is_kept = extensions::CallAnswers::keeps(error.code);
    EXPECT_EQ(response.status, object_error(error).status) << response.body;
    EXPECT_EQ(response.body.ends_with(R"("retryable":true})"), !is_kept) << response.body;
    EXPECT_EQ(net::find_header(response.headers, "Retry-After").has_value(), !is_kept);
  }
  EXPECT_TRUE(extensions::CallAnswers::keeps(Errc::kLimitExceeded))
      << "a method that meets a limit has run, and may have written";
}

TEST(ObjectAnswerTest, ARefusalSaysWhetherTheClassOrTheObjectIsMissing) {
  const auto code_of = [](std::string_view message) {
    const net::HttpResponse refusal = object_refusal(Error{Errc::kNotFound, std::string(message)});
    EXPECT_EQ(refusal.status, 404);
    const std::size_t at = refusal.body.find(R"("code":")") + 8;
    return refusal.body.substr(at, refusal.body.find('"', at) - at);
  };
  EXPECT_EQ(code_of(kNoSuchClass), "class_not_found");
  EXPECT_EQ(code_of("there is no such object"), "object_not_found");
}

TEST(ObjectAnswerTest, AMethodIsLackedOnlyByAClassThatListsSome) {
  constexpr std::string_view kListed = R"([{"name":"get"},{"name":"set"}])";
  EXPECT_FALSE(lacks_method(kListed, "get"));
  EXPECT_TRUE(lacks_method(kListed, "put"));
  EXPECT_FALSE(lacks_method("[]", "get"));
}

}  // namespace
}  // namespace hearth::api

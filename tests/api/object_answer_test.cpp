#include "api/object_answer.hpp"

#include "extensions/call_answers.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::api {
namespace {

// Keeps its answer.
class KeptExchange final : public net::HttpExchange {
 public:
  explicit KeptExchange(net::HttpResponse& answer) : answer_(answer) {}
  [[nodiscard]] const net::HttpRequest& request() const override { return request_; }
  void respond(net::HttpResponse response) override { answer_ = std::move(response); }
  void start(net::HttpResponse /*response*/) override {}
  void write(std::string /*part*/) override {}
  void finish() override {}
  void when_drained(std::function<void()> /*notice*/) override {}
  void read_body(std::size_t /*bytes*/, net::BodyListener /*listener*/) override {}
  void on_abort(std::function<void()> /*notice*/) override {}

 private:
  const net::HttpRequest request_;
  net::HttpResponse& answer_;
};

TEST(ObjectAnswerTest, OnlyALimitOfACallThatDidNotRunIsWorthAnotherTry) {
  const runtime::ClassRegistry classes;
  struct Case {
    bool has_key;
    unsigned status;  // of runtime::CallSink::finish()
    bool is_retryable;
  };
  for (const Case& each : {Case{.has_key = false, .status = 200, .is_retryable = false},
                           Case{.has_key = true, .status = 200, .is_retryable = false},
                           Case{.has_key = true, .status = 429, .is_retryable = true}}) {
    net::HttpResponse answer;
    runtime::ResponseHead head;
    head.status = each.status;
    make_object_answer(std::make_shared<KeptExchange>(answer), classes,
                       {.segment = "tally", .method = "add", .has_key = each.has_key})
        ->finish(head, Error{Errc::kLimitExceeded, "why"});
    EXPECT_EQ(answer.status, 429);
    EXPECT_EQ(answer.body.ends_with(R"("retryable":true})"), each.is_retryable) << answer.body;
    EXPECT_EQ(net::find_header(answer.headers, "Retry-After").has_value(), each.is_retryable);
  }
}

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

TEST(ObjectAnswerTest, AFailureOfTheMethodNamesItsTraceOrShowsItsTextIfTheClassSaysSo) {
  const runtime::ClassRegistry classes;
  const extensions::Span span =
      extensions::read_span("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  for (const bool shows : {false, true}) {
    net::HttpResponse answer;
    const auto sink = make_object_answer(std::make_shared<KeptExchange>(answer), classes,
                                         {.segment = "tally", .method = "add"});
    sink->begun({}, span, shows);
    sink->finish({}, Error{Errc::kPlugin, "what the author wrote"});
    EXPECT_EQ(answer.status, 500);
    EXPECT_EQ(answer.body.find("what the author wrote") != std::string::npos, shows) << answer.body;
    EXPECT_EQ(answer.body.find("0af7651916cd43dd8448eb211c80319c") != std::string::npos, !shows)
        << answer.body;
  }
}

TEST(ObjectAnswerTest, ARefusalSaysWhetherTheClassOrTheObjectIsMissing) {
  const net::HttpResponse object = object_refusal(Error{Errc::kNotFound, "why"});
  EXPECT_EQ(object.status, 404);
  EXPECT_NE(object.body.find(R"("code":"object_not_found")"), std::string::npos) << object.body;
  EXPECT_EQ(object_refusal(Error{Errc::kConflict, "why"}).status, 409);
  EXPECT_EQ(no_such_class().status, 404);
  EXPECT_NE(no_such_class().body.find(R"("code":"class_not_found")"), std::string::npos);
}

TEST(ObjectAnswerTest, AMethodIsLackedOnlyByAClassThatListsSome) {
  constexpr std::string_view kListed = R"([{"name":"get"},{"name":"set"}])";
  EXPECT_FALSE(lacks_method(kListed, "get"));
  EXPECT_TRUE(lacks_method(kListed, "put"));
  EXPECT_FALSE(lacks_method("[]", "get"));
}

}  // namespace
}  // namespace hearth::api

#include "api/http_errors.hpp"

#include <gtest/gtest.h>

namespace hearth::api {
namespace {

TEST(HttpErrorsTest, GivesEveryOutcomeAStatus) {
  EXPECT_EQ(http_status(Errc::kInvalidArgument), 400);
  EXPECT_EQ(http_status(Errc::kForbidden), 403);
  EXPECT_EQ(http_status(Errc::kNotFound), 404);
  EXPECT_EQ(http_status(Errc::kUnsupported), 404);
  EXPECT_EQ(http_status(Errc::kConflict), 409);
  EXPECT_EQ(http_status(Errc::kLimitExceeded), 429);
  EXPECT_EQ(http_status(Errc::kTooLarge), 413);
  EXPECT_EQ(http_status(Errc::kPlugin), 500);
  EXPECT_EQ(http_status(Errc::kInternal), 500);
  EXPECT_EQ(http_status(Errc::kClosing), 503);
  EXPECT_EQ(http_status(Errc::kUnavailable), 503);
  EXPECT_EQ(http_status(Errc::kCancelled), 503);
  EXPECT_EQ(http_status(Errc::kTimeout), 504);
}

TEST(HttpErrorsTest, WritesTheOneShapeOfErrors) {
  const net::HttpResponse answer = error_answer(409, "conflict", "a \"quoted\" text");
  EXPECT_EQ(answer.status, 409);
  EXPECT_EQ(answer.body, R"({"error":{"code":"conflict","message":"a \"quoted\" text"}})");
  EXPECT_EQ(net::find_header(answer.headers, "Content-Type"), "application/json");
  EXPECT_FALSE(net::find_header(answer.headers, "Retry-After"));
}

TEST(HttpErrorsTest, SaysWhenToComeBackOnlyWhereThatHelps) {
  EXPECT_EQ(net::find_header(error_answer(503, "closing", "x").headers, "Retry-After"), "1");
  EXPECT_FALSE(net::find_header(error_answer(500, "internal", "x").headers, "Retry-After"));
}

const extensions::Span kSpan =
    extensions::read_span("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");

TEST(FailureTextTest, HidesOnlyFailuresOfTheCode) {
  FailureText text;
  text.begun(kSpan, false);
  for (int number = 1; number <= static_cast<int>(Errc::kTooLarge); ++number) {
    const auto code = static_cast<Errc>(number);
    EXPECT_EQ(text.of({code, "why"}), code == Errc::kPlugin ? "the method failed (trace "
                                                              "0af7651916cd43dd8448eb211c80319c)"
                                                            : "why");
  }
}

TEST(FailureTextTest, HasNoTraceBeforeTheCodeRan) {
  EXPECT_EQ(FailureText().of({Errc::kPlugin, "why"}), "the method failed");
}

TEST(FailureTextTest, ShowsAllIfTheClassAsksForIt) {
  FailureText text;
  text.begun(kSpan, true);
  EXPECT_EQ(text.of({Errc::kPlugin, "why"}), "why");
}

}  // namespace
}  // namespace hearth::api

#include "api/failure_text.hpp"

#include <gtest/gtest.h>

namespace hearth::api {
namespace {

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

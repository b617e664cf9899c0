#include "protocol/http_error.hpp"

#include <gtest/gtest.h>

namespace hearth::protocol {
namespace {

TEST(HttpErrorTest, HasACodeAndAMessage) {
  EXPECT_EQ(http_error_body("not_found", "no agent class \"x\" is served"),
            R"({"error":{"code":"not_found","message":"no agent class \"x\" is served"}})");
}

TEST(HttpErrorTest, SpellsTheCodeOfAnError) {
  EXPECT_EQ(http_error_body(Error{Errc::kLimitExceeded, "too long"}),
            R"({"error":{"code":"limit_exceeded","message":"too long"}})");
}

}  // namespace
}  // namespace hearth::protocol

#include "auth/bearer_tokens.hpp"

#include <gtest/gtest.h>

namespace hearth::auth {
namespace {

const std::string kOld = "0123456789abcdef-old";
const std::string kNew = "0123456789abcdef-new";

TEST(BearerTokensTest, KnowsEachLine) {
  const auto tokens = BearerTokens::parse("# until June\n" + kOld + "\r\n\n" + kNew);
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_TRUE(tokens->has(kOld));
  EXPECT_TRUE(tokens->has(kNew));
  for (const std::string& other :
       {std::string(), kOld + "x", kOld.substr(1), kOld + "\n", std::string("# until June")}) {
    EXPECT_FALSE(tokens->has(other)) << other;
  }
}

TEST(BearerTokensTest, SaysWhichLineIsWrongAndNothingOfIt) {
  const std::string many = [] {
    std::string text;
    for (std::size_t i = 0; i <= BearerTokens::kMaxTokens; ++i) text += kOld + "\n";
    return text;
  }();
  for (const auto& [text, reason] : std::vector<std::pair<std::string, std::string>>{
           {"", "no token"},
           {"# only this\n", "no token"},
           {kOld + "\ntoo-short\n", "line 2 is no token"},
           {kOld + " " + kNew, "line 1 is no token"},
           {std::string(BearerTokens::kMaxTokenBytes + 1, 'a'), "line 1 is no token"},
           {many, "more than 64 tokens"}}) {
    const auto tokens = BearerTokens::parse(text);
    ASSERT_FALSE(tokens) << text;
    EXPECT_NE(tokens.error().message.find(reason), std::string::npos) << tokens.error().message;
    EXPECT_EQ(tokens.error().message.find("0123456789"), std::string::npos);
  }
}

}  // namespace
}  // namespace hearth::auth

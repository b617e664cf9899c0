#include "base/secret_mask.hpp"

#include <gtest/gtest.h>

namespace hearth {
namespace {

const std::string kSecret = "sk-sk-0123456789abc";
const std::string kStars(kSecret.size(), '*');

TEST(SecretMaskTest, NoCutOfATextShowsTheSecret) {
  const std::pair<std::string, std::string> rows[] = {
      {"", ""},
      {"nothing", "nothing"},
      {kSecret, kStars},
      {"a " + kSecret + kSecret + " b sk-", "a " + kStars + kStars + " b sk-"},
      {"sk-" + kSecret, "sk-" + kStars},
      {kSecret.substr(0, 10), kSecret.substr(0, 10)},
      {kSecret.substr(0, 10) + "\n" + kSecret, kSecret.substr(0, 10) + "\n" + kStars},
  };
  for (const auto& [text, hidden] : rows) {
    EXPECT_EQ(SecretMask(kSecret).hide(text), hidden);
    for (std::size_t step = 1; step <= text.size() + 1; ++step) {
      SecretMask mask(kSecret);
      std::string told;
      for (std::size_t at = 0; at < text.size(); at += step) {
        told += mask.feed(std::string_view(text).substr(at, step));
        EXPECT_LE(std::min(text.size(), at + step) - told.size(), mask.size());
      }
      EXPECT_EQ(told + mask.end(), hidden) << text << " by " << step;
    }
  }
}

TEST(SecretMaskTest, OnlyWhatMayBeginTheSecretWaits) {
  SecretMask mask(kSecret);
  EXPECT_EQ(mask.feed("data: {}\n\n"), "data: {}\n\n");
  EXPECT_EQ(mask.feed("the key sk-"), "the key ");
  EXPECT_EQ(mask.feed("x"), "sk-x");
  EXPECT_EQ(mask.end(), "");
}

TEST(SecretMaskTest, AShortSecretMayBeAWordOfTheText) {
  for (SecretMask mask : {SecretMask(), SecretMask("ollama"), SecretMask("fifteen-letters")}) {
    EXPECT_EQ(mask.size(), 0U);
    EXPECT_EQ(mask.feed("ollama fifteen-letters"), "ollama fifteen-letters");
    EXPECT_EQ(mask.end() + mask.hide("ollama"), "ollama");
  }
}

}  // namespace
}  // namespace hearth

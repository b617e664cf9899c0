#include "base/sha256.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth {
namespace {

// The examples of FIPS 180-4.
TEST(Sha256Test, GivesTheDigestsOfTheStandard) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, PiecesCountAsOneText) {
  Sha256 pieces;
  pieces.update("a");
  pieces.update("");
  pieces.update("bc");
  EXPECT_EQ(pieces.finish(), sha256("abc"));
}

TEST(Sha256Test, ANulByteCounts) {
  EXPECT_NE(sha256(std::string_view("a\0", 2)), sha256("a"));
}

TEST(Sha256DeathTest, FinishingTwiceIsABug) {
  EXPECT_DEATH(
      {
        Sha256 hash;
        static_cast<void>(hash.finish());
        static_cast<void>(hash.finish());
      },
      "finish\\(\\) twice");
}

}  // namespace
}  // namespace hearth

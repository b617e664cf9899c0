#include "base/sha256.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

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
  // Around the ends of blocks, of 64 bytes, and where the length has no room in the last one.
  const std::string text(200, 'x');
  for (std::size_t size = 0; size <= text.size(); ++size) {
    for (const std::size_t piece : {1U, 3U, 63U, 64U, 65U, 130U}) {
      Sha256 pieces;
      for (std::size_t at = 0; at < size; at += piece)
        pieces.update(std::string_view(text).substr(at, std::min(piece, size - at)));
      EXPECT_EQ(pieces.finish(), sha256(text.substr(0, size))) << size << " by " << piece;
    }
  }
}

// As `head -c N /dev/zero | sha256sum` prints them: around the places where the padding takes one
// block more.
TEST(Sha256Test, PadsAsTheStandardSays) {
  const std::map<std::size_t, std::string> known = {
      {1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"},
      {55, "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7"},
      {56, "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb"},
      {63, "c7723fa1e0127975e49e62e753db53924c1bd84b8ac1ac08df78d09270f3d971"},
      {64, "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"},
      {65, "98ce42deef51d40269d542f5314bef2c7468d401ad5d85168bfab4c0108f75f7"},
      {119, "f616b0d54e78571a9611f343c9f8e022e859e920381ab0e4d3da01e193a7bd7e"},
      {120, "6edd9f6f9cc92cded36e6c4a580933f9c9f1b90562b46903b806f21902a1a54f"},
  };
  for (const auto& [size, digest] : known)
    EXPECT_EQ(sha256_hex(std::string(size, '\0')), digest) << size;
}

TEST(Sha256Test, APrefixIsWhatTheDigestBeginsWith) {
  EXPECT_EQ(sha256_prefix(std::string_view("\0", 1)), 0x6e340b9cffb37a98U);
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

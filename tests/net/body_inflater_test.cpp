#include "net/body_inflater.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <zlib.h>

namespace hearth::net {
namespace {

using Coding = BodyInflater::Coding;

constexpr int kGzip = MAX_WBITS + 16;
constexpr int kZlib = MAX_WBITS;
constexpr int kRaw = -MAX_WBITS;

std::string packed_as(int window_bits, const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string input = text;  // zlib wants a buffer that it may write to
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

// The result of an inflater that gets pieces of `step` bytes.
struct Outcome {
  std::string text;
  bool broken = false;
  bool whole = false;
  friend bool operator==(const Outcome&, const Outcome&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Outcome& it) {
    return out << it.text.size() << " bytes" << (it.broken ? ", broken" : "")
               << (it.whole ? ", whole" : "");
  }
};

Outcome unpacked(Coding coding, std::string_view packed, std::size_t step, std::size_t room_bytes) {
  BodyInflater inflater(coding);
  std::vector<char> room(room_bytes);
  Outcome outcome;
  for (; !packed.empty(); packed.remove_prefix(std::min(step, packed.size()))) {
    inflater.add(packed.substr(0, step));
    while (inflater.has_more()) {
      const auto piece = inflater.next(room);
      if (!piece) {
        outcome.broken = true;
        return outcome;
      }
      EXPECT_LE(piece->size(), room_bytes);
      outcome.text += *piece;
    }
  }
  outcome.whole = inflater.is_whole();
  return outcome;
}

std::string some_text(std::size_t bytes) {
  std::string text;
  for (unsigned at = 0; text.size() < bytes; ++at) text += std::to_string(at * 2654435761U);
  text.resize(bytes);
  return text;
}

TEST(BodyInflaterTest, UnpacksWhateverThePiecesAre) {
  struct Case {
    Coding coding;
    int window_bits;
  };
  for (const auto& [coding, window_bits] :
       {Case{Coding::kGzip, kGzip}, Case{Coding::kDeflate, kZlib}, Case{Coding::kDeflate, kRaw}}) {
    for (const std::size_t bytes : {0UL, 1UL, 5UL, 4096UL, 50'000UL}) {
      const std::string text = some_text(bytes);
      const std::string packed = packed_as(window_bits, text);
      for (const std::size_t step : {1UL, 3UL, 1000UL, 100'000UL}) {
        for (const std::size_t room : {1UL, 4096UL})
          EXPECT_EQ(unpacked(coding, packed, step, room), (Outcome{text, false, true}));
      }
    }
  }
}

TEST(BodyInflaterTest, ThatIsCutAnywhereIsNotWhole) {
  for (const int window_bits : {kGzip, kZlib, kRaw}) {
    const Coding coding = window_bits == kGzip ? Coding::kGzip : Coding::kDeflate;
    const std::string packed = packed_as(window_bits, some_text(200));
    for (std::size_t keep = 0; keep < packed.size(); ++keep) {
      const Outcome cut = unpacked(coding, std::string_view(packed).substr(0, keep), 7, 64);
      EXPECT_FALSE(cut.whole || cut.broken) << window_bits << " " << keep;
    }
  }
}

TEST(BodyInflaterTest, MembersOfGzipFollowEachOther) {
  const std::string member = packed_as(kGzip, "one");
  for (const std::size_t step : {1UL, 10UL, 1000UL}) {
    EXPECT_EQ(unpacked(Coding::kGzip, member + member + member, step, 64),
              (Outcome{"oneoneone", false, true}));
    const Outcome half = unpacked(Coding::kGzip, member + member.substr(0, 9), step, 64);
    EXPECT_EQ(half, (Outcome{"one", false, false}));
    EXPECT_TRUE(unpacked(Coding::kGzip, member + "junk", step, 64).broken);
  }
}

TEST(BodyInflaterTest, BehindDeflateOnlyAMissingHeadersChecksumMayStand) {
  const std::string raw = packed_as(kRaw, "one");
  for (const std::size_t step : {1UL, 1000UL}) {
    EXPECT_EQ(unpacked(Coding::kDeflate, raw + "1234", step, 64), (Outcome{"one", false, true}));
    EXPECT_TRUE(unpacked(Coding::kDeflate, raw + "12345", step, 64).broken);
    EXPECT_TRUE(unpacked(Coding::kDeflate, packed_as(kZlib, "one") + "1", step, 64).broken);
  }
}

TEST(BodyInflaterTest, AWrongChecksumIsBroken) {
  for (const int window_bits : {kGzip, kZlib}) {
    std::string packed = packed_as(window_bits, "one");
    packed[packed.size() - (window_bits == kGzip ? 5 : 1)] ^= 1;
    EXPECT_TRUE(
        unpacked(window_bits == kGzip ? Coding::kGzip : Coding::kDeflate, packed, 100, 64).broken);
  }
}

TEST(BodyInflaterTest, WhatIsUnpackedIsNoMoreThanTheRoom) {
  const std::string bomb = packed_as(kGzip, std::string(std::size_t{16} << 20, 'z'));
  BodyInflater inflater(Coding::kGzip);
  inflater.add(bomb);
  std::array<char, 100> room{};
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(inflater.next(room)->size(), room.size());
  EXPECT_TRUE(inflater.has_more());
}

TEST(BodyInflaterTest, ReadsTheNamesOfCodings) {
  EXPECT_EQ(BodyInflater::coding_of("GZIP"), Coding::kGzip);
  EXPECT_EQ(BodyInflater::coding_of("x-gzip"), Coding::kGzip);
  EXPECT_EQ(BodyInflater::coding_of("deflate"), Coding::kDeflate);
  for (const char* other : {"", "br", "gzip, gzip", "zstd", "gzipp"})
    EXPECT_EQ(BodyInflater::coding_of(other), std::nullopt) << other;
}

}  // namespace
}  // namespace hearth::net

#pragma once
// SHA-256 (FIPS 180-4), for names of files and to tell texts and libraries apart. No secret depends
// on it.
//
// Hearth has its own, because the test host that authors link (host/mock) needs little more than
// SQLite.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

using Sha256Digest = std::array<std::byte, 32>;

// A digest over bytes that arrive in pieces.
//   Threads   One thread at a time.
class Sha256 {
 public:
  // May be called any number of times. The pieces form one text.
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);

  // The digest of all pieces. Call it once; the object cannot be used afterwards.
  [[nodiscard]] Sha256Digest finish();

 private:
  static constexpr std::size_t kBlock = 64;

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlock> block_{};  // bytes that do not fill a block yet
  std::uint64_t size_ = 0;                 // of all pieces, in bytes
  bool finished_ = false;
};

// The digest of one text.
[[nodiscard]] Sha256Digest sha256(std::string_view text);

// 64 lower-case hexadecimal digits.
[[nodiscard]] std::string to_hex(const Sha256Digest& digest);

// to_hex(sha256(text)).
[[nodiscard]] std::string sha256_hex(std::string_view text);

// The first 64 bits of sha256(text), where 32 bytes are too many. Different texts do not share them
// by chance. But a program can find two texts that do, so it does not protect against attackers.
[[nodiscard]] std::uint64_t sha256_prefix(std::string_view text);

}  // namespace hearth

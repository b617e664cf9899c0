#include "base/sha256.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace hearth {
namespace {

// FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64
// primes.
constexpr std::array<std::uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// FIPS 180-4, 6.2.2, with the names of its variables. It hashes every library that is loaded.
// Sanitizers would make it ten times as slow, so it also calls no function that has them.
[[clang::no_sanitize("address", "undefined", "thread")]] void add_block(std::uint32_t* state,
                                                                        const std::byte* block) {
  const std::uint32_t* const k = kRounds.data();
  std::uint32_t w[64];
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(w, block, 64);
  for (std::size_t t = 0; t < 16; ++t) w[t] = __builtin_bswap32(w[t]);
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t s0 = __builtin_rotateright32(w[t - 15], 7) ^
                             __builtin_rotateright32(w[t - 15], 18) ^ (w[t - 15] >> 3U);
    const std::uint32_t s1 = __builtin_rotateright32(w[t - 2], 17) ^
                             __builtin_rotateright32(w[t - 2], 19) ^ (w[t - 2] >> 10U);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  std::uint32_t a = state[0];
  std::uint32_t b = state[1];
  std::uint32_t c = state[2];
  std::uint32_t d = state[3];
  std::uint32_t e = state[4];
  std::uint32_t f = state[5];
  std::uint32_t g = state[6];
  std::uint32_t h = state[7];
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t s1 = __builtin_rotateright32(e, 6) ^ __builtin_rotateright32(e, 11) ^
                             __builtin_rotateright32(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + k[t] + w[t];
    const std::uint32_t s0 = __builtin_rotateright32(a, 2) ^ __builtin_rotateright32(a, 13) ^
                             __builtin_rotateright32(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}

}  // namespace

void Sha256::update(std::span<const std::byte> bytes) {
  HEARTH_ASSERT(!finished_, "update() after finish()");
  while (!bytes.empty()) {
    const std::size_t held = size_ % kBlock;
    if (held == 0 && bytes.size() >= kBlock) {
      add_block(state_.data(), bytes.data());
      size_ += kBlock;
      bytes = bytes.subspan(kBlock);
      continue;
    }
    const std::size_t taken = std::min(bytes.size(), kBlock - held);
    std::copy_n(bytes.data(), taken, block_.data() + held);
    size_ += taken;
    bytes = bytes.subspan(taken);
    if (size_ % kBlock == 0) add_block(state_.data(), block_.data());
  }
}

void Sha256::update(std::string_view text) {
  update(std::as_bytes(std::span(text)));
}

Sha256Digest Sha256::finish() {
  HEARTH_ASSERT(!finished_, "finish() twice");
  const std::uint64_t bits = size_ * 8;
  std::array<std::byte, kBlock + 8> end{std::byte{0x80}};
  const std::size_t zeros = (kBlock + 55 - size_ % kBlock) % kBlock;
  for (std::size_t i = 0; i < 8; ++i)
    end[1 + zeros + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  update(std::span(end).first(1 + zeros + 8));
  finished_ = true;
  Sha256Digest digest{};
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Sha256Digest sha256(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.finish();
}

std::string to_hex(const Sha256Digest& digest) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const std::byte byte : digest) {
    const auto value = std::to_integer<unsigned>(byte);
    text += kHex[value >> 4U];
    text += kHex[value & 0x0FU];
  }
  return text;
}

std::string sha256_hex(std::string_view text) {
  return to_hex(sha256(text));
}

std::uint64_t sha256_prefix(std::string_view text) {
  const Sha256Digest digest = sha256(text);
  std::uint64_t prefix = 0;
  for (std::size_t at = 0; at < sizeof prefix; ++at)
    prefix = prefix << 8U | std::to_integer<std::uint64_t>(digest[at]);
  return prefix;
}

}  // namespace hearth

#include "base/random.hpp"

#include "base/assert.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace hearth {

void SystemRandom::fill(std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = ::getrandom(out.data(), out.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    HEARTH_ASSERT(got > 0, "the system gives no random bytes");
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

std::uint32_t random_up_to(std::uint32_t most, Random& random) {
  std::array<std::byte, sizeof(std::uint32_t)> bytes{};
  random.fill(bytes);
  std::uint32_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof(number));
  return static_cast<std::uint32_t>(number % (std::uint64_t{most} + 1));
}

std::string make_uuid(Random& random) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::array<std::byte, 16> bytes{};
  random.fill(bytes);
  bytes[6] = (bytes[6] & std::byte{0x0F}) | std::byte{0x40};  // version 4: random
  bytes[8] = (bytes[8] & std::byte{0x3F}) | std::byte{0x80};  // the variant of RFC 9562

  std::string text;
  text.reserve(36);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = std::to_integer<unsigned>(bytes[i]);
    text += kHex[byte >> 4U];
    text += kHex[byte & 0x0FU];
  }
  return text;
}

}  // namespace hearth

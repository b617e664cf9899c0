#include "base/secret.hpp"

#include "base/sha256.hpp"

#include <cstddef>

namespace hearth {

bool is_same_secret(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  // Volatile: a compiler could leave the loop early, and the time would show how much of a guess is
  // right.
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

std::string make_secret(Random& random) {
  Sha256Digest bytes{};  // as many bytes as a digest has
  static_assert(sizeof bytes == 32);
  random.fill(bytes);
  return to_hex(bytes);
}

}  // namespace hearth

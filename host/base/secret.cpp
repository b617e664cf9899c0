#include "base/secret.hpp"

#include "base/sha256.hpp"

#include <openssl/crypto.h>

#include <cstddef>

namespace hearth {

bool is_same_secret(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string make_secret(Random& random) {
  Sha256Digest bytes{};  // as many bytes as a digest has
  static_assert(sizeof bytes == 32);
  random.fill(bytes);
  return to_hex(bytes);
}

}  // namespace hearth

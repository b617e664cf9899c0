#include "base/sha256.hpp"

#include "base/assert.hpp"

#include <openssl/evp.h>

namespace hearth {

struct Sha256::Context {
  Context() : evp(EVP_MD_CTX_new()) {}
  ~Context() { EVP_MD_CTX_free(evp); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  EVP_MD_CTX* const evp;
  bool finished = false;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  HEARTH_ASSERT(
      context_->evp != nullptr && EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1,
      "libcrypto cannot start a SHA-256 digest");
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  HEARTH_ASSERT(!context_->finished, "update() after finish()");
  HEARTH_ASSERT(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1,
                "libcrypto cannot continue a SHA-256 digest");
}

void Sha256::update(std::string_view text) {
  update(std::as_bytes(std::span(text)));
}

Sha256Digest Sha256::finish() {
  HEARTH_ASSERT(!context_->finished, "finish() twice");
  context_->finished = true;
  Sha256Digest digest{};
  unsigned size = 0;
  // libcrypto writes through unsigned char, which may alias any object.
  const int ended =
      EVP_DigestFinal_ex(context_->evp, reinterpret_cast<unsigned char*>(digest.data()), &size);
  HEARTH_ASSERT(ended == 1 && size == digest.size(), "libcrypto cannot end a SHA-256 digest");
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

}  // namespace hearth

#pragma once
// SHA-256 (FIPS 180-4), for names of files and for telling one library from another.

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

using Sha256Digest = std::array<std::byte, 32>;

// A digest over bytes that come piece by piece.
//   Threads   One thread at a time.
//   Failure   None that a caller can meet; the program aborts when the library cannot hash at all.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  // Any number of times; the pieces count as one text.
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);

  // The digest of all that came. Call it once: the object is used up then.
  [[nodiscard]] Sha256Digest finish();

 private:
  struct Context;  // libcrypto's, kept out of this header
  std::unique_ptr<Context> context_;
};

// The digest of one text.
[[nodiscard]] Sha256Digest sha256(std::string_view text);

// 64 lower-case hexadecimal digits.
[[nodiscard]] std::string to_hex(const Sha256Digest& digest);

// to_hex(sha256(text)).
[[nodiscard]] std::string sha256_hex(std::string_view text);

}  // namespace hearth

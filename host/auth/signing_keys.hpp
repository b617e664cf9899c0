#pragma once
// The keys that signatures of tokens (RFC 7515) are checked with.

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::auth {

// Of RFC 7518 and RFC 8037. Each kind of key serves one of them: oct HS256, RSA RS256, EC on P-256
// ES256, OKP on Ed25519 EdDSA.
enum class Algorithm : std::uint8_t { kHs256, kRs256, kEs256, kEdDsa };

// As tokens spell it, case included; nothing for `none` and all others.
[[nodiscard]] std::optional<Algorithm> parse_algorithm(std::string_view name);

// Base64url without padding (RFC 7515); nothing if the text is not that.
[[nodiscard]] std::optional<std::string> decode_base64url(std::string_view text);

// Where a set of keys comes from.
enum class KeyOrigin : std::uint8_t {
  kFile,  // the operator's own
  kUrl,   // published: a shared secret (oct) cannot be in it, and one that is there is left out
};

// Promises
//  P1 Bound   A key checks signatures of its own algorithm alone, whatever a token says.
//  P2 Strong  An RSA key has 2048 to 8192 bits, a secret at least 256 (RFC 7518, 3.2 and 3.3).
//  P3 Public  Private parts of a key are neither needed nor used.
//
// Threads  Any: it does not change.
class SigningKeys {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 10;
  static constexpr std::size_t kMaxKeys = 64;

  // A JSON Web Key Set or a single key (RFC 7517), or PEM with public keys. Keys for other
  // purposes, algorithms or curves are left out, as a provider's set has them too.
  //   Failure  kInvalidArgument, for the operator: what is wrong, or that no key is left. The
  //            message quotes nothing of the text.
  [[nodiscard]] static Result<SigningKeys> parse(std::string_view text, KeyOrigin origin);

  SigningKeys(SigningKeys&&) noexcept;
  SigningKeys& operator=(SigningKeys&&) noexcept;
  ~SigningKeys();

  enum class Check : std::uint8_t { kGood, kBad, kUnknownKey };

  // Whether one of the keys has signed a token of three parts. `key_id`: the token's `kid`. A key
  // with another id is not tried; a key without an id, and one for a token without an id, is.
  // kUnknownKey: no key is left to try.
  [[nodiscard]] Check check(std::string_view token, Algorithm algorithm,
                            const std::optional<std::string>& key_id) const;

  [[nodiscard]] std::size_t size() const { return keys_.size(); }

 private:
  struct Key;  // keeps OpenSSL's and cjose's types out of this header
  SigningKeys();

  std::vector<std::unique_ptr<const Key>> keys_;
};

}  // namespace hearth::auth

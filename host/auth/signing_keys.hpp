#pragma once
// The keys that check signatures of tokens (RFC 7515).

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::auth {

// Of RFC 7518 and RFC 8037. Each kind of key serves one algorithm: oct HS256, RSA RS256, EC on
// P-256 ES256, OKP on Ed25519 EdDSA.
enum class Algorithm : std::uint8_t { kHs256, kRs256, kEs256, kEdDsa };

// `name`: as tokens spell it, case included. Absent for `none` and all others.
[[nodiscard]] std::optional<Algorithm> parse_algorithm(std::string_view name);

// Base64url without padding (RFC 7515); absent if the text is something else.
[[nodiscard]] std::optional<std::string> decode_base64url(std::string_view text);

// Where a set of keys comes from.
enum class KeyOrigin : std::uint8_t {
  kFile,  // a file of the operator
  kUrl,   // published: parse() leaves out shared secrets (oct)
};

// Promises
//  P1 Bound   A key checks only signatures of its own algorithm, whatever the token says.
//  P2 Strong  An RSA key has 2048 to 8192 bits, a secret at least 256 (RFC 7518, 3.2 and 3.3).
//  P3 Public  The private part of a key is neither needed nor used.
//
// Threads  Any: it does not change.
class SigningKeys {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 10;
  static constexpr std::size_t kMaxKeys = 64;

  // A JSON Web Key Set or a single key (RFC 7517), or PEM with public keys. Keys for other
  // purposes, algorithms or curves are left out: the set of a provider may have them.
  //   Failure  kInvalidArgument, for the operator: what is wrong, or that no usable key is left.
  //            The message does not quote the text.
  [[nodiscard]] static Result<SigningKeys> parse(std::string_view text, KeyOrigin origin);

  SigningKeys(SigningKeys&&) noexcept;
  SigningKeys& operator=(SigningKeys&&) noexcept;
  ~SigningKeys();

  enum class Check : std::uint8_t { kGood, kBad, kUnknownKey };

  // Whether one of the keys has signed a token of three parts. `key_id`: the token's `kid`. Tries
  // the keys of this algorithm whose id is `key_id`, and all of them where one of the two ids is
  // absent. kUnknownKey: there is no key to try.
  [[nodiscard]] Check check(std::string_view token, Algorithm algorithm,
                            const std::optional<std::string>& key_id) const;

  [[nodiscard]] std::size_t size() const { return keys_.size(); }

 private:
  struct Key;  // keeps OpenSSL's and cjose's types out of this header
  SigningKeys();

  std::vector<std::unique_ptr<const Key>> keys_;
};

}  // namespace hearth::auth

#pragma once
// JSON Web Tokens (RFC 7519, with the rules of RFC 8725): signature, issuer, audience, expiry.

#include "auth/signing_keys.hpp"
#include "json/json.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hearth::auth {

// More than a provider's token has, and less than the head of a request may have.
inline constexpr std::size_t kMaxJwtBytes = std::size_t{8} << 10;

// What a token must say.
struct JwtRules {
  std::string issuer;                  // `iss` is this
  std::vector<std::string> audiences;  // `aud` is one of these, or contains one of them
  // How far the clocks of the issuer and of this machine may differ. Synchronised clocks differ by
  // much less than a minute.
  std::chrono::seconds clock_skew{60};
};

struct VerifiedJwt {
  Json claims;  // an object
  // Unix time in seconds: `exp` plus the clock skew. From this second on the token is not accepted.
  std::int64_t ends_at = 0;
};

enum class JwtFault : std::uint8_t {
  kMalformed,   // not a token, too long, or with a `crit` header
  kAlgorithm,   // not one of Algorithm
  kUnknownKey,  // no key fits its `kid` and its algorithm: the keys may be out of date
  kSignature,
  kExpired,      // or without `exp`
  kNotYetValid,  // `nbf`
  kIssuer,
  kAudience,
};

// For the log.
[[nodiscard]] std::string_view to_string(JwtFault fault) noexcept;

// `now`: Unix time in seconds. Checks the signature first: the claims of a token that no known key
// has signed are not read.
[[nodiscard]] std::variant<VerifiedJwt, JwtFault> verify_jwt(std::string_view token,
                                                             const SigningKeys& keys,
                                                             const JwtRules& rules,
                                                             std::int64_t now);

}  // namespace hearth::auth

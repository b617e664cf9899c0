#pragma once
// JSON Web Tokens (RFC 7519, with the rules of RFC 8725): who signed it, for whom, until when.

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

// More than any provider's token has, and less than a request's head may have.
inline constexpr std::size_t kMaxJwtBytes = std::size_t{8} << 10;

// What a token must say.
struct JwtRules {
  std::string issuer;                  // `iss` is this
  std::vector<std::string> audiences;  // `aud` is one of these, or has one of them
  // How far the clocks of the issuer and of this machine may differ. A minute is what synchronised
  // clocks never reach.
  std::chrono::seconds clock_skew{60};
};

struct VerifiedJwt {
  Json claims;  // an object
  // From this second of Unix time on the token is not accepted: `exp` and the clock skew.
  std::int64_t ends_at = 0;
};

enum class JwtFault : std::uint8_t {
  kMalformed,   // no token, too long, or with a `crit` header
  kAlgorithm,   // none of ours
  kUnknownKey,  // no key has its `kid` and its algorithm: the keys may be out of date
  kSignature,
  kExpired,      // or without `exp`
  kNotYetValid,  // `nbf`
  kIssuer,
  kAudience,
};

// For the log.
[[nodiscard]] std::string_view to_string(JwtFault fault) noexcept;

// `now`: Unix time in seconds. The signature comes first: nothing else is read of a token that
// nobody known has signed.
[[nodiscard]] std::variant<VerifiedJwt, JwtFault> verify_jwt(std::string_view token,
                                                             const SigningKeys& keys,
                                                             const JwtRules& rules,
                                                             std::int64_t now);

}  // namespace hearth::auth

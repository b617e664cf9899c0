// Proofs of identity that clients send, and the keys that a provider publishes.
#include "auth/bearer_tokens.hpp"
#include "auth/jwt.hpp"
#include "auth/signing_keys.hpp"
#include "fuzz/targets.hpp"
#include "json/json.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <string>
#include <variant>

namespace hearth::fuzz {
namespace {

constexpr std::int64_t kNow = 1'800'000'000;
constexpr std::string_view kSecret = "0123456789abcdef0123456789abcdef";

std::string base64url_of(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): how OpenSSL takes bytes
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  text.resize(static_cast<std::size_t>(size));
  while (text.ends_with('=')) text.pop_back();
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

const auth::SigningKeys& the_key() {
  static const auth::SigningKeys keys = *auth::SigningKeys::parse(
      R"({"kty":"oct","k":")" + base64url_of(kSecret) + "\"}", auth::KeyOrigin::kFile);
  return keys;
}

void check_token(std::string_view token) {
  const auth::JwtRules rules{.issuer = "me", .audiences = {"hearth"}};
  const auto verified = auth::verify_jwt(token, the_key(), rules, kNow);
  const auto* const good = std::get_if<auth::VerifiedJwt>(&verified);
  if (good == nullptr) return;
  require(token.size() <= auth::kMaxJwtBytes, "a token is bounded");
  require(good->claims.is_object() && good->claims.value("iss", "") == "me",
          "claims are those that the rules ask for");
  require(good->ends_at > kNow, "a token that is accepted has not ended");
}

}  // namespace

// As it came, and signed by a key that is known: a line with the header, and the claims.
void jwt(std::string_view bytes) {
  check_token(bytes);
  const std::size_t line = std::min(bytes.find('\n'), bytes.size());
  const std::string_view claims = bytes.substr(std::min(line + 1, bytes.size()));
  const std::string signed_part = base64url_of(bytes.substr(0, line)) + '.' + base64url_of(claims);
  std::array<unsigned char, 32> mac{};
  unsigned int size = mac.size();
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): how OpenSSL takes bytes
  HMAC(EVP_sha256(), kSecret.data(), static_cast<int>(kSecret.size()),
       reinterpret_cast<const unsigned char*>(signed_part.data()), signed_part.size(), mac.data(),
       &size);
  check_token(signed_part + '.' +
              base64url_of({reinterpret_cast<const char*>(mac.data()), mac.size()}));
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
}

void signing_keys(std::string_view bytes) {
  for (const auto origin : {auth::KeyOrigin::kFile, auth::KeyOrigin::kUrl}) {
    const auto keys = auth::SigningKeys::parse(bytes, origin);
    if (!keys) continue;
    require(keys->size() > 0 && keys->size() <= auth::SigningKeys::kMaxKeys,
            "a set has keys, and not too many");
    (void)keys->check("a.b.c", auth::Algorithm::kEs256, std::nullopt);
  }
  (void)auth::BearerTokens::parse(bytes);
}

}  // namespace hearth::fuzz

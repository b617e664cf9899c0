#include "auth/jwt.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace hearth::auth {
namespace {

// For a header and for claims. Real ones are less deep.
constexpr int kMaxClaimsDepth = 16;

// Seconds of Unix time. Times below this are exact as a double; this one is far in the future.
constexpr double kMaxTime = 1e14;

std::optional<Json> read_object(std::string_view encoded) {
  const auto text = decode_base64url(encoded);
  if (!text) return std::nullopt;
  auto json = parse_json(*text, kMaxClaimsDepth);
  if (!json || !json->is_object()) return std::nullopt;
  return *std::move(json);
}

// A NumericDate; nothing if it is absent or not one.
std::optional<double> time_of(const Json& claims, const char* name) {
  const auto found = claims.find(name);
  if (found == claims.end() || !found->is_number()) return std::nullopt;
  const auto seconds = found->get<double>();
  if (!(seconds >= 0 && seconds < kMaxTime)) return std::nullopt;
  return seconds;
}

bool is_for(const Json& claims, const std::vector<std::string>& audiences) {
  const auto found = claims.find("aud");
  if (found == claims.end()) return false;
  const auto is_ours = [&audiences](const Json& each) {
    return each.is_string() &&
           std::ranges::find(audiences, each.get<std::string>()) != audiences.end();
  };
  return found->is_array() ? std::ranges::any_of(*found, is_ours) : is_ours(*found);
}

// Checks the signature by the algorithm and the key id of the token's header.
std::optional<JwtFault> signature_fault(std::string_view token, std::string_view encoded_header,
                                        const SigningKeys& keys) {
  const auto header = read_object(encoded_header);
  if (!header || header->contains("crit")) return JwtFault::kMalformed;
  const auto algorithm = parse_algorithm(text_member(*header, "alg"));
  if (!algorithm) return JwtFault::kAlgorithm;
  std::optional<std::string> key_id;
  if (const auto found = header->find("kid"); found != header->end()) {
    if (!found->is_string()) return JwtFault::kMalformed;
    key_id = found->get<std::string>();
  }
  switch (keys.check(token, *algorithm, key_id)) {
    case SigningKeys::Check::kGood: return std::nullopt;
    case SigningKeys::Check::kBad: return JwtFault::kSignature;
    case SigningKeys::Check::kUnknownKey: return JwtFault::kUnknownKey;
  }
  return JwtFault::kSignature;
}

}  // namespace

std::string_view to_string(JwtFault fault) noexcept {
  switch (fault) {
    case JwtFault::kMalformed: return "malformed";
    case JwtFault::kAlgorithm: return "algorithm";
    case JwtFault::kUnknownKey: return "unknown_key";
    case JwtFault::kSignature: return "signature";
    case JwtFault::kExpired: return "expired";
    case JwtFault::kNotYetValid: return "not_yet_valid";
    case JwtFault::kIssuer: return "issuer";
    case JwtFault::kAudience: return "audience";
  }
  return "malformed";
}

std::variant<VerifiedJwt, JwtFault> verify_jwt(std::string_view token, const SigningKeys& keys,
                                               const JwtRules& rules, std::int64_t now) {
  if (token.size() > kMaxJwtBytes) return JwtFault::kMalformed;
  const std::size_t first = token.find('.');
  const std::size_t second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos)
    return JwtFault::kMalformed;
  if (!decode_base64url(token.substr(second + 1))) return JwtFault::kMalformed;
  if (const auto fault = signature_fault(token, token.substr(0, first), keys)) return *fault;

  auto claims = read_object(token.substr(first + 1, second - first - 1));
  if (!claims) return JwtFault::kMalformed;
  const auto at = static_cast<double>(now);
  const auto skew = static_cast<double>(rules.clock_skew.count());
  const auto expires = time_of(*claims, "exp");
  if (!expires || at >= *expires + skew) return JwtFault::kExpired;
  if (claims->contains("nbf")) {
    const auto begins = time_of(*claims, "nbf");
    if (!begins || at + skew < *begins) return JwtFault::kNotYetValid;
  }
  if (text_member(*claims, "iss") != rules.issuer) return JwtFault::kIssuer;
  if (!is_for(*claims, rules.audiences)) return JwtFault::kAudience;
  return VerifiedJwt{*std::move(claims), static_cast<std::int64_t>(*expires + skew)};
}

}  // namespace hearth::auth

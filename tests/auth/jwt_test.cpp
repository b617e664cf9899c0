#include "auth/jwt.hpp"

#include "auth/token_maker.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>

namespace hearth::auth {
namespace {

using hearth::testing::base64url;
using hearth::testing::TokenMaker;

constexpr std::int64_t kNow = 1'800'000'000;

const JwtRules kRules{.issuer = "https://id.example", .audiences = {"hearth", "other"}};

Json good_claims() {
  return {{"iss", "https://id.example"}, {"aud", "hearth"}, {"sub", "u1"}, {"exp", kNow + 300}};
}

SigningKeys keys_of(const std::vector<Json>& keys) {
  auto read = SigningKeys::parse(dump_json({{"keys", keys}}), KeyOrigin::kFile);
  EXPECT_TRUE(read) << read.error().message;
  return *std::move(read);
}

// The fault; nothing for a token that is accepted.
std::optional<JwtFault> fault_of(const std::string& token, const SigningKeys& keys,
                                 const JwtRules& rules = kRules) {
  const auto result = verify_jwt(token, keys, rules, kNow);
  const auto* const fault = std::get_if<JwtFault>(&result);
  return fault == nullptr ? std::nullopt : std::optional(*fault);
}

class JwtAlgorithmTest : public ::testing::TestWithParam<const char*> {};

TEST_P(JwtAlgorithmTest, ATokenIsReadAndNoOtherKeyOrTextPasses) {
  const TokenMaker maker(GetParam(), "k1");
  const TokenMaker stranger(GetParam(), "k1");
  const SigningKeys keys = keys_of({maker.jwk()});
  const std::string token = maker.sign(good_claims());
  const auto result = verify_jwt(token, keys, kRules, kNow);
  const auto* const good = std::get_if<VerifiedJwt>(&result);
  ASSERT_NE(good, nullptr) << to_string(std::get<JwtFault>(result));
  EXPECT_EQ(good->claims["sub"], "u1");
  EXPECT_EQ(good->ends_at, kNow + 300 + 60);

  EXPECT_EQ(fault_of(stranger.sign(good_claims()), keys), JwtFault::kSignature);
  std::string changed = token;
  char& letter = changed[changed.find('.') + 5];
  letter = letter == 'A' ? 'B' : 'A';
  EXPECT_EQ(fault_of(changed, keys), JwtFault::kSignature);
  const TokenMaker other_id(GetParam(), "k2");
  EXPECT_EQ(fault_of(other_id.sign(good_claims()), keys), JwtFault::kUnknownKey);
  const std::string unsigned_token = token.substr(0, token.rfind('.') + 1);
  EXPECT_NE(fault_of(unsigned_token, keys), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(All, JwtAlgorithmTest,
                         ::testing::Values("HS256", "RS256", "ES256", "EdDSA"));

TEST(JwtTest, TheKeyDecidesTheAlgorithm) {
  const TokenMaker rsa("RS256", "rsa");
  const TokenMaker edwards("EdDSA", "ed");
  const SigningKeys keys = keys_of({rsa.jwk(), edwards.jwk()});
  const std::string payload = base64url(dump_json(good_claims()));
  for (const char* const none : {"none", "None", "NONE", "", "HS512", "RS512", "ES256K", "hs256"}) {
    const std::string header = base64url(dump_json({{"alg", none}, {"kid", "rsa"}}));
    EXPECT_EQ(fault_of(header + '.' + payload + '.', keys), JwtFault::kAlgorithm) << none;
  }
  // What says HS256 and names a public key.
  const TokenMaker secret("HS256", "rsa");
  EXPECT_EQ(fault_of(secret.sign(good_claims()), keys), JwtFault::kUnknownKey);
  // What says RS256 and is signed with another kind of key.
  EXPECT_EQ(fault_of(edwards.sign(good_claims(), {{"alg", "RS256"}, {"kid", "rsa"}}), keys),
            JwtFault::kSignature);
  EXPECT_EQ(fault_of(edwards.sign(good_claims(), {{"alg", "HS256"}}), keys), JwtFault::kUnknownKey);
}

struct ClaimCase {
  const char* name;
  Json changes;  // null: without it
  std::optional<JwtFault> fault;
};

TEST(JwtTest, ClaimsMustBeRight) {
  const TokenMaker maker("ES256");
  const SigningKeys keys = keys_of({maker.jwk()});
  const ClaimCase cases[] = {
      {"as it is", Json::object(), std::nullopt},
      {"expired within the skew", {{"exp", kNow - 59}}, std::nullopt},
      {"expired", {{"exp", kNow - 60}}, JwtFault::kExpired},
      {"for ever", {{"exp", nullptr}}, JwtFault::kExpired},
      {"until a text", {{"exp", "2100-01-01"}}, JwtFault::kExpired},
      {"until a huge number", {{"exp", 1e300}}, JwtFault::kExpired},
      {"until before the beginning", {{"exp", -1}}, JwtFault::kExpired},
      {"begins within the skew", {{"nbf", kNow + 60}}, std::nullopt},
      {"not yet", {{"nbf", kNow + 61}}, JwtFault::kNotYetValid},
      {"from a text on", {{"nbf", "now"}}, JwtFault::kNotYetValid},
      {"another issuer", {{"iss", "https://id.example/"}}, JwtFault::kIssuer},
      {"no issuer", {{"iss", nullptr}}, JwtFault::kIssuer},
      {"a list of issuers", {{"iss", {"https://id.example"}}}, JwtFault::kIssuer},
      {"another audience", {{"aud", "hearth2"}}, JwtFault::kAudience},
      {"no audience", {{"aud", nullptr}}, JwtFault::kAudience},
      {"audiences", {{"aud", {"x", "other"}}}, std::nullopt},
      {"other audiences", {{"aud", {"x", 7}}}, JwtFault::kAudience},
      {"no list of audiences", {{"aud", {{"hearth", true}}}}, JwtFault::kAudience},
  };
  for (const ClaimCase& each : cases) {
    Json claims = good_claims();
    for (const auto& [key, value] : each.changes.items()) {
      if (value.is_null()) {
        claims.erase(key);
      } else {
        claims[key] = value;
      }
    }
    EXPECT_EQ(fault_of(maker.sign(claims), keys), each.fault) << each.name;
  }
}

TEST(JwtTest, WhatIsNoTokenIsRefused) {
  const TokenMaker maker("EdDSA");
  const SigningKeys keys = keys_of({maker.jwk()});
  const std::string good = maker.sign(good_claims());
  ASSERT_EQ(fault_of(good, keys), std::nullopt);
  Json large = good_claims();
  large["x"] = std::string(kMaxJwtBytes, 'x');
  const std::string no_json = base64url("[1]") + good.substr(good.find('.'));
  const std::vector<std::string> bad{"",
                                     ".",
                                     "..",
                                     "...",
                                     "a.b",
                                     "a.b.c.d",
                                     good + '=',
                                     good + ".x",
                                     " " + good,
                                     good + ' ',
                                     no_json,
                                     std::string(100, '.'),
                                     "Bearer " + good,
                                     maker.sign(large),
                                     std::string(1'000'000, 'a'),
                                     maker.sign(good_claims(), {{"crit", {"b64"}}, {"b64", false}}),
                                     maker.sign(good_claims(), {{"kid", 1}}),
                                     std::string("\0.\0.\0", 5),
                                     "\xff.\xff.\xff"};
  for (const std::string& each : bad) {
    EXPECT_EQ(fault_of(each, keys), JwtFault::kMalformed) << each.substr(0, 80);
  }
}

}  // namespace
}  // namespace hearth::auth

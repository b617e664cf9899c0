#include "auth/signing_keys.hpp"

#include "auth/token_maker.hpp"

#include <gtest/gtest.h>

namespace hearth::auth {
namespace {

using hearth::testing::TokenMaker;
using Check = SigningKeys::Check;

Result<SigningKeys> read_keys(const Json& json, KeyOrigin origin = KeyOrigin::kFile) {
  return SigningKeys::parse(dump_json(json), origin);
}

TEST(SigningKeysTest, TakesWhatIsForSignaturesAndLeavesTheRest) {
  const TokenMaker maker("ES256");
  const Json good = maker.jwk();
  EXPECT_EQ(read_keys(good)->size(), 1U) << "a key without a set";
  struct Case {
    const char* name;
    Json changes;
    bool is_taken;
  };
  const Case cases[] = {
      {"for signatures", {{"use", "sig"}}, true},
      {"for encryption", {{"use", "enc"}}, false},
      {"to verify", {{"key_ops", {"verify"}}}, true},
      {"to sign", {{"key_ops", {"sign"}}}, false},
      {"of its algorithm", {{"alg", "ES256"}}, true},
      {"of another one", {{"alg", "RS256"}}, false},
      {"of none that is known", {{"alg", "ES512"}}, false},
      {"of a wrong curve", {{"crv", "P-384"}}, false},
      {"with an id that is no text", {{"kid", 7}}, false},
      {"of an unknown kind", {{"kty", "AKP"}}, false},
  };
  for (const Case& each : cases) {
    Json key = good;
    key.update(each.changes);
    const auto keys = read_keys({{"keys", {key, good}}});
    ASSERT_TRUE(keys) << each.name;
    EXPECT_EQ(keys->size(), each.is_taken ? 2U : 1U) << each.name;
  }
}

TEST(SigningKeysTest, WeakKeysAndPublishedSecretsAreNone) {
  EXPECT_FALSE(read_keys({{"kty", "oct"}, {"k", hearth::testing::base64url("short")}}));
  const Json secret = TokenMaker("HS256").jwk();
  EXPECT_TRUE(read_keys(secret));
  EXPECT_FALSE(read_keys(secret, KeyOrigin::kUrl));
  const std::string small_modulus(128, '\xff');  // 1024 bits
  EXPECT_FALSE(
      read_keys({{"kty", "RSA"}, {"n", hearth::testing::base64url(small_modulus)}, {"e", "AQAB"}}));
}

TEST(SigningKeysTest, WhatHoldsNoKeySaysSoWithoutQuotingIt) {
  for (const std::string text :
       {"", "secret-text", "[]", "{}", R"({"keys":[]})", R"({"keys":"secret-text"})",
        "-----BEGIN PRIVATE KEY-----\nsecret-text\n-----END PRIVATE KEY-----\n",
        "-----BEGIN PUBLIC KEY-----\nsecret-text\n-----END PUBLIC KEY-----\n"}) {
    const auto keys = SigningKeys::parse(text, KeyOrigin::kFile);
    ASSERT_FALSE(keys) << text;
    EXPECT_EQ(keys.error().message.find("secret-text"), std::string::npos);
  }
  EXPECT_FALSE(SigningKeys::parse(std::string(SigningKeys::kMaxBytes + 1, ' '), KeyOrigin::kFile));
  std::vector<Json> many(SigningKeys::kMaxKeys + 1, TokenMaker("EdDSA").jwk());
  EXPECT_FALSE(read_keys({{"keys", many}}));
}

// Made with OpenSSL, whose commands operators use.
constexpr std::string_view kOpensslKinds[] = {"RSA", "EC", "ED25519"};

TEST(SigningKeysTest, ReadsSeveralPublicKeysOfPem) {
  std::string text = "# the keys of our issuer\n";
  for (const std::string_view kind : kOpensslKinds) {
    EVP_PKEY* key = nullptr;
    if (kind == "RSA") key = EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", std::size_t{2048});
    if (kind == "EC") key = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
    if (kind == "ED25519") key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> held(key, &EVP_PKEY_free);
    const std::unique_ptr<BIO, decltype(&BIO_free)> pem(BIO_new(BIO_s_mem()), &BIO_free);
    ASSERT_EQ(PEM_write_bio_PUBKEY(pem.get(), key), 1);
    std::string bytes(4096, '\0');
    bytes.resize(static_cast<std::size_t>(
        BIO_read(pem.get(), bytes.data(), static_cast<int>(bytes.size()))));
    text += bytes;
  }
  const auto keys = SigningKeys::parse(text, KeyOrigin::kFile);
  ASSERT_TRUE(keys) << keys.error().message;
  EXPECT_EQ(keys->size(), 3U);
  // Keys without an id are tried for each token of their algorithm, whichever key it names.
  EXPECT_EQ(keys->check("a.b.YWJj", Algorithm::kEdDsa, "any"), Check::kBad);
  EXPECT_EQ(keys->check("a.b.YWJj", Algorithm::kHs256, std::nullopt), Check::kUnknownKey);
}

TEST(SigningKeysTest, AKeyOfPemChecksWhatItsOwnerHasSigned) {
  const TokenMaker maker("EdDSA");
  const auto keys = SigningKeys::parse(maker.pem(), KeyOrigin::kFile);
  ASSERT_TRUE(keys) << keys.error().message;
  EXPECT_EQ(keys->check(maker.sign({{"a", 1}}), Algorithm::kEdDsa, std::nullopt), Check::kGood);
}

}  // namespace
}  // namespace hearth::auth

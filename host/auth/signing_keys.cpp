#include "auth/signing_keys.hpp"

#include "json/json.hpp"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <utility>

#include <cjose/base64.h>
#include <cjose/jwk.h>
#include <cjose/jws.h>
#include <cjose/util.h>

namespace hearth::auth {
namespace {

constexpr std::size_t kMinRsaBits = 2048;
constexpr std::size_t kMaxRsaBits = 8192;
constexpr std::size_t kMinSecretBits = 256;
constexpr std::size_t kP256Bytes = 32;
constexpr int kJwkDepth = 8;

template <auto kRelease>
struct Release {
  template <class T>
  void operator()(T* held) const {
    kRelease(held);
  }
};
using CjoseKey = std::unique_ptr<cjose_jwk_t, Release<cjose_jwk_release>>;
using CjoseToken = std::unique_ptr<cjose_jws_t, Release<cjose_jws_release>>;
using OpensslKey = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY_free>>;
using OpensslNumber = std::unique_ptr<BIGNUM, Release<BN_free>>;

const unsigned char* octets(std::string_view text) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how OpenSSL takes bytes
  return reinterpret_cast<const unsigned char*>(text.data());
}

// The algorithm of a key; absent if the key is too weak or of a kind that is not used here.
std::optional<Algorithm> algorithm_of(const cjose_jwk_t* key) {
  const std::size_t bits = cjose_jwk_get_keysize(key, nullptr);
  switch (cjose_jwk_get_kty(key, nullptr)) {
    case CJOSE_JWK_KTY_RSA:
      if (bits < kMinRsaBits || bits > kMaxRsaBits) return std::nullopt;
      return Algorithm::kRs256;
    case CJOSE_JWK_KTY_EC:
      if (cjose_jwk_EC_get_curve(key, nullptr) != CJOSE_JWK_EC_P_256) return std::nullopt;
      return Algorithm::kEs256;
    case CJOSE_JWK_KTY_OCT:
      if (bits < kMinSecretBits) return std::nullopt;
      return Algorithm::kHs256;
  }
  return std::nullopt;
}

bool is_for_signatures(const Json& key) {
  const auto use = key.find("use");
  if (use != key.end() && *use != "sig") return false;
  const auto operations = key.find("key_ops");
  if (operations == key.end() || !operations->is_array()) return true;
  return std::ranges::find(*operations, Json("verify")) != operations->end();
}

// The bytes of a number of an OpenSSL key, padded with leading zeros to `width`.
std::optional<std::string> number_of(const EVP_PKEY& key, const char* name, std::size_t width) {
  BIGNUM* read = nullptr;
  if (EVP_PKEY_get_bn_param(&key, name, &read) != 1) return std::nullopt;
  const OpensslNumber number(read);
  const auto size = static_cast<std::size_t>(BN_num_bytes(number.get()));
  std::string bytes(std::max(size, width), '\0');
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how OpenSSL takes bytes
  BN_bn2binpad(number.get(), reinterpret_cast<unsigned char*>(bytes.data()),
               static_cast<int>(bytes.size()));
  return bytes;
}

// cjose copies the bytes, but its parameters are not const.
std::uint8_t* lent(std::string& bytes) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how cjose takes bytes
  return reinterpret_cast<std::uint8_t*>(bytes.data());
}

CjoseKey cjose_key(const EVP_PKEY& key) {
  if (EVP_PKEY_get_base_id(&key) == EVP_PKEY_RSA) {
    auto modulus = number_of(key, OSSL_PKEY_PARAM_RSA_N, 1);
    auto exponent = number_of(key, OSSL_PKEY_PARAM_RSA_E, 1);
    if (!modulus || !exponent) return nullptr;
    cjose_jwk_rsa_keyspec spec{};
    spec.n = lent(*modulus);
    spec.nlen = modulus->size();
    spec.e = lent(*exponent);
    spec.elen = exponent->size();
    return CjoseKey(cjose_jwk_create_RSA_spec(&spec, nullptr));
  }
  std::array<char, 64> curve{};
  if (EVP_PKEY_get_base_id(&key) != EVP_PKEY_EC ||
      EVP_PKEY_get_group_name(&key, curve.data(), curve.size(), nullptr) != 1 ||
      std::string_view(curve.data()) != "prime256v1") {
    return nullptr;
  }
  auto x = number_of(key, OSSL_PKEY_PARAM_EC_PUB_X, kP256Bytes);
  auto y = number_of(key, OSSL_PKEY_PARAM_EC_PUB_Y, kP256Bytes);
  if (!x || !y) return nullptr;
  cjose_jwk_ec_keyspec spec{};
  spec.crv = CJOSE_JWK_EC_P_256;
  spec.x = lent(*x);
  spec.xlen = x->size();
  spec.y = lent(*y);
  spec.ylen = y->size();
  return CjoseKey(cjose_jwk_create_EC_spec(&spec, nullptr));
}

bool cjose_verifies(std::string_view token, const cjose_jwk_t& key) {
  const CjoseToken read(cjose_jws_import(token.data(), token.size(), nullptr));
  return read != nullptr && cjose_jws_verify(read.get(), &key, nullptr);
}

// For Ed25519, which cjose does not have.
bool openssl_verifies(std::string_view token, EVP_PKEY& key) {
  const std::size_t end = token.rfind('.');
  if (end == std::string_view::npos) return false;
  const auto signature = decode_base64url(token.substr(end + 1));
  if (!signature) return false;
  const std::unique_ptr<EVP_MD_CTX, Release<EVP_MD_CTX_free>> context(EVP_MD_CTX_new());
  if (context == nullptr) return false;
  const bool is_good = EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, &key) == 1 &&
                       EVP_DigestVerify(context.get(), octets(*signature), signature->size(),
                                        octets(token), end) == 1;
  ERR_clear_error();
  return is_good;
}

}  // namespace

std::optional<Algorithm> parse_algorithm(std::string_view name) {
  if (name == "HS256") return Algorithm::kHs256;
  if (name == "RS256") return Algorithm::kRs256;
  if (name == "ES256") return Algorithm::kEs256;
  if (name == "EdDSA") return Algorithm::kEdDsa;
  return std::nullopt;
}

std::optional<std::string> decode_base64url(std::string_view text) {
  const bool is_clean = std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
  if (!is_clean || text.size() % 4 == 1) return std::nullopt;
  if (text.empty()) return std::string();
  std::uint8_t* bytes = nullptr;
  std::size_t size = 0;
  if (!cjose_base64url_decode(text.data(), text.size(), &bytes, &size, nullptr))
    return std::nullopt;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes as a text
  std::string decoded(reinterpret_cast<const char*>(bytes), size);
  cjose_get_dealloc()(bytes);
  return decoded;
}

// Either `cjose` or `openssl` has the key; the other is null.
struct SigningKeys::Key {
  Algorithm algorithm{};
  std::optional<std::string> id;
  CjoseKey cjose;
  OpensslKey openssl;

  [[nodiscard]] bool verifies(std::string_view token) const {
    return cjose != nullptr ? cjose_verifies(token, *cjose) : openssl_verifies(token, *openssl);
  }

  // Null for a key that is not used here.
  static std::unique_ptr<const Key> of_json(const Json& json, KeyOrigin origin) {
    if (!json.is_object() || !is_for_signatures(json)) return nullptr;
    auto key = std::make_unique<Key>();
    if (const auto id = json.find("kid"); id != json.end()) {
      if (!id->is_string()) return nullptr;
      key->id = id->get<std::string>();
    }
    if (text_member(json, "kty") == "OKP") {
      const auto x = decode_base64url(text_member(json, "x"));
      if (text_member(json, "crv") != "Ed25519" || !x) return nullptr;
      key->openssl.reset(
          EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, octets(*x), x->size()));
      if (key->openssl == nullptr) return nullptr;
      key->algorithm = Algorithm::kEdDsa;
    } else {
      const std::string text = dump_json(json);
      key->cjose.reset(cjose_jwk_import(text.data(), text.size(), nullptr));
      const auto algorithm = key->cjose ? algorithm_of(key->cjose.get()) : std::nullopt;
      if (!algorithm || (*algorithm == Algorithm::kHs256 && origin == KeyOrigin::kUrl))
        return nullptr;
      key->algorithm = *algorithm;
    }
    const auto named = json.find("alg");
    if (named != json.end() &&
        (!named->is_string() || parse_algorithm(named->get<std::string>()) != key->algorithm)) {
      return nullptr;
    }
    return key;
  }

  static std::unique_ptr<const Key> of_openssl(OpensslKey read) {
    auto key = std::make_unique<Key>();
    if (EVP_PKEY_get_base_id(read.get()) == EVP_PKEY_ED25519) {
      key->algorithm = Algorithm::kEdDsa;
      key->openssl = std::move(read);
      return key;
    }
    key->cjose = cjose_key(*read);
    const auto algorithm = key->cjose ? algorithm_of(key->cjose.get()) : std::nullopt;
    if (!algorithm) return nullptr;
    key->algorithm = *algorithm;
    return key;
  }

  static Result<std::vector<std::unique_ptr<const Key>>> all_of_json(std::string_view text,
                                                                     KeyOrigin origin) {
    const auto json = parse_json(text, kJwkDepth);
    if (!json) return json.error();
    const auto set = json->is_object() ? json->find("keys") : json->end();
    const bool is_set = json->is_object() && set != json->end() && set->is_array();
    std::vector<std::unique_ptr<const Key>> keys;
    const Json all = is_set ? *set : Json::array({*json});
    for (const Json& each : all) {
      if (auto key = of_json(each, origin)) keys.push_back(std::move(key));
      if (keys.size() > kMaxKeys) break;
    }
    return keys;
  }

  static std::vector<std::unique_ptr<const Key>> all_of_pem(std::string_view text) {
    std::vector<std::unique_ptr<const Key>> keys;
    const std::unique_ptr<BIO, Release<BIO_free>> source(
        BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    while (source != nullptr && keys.size() <= kMaxKeys) {
      OpensslKey read(PEM_read_bio_PUBKEY(source.get(), nullptr, nullptr, nullptr));
      if (read == nullptr) break;
      if (auto key = of_openssl(std::move(read))) keys.push_back(std::move(key));
    }
    ERR_clear_error();  // the end of the text is an error for OpenSSL
    return keys;
  }
};

SigningKeys::SigningKeys() = default;
SigningKeys::SigningKeys(SigningKeys&&) noexcept = default;
SigningKeys& SigningKeys::operator=(SigningKeys&&) noexcept = default;
SigningKeys::~SigningKeys() = default;

Result<SigningKeys> SigningKeys::parse(std::string_view text, KeyOrigin origin) {
  if (text.size() > kMaxBytes) return Error{Errc::kInvalidArgument, "the keys are too long"};
  const bool is_pem = text.find("-----BEGIN ") != std::string_view::npos;
  SigningKeys read;
  if (is_pem) {
    read.keys_ = Key::all_of_pem(text);
  } else {
    auto keys = Key::all_of_json(text, origin);
    if (!keys) {
      return Error{Errc::kInvalidArgument,
                   "neither a JSON Web Key Set nor PEM: " + keys.error().message};
    }
    read.keys_ = *std::move(keys);
  }
  if (read.keys_.empty()) {
    return Error{Errc::kInvalidArgument,
                 "no key for HS256, RS256, ES256 or EdDSA: RSA needs 2048 bits or more, a secret "
                 "256, EC the curve P-256, OKP Ed25519; PEM must hold public keys"};
  }
  if (read.keys_.size() > kMaxKeys) return Error{Errc::kInvalidArgument, "more than 64 keys"};
  return read;
}

SigningKeys::Check SigningKeys::check(std::string_view token, Algorithm algorithm,
                                      const std::optional<std::string>& key_id) const {
  Check result = Check::kUnknownKey;
  for (const auto& key : keys_) {
    if (key->algorithm != algorithm) continue;
    const std::optional<std::string>& id = key->id;
    if (key_id && id && *key_id != *id) continue;
    if (key->verifies(token)) return Check::kGood;
    result = Check::kBad;
  }
  return result;
}

}  // namespace hearth::auth

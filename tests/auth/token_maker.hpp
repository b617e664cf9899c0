#pragma once
// Keys, and tokens that are signed with them.

#include "json/json.hpp"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <cjose/base64.h>
#include <cjose/header.h>
#include <cjose/jwk.h>
#include <cjose/jws.h>
#include <cjose/util.h>

namespace hearth::testing {

inline std::string base64url(std::string_view bytes) {
  char* text = nullptr;
  std::size_t size = 0;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how cjose takes bytes
  const auto* const from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  if (!cjose_base64url_encode(from, bytes.size(), &text, &size, nullptr)) return {};
  std::string encoded(text, size);
  cjose_get_dealloc()(text);
  return encoded;
}

// One private key. `algorithm`: as tokens spell it.
class TokenMaker {
 public:
  explicit TokenMaker(std::string algorithm, std::string id = {})
      : algorithm_(std::move(algorithm)), id_(std::move(id)) {
    if (algorithm_ == "EdDSA") {
      openssl_.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
      return;
    }
    cjose_jwk_t* key = nullptr;
    if (algorithm_ == "HS256") key = cjose_jwk_create_oct_random(256, nullptr);
    if (algorithm_ == "RS256") {
      const std::array<std::uint8_t, 3> exponent{1, 0, 1};
      key = cjose_jwk_create_RSA_random(2048, exponent.data(), exponent.size(), nullptr);
    }
    if (algorithm_ == "ES256") key = cjose_jwk_create_EC_random(CJOSE_JWK_EC_P_256, nullptr);
    cjose_.reset(key);
  }

  // The public key; for HS256 the secret itself.
  [[nodiscard]] Json jwk() const {
    Json key;
    if (openssl_ != nullptr) {
      std::string x(32, '\0');
      std::size_t size = x.size();
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how OpenSSL takes bytes
      EVP_PKEY_get_raw_public_key(openssl_.get(), reinterpret_cast<unsigned char*>(x.data()),
                                  &size);
      key = {{"kty", "OKP"}, {"crv", "Ed25519"}, {"x", base64url(x)}};
    } else {
      char* const text = cjose_jwk_to_json(cjose_.get(), algorithm_ == "HS256", nullptr);
      key = *parse_json(text);
      cjose_get_dealloc()(text);
    }
    if (!id_.empty()) key["kid"] = id_;
    return key;
  }

  // The public key of EdDSA as PEM.
  [[nodiscard]] std::string pem() const {
    const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new(BIO_s_mem()), &BIO_free);
    PEM_write_bio_PUBKEY(text.get(), openssl_.get());
    std::string read(4096, '\0');
    read.resize(
        static_cast<std::size_t>(BIO_read(text.get(), read.data(), static_cast<int>(read.size()))));
    return read;
  }

  // Signs with this key. `header`: texts; for EdDSA any JSON, and any `alg`.
  [[nodiscard]] std::string sign(const Json& claims, Json header = Json::object()) const {
    if (!header.contains("alg")) header["alg"] = algorithm_;
    if (!id_.empty() && !header.contains("kid")) header["kid"] = id_;
    const std::string payload = dump_json(claims);
    if (openssl_ != nullptr) {
      const std::string input = base64url(dump_json(header)) + '.' + base64url(payload);
      return input + '.' + base64url(ed25519(input));
    }
    cjose_header_t* const head = cjose_header_new(nullptr);
    for (const auto& [name, value] : header.items()) {
      cjose_header_set(head, name.c_str(), value.get<std::string>().c_str(), nullptr);
    }
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how cjose takes bytes
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(payload.data());
    cjose_jws_t* const token = cjose_jws_sign(cjose_.get(), head, bytes, payload.size(), nullptr);
    cjose_header_release(head);
    const char* text = nullptr;
    if (token == nullptr || !cjose_jws_export(token, &text, nullptr)) return {};
    std::string copied(text);
    cjose_jws_release(token);
    return copied;
  }

 private:
  [[nodiscard]] std::string ed25519(std::string_view input) const {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                          &EVP_MD_CTX_free);
    EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, openssl_.get());
    std::string signature(64, '\0');
    std::size_t size = signature.size();
    // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): how OpenSSL takes bytes
    EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                   reinterpret_cast<const unsigned char*>(input.data()), input.size());
    // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
    return signature;
  }

  struct Release {
    void operator()(cjose_jwk_t* key) const { cjose_jwk_release(key); }
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  };
  const std::string algorithm_;
  const std::string id_;
  std::unique_ptr<cjose_jwk_t, Release> cjose_;
  std::unique_ptr<EVP_PKEY, Release> openssl_;
};

}  // namespace hearth::testing

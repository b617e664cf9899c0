#pragma once
// A certificate that signs itself, and its key, in two files.

#include <sys/stat.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

namespace hearth::testing {

struct CertificateFiles {
  std::filesystem::path certificate;
  std::filesystem::path key;
};

enum class KeyKind { kEc, kRsa2048, kRsa1024 };

inline EVP_PKEY* make_key(KeyKind kind) {
  if (kind == KeyKind::kEc) return EVP_EC_gen("P-256");
  return EVP_RSA_gen(kind == KeyKind::kRsa2048 ? 2048U : 1024U);
}

// Writes `<name>.pem` and `<name>.key`; only the owner has access to the key. `name` is also the
// certificate's common name, so that a client can tell certificates apart. If `password` is not
// empty, the key is encrypted. The certificate ends in `days`, or has ended if that is negative.
inline CertificateFiles make_certificate(const std::filesystem::path& directory,
                                         const std::string& name, KeyKind kind = KeyKind::kEc,
                                         const std::string& password = "", long days = 30) {
  const CertificateFiles files{.certificate = directory / (name + ".pem"),
                               .key = directory / (name + ".key")};
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(make_key(kind), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), X509_free);
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  X509_NAME* const subject = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, -1, -1, 0);
  X509_set_issuer_name(made.get(), subject);
  X509_set_version(made.get(), X509_VERSION_3);
  constexpr long kDay = 60L * 60 * 24;
  X509_gmtime_adj(X509_getm_notBefore(made.get()), days < 0 ? 2 * days * kDay : 0);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), days * kDay);
  X509_set_pubkey(made.get(), key.get());
  if (X509_sign(made.get(), key.get(), EVP_sha256()) == 0) throw std::runtime_error("not signed");

  using File = std::unique_ptr<std::FILE, decltype(&std::fclose)>;
  const File certificate_file(std::fopen(files.certificate.c_str(), "w"), &std::fclose);
  PEM_write_X509(certificate_file.get(), made.get());
  const File key_file(std::fopen(files.key.c_str(), "w"), &std::fclose);
  ::chmod(files.key.c_str(), 0600);
  const bool is_encrypted = !password.empty();
  PEM_write_PrivateKey(key_file.get(), key.get(), is_encrypted ? EVP_aes_256_cbc() : nullptr,
                       reinterpret_cast<const unsigned char*>(password.data()),
                       static_cast<int>(password.size()), nullptr, nullptr);
  return files;
}

}  // namespace hearth::testing

#include "net/tls_context.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "base/files.hpp"
#include "base/sha256.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <ctime>
#include <string_view>
#include <utility>

namespace hearth::net {
namespace {

// A chain of certificates and a key have a few KiB each.
constexpr std::size_t kMaxPemBytes = std::size_t{1} << 20;
// Reads records and handshakes with few calls, frees the buffers of idle connections, and lets a
// repeated send pass the same bytes in other memory.
constexpr auto kModes =
    SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER;
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr const char* kSuites =
    "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
constexpr const char* kGroups = "X25519:P-256:P-384";
// RFC 7301: a length and a name.
constexpr std::string_view kHttp11 = "\x08http/1.1";

template <class T, void (*Free)(T*)>
struct FreeWith {
  void operator()(T* object) const { Free(object); }
};
template <class T, void (*Free)(T*)>
using Owned = std::unique_ptr<T, FreeWith<T, Free>>;

void free_bio(BIO* bio) {
  BIO_free(bio);
}
using OwnedBio = Owned<BIO, free_bio>;
using OwnedCertificate = Owned<X509, X509_free>;
using OwnedKey = Owned<EVP_PKEY, EVP_PKEY_free>;

// Wipes the content of a key's file from memory afterwards.
struct WipedText {
  std::string text;
  explicit WipedText(std::string given) : text(std::move(given)) {}
  ~WipedText() { OPENSSL_cleanse(text.data(), text.size()); }
  WipedText(const WipedText&) = delete;
  WipedText& operator=(const WipedText&) = delete;
};

// The reason of OpenSSL's newest error, without the file's content. Empties the error queue.
std::string last_reason() {
  const char* const text = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return text == nullptr ? "unknown" : text;
}

Error unusable(std::string_view what, const std::filesystem::path& file, const std::string& why) {
  return Error{Errc::kInvalidArgument, "the " + std::string(what) + " " + show_name(file.native()) +
                                           " cannot be used: " + why};
}

OwnedBio as_bio(std::string_view text) {
  return OwnedBio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Gives no password, so that OpenSSL does not ask on a terminal.
int no_password(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

Result<void> check_key_file(const std::filesystem::path& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) return {};  // read_file() has the error
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return unusable("key", file, "it belongs to another user: make this server's user its owner");
  }
  if ((status.st_mode & (S_IRWXO | S_IWGRP)) != 0) {
    return unusable("key", file, "others have access to it: chmod 600 the file");
  }
  return {};
}

Result<OwnedKey> read_key(const std::filesystem::path& file) {
  if (auto checked = check_key_file(file); !checked) return checked.error();
  auto read = read_file(file, kMaxPemBytes);
  if (!read) return read.error();
  const WipedText pem(*std::move(read));
  bool is_encrypted = false;
  OwnedKey key(
      PEM_read_bio_PrivateKey(as_bio(pem.text).get(), nullptr, no_password, &is_encrypted));
  if (key != nullptr) return key;
  const std::string reason = last_reason();
  return unusable("key", file,
                  is_encrypted ? "it is encrypted, and the server asks for no password"
                               : "it is no private key in PEM (" + reason + ")");
}

std::chrono::system_clock::time_point end_of(const X509& certificate) {
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &end) != 1) return {};
  return std::chrono::system_clock::from_time_t(::timegm(&end));
}

std::string fingerprint_of(X509& certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509(&certificate, &der);
  if (size < 0) return {};
  std::string text(reinterpret_cast<const char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return sha256_hex(text);
}

// RFC 7301, 3.2: a client without a common protocol gets an alert.
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* size,
                    const unsigned char* offered, unsigned int offered_size, void*) {
  unsigned char* found = nullptr;
  const auto* ours = reinterpret_cast<const unsigned char*>(kHttp11.data());
  if (SSL_select_next_proto(&found, size, ours, kHttp11.size(), offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

void TlsContext::Free::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

TlsContext::TlsContext() : context_(SSL_CTX_new(TLS_server_method())) {
  HEARTH_ASSERT(context_ != nullptr, "OpenSSL makes no context");
  SSL_CTX* const context = context_.get();
  SSL_CTX_set_mode(context, kModes);
  // Otherwise one read continues while the peer sends records without data, such as new keys.
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_security_level(context, 2);
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  const bool is_set = SSL_CTX_set_num_tickets(context, 0) == 1 &&
                      SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
                      SSL_CTX_set_cipher_list(context, kCiphers) == 1 &&
                      SSL_CTX_set_ciphersuites(context, kSuites) == 1 &&
                      SSL_CTX_set1_groups_list(context, kGroups) == 1;
  HEARTH_ASSERT(is_set, "OpenSSL does not know our ciphers");
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const TlsOptions& options) {
  // Not make_shared, which cannot call the private constructor.
  std::shared_ptr<TlsContext> fresh(new TlsContext());
  ERR_clear_error();
  const Result<void> used = fresh->use(options);
  ERR_clear_error();
  if (!used) return used.error();
  return std::shared_ptr<const TlsContext>(std::move(fresh));
}

Result<void> TlsContext::use(const TlsOptions& options) {
  if (options.min_version == TlsVersion::k13) SSL_CTX_set_min_proto_version(get(), TLS1_3_VERSION);
  const auto pem = read_file(options.certificate, kMaxPemBytes);
  if (!pem) return pem.error();
  const OwnedBio chain = as_bio(*pem);
  const OwnedCertificate own(PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr));
  if (own == nullptr) {
    return unusable("certificate", options.certificate,
                    "it is no certificate in PEM (" + last_reason() + ")");
  }
  if (SSL_CTX_use_certificate(get(), own.get()) != 1)
    return unusable("certificate", options.certificate, last_reason());
  for (;;) {
    const OwnedCertificate next(PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr));
    if (next == nullptr) break;
    if (SSL_CTX_add1_chain_cert(get(), next.get()) != 1)
      return unusable("certificate", options.certificate, last_reason());
  }
  const bool is_read = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (!is_read) return unusable("certificate", options.certificate, last_reason());
  ERR_clear_error();

  const auto key = read_key(options.key);
  if (!key) return key.error();
  if (SSL_CTX_use_PrivateKey(get(), key->get()) != 1 || SSL_CTX_check_private_key(get()) != 1) {
    const std::string reason = last_reason();
    return unusable("key", options.key,
                    "it does not belong to the certificate " +
                        show_name(options.certificate.native()) + " (" + reason + ")");
  }
  not_after_ = end_of(*own);
  fingerprint_ = fingerprint_of(*own);
  return {};
}

}  // namespace hearth::net

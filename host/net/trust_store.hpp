#pragma once
// The authorities whose certificates prove the servers that are asked.

#include "base/error.hpp"

#include <memory>
#include <string>

// OpenSSL's X509_STORE.
struct x509_store_st;

namespace hearth::net {

// The system's authorities, and those of one more file.
//
// Threads  One at a time.
class TrustStore {
 public:
  // Reads `extra_ca_file`, in PEM; empty: none. kInvalidArgument: it has no certificates.
  [[nodiscard]] static Result<TrustStore> open(const std::string& extra_ca_file);

  // For SSL_CTX_set1_cert_store(). The first call reads the system's authorities, which takes about
  // 20 ms: a server that asks no other server by TLS starts without them. Should the system's file
  // not open, for want of a descriptor, OpenSSL still looks into its directory at each handshake.
  [[nodiscard]] x509_store_st* get();

 private:
  explicit TrustStore(std::shared_ptr<x509_store_st> store) : store_(std::move(store)) {}

  std::shared_ptr<x509_store_st> store_;
  bool has_systems_ = false;
};

}  // namespace hearth::net

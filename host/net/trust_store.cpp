#include "net/trust_store.hpp"

#include "base/assert.hpp"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <utility>

namespace hearth::net {

Result<TrustStore> TrustStore::open(const std::string& extra_ca_file) {
  std::shared_ptr<X509_STORE> store(X509_STORE_new(), &X509_STORE_free);
  HEARTH_ASSERT(store != nullptr, "OpenSSL has no memory");
  const bool has_all =
      extra_ca_file.empty() || X509_STORE_load_file(store.get(), extra_ca_file.c_str()) == 1;
  ERR_clear_error();  // of this thread, so that no connection reports it
  if (!has_all)
    return Error{Errc::kInvalidArgument, "no certificates can be read from " + extra_ca_file};
  return TrustStore(std::move(store));
}

x509_store_st* TrustStore::get() {
  if (!std::exchange(has_systems_, true)) {
    X509_STORE_set_default_paths(store_.get());
    ERR_clear_error();
  }
  return store_.get();
}

}  // namespace hearth::net

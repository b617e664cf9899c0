#include "net/trust_store.hpp"

#include "net/test_certificate.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>
#include <openssl/x509_vfy.h>

#include <cstdlib>
#include <string>

namespace hearth::net {
namespace {

// SSL_CERT_FILE names the system's authorities, for OpenSSL. This test sets it.
class TrustStoreTest : public ::testing::Test {
 protected:
  TrustStoreTest() { ::setenv("SSL_CERT_DIR", directory_.path().c_str(), 1); }
  ~TrustStoreTest() override {
    ::unsetenv("SSL_CERT_DIR");
    ::unsetenv("SSL_CERT_FILE");
  }
  [[nodiscard]] std::string authority(const std::string& name) const {
    return testing::make_certificate(directory_.path(), name, testing::KeyKind::kEc)
        .certificate.native();
  }
  static int count(TrustStore& store) {
    return sk_X509_OBJECT_num(X509_STORE_get0_objects(store.get()));
  }

  testing::TempDirectory directory_;
};

TEST_F(TrustStoreTest, TheSystemsAuthoritiesAreReadAtTheFirstUse) {
  auto store = TrustStore::open("").value();
  ::setenv("SSL_CERT_FILE", authority("a.test").c_str(), 1);
  EXPECT_EQ(count(store), 1) << "named after the store was opened";
  ::setenv("SSL_CERT_FILE", authority("b.test").c_str(), 1);
  EXPECT_EQ(count(store), 1) << "read once";
}

TEST_F(TrustStoreTest, TheOtherFileIsTrustedToo) {
  ::setenv("SSL_CERT_FILE", authority("a.test").c_str(), 1);
  auto store = TrustStore::open(authority("b.test")).value();
  EXPECT_EQ(count(store), 2);
}

TEST_F(TrustStoreTest, AFileWithoutCertificatesIsRefused) {
  EXPECT_EQ(TrustStore::open("/nonexistent.pem").error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace hearth::net

#pragma once
// A server that speaks TLS, with a handler that a test scripts.

#include "net/server_fixture.hpp"
#include "net/test_certificate.hpp"
#include "net/tls_client.hpp"
#include "support/recording_logger.hpp"
#include "support/temp_directory.hpp"

#include <string>

namespace hearth::net {

class TlsFixture : public ServerFixture {
 protected:
  // `name` is the name of the certificate.
  void start_tls(std::size_t loops = 1, testing::KeyKind kind = testing::KeyKind::kEc) {
    use(testing::make_certificate(directory_.path(), "first.test", kind));
    start(loops);
  }
  void use(const testing::CertificateFiles& files) {
    options_.tls.certificate = files.certificate;
    options_.tls.key = files.key;
  }
  // Its answer to one request, over a connection whose handshake is over.
  static std::string get(testing::TlsClient& client) {
    return client.request("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").body;
  }

  testing::TempDirectory directory_;
};

}  // namespace hearth::net

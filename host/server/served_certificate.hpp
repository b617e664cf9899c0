#pragma once
// The server's certificate while it runs.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "net/http_server.hpp"
#include "net/options.hpp"
#include "telemetry/metrics.hpp"

namespace hearth::server {

// Reads the files of the certificate again when it is told to. Files that do not fit together, as
// between the two steps of a tool that replaces them one by one, or that cannot be read, change
// nothing: the certificate before is used on. The log says what was done (tls.certificate,
// tls.certificate_refused), and so do hearth_tls_reloads_total{result} and
// hearth_tls_certificate_expires_seconds.
//
// Threads   reload() from one thread at a time.
// Lifetime  Within that of the server and the others that it is given.
class ServedCertificate {
 public:
  ServedCertificate(net::HttpServer& server, net::TlsOptions files, const Clock& clock,
                    Metrics& metrics, Logger& logger);

  void reload();

 private:
  void tell_used();

  net::HttpServer& server_;
  const net::TlsOptions files_;
  const Clock& clock_;
  Logger& logger_;
  Counter& done_;
  Counter& refused_;
  const Metrics::Watch expires_;
};

}  // namespace hearth::server

#pragma once
// The certificate of a running server.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "net/http_server.hpp"
#include "net/options.hpp"
#include "telemetry/metrics.hpp"

namespace hearth::server {

// reload() reads the files of the certificate again. If they cannot be read or do not fit together,
// the certificate before stays in use. (A tool that replaces one file after the other causes this
// for a moment.) The outcome is in the log (tls.certificate, tls.certificate_refused) and in
// hearth_tls_reloads_total{result} and hearth_tls_certificate_expires_seconds.
//
// Threads   reload() from one thread at a time.
// Lifetime  The constructor's arguments outlive it.
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

#include "server/served_certificate.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace hearth::server {
namespace {

constexpr const char* kReloads = "hearth_tls_reloads_total";
constexpr const char* kReloadsHelp = "How often the files of the certificate were read again.";

}  // namespace

ServedCertificate::ServedCertificate(net::HttpServer& server, net::TlsOptions files,
                                     const Clock& clock, Metrics& metrics, Logger& logger)
    : server_(server),
      files_(std::move(files)),
      clock_(clock),
      logger_(logger),
      done_(metrics.counter(kReloads, kReloadsHelp, {{"result", "done"}})),
      refused_(metrics.counter(kReloads, kReloadsHelp, {{"result", "refused"}})),
      expires_(metrics.watch_gauge("hearth_tls_certificate_expires_seconds",
                                   "When the certificate ends, in seconds since 1970.", [this] {
                                     return std::chrono::duration<double>(
                                                server_.tls()->not_after().time_since_epoch())
                                         .count();
                                   })) {
  tell_used();
}

void ServedCertificate::reload() {
  if (const auto loaded = server_.reload_certificate(); !loaded) {
    refused_.add();
    logger_.write(LogLevel::kError, "tls.certificate_refused",
                  {{"reason", loaded.error().message},
                   {"next", "connections begin with the certificate before"}});
    return;
  }
  done_.add();
  tell_used();
}

void ServedCertificate::tell_used() {
  const auto context = server_.tls();
  const auto days =
      std::chrono::floor<std::chrono::days>(context->not_after() - clock_.wall_now()).count();
  logger_.write(days < 0 ? LogLevel::kWarn : LogLevel::kInfo, "tls.certificate",
                {{"file", files_.certificate.native()},
                 {"sha256", context->fingerprint()},
                 {"days_left", days}});
}

}  // namespace hearth::server

#pragma once
// Keeps the server's certificate up to date with its files.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "base/mutex.hpp"
#include "net/http_server.hpp"
#include "net/options.hpp"
#include "plugins/versions/directory_watcher.hpp"
#include "telemetry/metrics.hpp"

#include <chrono>
#include <memory>
#include <vector>

namespace hearth::server {

struct CertificateWatchSettings {
  net::TlsOptions files;
  plugins::DirectoryImage known;  // of directories(), before the server read the files
  bool watch = true;              // else only reload() reads them again
  std::chrono::milliseconds quiet_time{300};
};

// Reads the files again when they change and when it is told to. Files that do not fit together,
// as between the two steps of a tool that replaces them one by one, or that cannot be read, change
// nothing: the certificate before is used on. The log says what was done (tls.certificate,
// tls.certificate_refused), and so do hearth_tls_reloads_total{result} and
// hearth_tls_certificate_expires_seconds.
//
// Threads   reload() from any. A thread of its own watches.
// Lifetime  Within that of the server and the others that it is given.
class CertificateWatch {
 public:
  CertificateWatch(net::HttpServer& server, CertificateWatchSettings settings, const Clock& clock,
                   Metrics& metrics, Logger& logger);

  void reload();

  // Where the files lie. A link stands for what it leads to: tools that renew certificates move
  // links.
  [[nodiscard]] static std::vector<plugins::WatchedDirectory> directories(
      const net::TlsOptions& files);

 private:
  void tell_used();

  net::HttpServer& server_;
  const net::TlsOptions files_;
  const Clock& clock_;
  Logger& logger_;
  Counter& done_;
  Counter& refused_;
  Mutex one_at_a_time_;  // the watcher's thread, and who calls reload()
  const Metrics::Watch expires_;
  std::unique_ptr<plugins::DirectoryWatcher> watcher_;  // last: its thread uses the rest
};

}  // namespace hearth::server

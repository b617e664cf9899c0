#include "server/certificate_watch.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

namespace hearth::server {
namespace {

constexpr const char* kReloads = "hearth_tls_reloads_total";
constexpr const char* kReloadsHelp = "How often the files of the certificate were read again.";

plugins::WatchedDirectory directory_of(const std::filesystem::path& file) {
  return {
      .path = file.parent_path(), .extensions = {file.extension().native()}, .follows_links = true};
}

}  // namespace

std::vector<plugins::WatchedDirectory> CertificateWatch::directories(const net::TlsOptions& files) {
  if (!files.is_used()) return {};
  std::vector<plugins::WatchedDirectory> found{directory_of(files.certificate)};
  plugins::WatchedDirectory other = directory_of(files.key);
  if (other.path != found.front().path) {
    found.push_back(std::move(other));
  } else if (other.extensions != found.front().extensions) {
    found.front().extensions.push_back(other.extensions.front());
  }
  return found;
}

CertificateWatch::CertificateWatch(net::HttpServer& server, CertificateWatchSettings settings,
                                   const Clock& clock, Metrics& metrics, Logger& logger)
    : server_(server),
      files_(settings.files),
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
  if (!settings.watch) return;
  const auto is_ours = [this](const std::filesystem::path& path) {
    return path == files_.certificate || path == files_.key;
  };
  watcher_ = std::make_unique<plugins::DirectoryWatcher>(
      plugins::WatchOptions{.directories = directories(files_), .quiet_time = settings.quiet_time},
      std::move(settings.known),
      [this, is_ours](const plugins::FileChanges& changes) {
        if (std::ranges::any_of(changes.changed, is_ours)) reload();
      },
      logger);
}

void CertificateWatch::reload() {
  const MutexLock lock(one_at_a_time_);
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

void CertificateWatch::tell_used() {
  const auto context = server_.tls();
  const auto days =
      std::chrono::floor<std::chrono::days>(context->not_after() - clock_.wall_now()).count();
  logger_.write(days < 0 ? LogLevel::kWarn : LogLevel::kInfo, "tls.certificate",
                {{"file", files_.certificate.native()},
                 {"sha256", context->fingerprint()},
                 {"days_left", days}});
}

}  // namespace hearth::server

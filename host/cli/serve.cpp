#include "base/allocator.hpp"
#include "base/mutex.hpp"
#include "base/stop_point.hpp"
#include "cli/commands.hpp"
#include "cli/configuration.hpp"
#include "diagnosis/call_records.hpp"
#include "net/tls_context.hpp"
#include "net/trust_store.hpp"
#include "plugins/versions/plugin_reloader.hpp"
#include "server/admin_token.hpp"
#include "server/client_proofs.hpp"
#include "server/config_warnings.hpp"
#include "server/descriptor_budget.hpp"
#include "server/server.hpp"
#include "server/stop_signals.hpp"
#include "server/supervisor.hpp"
#include "server/tell_systemd.hpp"
#include "telemetry/log_queue.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::cli {
namespace {

// How long the server waits for a reader of its log before it is ready. A good reader takes the
// lines at once.
constexpr std::chrono::milliseconds kLogBeforeReady{500};

// How long stopping may take after the grace of running work: closing handshakes, closing
// databases, deinit.
constexpr std::chrono::seconds kStopSlack{20};

void print_line(std::FILE* stream, const std::string& text) {
  // A stream without a reader is no reason to stop.
  std::fputs((text + "\n").c_str(), stream);
  std::fflush(stream);
}

void print_warning(const std::string& text) {
  print_line(stderr, "hearth: warning: " + text);
}

// What is wrong with the files that the server file names, each with the name of its setting.
std::vector<std::string> mistakes_in_named_files(const config::ServerConfig& server) {
  std::vector<std::string> mistakes = server::mistakes_in_proof_files(server.auth);
  const auto look = [&mistakes](std::string_view setting, const auto& read) {
    if (!read) mistakes.push_back(std::string(setting) + ": " + read.error().message);
  };
  if (const auto& file = server.admin.token_file; !file.empty())
    look("admin.token_file", server::read_admin_token(file));
  if (const auto& file = server.objects.token_file; !file.empty())
    look("objects.token_file", server::read_admin_token(file));
  if (server.net.tls.is_used()) look("tls", net::TlsContext::load(server.net.tls));
  look("egress.ca_file", net::TrustStore::open(server.egress.ca_file.native()));
  return mistakes;
}

// The last part of --check-config: prints warnings.
int tell_warnings(const config::Config& config) {
  const config::ServerConfig& server = config.server;
  if (server.net.tls.is_used()) {
    const auto tls = net::TlsContext::load(server.net.tls);
    if (tls && (*tls)->not_after() < std::chrono::system_clock::now())
      print_warning("tls: the certificate has expired (tls.certificate)");
  }
  for (const server::ConfigWarning& warning : server::config_warnings(config))
    print_warning(to_string(warning));
  if (plugins::look_at(plugins::directories_of(server.plugins, {})).empty())
    print_warning(to_string(server::no_plugins_warning(server)));
  if (const server::DescriptorBudget budget = server::descriptor_budget_here(config);
      !budget.fits())
    print_warning(budget.advice() + " (server.few_descriptors)");
  print_line(stdout, "configuration ok");
  return kExitClean;
}

void tell_who_runs(Logger& logger) {
  diagnosis::for_each_call([&logger](const diagnosis::RunningCall& call) {
    const auto running = diagnosis::call_clock() - call.since;
    logger.write(
        LogLevel::kError, "server.stop_waits_for",
        {{"library", call.owner->library},
         {"class", call.owner->agent_class},
         {"agent", call.agent()},
         {"event_kind", call.call},
         {"method", call.method()},
         {"running_ms", std::chrono::duration_cast<std::chrono::milliseconds>(running).count()}});
  });
}

// Ends the process if stopping takes too long: a library's code that never returns must not hold it
// for ever. Durable data are safe, as after kill -9.
class StopDeadline {
 public:
  StopDeadline(std::chrono::milliseconds limit, Logger& logger)
      : watcher_([this, limit, &logger] {
          if (ends_within(limit)) return;
          logger.write(
              LogLevel::kError, "server.stop_hangs",
              {{"advice", "a plugin's code does not return; the process ends without it"}});
          tell_who_runs(logger);
          await_log_written(LogQueue::kLastWait);
          ::_exit(kExitFailed);
        }) {}

  ~StopDeadline() {
    {
      const MutexLock lock(mutex_);
      is_over_ = true;
    }
    over_.notify_one();
    watcher_.join();
  }
  StopDeadline(const StopDeadline&) = delete;
  StopDeadline& operator=(const StopDeadline&) = delete;

 private:
  bool ends_within(std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    const MutexLock lock(mutex_);
    while (!is_over_) {
      if (!over_.wait_until(mutex_, end)) break;
    }
    return is_over_;
  }

  Mutex mutex_;
  Condition over_;
  bool is_over_ GUARDED_BY(mutex_) = false;
  std::thread watcher_;
};

// The child reports mistakes in the configuration. The supervisor only takes its log settings.
int serve_in_child(const ServeCommand& command) {
  const config::LoadResult loaded = load_with_flags(command);
  const config::LogSettings log = loaded ? loaded->server.log : config::LogSettings{};
  const auto logger = make_queued_stderr_logger(log.level, log.format);
  const server::SupervisorRules rules{.restarts = command.supervised, .reaps_orphans = true};
  return server::supervise(command.child_arguments, rules, *logger);
}

// While it waits, the server retries writes for which the disk had no room at the start.
int next_signal(server::StopSignals& signals, server::Server& server) {
  constexpr std::chrono::seconds kLookForRoom{1};
  while (!server.catch_up()) {
    if (const std::optional<int> signal = signals.wait_for(kLookForRoom)) return *signal;
  }
  return signals.wait();
}

int serve(config::Config config, Logger& logger, server::SupervisedServer& supervised) {
  server::StopSignals signals;  // before the first thread
  give_back_memory_in_background();
  server::claim_descriptors(config, logger);
  const std::chrono::milliseconds grace = config.server.limits.shutdown_grace;
  auto started = server::Server::start(std::move(config), logger);
  if (!started) {
    logger.write(LogLevel::kError, "server.start_failed", {{"reason", started.error().message}});
    return kExitFailed;
  }
  const std::unique_ptr<server::Server> server = *std::move(started);
  // So a program that waits for the ready line finds all earlier events in the log.
  await_log_written(kLogBeforeReady);
  print_line(stdout, "hearth ready: listening on " + server->address());
  supervised.tell_ready();
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment
  const char* const manager = std::getenv("NOTIFY_SOCKET");
  (void)server::tell_systemd(manager, "READY=1");

  int signal = next_signal(signals, *server);
  for (; signal == SIGHUP && !signals.is_over(); signal = next_signal(signals, *server)) {
    logger.write(LogLevel::kInfo, "server.reload", {{"signal", signal}});
    server->reload();
  }
  logger.write(LogLevel::kInfo, "server.stopping", {{"signal", signal}});
  const StopDeadline deadline(grace + kStopSlack, logger);
  (void)server::tell_systemd(manager, server::stopping_state(grace + 2 * kStopSlack));
  server->stop();
  logger.write(LogLevel::kInfo, "server.stopped");
  if (signal == SIGHUP) supervised.tell_hung_up();
  return kExitClean;
}

}  // namespace

int run(const ServeCommand& command) {
  if (const auto request = check_stop_request(); request.has_error()) {
    print_line(stderr, "hearth: " + request.error().message);
    return kExitBadUsage;
  }
  const bool is_child = command.supervisor_descriptor >= 0;
  if (!is_child && !command.check_config && (command.supervised || server::adopts_orphans()))
    return serve_in_child(command);
  server::SupervisedServer supervised(command.supervisor_descriptor);
  config::LoadResult loaded = load_with_flags(command);
  if (!loaded) {
    std::fputs(mistakes_text(loaded.error()).c_str(), stderr);
    return kExitBadUsage;
  }
  if (const auto mistakes = mistakes_in_named_files(loaded->server); !mistakes.empty()) {
    for (const std::string& mistake : mistakes) print_line(stderr, "hearth: " + mistake);
    return kExitBadUsage;
  }
  if (command.check_config) return tell_warnings(*loaded);
  // Comes before the first file: only the server's user may read its files, whatever mask the
  // parent had, also in a data directory that other users may enter.
  ::umask(077);
  const auto logger =
      make_queued_stderr_logger(loaded->server.log.level, loaded->server.log.format);
  return serve(*std::move(loaded), *logger, supervised);
}

}  // namespace hearth::cli

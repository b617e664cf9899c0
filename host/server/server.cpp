#include "server/server.hpp"

#include "api/admin_api.hpp"
#include "api/console_pages.hpp"
#include "api/http_api.hpp"
#include "api/readiness.hpp"
#include "base/assert.hpp"
#include "base/escape.hpp"
#include "base/file_descriptor.hpp"
#include "base/secret.hpp"
#include "config/definitions.hpp"
#include "config/server_file.hpp"
#include "diagnosis/watchdog.hpp"
#include "net/http_server.hpp"
#include "net/tls_context.hpp"
#include "plugins/admission/required_check.hpp"
#include "plugins/versions/class_news.hpp"
#include "plugins/versions/plugin_loader.hpp"
#include "plugins/versions/plugin_reloader.hpp"
#include "plugins/versions/version_ledger.hpp"
#include "protocol/class_segment.hpp"
#include "protocol/object_address.hpp"
#include "protocol/server_frames.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/runtime.hpp"
#include "server/admin_desk.hpp"
#include "server/admin_token.hpp"
#include "server/audit_log.hpp"
#include "server/client_proofs.hpp"
#include "server/config_warnings.hpp"
#include "server/containment.hpp"
#include "server/data_loss.hpp"
#include "server/event_stream.hpp"
#include "server/expected_classes.hpp"
#include "server/object_desk.hpp"
#include "server/outbound_port.hpp"
#include "server/served_certificate.hpp"
#include "server/server_metrics.hpp"
#include "server/server_record.hpp"
#include "server/watched_files.hpp"
#include "storage/data_directory.hpp"

#include <unistd.h>

#include <cerrno>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace hearth::server {
namespace {

// How long closing the clients may take. They have their answers; only a close frame each way is
// left.
constexpr std::chrono::seconds kGoodbye{5};

// Calls `begin`, and waits until another thread calls `done`.
void wait_for(const std::function<void(std::function<void()> done)>& begin) {
  // Shared: the answering thread may still be in set_value() when the wait is over.
  const auto answered = std::make_shared<std::promise<void>>();
  begin([answered] { answered->set_value(); });
  answered->get_future().wait();
}

std::string how_to_listen(const Error& error) {
  return error.message + (error.code == Errc::kUnavailable
                              ? ". Stop what uses this address, or choose another: "
                                "`--listen 127.0.0.1:0` takes a free port"
                              : ". Give HOST:PORT of this machine, such as `--listen 127.0.0.1:0`");
}

}  // namespace

// Fields are in the order in which they are made. Each uses those before it, and is destroyed
// before them.
struct Server::Parts {
  Parts(config::Config given, Logger& log)
      : config(std::move(given)),
        events(log, clock),
        audit(events, clock, config.server.audit, metrics) {}

  // ---- the steps of start(), in their order; an error ends it ----
  Result<void> open_data();
  void open_ledger();
  Result<void> start_loops();
  void expect_classes();  // throws StorageError
  Result<void> load_plugins();
  [[nodiscard]] std::string shown_address() const;
  [[nodiscard]] runtime::ServedClass describe(
      const std::shared_ptr<const runtime::AgentClass>& agent_class);
  void serve_class(const std::shared_ptr<const runtime::AgentClass>& agent_class);
  void watch_plugins();
  void warn_of_unused_settings();
  Result<void> open_admin();
  Result<void> listen();
  void watch_files();
  void watch_figures();
  Result<void> announce();
  Result<void> publish();
  void tell_full(std::string_view what, const Error& error, std::string_view next);
  bool catch_up();

  // ---- the steps of stop(), in their order; each waits for its end ----
  void stop_admin();
  void finish_work();
  void close_clients();
  void finish_offloaded();
  void stop_loops();
  void unload_plugins();

  const config::Config config;
  SystemClock clock;
  SystemRandom random;
  Metrics metrics;
  api::ConsoleSessions console_sessions{clock, random};
  EventStream events;  // reads console_sessions
  AuditLog audit;
  Logger& logger = audit;
  ServerMetrics server_metrics{metrics, logger, clock};
  std::unique_ptr<storage::DataDirectory> data;
  std::vector<Metrics::Watch> storage_figures;  // read data
  std::unique_ptr<plugins::VersionLedger> ledger;
  std::unique_ptr<Containment> containment;
  // The reloader uses it once there is one. Made after containment, which counts the last crash.
  std::unique_ptr<plugins::ClassConfiguration> configuration;
  std::vector<std::unique_ptr<runtime::AsioLoop>> loops;
  std::unique_ptr<WaysOut> ways_out;
  std::unique_ptr<ClientProofs> client_proofs;
  std::unique_ptr<runtime::Runtime> runtime;
  std::unique_ptr<diagnosis::Watchdog> watchdog;
  std::unique_ptr<plugins::PluginLoader> plugins;
  Metrics::Watch pinned;                             // reads plugins
  std::set<std::string, std::less<>> used_settings;  // class files
  api::Readiness readiness;
  std::filesystem::path admin_token_file;
  std::string objects_token;
  std::string unwritten_token;  // empty: the file has it
  bool lacks_room = false;      // server.disk_full was logged, and its end not yet
  std::unique_ptr<AdminDesk> admin_desk;
  std::unique_ptr<ObjectDesk> object_desk;
  std::unique_ptr<api::ConsolePages> console;
  std::unique_ptr<api::AdminApi> admin;
  std::unique_ptr<api::HttpApi> api;
  std::unique_ptr<net::HttpServer> http;
  std::unique_ptr<ServedCertificate> certificate;  // only with TLS
  plugins::DirectoryImage files_before;            // of watched_files, before they were read
  std::unique_ptr<WatchedFiles> watched_files;
  std::vector<Metrics::Watch> figures;   // read http, runtime and admin_desk
  plugins::DirectoryImage plugin_files;  // from before they were loaded
  plugins::LoadReport loaded;            // until watch_plugins()
  std::unique_ptr<plugins::PluginReloader> reloader;
  std::optional<PublishedRecord> record;
};

// ---- start --------------------------------------------------------------------------------------

Result<std::unique_ptr<Server>> Server::start(config::Config config, Logger& logger) {
  auto parts = std::make_unique<Parts>(std::move(config), logger);
  if (const auto opened = parts->open_data(); !opened) return opened.error();
  if (const auto made = parts->start_loops(); !made) return made.error();
  // From here on threads run: after a failure they must be stopped.
  Result<void> started = parts->load_plugins();
  if (started) started = parts->open_admin();
  if (started) started = parts->listen();
  if (started) started = parts->announce();
  if (started) parts->runtime->start_alarms();
  if (started) parts->watch_plugins();
  std::unique_ptr<Server> server(new Server(std::move(parts)));
  if (started) return server;
  server->stop();
  return started.error();
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<void> Server::Parts::open_data() {
  auto opened = storage::DataDirectory::open(config.server.data);
  if (!opened) return opened.error();
  data = std::make_unique<storage::DataDirectory>(*std::move(opened));
  storage_figures = watch_storage(metrics, *data);
  if (!data->name_holder()) {
    tell_full("the process id in the file `lock`", Error{Errc::kUnavailable, system_text(ENOSPC)},
              "a server that is refused the directory cannot name this one");
  }
  audit.open(data->path() / "audit.db");
  open_ledger();
  containment = std::make_unique<Containment>(data->path(), *ledger, logger);
  configuration = std::make_unique<plugins::ClassConfiguration>(
      config.server.classes, config.classes, *ledger, config::definitions_directory(data->path()),
      config.server.for_classes());
  configuration->keep_claims_for(config.server.routes, config.server.auth.rules);
  for (const ConfigWarning& warning : config_warnings(config)) write(warning, logger);
  return {};
}

// Its errors do not keep libraries from being served.
void Server::Parts::open_ledger() {
  ledger = std::make_unique<plugins::VersionLedger>(data->path(), HEARTH_VERSION);
  for (const Error& problem : ledger->problems()) {
    logger.write(LogLevel::kError, "server.versions_unknown",
                 {{"reason", problem.message},
                  {"advice",
                   "records of bad versions cannot be read or written: a version that crashes the "
                   "server may be tried again"}});
  }
}

Result<void> Server::Parts::start_loops() {
  std::vector<runtime::ShardLoop*> shards;
  shards.reserve(config::shard_count(config.server));
  for (std::size_t i = 0; i < config::shard_count(config.server); ++i) {
    shards.push_back(loops.emplace_back(std::make_unique<runtime::AsioLoop>(clock)).get());
  }
  auto opened = WaysOut::open(data->path() / "server.db", config.server, loops, clock, random,
                              metrics, logger);
  if (!opened) return opened.error();
  ways_out = *std::move(opened);
  files_before = WatchedFiles::image(config.server);
  auto proofs =
      ClientProofs::open(config.server.auth, *loops.front(), ways_out->http(0), clock, logger);
  if (!proofs) return proofs.error();
  client_proofs = *std::move(proofs);
  runtime::RuntimeOptions options{.limits = config.server.runtime,
                                  .state_frame = protocol::state_frame};
  options.http_port = [this](unsigned shard) { return ways_out->port(shard); };
  options.span_log = ways_out->span_log();
  options.closing_threads = 1;
  // Several threads: agents that write at the same rate are due at the same moment, and the device
  // syncs several files at once.
  options.checkpointing_threads = 4;
  options.object_name = [max = config.server.limits.max_name](std::string_view name) {
    return protocol::reachable_object_name(name, max);
  };
  options.crash = containment->crash_of_work();
  const std::string damage = damage_of(*data, logger);
  try {
    runtime =
        std::make_unique<runtime::Runtime>(shards, *data, logger, metrics, std::move(options));
    expect_classes();
  } catch (const DiskFull& failure) {  // start-up: the operator can do something about it
    return Error{Errc::kUnavailable, "the directory of agents, " + data->directory_path().native() +
                                         ", cannot be made or brought up to date: " +
                                         failure.what() + ". Make room on the disk"};
  } catch (const StorageError& failure) {  // the same
    return Error{Errc::kUnavailable, "the directory of agents, " + data->directory_path().native() +
                                         ", cannot be used: " + failure.what() + damage +
                                         ". If it is lost or damaged, put it back from a backup, "
                                         "or rebuild it from the agents' files with `hearth "
                                         "repair`"};
  }
  for (const auto& loop : loops) loop->start();
  const diagnosis::HangLimits hangs{.soft = config.server.limits.soft_hang,
                                    .hard = config.server.limits.hard_hang};
  watchdog = std::make_unique<diagnosis::Watchdog>(
      hangs, logger, metrics, [this](const diagnosis::RunningCall& call, const std::string& stack) {
        containment->end_as_hung(call, stack);
      });
  return {};
}

void Server::Parts::expect_classes() {
  server::expect_classes(runtime->classes(), *data, config.classes, logger);
  runtime->classes().set_aliases(configuration->aliases());
  (void)runtime->classes().set_entry_rules(configuration->entry_rules());
  runtime->classes().set_egress(configuration->egress());
}

Result<void> Server::Parts::load_plugins() {
  keep_from_children();  // libraries may start some
  plugins::LoaderOptions options;
  options.staging_directory = data->path() / "staged";
  options.trusted_user = ::geteuid();
  if (config.server.require_checked)
    options.checked_directory = data->path() / plugins::kCheckedDirectory;
  options.max_pinned = config.server.reload.max_pinned;
  options.news = runtime->classes().news();
  options.names = [this](std::string_view library_class) {
    return configuration->classes_of(library_class);
  };
  options.aliased = [this](std::string_view alias) { return runtime->classes().aliased(alias); };
  const extensions::AbiServices services{*runtime, clock, random, logger};
  plugins = std::make_unique<plugins::PluginLoader>(services, *ledger, std::move(options));
  pinned = metrics.watch_gauge("hearth_pinned_generations",
                               "Versions of libraries that should have gone and stay in memory.",
                               [this] { return static_cast<double>(plugins->pinned()); });
  plugin_files = plugins::look_at(plugins::directories_of(config.server.plugins, {}));
  auto report = plugins->load_directories(config.server.plugins);
  if (!report) return report.error();
  for (const plugins::LoadedPlugin& plugin : report->plugins) {
    for (const auto& agent_class : plugin.classes) serve_class(agent_class);
  }
  if (report->plugins.empty()) write(no_plugins_warning(config.server), logger);
  loaded = *std::move(report);
  warn_of_unused_settings();
  return {};
}

runtime::ServedClass Server::Parts::describe(
    const std::shared_ptr<const runtime::AgentClass>& agent_class) {
  std::string segment = protocol::kebab_case(agent_class->name());
  const auto its = configuration->of(agent_class->name());
  // For a class without a file and with objects.all_classes. A class file with this mistake is
  // refused.
  std::string refusal = its->settings.is_object ? config::path_is_taken(segment) : "";
  if (ledger->is_quarantined(agent_class->name(), agent_class->sha256()))
    refusal = "the class " + std::string(agent_class->name()) +
              " is in quarantine: its code ended the server";
  return {.segment = std::move(segment),
          .agent_class = agent_class,
          .settings = its->settings,
          .refusal = std::move(refusal)};
}

void Server::Parts::watch_plugins() {
  const config::ReloadConfig& reload = config.server.reload;
  plugins::ReloadSettings settings;
  settings.directories = plugins::directories_of(config.server.plugins, config.server.classes);
  settings.known = std::move(plugin_files);
  // Without stamps, so that the files are read again: they may have changed since.
  for (const auto& [name, agent_class] : config.classes) {
    const std::filesystem::path file(agent_class.file);
    settings.known.emplace(config.server.classes / file.filename(), plugins::FileStamp{});
  }
  settings.watch = reload.watch;
  settings.quiet_time = reload.quiet_time;
  settings.removal_grace = reload.removal_grace;
  settings.rollout.drain = reload.policy == config::ReloadPolicy::kDrain;
  settings.rollout.drain_deadline = reload.drain_deadline;
  settings.rollout.trial_agents = reload.trial_agents;
  settings.rollout.max_failed_percent = reload.max_failed_percent;
  settings.rollout.trial_time = reload.trial_time;
  settings.probation = reload.probation;
  settings.configuration = configuration.get();
  settings.describe = [this](const auto& agent_class) { return describe(agent_class); };
  reloader = std::make_unique<plugins::PluginReloader>(
      std::exchange(loaded, {}), *plugins, *runtime, clock, logger, metrics, std::move(settings));
  admin_desk->use(reloader.get());
}

void Server::Parts::watch_figures() {
  const auto watch = [this](std::string_view name, std::string_view help, auto read) {
    figures.push_back(
        metrics.watch_gauge(name, help, [read] { return static_cast<double>(read()); }));
  };
  watch("hearth_sockets", "Connections of clients of every kind, HTTP included.",
        [this] { return http->connections(); });
  watch("hearth_client_memory_bytes",
        "Held for clients: unfinished requests, what waits for agents, and what is not read yet.",
        [this] { return runtime->client_memory().used(); });
  watch("hearth_agents_stuck",
        "Agents whose wait needs a person or is too long, at most 200. Every five minutes they are "
        "looked for anew, after a reading of this figure.",
        [this] { return admin_desk->count_stuck(); });
  watch("hearth_classes_quarantined", "Classes that crashed the server and are not served.",
        [this] { return admin_desk->count_quarantined(); });
}

void Server::Parts::serve_class(const std::shared_ptr<const runtime::AgentClass>& agent_class) {
  const std::string file = configuration->of(agent_class->name())->file;
  used_settings.insert(file);
  const runtime::ServedClass served = describe(agent_class);
  const bool added = runtime->classes().add(served);
  // The loader refuses a library with a class whose segment is taken.
  HEARTH_ASSERT(added, "two classes with one segment were loaded");
  plugins::tell_served(logger, served, configuration->paths(served.segment), file);
}

void Server::Parts::warn_of_unused_settings() {
  for (const auto& [name, settings] : config.classes) {
    if (!used_settings.contains(settings.file)) plugins::tell_not_found(logger, name, settings);
  }
}

Result<void> Server::Parts::open_admin() {
  admin_token_file = config.server.admin.token_file;
  // A file that the configuration names must exist: the operator makes it.
  const bool is_ours = admin_token_file.empty();
  if (is_ours) admin_token_file = std::filesystem::absolute(data->path() / kAdminTokenFile);
  auto token = is_ours ? admin_token_or_create(admin_token_file, random)
                       : read_admin_token(admin_token_file);
  if (!token && is_ours && token.error().code == Errc::kUnavailable) {
    tell_full("the administrators' token", token.error(), "administrators have no access");
    token = make_secret(random);
    unwritten_token = *token;
  }
  if (!token) {
    return Error{token.error().code,
                 "the administrators' token cannot be used: " + token.error().message};
  }
  admin_desk = std::make_unique<AdminDesk>(
      *runtime, *plugins, *data, *ledger, audit, logger, config.server, AdminDesk::kShardPatience,
      [this](const diagnosis::RunningCall& call) {
        return watchdog ? watchdog->stack_of(call) : std::string();
      });
  object_desk = std::make_unique<ObjectDesk>(*runtime, *data, readiness, clock, logger,
                                             config.server.limits.max_name);
  events.use_sessions(std::bind_front(&api::ConsoleSessions::is_page, &console_sessions));
  console = std::make_unique<api::ConsolePages>(console_sessions, logger,
                                                config.server.net.tls.is_used());
  admin = std::make_unique<api::AdminApi>(*std::move(token), metrics, &console_sessions);
  auto key = read_objects_token(config.server.objects.token_file);
  if (!key) return key.error();
  objects_token = *std::move(key);
  return {};
}

// Clients can connect: now commands may find the server. On a full disk they cannot yet.
Result<void> Server::Parts::announce() {
  auto published = publish();
  if (published || published.error().code != Errc::kUnavailable) return published;
  tell_full("server.json", published.error(),
            "commands such as `hearth agents` do not find this server");
  return {};
}

Result<void> Server::Parts::publish() {
  if (!unwritten_token.empty()) {
    const auto written = write_admin_token(admin_token_file, unwritten_token);
    if (!written) return written.error();
    unwritten_token.clear();
  }
  auto published = PublishedRecord::publish(data->path(), {.address = http->address(),
                                                           .token_file = admin_token_file,
                                                           .pid = ::getpid(),
                                                           .tls = config.server.net.tls.is_used()});
  if (!published) return published.error();
  record.emplace(*std::move(published));
  return {};
}

// Logs what a full disk does not take, and how the server goes on.
void Server::Parts::tell_full(std::string_view what, const Error& error, std::string_view next) {
  lacks_room = true;
  logger.write(LogLevel::kWarn, "server.disk_full",
               {{"what", what},
                {"reason", error.message},
                {"next", std::string(next) + ", until there is room"}});
}

bool Server::Parts::catch_up() {
  bool is_complete = data->name_holder();
  is_complete = containment->catch_up() && is_complete;
  is_complete = (record || publish()) && is_complete;
  if (is_complete && std::exchange(lacks_room, false))
    logger.write(LogLevel::kInfo, "server.disk_has_room");
  return is_complete;
}

bool Server::catch_up() {
  return parts_->catch_up();
}

Result<void> Server::Parts::listen() {
  std::vector<net::NetLoop> net_loops;
  net_loops.reserve(loops.size());
  for (const auto& loop : loops) net_loops.push_back({loop->context(), loop->turn_end()});
  std::vector<api::Route> rows;
  events.add_routes(rows);
  admin_desk->add_routes(rows);
  object_desk->add_routes(rows);
  console->add_routes(rows);
  const api::HttpApiOptions options{.max_name_bytes = config.server.limits.max_name,
                                    .admin = admin.get(),
                                    .rows = std::move(rows),
                                    .edge = {.auth = config.server.auth.rules,
                                             .cors = config.server.cors,
                                             .routes = config.server.routes,
                                             .authenticator = &client_proofs->authenticator(),
                                             .objects_key = objects_token},
                                    .objects_token = objects_token};
  api = std::make_unique<api::HttpApi>(*runtime, readiness, metrics, random, logger, options);
  // Here, because an error in the files is no error of the address.
  if (config.server.net.tls.is_used()) {
    const auto usable = net::TlsContext::load(config.server.net.tls);
    if (!usable) return Error{usable.error().code, "tls: " + usable.error().message};
  }
  auto listening = net::HttpServer::listen(config.server.net, net_loops, *api,
                                           {logger, metrics, runtime->client_memory()});
  if (!listening) return Error{listening.error().code, how_to_listen(listening.error())};
  http = *std::move(listening);
  std::vector<std::string> hosts = config.server.allowed_hosts;
  // Commands send the published address. Its port is left out, as curl leaves 80 out.
  if (!hosts.empty()) hosts.emplace_back(http->address(), 0, http->address().rfind(':'));
  // The operator may have configured another name of this machine, which clients use.
  if (http->is_on_loopback()) hosts.push_back(config.server.net.host);
  api->serve_only({http->is_on_loopback(), config.server.allowed_origins, hosts});
  readiness.watch(loss_of(*data, logger), [this] { return !data->has_room(); });
  readiness.set(api::Readiness::Phase::kReady);
  watch_files();
  http->start();
  watch_figures();
  logger.record(LogLevel::kInfo, "server.ready",
                {{"address", shown_address()},
                 {"classes", runtime->classes().all().size()},
                 {"shards", loops.size()},
                 {"data", data->path().native()}});
  return {};
}

void Server::Parts::watch_files() {
  const config::AuthConfig& auth = config.server.auth;
  std::vector<FileGroup> groups{
      {{auth.token_file, auth.keys_file},
       [this] { refresh_proofs(*client_proofs, config.server.auth, *runtime, logger); }}};
  if (const net::TlsOptions& tls = config.server.net.tls; tls.is_used()) {
    certificate = std::make_unique<ServedCertificate>(*http, tls, clock, metrics, logger);
    groups.push_back({{tls.certificate, tls.key}, [this] { certificate->reload(); }});
  }
  watched_files = std::make_unique<WatchedFiles>(std::move(groups), std::move(files_before),
                                                 config.server.reload, logger);
}

std::string Server::Parts::shown_address() const {
  return (config.server.net.tls.is_used() ? "https://" : "") + http->address();
}

std::string Server::address() const {
  return parts_->shown_address();
}

std::vector<std::string> Server::classes() const {
  std::vector<std::string> segments;
  for (const auto& each : parts_->runtime->classes().all()) segments.push_back(each->segment);
  return segments;
}

void Server::reload() {
  if (parts_->reloader) (void)parts_->reloader->reload({}, {});
  if (parts_->watched_files) parts_->watched_files->reload();
}

// ---- stop ---------------------------------------------------------------------------------------

void Server::stop() {
  parts_->logger.record(LogLevel::kDebug, "server.stopping", {});
  parts_->readiness.set(api::Readiness::Phase::kStopping);
  parts_->stop_admin();        // no new versions from here on
  parts_->finish_work();       // answers still reach their clients
  parts_->close_clients();     // agents have sent everything
  parts_->finish_offloaded();  // jobs keep libraries in use
  parts_->stop_loops();        // tasks keep libraries in use
  parts_->unload_plugins();    // their threads may call the runtime until deinit() returns
  parts_.reset();              // releases the lock on the data directory last
}

Server::~Server() {
  HEARTH_ASSERT(parts_ == nullptr, "a server was destroyed before it was stopped");
}

void Server::Parts::stop_admin() {
  record.reset();
  events.stop();
  if (admin_desk) admin_desk->use(nullptr);
  reloader.reset();
  if (admin_desk) admin_desk->stop();  // answers waiting requests
  if (object_desk) object_desk->stop();
  loaded = {};  // if there was no reloader: its classes would keep their libraries loaded
}

void Server::Parts::finish_work() {
  wait_for([this](std::function<void()> done) {
    runtime->stop(config.server.limits.shutdown_grace, std::move(done));
  });
}

void Server::Parts::close_clients() {
  if (http == nullptr) return;
  watched_files.reset();
  certificate.reset();
  wait_for([this](std::function<void()> done) { http->stop(kGoodbye, std::move(done)); });
  figures.clear();
  http.reset();
  api.reset();
}

void Server::Parts::finish_offloaded() {
  runtime->classes().clear();
  runtime->stop_offloaded();
}

void Server::Parts::stop_loops() {
  // Two rounds: tasks posted by the steps before run, and tasks that those post.
  for (int round = 0; round < 2; ++round) {
    for (const auto& loop : loops) {
      wait_for([&loop](std::function<void()> done) { loop->post(std::move(done)); });
    }
  }
  for (const auto& loop : loops) loop->stop();
  if (ways_out) ways_out->stop();  // no agent asks any more
}

void Server::Parts::unload_plugins() {
  if (plugins != nullptr) plugins->unload_all();
}

}  // namespace hearth::server

#include "app/server.hpp"

#include "api/http_api.hpp"
#include "api/readiness.hpp"
#include "app/settings.hpp"
#include "base/assert.hpp"
#include "base/escape.hpp"
#include "loader/plugin_loader.hpp"
#include "net/http_server.hpp"
#include "protocol/class_segment.hpp"
#include "protocol/server_frames.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/runtime.hpp"
#include "storage/data_directory.hpp"

#include <unistd.h>

#include <functional>
#include <future>
#include <set>
#include <utility>

namespace hearth::app {
namespace {

// How long clients may take to say goodbye. They have had their answers; what is left is a frame each way.
constexpr std::chrono::seconds kGoodbye{5};

// Runs something that answers on another thread, and waits for the answer.
void wait_for(const std::function<void(std::function<void()> done)>& begin) {
  // Shared: whoever answers is still inside set_value() when the wait is over.
  const auto answered = std::make_shared<std::promise<void>>();
  begin([answered] { answered->set_value(); });
  answered->get_future().wait();
}

// The class file for a class, and the name it is filed under; without one, the defaults under "". A file may name
// its class as it is or as URLs spell it: `ChatRoom` and `chat-room` are one class here.
std::pair<std::string, config::ClassConfig> settings_for(const config::Config& config,
                                                         std::string_view name) {
  if (const auto exact = config.classes.find(name); exact != config.classes.end()) return *exact;
  const std::string segment = protocol::kebab_case(name);
  for (const auto& each : config.classes) {
    if (protocol::kebab_case(each.first) == segment) return each;
  }
  return {"", config.defaults};
}

std::string how_to_listen(const Error& error) {
  return error.message + (error.code == Errc::kUnavailable
                              ? ". Stop what uses this address, or choose another: "
                                "`--listen 127.0.0.1:0` takes a free port"
                              : ". Give HOST:PORT of this machine, such as `--listen 127.0.0.1:0`");
}

}  // namespace

// Fields in the order in which they are made; each stands on those before it and is destroyed before them.
struct Server::Parts {
  Parts(config::Config given, Logger& log) : config(std::move(given)), logger(log) {}

  // ---- the steps of start(), in their order; an error ends it ----
  Result<void> open_data();
  Result<void> start_loops();
  Result<void> load_plugins();
  void serve_class(const std::shared_ptr<const runtime::AgentClass>& agent_class);
  void warn_of_unused_settings();
  Result<void> listen();

  // ---- the steps of stop(), in their order; each waits for its end ----
  void finish_work();
  void close_clients();
  void finish_jobs();
  void stop_loops();
  void unload_plugins();

  const config::Config config;
  Logger& logger;
  SystemClock clock;
  SystemRandom random;
  std::unique_ptr<storage::DataDirectory> data;
  std::vector<std::unique_ptr<runtime::AsioLoop>> loops;
  std::unique_ptr<runtime::Runtime> runtime;
  std::unique_ptr<loader::PluginLoader> plugins;
  std::set<std::string, std::less<>> used_settings;  // names in config.classes
  api::Readiness readiness;
  std::unique_ptr<api::HttpApi> api;
  std::unique_ptr<net::HttpServer> http;
};

// ---- start ------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Server>> Server::start(config::Config config, Logger& logger) {
  auto parts = std::make_unique<Parts>(std::move(config), logger);
  if (const auto opened = parts->open_data(); !opened) return opened.error();
  if (const auto made = parts->start_loops(); !made) return made.error();
  // From here on threads run, so a failure must stop what has started.
  Result<void> started = parts->load_plugins();
  if (started) started = parts->listen();
  if (started) parts->runtime->start_alarms();
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
  if (data->open_to_others()) {
    const std::string path = data->path().native();
    logger.write(
        LogLevel::kWarn, "server.data_readable",
        {{"data", path},
         {"advice", "other users of this machine have access to the data directory: chmod 700 " +
                        quote_text(path, 4096)}});
  }
  return {};
}

Result<void> Server::Parts::start_loops() {
  std::vector<runtime::ShardLoop*> shards;
  shards.reserve(shard_count(config.server));
  for (std::size_t i = 0; i < shard_count(config.server); ++i) {
    shards.push_back(loops.emplace_back(std::make_unique<runtime::AsioLoop>(clock)).get());
  }
  runtime::RuntimeOptions options;
  options.limits = runtime_limits(config.server);
  options.state_frame = protocol::state_frame;
  try {
    runtime = std::make_unique<runtime::Runtime>(shards, *data, logger, std::move(options));
  } catch (const StorageError& failure) {  // start-up: the operator can do something about it
    return Error{Errc::kUnavailable, "the directory of agents, " + data->directory_path().native() +
                                         ", cannot be used: " + failure.what()};
  }
  for (const auto& loop : loops) loop->start();
  return {};
}

Result<void> Server::Parts::load_plugins() {
  loader::LoaderOptions options;
  options.staging_directory = data->path() / "staged";
  options.trusted_user = ::geteuid();
  options.class_segment = [](std::string_view name) { return protocol::kebab_case(name); };
  const loader::AbiServices services{*runtime, clock, random, logger};
  plugins = std::make_unique<loader::PluginLoader>(services, std::move(options));
  auto report = plugins->load_directories(config.server.plugins);
  if (!report) return report.error();
  for (const loader::LoadedPlugin& plugin : report->plugins) {
    for (const auto& agent_class : plugin.classes) serve_class(agent_class);
  }
  if (report->plugins.empty()) {
    logger.write(LogLevel::kWarn, "server.no_plugins",
                 {{"advice",
                   "no class is served: put libraries (*.so) into a directory of "
                   "`plugins` and start again"}});
  }
  warn_of_unused_settings();
  return {};
}

void Server::Parts::serve_class(const std::shared_ptr<const runtime::AgentClass>& agent_class) {
  const std::string segment = protocol::kebab_case(agent_class->name());
  const auto& [file_name, settings] = settings_for(config, agent_class->name());
  used_settings.insert(file_name);
  const bool added = runtime->classes().add(
      {.segment = segment, .agent_class = agent_class, .settings = class_settings(settings)});
  // The loader refuses a library whose class has another one's segment.
  HEARTH_ASSERT(added, "two classes with one segment were loaded");
  logger.write(LogLevel::kInfo, "class.served",
               {{"class", agent_class->name()},
                {"version", agent_class->version()},
                {"library", agent_class->origin()},
                {"path", "/agents/" + segment},
                {"settings", settings.file.empty() ? "defaults" : settings.file}});
}

void Server::Parts::warn_of_unused_settings() {
  for (const auto& [name, settings] : config.classes) {
    if (used_settings.contains(name)) continue;
    logger.write(LogLevel::kWarn, "class.not_found",
                 {{"class", name},
                  {"file", settings.file},
                  {"advice", "no library that is served has this class: its settings are unused"}});
  }
}

Result<void> Server::Parts::listen() {
  std::vector<boost::asio::io_context*> contexts;
  contexts.reserve(loops.size());
  for (const auto& loop : loops) contexts.push_back(&loop->context());
  const api::HttpApiOptions options{.max_name_bytes = config.server.limits.max_name_bytes};
  api = std::make_unique<api::HttpApi>(*runtime, readiness, random, logger, options);
  auto listening = net::HttpServer::listen(net_options(config.server), contexts, *api, logger);
  if (!listening) return Error{listening.error().code, how_to_listen(listening.error())};
  http = *std::move(listening);
  readiness.set(api::Readiness::Phase::kReady);
  http->start();
  logger.write(LogLevel::kInfo, "server.ready",
               {{"address", http->address()},
                {"classes", runtime->classes().all().size()},
                {"shards", loops.size()},
                {"data", data->path().native()}});
  return {};
}

std::string Server::address() const {
  return parts_->http->address();
}

std::vector<std::string> Server::classes() const {
  std::vector<std::string> segments;
  for (const auto& each : parts_->runtime->classes().all()) segments.push_back(each->segment);
  return segments;
}

// ---- stop -------------------------------------------------------------------------------------------------

void Server::stop() {
  parts_->readiness.set(api::Readiness::Phase::kStopping);
  parts_->finish_work();     // answers still reach their clients
  parts_->close_clients();   // nothing of an agent is left to say
  parts_->finish_jobs();     // they hold the code of libraries
  parts_->stop_loops();      // so do tasks
  parts_->unload_plugins();  // their threads may call the runtime until deinit() returns
  parts_.reset();            // the lock on the data directory goes last
}

Server::~Server() {
  HEARTH_ASSERT(parts_ == nullptr, "a server was destroyed before it was stopped");
}

void Server::Parts::finish_work() {
  wait_for([this](std::function<void()> done) {
    runtime->stop(config.server.limits.shutdown_grace, std::move(done));
  });
}

void Server::Parts::close_clients() {
  if (http == nullptr) return;
  wait_for([this](std::function<void()> done) { http->stop(kGoodbye, std::move(done)); });
  http.reset();
  api.reset();
}

void Server::Parts::finish_jobs() {
  runtime->classes().clear();
  runtime->stop_jobs();
}

void Server::Parts::stop_loops() {
  // Twice around each loop: what the steps before have posted runs, and what that posts.
  for (int round = 0; round < 2; ++round) {
    for (const auto& loop : loops) {
      wait_for([&loop](std::function<void()> done) { loop->post(std::move(done)); });
    }
  }
  for (const auto& loop : loops) loop->stop();
}

void Server::Parts::unload_plugins() {
  if (plugins != nullptr) plugins->unload_all();
}

}  // namespace hearth::app

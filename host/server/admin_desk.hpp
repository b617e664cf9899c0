#pragma once
// /admin: answers the requests of administrators, from the runtime, the loader and the directory of
// agents.

#include "api/routes.hpp"
#include "base/logger.hpp"
#include "base/mutex.hpp"
#include "config/config.hpp"
#include "diagnosis/call_records.hpp"
#include "plugins/versions/plugin_loader.hpp"
#include "plugins/versions/plugin_reloader.hpp"
#include "plugins/versions/version_ledger.hpp"
#include "runtime/runtime.hpp"
#include "server/agent_desk.hpp"
#include "server/audit_log.hpp"
#include "server/backups.hpp"
#include "server/data_desk.hpp"
#include "server/definition_desk.hpp"
#include "server/desk.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace hearth::server {

// {"quarantined":[...]}
[[nodiscard]] Json quarantine_json(const std::vector<plugins::ClassFacts>& quarantined);

// The rows of /admin, and those of /objects/definitions. add_routes() has the paths;
// openapi_schemas.cpp has the bodies. Beyond them:
//  - /admin/plugins: `plugins` are the files that are served, oldest first, `refused` those that
//    are not; `moving` are classes whose agents still move to another version or other settings;
//    `settings` are not proven yet.
//  - .../reload: body: nothing, or {"class":"..."}. Answers when the files were read and tried.
//    Agents may still be moving then.
//  - .../take-back lets the version before go on. 409: none is kept, or the version is proven.
//  - .../release serves the class again at once, as if it had never crashed.
//  - /admin/audit has every entry that was recorded before the request, in the order of ids.
//
// HEAD is answered like GET. Errors are {"error":{"code","message"}}.
//
// Failure    404: no such class or agent. 503: too many requests are in progress, an event loop
//            does not answer, or the server starts or stops.
// Bounded    As Desk. It waits for a shard's answer at most `shard_patience`.
// Logged     Each request for a change is logged (admin.reload, admin.take_back, admin.release),
//            and the token never is.
// Threads    As Desk.
// Lifetime   As Desk; the reloader as use() says.
class AdminDesk {
 public:
  // A shard answers within milliseconds, unless some plugin's code holds it up.
  static constexpr std::chrono::milliseconds kShardPatience{5000};

  AdminDesk(runtime::Runtime& runtime, plugins::PluginLoader& loader,
            const storage::DataDirectory& data, plugins::VersionLedger& ledger, AuditLog& audit,
            Logger& logger, const config::ServerConfig& server,
            std::chrono::milliseconds shard_patience = kShardPatience,
            std::function<std::string(const diagnosis::RunningCall&)> stack_of = {});

  // Add them before other rows of objects.
  void add_routes(std::vector<api::Route>& rows);

  // The reloader to use from now on; null: none. When this returns, the reloader before is not used
  // any more.
  void use(plugins::PluginReloader* reloader);

  void stop();

  // As AgentDesk's.
  [[nodiscard]] std::size_t count_stuck() { return agents_.count_stuck(); }
  // The classes that are not served for their crashes; not one whose library was replaced.
  [[nodiscard]] std::size_t count_quarantined() const;

 private:
  using Outcomes = Result<plugins::ReloadOutcomes>;

  // ---- at once ----
  void reload(const api::RouteCall& call);
  void take_back(const api::RouteCall& call);
  void release(const api::RouteCall& call);
  void audit(const api::RouteCall& call);
  void methods(const api::RouteCall& call);
  void quarantined(const api::RouteCall& call);

  // ---- on the desk's thread ----
  [[nodiscard]] Result<Json> plugins(const api::RouteCall& call);
  [[nodiscard]] Result<Json> generations(const api::RouteCall& call);
  [[nodiscard]] Result<Json> classes(const api::RouteCall& call);
  [[nodiscard]] Json version_json(const plugins::GenerationInfo& version) const;

  using Answer = std::function<void(const Outcomes&)>;
  using Order = bool (plugins::PluginReloader::*)(std::string, std::function<void(Outcomes)>);
  // An empty class: all.
  void give(Order order, const std::string& agent_class, const Answer& answer);
  void serve_again(const std::vector<plugins::ClassFacts>& released, const Exchange& exchange);

  runtime::Runtime& runtime_;
  plugins::PluginLoader& loader_;
  plugins::VersionLedger& ledger_;
  AuditLog& audit_;
  Logger& logger_;
  const std::chrono::milliseconds shard_patience_;
  Mutex mutex_;
  plugins::PluginReloader* reloader_ GUARDED_BY(mutex_) = nullptr;
  Desk desk_;
  AgentDesk agents_;
  DataDesk data_desk_;
  Backups backups_;
  DefinitionDesk definitions_;  // calls give() of this object
};

}  // namespace hearth::server

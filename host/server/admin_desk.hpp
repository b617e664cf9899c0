#pragma once
// Answers the requests of administrators, from the runtime, the loader and the directory of agents.

#include "api/admin_actions.hpp"
#include "base/logger.hpp"
#include "base/mutex.hpp"
#include "config/config.hpp"
#include "plugins/versions/plugin_loader.hpp"
#include "plugins/versions/plugin_reloader.hpp"
#include "plugins/versions/version_ledger.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/runtime.hpp"
#include "server/audit_log.hpp"
#include "server/definition_desk.hpp"
#include "storage/data_directory.hpp"
#include "storage/directory.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::server {

// Promises   No event loop waits: calls that block (loader, directory, shards) run on a thread of
//            the desk.
// Bounded    The queue is bounded; further requests get kUnavailable. It waits for a shard's answer
//            at most `shard_patience`.
// Threads    The constructor, stop() and destruction on one; the rest from any.
// Lifetime   Everything it is given outlives it, the reloader as use() says. stop() before the
//            loops stop.
class AdminDesk final : public api::AdminActions {
 public:
  // A shard answers within milliseconds, unless some plugin's code holds it up.
  static constexpr std::chrono::milliseconds kShardPatience{5000};

  AdminDesk(runtime::Runtime& runtime, plugins::PluginLoader& loader,
            const storage::DataDirectory& data, plugins::VersionLedger& ledger, AuditLog& audit,
            Logger& logger, const config::ServerConfig& server,
            std::chrono::milliseconds shard_patience = kShardPatience);

  // The reloader to use from now on; null: none. When this returns, the reloader before is not used
  // any more.
  void use(plugins::PluginReloader* reloader);

  // For definitions of classes that come over HTTP.
  [[nodiscard]] api::DefinitionActions& definitions() { return definitions_; }

  // Waits for the request that runs. Waiting and later requests get kClosing.
  void stop();

  void plugins(Answer<api::PluginList> answer) override;
  void reload(std::string agent_class, Answer<std::vector<api::ReloadedFile>> answer) override;
  void audit(storage::AuditQuery query, Answer<std::vector<storage::AuditEntry>> answer) override;
  void quarantined(Answer<std::vector<api::QuarantinedView>> answer) override;
  void release(std::string agent_class, Answer<api::ReleasedClass> answer) override;
  void classes(Answer<std::vector<api::ClassView>> answer) override;
  void methods(std::string agent_class, Answer<api::ClassMethodsView> answer) override;
  void agents(api::AgentPageRequest request, Answer<api::AgentPage> answer) override;
  void agent(api::AgentName name, Answer<api::AgentView> answer) override;
  void evict(api::AgentName name, Answer<std::string> answer) override;
  void destroy(api::AgentName name, Answer<std::string> answer) override;
  void operations(api::OperationQuery query, Answer<api::OperationPage> answer) override;
  void operation(api::OperationName name, Answer<std::string> answer) override;
  void resolve(api::OperationName name, api::Resolution how, Answer<std::string> answer) override;

 private:
  using Views = std::vector<api::AgentView>;

  // Records what an administrator has done.
  void record(std::string_view event, const storage::AgentKey& key);
  [[nodiscard]] Error too_much() const;
  template <class T>
  void ask(Answer<T> answer, std::function<Result<T>()> work);

  // ---- on the pool's thread ----
  void serve_again(const std::vector<plugins::ClassFacts>& released,
                   const Answer<api::ReleasedClass>& answer);
  storage::Directory& directory();
  [[nodiscard]] Result<std::string> class_name(const std::string& given);
  [[nodiscard]] Result<storage::AgentKey> existing(const api::AgentName& name);
  [[nodiscard]] Result<api::PluginList> list_plugins();
  [[nodiscard]] Result<std::vector<api::ClassView>> list_classes();
  [[nodiscard]] Result<api::AgentPage> list_agents(const api::AgentPageRequest& request);
  // Adds the data from the shards.
  [[nodiscard]] Result<void> complete(const std::string& agent_class, Views& views);

  runtime::Runtime& runtime_;
  plugins::PluginLoader& loader_;
  const storage::DataDirectory& data_;
  plugins::VersionLedger& ledger_;
  AuditLog& audit_;
  Logger& logger_;
  const std::chrono::milliseconds shard_patience_;
  std::atomic<bool> stopping_ = false;
  Mutex mutex_;
  plugins::PluginReloader* reloader_ GUARDED_BY(mutex_) = nullptr;
  std::optional<storage::Directory> directory_;  // only the pool's thread; opened on first use
  runtime::BlockingPool pool_;                   // last: its jobs use the fields above
  DefinitionDesk definitions_;                   // calls reload() of this object
};

template <class T>
void AdminDesk::ask(Answer<T> answer, std::function<Result<T>()> work) {
  // Shared, because a rejected request must be answered here.
  const auto shared = std::make_shared<Answer<T>>(std::move(answer));
  const bool accepted = pool_.run([this, shared, work = std::move(work)](bool cancelled) {
    if (cancelled) return (*shared)(Error{Errc::kClosing, "the server is shutting down"});
    try {
      (*shared)(work());
    } catch (const StorageError& failure) {  // agent boundary: the directory of agents failed
      logger_.write(LogLevel::kError, "admin.storage_failed",
                    {{"error", std::string_view(failure.what())}});
      (*shared)(Error{Errc::kInternal, "the directory of agents failed; the log says why"});
    }
  });
  if (accepted) return;
  (*shared)(too_much());
}

}  // namespace hearth::server

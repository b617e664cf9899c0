#pragma once
// Answers requests about objects, except calls, from the directory of agents and the shards.

#include "api/object_actions.hpp"
#include "base/logger.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/runtime.hpp"
#include "storage/data_directory.hpp"
#include "storage/directory.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::server {

// What an administrator has done to an object, for the audit log. Without an event nothing is
// recorded.
struct AdminAct {
  std::string_view event = {};
  std::string actor = {};
};

// Promises, Bounded, Threads, Lifetime  As AdminDesk. But requests of users go to the object's loop
// at once, and are bounded as calls are.
class ObjectDesk final : public api::ObjectActions {
 public:
  static constexpr std::chrono::milliseconds kShardPatience{5000};

  ObjectDesk(runtime::Runtime& runtime, const storage::DataDirectory& data, Logger& logger,
             std::chrono::milliseconds shard_patience = kShardPatience);

  // Waits for the request that runs. Waiting and later requests get kClosing.
  void stop();

  void list(api::ObjectPageRequest request, Answer<api::ObjectPage> answer) override;
  void show(api::ObjectName name, Answer<api::ObjectView> answer) override;
  void find(std::string uuid, Answer<api::ObjectView> answer) override;
  void create(api::ObjectName name, std::string patch, std::string actor,
              Answer<api::ObjectView> answer) override;
  void remove(api::ObjectName name, std::string actor, Answer<api::ObjectView> answer) override;
  void hibernate(api::ObjectName name, std::string actor, Answer<api::ObjectView> answer) override;
  void checkpoint(api::ObjectName name, std::string actor, Answer<api::ObjectView> answer) override;
  void storage(api::ObjectName name, std::string after, std::size_t limit,
               Answer<std::string> answer) override;
  void patch_storage(api::ObjectName name, std::string patch, std::string actor,
                     Answer<std::string> answer) override;

  // ---- on the object's loop, not on the pool: users do not wait behind administrators ----
  void set_alarm(api::ObjectAddress object, api::ObjectAlarm alarm,
                 Answer<std::string> answer) override;
  void alarms(api::ObjectAddress object, api::AlarmPageRequest request,
              Answer<std::string> answer) override;
  void cancel_alarm(api::ObjectAddress object, std::string id, std::string actor,
                    Answer<std::string> answer) override;

 private:
  using Visit = std::function<Result<std::string>(extensions::AgentContext&)>;
  struct Known {
    storage::ObjectEntry entry;
    std::string segment;
  };

  // Runs `work` on the pool's thread. `work` calls the answer.
  template <class T>
  void ask(Answer<T> answer, std::function<void(const Answer<T>&)> work);
  void record(const AdminAct& act, const storage::AgentKey& key);
  // Records `act` when the work is done.
  void visit(api::ObjectName name, Visit work, Answer<std::string> answer, AdminAct act = {});
  void visit_known(const Known& known, Visit work, Answer<std::string> answer);
  // For a user. `may_visit` runs first, on the object's loop: it makes sure that the object exists,
  // or returns an error, which ends the visit.
  using Gate = std::function<Result<void>(runtime::Shard&, const storage::AgentKey&)>;
  void visit_for_user(api::ObjectAddress object, Gate may_visit, Visit work,
                      Answer<std::string> answer);

  // Calls `answer`, and records a success as `event`; its field `what` is `value`.
  Answer<std::string> recorded(std::string_view event, const storage::AgentKey& key,
                               std::string actor, std::string_view what, std::string value,
                               Answer<std::string> answer);

  // Waits until it is not in memory, and its files are gone if it was destroyed.
  void wait_for_cold(const Known& known, Answer<std::string> then);

  // ---- on the pool's thread ----
  storage::Directory& directory();
  // The class's own name and its segment.
  [[nodiscard]] Result<std::pair<std::string, std::string>> class_of(const std::string& given);
  [[nodiscard]] Result<Known> existing(const api::ObjectName& name);
  // With data from the shards. Leaves out objects that are being destroyed.
  [[nodiscard]] Result<std::vector<api::ObjectView>> views(
      const std::vector<storage::ObjectEntry>& entries);
  [[nodiscard]] Result<api::ObjectView> view(const storage::ObjectEntry& entry);
  static std::optional<storage::AgentKey> add_wanted(
      const std::vector<storage::ObjectEntry>& entries, std::vector<api::ObjectView>& views,
      const api::ObjectPageRequest& request, std::vector<api::ObjectView>& page);
  [[nodiscard]] Result<api::ObjectPage> page(const api::ObjectPageRequest& request);
  [[nodiscard]] Result<Known> created(const api::ObjectName& name, const std::string& patch);
  [[nodiscard]] Result<api::ObjectView> removed(const Known& known);

  runtime::Runtime& runtime_;
  const storage::DataDirectory& data_;
  Logger& logger_;
  const std::chrono::milliseconds shard_patience_;
  std::atomic<bool> stopping_ = false;
  std::optional<storage::Directory> directory_;  // only the pool's thread; opened on first use
  runtime::BlockingPool pool_;                   // last: its jobs use the fields above
};

}  // namespace hearth::server

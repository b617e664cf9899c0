#pragma once
// All shards together: the server starts, queries and stops them here.

#include "base/client_memory.hpp"
#include "base/random.hpp"
#include "runtime/agent_call_router.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/class_registry.hpp"
#include "runtime/crashed_agent.hpp"
#include "runtime/shard.hpp"
#include "runtime/shard_answers.hpp"
#include "runtime/shard_loop.hpp"
#include "storage/data_directory.hpp"
#include "storage/directory.hpp"
#include "storage/sync_calls.hpp"
#include "storage/sync_service.hpp"
#include "telemetry/metrics.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtime {

struct RuntimeOptions {
  RuntimeLimits limits;
  // Threads for the agents' blocking jobs; 0: they run in Runtime::run_offloaded().
  std::size_t blocking_threads = 4;
  // Threads that close the databases of agents that leave memory; 0: their shards do it.
  std::size_t closing_threads = 0;
  // Threads that move the WALs of live agents into their files; 0: their shards do it.
  std::size_t checkpointing_threads = 0;
  // The protocol's frame that tells clients the state. Any thread.
  std::function<std::string(std::string_view state_json)> state_frame;
  // The one name behind all spellings of an object's name. kInvalidArgument: no client could reach
  // that name. Empty: each spelling is a name of its own. Any thread.
  std::function<Result<std::string>(std::string_view name)> object_name{};
  // Syncs for classes of durability `power`; null: the system. For tests; it outlives the runtime.
  storage::SyncCalls* sync_calls = nullptr;
  // Source of ids and of the waits before a retry; null: the system. For tests; it outlives the
  // runtime.
  Random* random = nullptr;
  // The agent in whose work the previous process crashed.
  std::optional<AgentCrash> crash{};
  // How the agents of a shard reach other servers; empty: they cannot. The ports outlive the
  // runtime.
  std::function<extensions::HttpPort*(unsigned shard)> http_port{};
  // Takes the spans of events, and of what they cause; null: none are recorded. It outlives the
  // runtime.
  extensions::SpanLog* span_log = nullptr;
};

// Threads    Each member says.
// Lifetime   The loops, the data directory, the logger and the metrics outlive it. stop() before
//            destruction if the loops ran.
class Runtime final : public extensions::AgentDirectory {
 public:
  // One shard for each loop. The caller runs the loops, which do not run yet. Throws StorageError
  // if the directory of agents cannot be opened.
  Runtime(std::span<ShardLoop* const> loops, const storage::DataDirectory& data, Logger& logger,
          Metrics& metrics, RuntimeOptions options);
  ~Runtime() override;

  // Any thread.
  [[nodiscard]] ClassRegistry& classes() { return classes_; }

  // The shard that an agent lives on; fixed while the process lives. Any thread.
  [[nodiscard]] unsigned shard_index(const storage::AgentKey& key) const;
  [[nodiscard]] unsigned shard_count() const { return static_cast<unsigned>(shards_.size()); }
  // Any thread; but the members of a Shard are for its own thread.
  [[nodiscard]] Shard& shard(unsigned index) { return *shards_[index]; }
  [[nodiscard]] ShardLoop& loop(unsigned index) { return *loops_[index]; }
  // Waits until all writes to the directory of agents are on the device. False: the system refuses.
  // Any thread that may wait.
  [[nodiscard]] bool sync_directory() { return sync_.wait({directory_wal_}); }
  // The account of everything held for clients, also by the network. Any thread.
  [[nodiscard]] ClientMemory& client_memory() { return client_memory_; }

  // From now on `next` serves its segment, and agents that waited for the class go on. Any thread,
  // while the loops run.
  void serve(const std::shared_ptr<const ServedClass>& next);
  // Runs the task on the loop of each shard, soon. Any thread, while the loops run.
  void tell(const std::function<void(ShardVersions& versions)>& task);
  // The same; the answers are complete when all shards have done it. After leave() and expel(), if
  // another version serves the class, no agent gets theirs any more then;
  // ServedClass::starts counts the agents that still have it.
  std::shared_ptr<const ShardAnswers> ask(const std::function<void(ShardVersions& versions)>& task);

  // From now on agents are woken when their time has come, and interrupted work is recovered. Call
  // it once, after the classes are loaded. Any thread, while the loops run.
  void start_alarms();

  // Refuses new work, lets running events finish within `grace`, evicts every agent and closes
  // every database. Then calls `done` on a shard's thread. Any thread, once, while the loops run.
  void stop(std::chrono::milliseconds grace, std::function<void()> done);

  // Runs a blocking job that waits, where no thread does. False: none waits.
  bool run_offloaded() { return pool_.run_next(); }
  // Waits for the running blocking jobs, cancels the waiting ones and refuses new ones. Jobs hold
  // the code of their class. After stop() has answered; any thread but a loop's.
  void stop_offloaded() { pool_.stop(); }

  // AgentDirectory: any thread.
  Found find(AgentHandle handle) override;
  bool post(AgentHandle handle, std::uint64_t token) override;

 private:
  [[nodiscard]] std::optional<unsigned> shard_of(AgentHandle handle) const;
  void publish_syncs(Metrics& metrics);

  const RuntimeOptions options_;
  std::vector<ShardLoop*> loops_;
  SystemRandom system_random_;
  CrashedAgent crashed_;
  ClientMemory client_memory_;
  ObjectPlaces object_places_;
  ClassRegistry classes_;
  AgentCallPaths call_paths_;
  std::vector<std::unique_ptr<AgentCallRouter>> call_routers_;  // one a shard
  BlockingPool pool_;
  BlockingPool closers_;
  BlockingPool checkpointers_;
  storage::SystemSyncCalls system_sync_calls_;
  storage::SyncService sync_;
  // Keeps the directory's WAL in place for directory_wal_: SQLite removes the WAL with the last
  // connection.
  storage::Directory directory_;
  std::shared_ptr<storage::SyncTarget> directory_wal_;
  storage::DirectoryCheckpointer directory_checkpointer_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<Metrics::Watch> watches_;  // look at sync_
};

}  // namespace hearth::runtime

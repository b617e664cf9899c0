#include "runtime/runtime.hpp"

#include "base/assert.hpp"
#include "runtime/agent_handles.hpp"

#include <atomic>
#include <limits>
#include <utility>

namespace hearth::runtime {

namespace {

// Of the pool that runs the agents' blocking jobs.
constexpr std::size_t kMaxWaitingJobs = 1000;

// Of the other pools: each job belongs to an agent in memory, and limits.max_live_agents bounds
// those. A shard that closed databases itself would wait for the device.
constexpr std::size_t kNoBound = std::numeric_limits<std::size_t>::max();

storage::Directory open_directory(const storage::DataDirectory& data) {
  data.check_directory_not_lost();
  storage::write_wal_again(data.directory_path(), {});
  return storage::Directory(data.directory_path(), data.directory_vfs());
}

}  // namespace

Runtime::Runtime(std::span<ShardLoop* const> loops, const storage::DataDirectory& data,
                 Logger& logger, Metrics& metrics, RuntimeOptions options)
    : options_(std::move(options)),
      loops_(loops.begin(), loops.end()),
      crashed_(options_.crash),
      client_memory_(options_.limits.client_memory),
      object_places_(options_.limits.max_active_objects),
      call_paths_{.classes = classes_,
                  .waits = {},
                  .post =
                      [this](const storage::AgentKey& key, std::function<void(Shard&)> task) {
                        const unsigned index = shard_index(key);
                        loops_[index]->post([shard = shards_[index].get(), task = std::move(task)] {
                          task(*shard);
                        });
                      },
                  .object_name = options_.object_name},
      pool_(options_.blocking_threads, kMaxWaitingJobs),
      closers_(options_.closing_threads, kNoBound),
      checkpointers_(options_.checkpointing_threads, kNoBound),
      system_sync_calls_(data.path()),
      sync_(options_.sync_calls != nullptr ? *options_.sync_calls : system_sync_calls_,
            data.path()),
      directory_(open_directory(data)),
      directory_checkpointer_(
          data.directory_path(),
          [&logger](const std::string& failure) {
            logger.write(LogLevel::kError, "directory.checkpoint_failed", {{"error", failure}});
          },
          data.directory_vfs()) {
  HEARTH_ASSERT(!loops_.empty() && loops_.size() <= 256, "a handle has eight bits for the shard");
  directory_wal_ = sync_.open(data.directory_path().native() + "-wal");
  // Before any write follows what a crash has left, and before the first checkpoint.
  if (!sync_.wait({directory_wal_}))
    throw StorageError("sync " + data.directory_path().string() + " failed");
  try {
    directory_.empty_wal();
  } catch (const DiskFull& failure) {  // the content is on the device, and can be read
    logger.write(LogLevel::kWarn, "server.disk_full",
                 {{"what", "moving the WAL of the directory of agents into its file"},
                  {"reason", std::string_view(failure.what())},
                  {"next", "it is moved once it is longer and there is room"}});
  }
  publish_syncs(metrics);
  const ShardEnvironment environment{
      options_.limits,
      data,
      classes_,
      pool_,
      options_.closing_threads == 0 ? nullptr : &closers_,
      options_.checkpointing_threads == 0 ? nullptr : &checkpointers_,
      logger,
      options_.random == nullptr ? system_random_ : *options_.random,
      client_memory_,
      crashed_,
      options_.state_frame,
      sync_,
      directory_wal_,
      directory_checkpointer_,
      options_.http_port,
      [this](unsigned index) { return call_routers_[index].get(); },
      object_places_,
      options_.span_log};
  for (ShardLoop* const loop : loops_)
    call_routers_.push_back(std::make_unique<AgentCallRouter>(*loop, call_paths_));
  const auto count = static_cast<unsigned>(loops_.size());
  for (unsigned index = 0; index < count; ++index) {
    shards_.push_back(std::make_unique<Shard>(index, count, *loops_[index], environment, metrics));
  }
}

void Runtime::publish_syncs(Metrics& metrics) {
  using Counts = storage::SyncService::Counts;
  const auto publish = [&](std::string_view name, std::string_view help,
                           std::uint64_t (*count)(const Counts&)) {
    watches_.push_back(metrics.watch_counter(
        name, help, [this, count] { return static_cast<double>(count(sync_.counts())); }));
  };
  publish("hearth_sync_requests_total", "Commits that waited for the device (durability power).",
          [](const Counts& counts) { return counts.requests; });
  publish("hearth_sync_batches_total", "Groups of such commits that shared a wait.",
          [](const Counts& counts) { return counts.batches; });
  publish("hearth_sync_calls_total", "Calls to the system that sync.",
          [](const Counts& counts) { return counts.calls; });
  publish("hearth_sync_failures_total", "Commits that could not be made durable.",
          [](const Counts& counts) { return counts.failures; });
}

Runtime::~Runtime() {
  checkpointers_.stop();
  closers_.stop();
  pool_.stop();
  shards_.clear();  // with their connections
  directory_.leave_wal();
}

unsigned Runtime::shard_index(const storage::AgentKey& key) const {
  return runtime::shard_index(key, shard_count());
}

void Runtime::serve(const std::shared_ptr<const ServedClass>& next) {
  classes_.put(next);
  tell([segment = next->segment](ShardVersions& versions) { versions.class_is_back(segment); });
}

void Runtime::tell(const std::function<void(ShardVersions& versions)>& task) {
  for (unsigned index = 0; index < shard_count(); ++index)
    loops_[index]->post([shard = shards_[index].get(), task] { task(shard->versions()); });
}

std::shared_ptr<const ShardAnswers> Runtime::ask(
    const std::function<void(ShardVersions& versions)>& task) {
  auto answers = std::make_shared<ShardAnswers>(shard_count(), classes().news());
  for (unsigned index = 0; index < shard_count(); ++index) {
    loops_[index]->post([shard = shards_[index].get(), task, answers, index] {
      task(shard->versions());
      answers->add(index);
    });
  }
  return answers;
}

void Runtime::start_alarms() {
  for (unsigned index = 0; index < shard_count(); ++index)
    loops_[index]->post([shard = shards_[index].get()] { shard->start_alarms(); });
}

void Runtime::stop(std::chrono::milliseconds grace, std::function<void()> done) {
  auto left = std::make_shared<std::atomic<std::size_t>>(shards_.size());
  auto all_done = std::make_shared<std::function<void()>>(std::move(done));
  for (unsigned index = 0; index < shard_count(); ++index) {
    loops_[index]->post([this, index, grace, left, all_done] {
      const SteadyTime deadline = loops_[index]->clock().steady_now() + grace;
      shards_[index]->stop(deadline, [left, all_done] {
        if (left->fetch_sub(1) == 1) (*all_done)();
      });
    });
  }
}

std::optional<unsigned> Runtime::shard_of(AgentHandle handle) const {
  const unsigned index = AgentHandles::shard_of(handle);
  if (handle == 0 || index >= shards_.size()) return std::nullopt;
  return index;
}

extensions::AgentDirectory::Found Runtime::find(AgentHandle handle) {
  const std::optional<unsigned> index = shard_of(handle);
  if (!index) return {};
  if (!loops_[*index]->on_this_thread()) return {Lookup::kWrongThread, nullptr};
  LiveAgent* agent = shards_[*index]->find_agent(handle);
  if (agent == nullptr) return {};
  // Another agent of this thread may not call either: its writes here would belong to no turn.
  if (!agent->entered()) return {Lookup::kWrongThread, nullptr};
  LiveContext* const context = &agent->context();
  if (context->phase() == extensions::AgentPhase::kClosing) return {Lookup::kClosing, context};
  return {Lookup::kFound, context};
}

bool Runtime::post(AgentHandle handle, std::uint64_t token) {
  const std::optional<unsigned> index = shard_of(handle);
  if (!index) return false;
  loops_[*index]->post([shard = shards_[*index].get(), handle, token] {
    // Only to an agent that is live: an agent that starts or leaves has no use for it.
    LiveAgent* agent = shard->find_agent(handle);
    if (agent != nullptr && !agent->entered()) agent->deliver_post(token);
  });
  return true;
}

}  // namespace hearth::runtime

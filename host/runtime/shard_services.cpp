#include "runtime/shard_services.hpp"

#include "runtime/agent_class.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/sync_gate.hpp"

#include <utility>

namespace hearth::runtime {

std::unique_ptr<DurabilityGate> ShardServices::make_gate(
    const storage::AgentDatabase& database) const {
  return std::make_unique<SyncGate>(sync, loop, database, directory_wal);
}

void ShardServices::note_storage_failed(const storage::AgentKey& key, const StorageError& failure,
                                        const extensions::Span& span) const {
  const std::string trace = span.text();
  logger.write_limited(
      LogLevel::kError, "agent.storage_failed", {key.agent_class},
      extensions::agent_line({.agent_class = key.agent_class, .agent = key.name, .trace = trace},
                             {{"error", std::string_view(failure.what())}}));
  metrics.of_class(key.agent_class).storage_failures.add();
}

void ShardServices::write_failure(std::string_view line, const storage::AgentKey& key,
                                  const Error& failure, CallId call,
                                  const extensions::Span& span) const {
  const std::string trace = span.text();
  logger.write_limited(
      LogLevel::kWarn, line, {key.agent_class, to_string(failure.code)},
      extensions::agent_line(
          {.agent_class = key.agent_class, .agent = key.name, .call = call, .trace = trace},
          {{"error", failure.message}}));
}

bool ShardServices::run_offloaded(std::shared_ptr<const AgentClass> agent_class, std::uint64_t job,
                                  OffloadOrigin origin,
                                  std::shared_ptr<std::atomic<bool>> abandoned,
                                  std::function<void(Result<void>)> done) const {
  // One owner for each version: jobs of a fixed version do not wait behind a version that hangs.
  const std::string owner =
      std::string(agent_class->name()) + " " + std::string(agent_class->sha256());
  return pool.run(
      [agent_class = std::move(agent_class), job, origin = std::move(origin),
       abandoned = std::move(abandoned), done = std::move(done), is_alive = alive,
       &its_loop = loop](bool cancelled) {
        const Result<void> outcome =
            agent_class->run_offloaded(job, cancelled || *abandoned, origin);
        its_loop.post([is_alive, done, outcome] {
          if (*is_alive) done(outcome);
        });
      },
      owner);
}

}  // namespace hearth::runtime

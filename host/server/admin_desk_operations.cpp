// Requests of administrators about agents' operations.
#include "extensions/operations.hpp"
#include "server/admin_desk.hpp"
#include "server/agent_visits.hpp"
#include "server/operation_pages.hpp"

#include <chrono>
#include <utility>

namespace hearth::server {

void AdminDesk::operations(api::OperationQuery query, Answer<api::OperationPage> answer) {
  ask<api::OperationPage>(
      std::move(answer), [this, query = std::move(query)]() -> Result<api::OperationPage> {
        std::optional<storage::AgentKey> agent;
        std::string its_class;
        if (!query.agent.empty()) {
          auto key = existing({query.agent_class, query.agent});
          if (!key) return key.error();
          agent = *std::move(key);
        } else if (!query.agent_class.empty()) {
          auto name = class_name(query.agent_class);
          if (!name) return name.error();
          its_class = *std::move(name);
        }
        return OperationPages(runtime_, directory())
            .page(query, its_class, agent, std::chrono::steady_clock::now() + shard_patience_);
      });
}

void AdminDesk::operation(api::OperationName name, Answer<std::string> answer) {
  ask<std::string>(std::move(answer), [this, name = std::move(name)]() -> Result<std::string> {
    const auto key = existing(name.agent);
    if (!key) return key.error();
    return visit_agent(
        runtime_, *key,
        [id = name.id](extensions::AgentContext& agent) {
          return extensions::OperationsExtension(agent).inspect(id);
        },
        std::chrono::steady_clock::now() + shard_patience_);
  });
}

void AdminDesk::resolve(api::OperationName name, api::Resolution how, Answer<std::string> answer) {
  ask<std::string>(
      std::move(answer),
      [this, name = std::move(name), how = std::move(how)]() -> Result<std::string> {
        const auto key = existing(name.agent);
        if (!key) return key.error();
        // The visit itself records it: it may take place after the request has timed out.
        const auto note_it = [&logger = logger_, key = *key, id = name.id, how] {
          logger.record(LogLevel::kDebug, "admin.operation_resolved",
                        {{"class", key.agent_class},
                         {"agent", key.name},
                         {"operation", id},
                         {"outcome", how.was_executed ? "completed" : "not_executed"},
                         {"note", how.note}});
        };
        return visit_agent(
            runtime_, *key,
            [id = name.id, how](extensions::AgentContext& agent) -> Result<std::string> {
              extensions::OperationsExtension ledger(agent);
              const auto outcome = how.was_executed ? durable::OperationOutcome::kCompleted
                                                    : durable::OperationOutcome::kNotExecuted;
              if (auto done =
                      ledger.resolve(id, outcome, how.result, how.note, extensions::kAdministrator);
                  done.has_error())
                return done.error();
              return ledger.inspect(id);
            },
            std::chrono::steady_clock::now() + shard_patience_, note_it);
      });
}

}  // namespace hearth::server

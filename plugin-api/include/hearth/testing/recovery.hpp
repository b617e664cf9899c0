#pragma once
// What the mock host does by itself with rows that an agent has left: recovers fibers, runs
// schedules and the queue, tells of ends.

#include <hearth/testing/managed_table.hpp>
#include <hearth/testing/queue_table.hpp>
#include <hearth/testing/schedule_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hearth::testing::detail {

// ---- interrupted fibers -------------------------------------------------------------------------

inline bool fiber_is_due(const Engine& engine, const FiberRecord& row) {
  return row.interrupted() && row.due_ns <= engine.steady_ns;
}

// The one to offer next: as the class has ordered them, then the oldest. Null if none is due.
inline FiberRecord* next_interrupted(const Engine& engine, AgentRecord& agent) {
  for (const std::string& id : agent.recovery.order) {
    FiberRecord* const row = Engine::find_row(agent, id);
    if (row && fiber_is_due(engine, *row)) return row;
  }
  for (FiberRecord& row : agent.fibers) {
    if (fiber_is_due(engine, row)) return &row;
  }
  return nullptr;
}

inline const char* why_given_up(const FiberRecord& row) {
  if (row.attempts >= Engine::kMostAttempts) return "interrupted again and again without progress";
  if (row.recoveries >= Engine::kMostRecoveries)
    return "recovered as often as fibers.max_recoveries allows, and interrupted once more";
  return nullptr;
}

// `row` is gone afterwards if it has a record.
inline void give_up(Engine& engine, AgentRecord& agent, FiberRecord& row, const std::string& why) {
  row.dead = true;
  row.last_error = why;
  Engine::write_row(agent, row);
  ManagedRow* const managed = find_managed_row(agent, row.id, {});
  if (!managed) return;
  managed->record.error = why;
  managed->record.dead = true;
  settle_row(engine, agent, *managed, FiberStatus::kError);
}

inline void end_recovery(Engine& engine, AgentRecord& agent, const std::string& id,
                         const CallRecord& ended) {
  FiberRecord* const row = Engine::find_row(agent, id);
  if (!row || !row->recovering) return;  // it goes on, or was cancelled
  ManagedRow* const managed = find_managed_row(agent, id, {});
  // Refused; a hook that answers so has failed.
  const bool unsupported = ended.refused && ended.status == HEARTH_E_UNSUPPORTED;
  std::string problem = ended.body;
  if (ended.status == HEARTH_OK || unsupported) {
    if (unsupported)
      engine.write_log("warn the class recovers no fibers: " + row->name +
                       (managed ? " is interrupted" : " was dropped"));
    if (!managed) return Engine::erase_fiber(agent, id);
    if (unsupported || ended.body.empty())
      return settle_row(engine, agent, *managed, FiberStatus::kInterrupted);
    problem = apply_outcome(engine, agent, *managed, ended.body);
    if (problem.empty()) return;
  }
  row->recovering = false;
  if (row->attempts >= Engine::kMostAttempts) return give_up(engine, agent, *row, problem);
  row->last_error = problem;
  Engine::write_row(agent, *row);
}

// Asks the class, once in an instance, in which order several are to be recovered.
inline void ask_for_plan(Engine& engine, AgentRecord& agent) {
  agent.recovery.asked = agent.recovery.asking = true;
  Json list = Json::array();
  for (const FiberRecord& row : agent.fibers) {
    if (!fiber_is_due(engine, row)) continue;
    list.push_back({{"id", row.id},
                    {"name", row.name},
                    {"created_at", row.created_at_ms},
                    {"attempt", row.attempts + 1}});
  }
  auto call = std::make_shared<CallRecord>();
  call->kind = HEARTH_EVENT_FIBERS_RECOVERED;
  call->then = [&agent](const CallRecord& ended) {
    agent.recovery.asking = false;
    const Json plan =
        ended.status == HEARTH_OK && !ended.body.empty() ? parse_json(ended.body) : Json();
    if (!plan.is_object()) return;
    agent.recovery.order = plan.value("order", std::vector<std::string>());
    agent.recovery.parallel =
        static_cast<std::size_t>(std::clamp(plan.value("parallel", 1), 1, 100));
  };
  engine.send(agent, call, {}, to_text(list), 0);
}

inline bool step_recovery(Engine& engine, AgentRecord& agent) {
  const auto count = [&](auto predicate) {
    return static_cast<std::size_t>(
        std::count_if(agent.fibers.begin(), agent.fibers.end(), predicate));
  };
  const std::size_t due = count([&](const FiberRecord& row) { return fiber_is_due(engine, row); });
  if (due == 0 || agent.recovery.asking) return false;
  if (count([](const FiberRecord& row) { return row.recovering; }) >= agent.recovery.parallel)
    return false;
  for (FiberRecord& row : agent.fibers) {
    const char* const why = fiber_is_due(engine, row) ? why_given_up(row) : nullptr;
    if (!why) continue;
    give_up(engine, agent, row, why);
    return true;
  }
  if (due > 1 && !agent.recovery.asked) {
    ask_for_plan(engine, agent);
    return true;
  }
  FiberRecord& row = *next_interrupted(engine, agent);
  row.recovering = true;
  ++row.attempts;
  ++row.recoveries;
  // The next attempt waits too if the hook ends with the agent. A server adds some chance to it.
  row.due_ns = engine.steady_ns + (std::uint64_t{1'000'000'000} << std::min(row.attempts - 1, 8));
  Engine::write_row(agent, row);
  Json body = {{"id", row.id},
               {"snapshot", row.snapshot ? Json::parse(*row.snapshot) : Json()},
               {"created_at", row.created_at_ms},
               {"attempt", row.attempts}};
  if (ManagedRow* const managed = find_managed_row(agent, row.id, {})) {
    managed->record.status = FiberStatus::kRecovering;
    body["managed"] = managed_record(engine, agent, *managed);
    body["reason"] = row.retrying ? "retry" : "interrupted";
  }
  auto call = std::make_shared<CallRecord>();
  call->kind = HEARTH_EVENT_FIBER_RECOVERED;
  call->then = [&engine, &agent, id = row.id](const CallRecord& ended) {
    end_recovery(engine, agent, id, ended);
  };
  engine.send(agent, call, std::string(row.name), to_text(body), 0);
  return true;
}

// ---- all of it ----------------------------------------------------------------------------------

inline bool step_durable(Engine& engine, AgentRecord& agent) {
  if (!agent.instance || !agent.started) return false;
  return step_recovery(engine, agent) || step_telling(engine, agent) || step_queue(engine, agent) ||
         step_schedules(engine, agent);
}

inline std::uint64_t next_durable(const Engine& engine, AgentRecord& agent) {
  std::uint64_t next = ~std::uint64_t{0};
  const auto at_steady = [&](std::uint64_t due) { next = std::min(next, due); };
  const auto at_wall = [&](std::int64_t due) {
    const std::int64_t wait = std::max<std::int64_t>(0, due - engine.wall_ms);
    const std::uint64_t now_ms = engine.steady_ns / 1'000'000;
    at_steady((now_ms + static_cast<std::uint64_t>(wait)) * 1'000'000);
  };
  if (agent.must_be_awake) at_steady(0);
  for (const FiberRecord& row : agent.fibers) {
    if (row.interrupted()) at_steady(row.due_ns);
  }
  for (const ManagedRow& row : agent.durable.managed) {
    if (is_untold(row)) at_steady(row.tell_after_ns);
  }
  if (const QueueRow* const row = next_item(agent)) at_wall(row->next_at_ms);
  for (const ScheduleRow& row : agent.durable.schedules) {
    if (const auto ready = row.ready_ms()) at_wall(*ready);
  }
  return next;
}

// The process was killed in the middle of them, which counts.
inline void count_interruptions(AgentRecord& agent) {
  for (ScheduleRow& row : agent.durable.schedules) {
    if (row.running) ++row.interruptions;
  }
}

// The instance is gone: what ran begins again with the next one. That it was interrupted is no
// failure.
inline void interrupt_durable(AgentRecord& agent) {
  for (FiberRecord& row : agent.fibers) {
    if (row.running && row.managed)
      find_managed_row(agent, row.id, {})->record.status = FiberStatus::kRecovering;
    row.running = row.recovering = false;
  }
  for (ManagedRow& row : agent.durable.managed) row.telling = false;
  for (ScheduleRow& row : agent.durable.schedules) row.running = false;
  for (QueueRow& row : agent.durable.queue) {
    if (row.state != QueueState::kRunning) continue;
    row.state = QueueState::kWaiting;
    --row.attempts;
  }
  agent.recovery = RecoveryState();
}

}  // namespace hearth::testing::detail

#pragma once
// The mock host's hearth.managed_fibers/1. Simpler than a server: nothing goes by retention, and
// waits have no chance in them.

#include <hearth/ext/managed_fibers.h>
#include <hearth/testing/caller.hpp>
#include <hearth/testing/durable_tables.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::testing::detail {

// A retry that is waiting to be offered, or an interrupted fiber: with what its row in
// cf_agents_runs says.
inline Json managed_record(const Engine& engine, AgentRecord& agent, const ManagedRow& row) {
  hearth::FiberRecord record = row.record;
  const FiberRecord* const run = record.settled() ? nullptr : Engine::find_row(agent, record.id);
  if (run) {
    record.snapshot = run->snapshot ? hearth::detail::parse_record(*run->snapshot) : Json();
    record.attempts = run->attempts;
    if (run->interrupted() && run->due_ns > engine.steady_ns)
      record.next_at =
          Time(std::chrono::milliseconds(engine.wall_ms) +
               std::chrono::milliseconds((run->due_ns - engine.steady_ns) / 1'000'000));
  }
  return record;
}
inline std::string managed_text(const Engine& engine, AgentRecord& agent, const ManagedRow& row) {
  return to_text(managed_record(engine, agent, row));
}

// By id, or by key if `id` is empty.
inline ManagedRow* find_managed_row(AgentRecord& agent, std::string_view id, std::string_view key) {
  auto& all = agent.durable.managed;
  const auto row = std::find_if(all.begin(), all.end(), [&](const ManagedRow& each) {
    return id.empty() ? !key.empty() && each.record.key == key : each.record.id == id;
  });
  return row == all.end() ? nullptr : &*row;
}

// Its status is final; its row in cf_agents_runs goes.
inline void settle_row(Engine& engine, AgentRecord& agent, ManagedRow& row, FiberStatus status) {
  if (const FiberRecord* const run = Engine::find_row(agent, row.record.id)) {
    row.record.snapshot = run->snapshot ? hearth::detail::parse_record(*run->snapshot) : Json();
    row.record.attempts = run->attempts;
    Engine::erase_fiber(agent, std::string(row.record.id));
  }
  row.record.status = status;
  row.record.completed_at = Time(std::chrono::milliseconds(engine.wall_ms));
  row.record.next_at.reset();
  row.told = row.telling = false;
  row.tell_after_ns = 0;
}

// {"status", "result", ...}: what a hook or resolve() says. A text says what is wrong.
inline std::string apply_outcome(Engine& engine, AgentRecord& agent, ManagedRow& row,
                                 std::string_view text) {
  const Json outcome = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!outcome.is_object() || !outcome.contains("status")) return "not an outcome";
  const std::string word =
      outcome.at("status").is_string() ? outcome.at("status").get<std::string>() : std::string();
  const auto status = hearth::detail::find_word<FiberStatus>(hearth::detail::kFiberStatuses, word);
  if (static_cast<std::uint32_t>(status) < HEARTH_FIBER_INTERRUPTED) return "not an outcome";
  settle_row(engine, agent, row, status);
  row.record.dead = false;
  row.record.result = hearth::detail::find_json(outcome, "result");
  row.record.error = hearth::detail::find_text(outcome, "error");
  if (outcome.contains("snapshot")) row.record.snapshot = outcome.at("snapshot");
  if (outcome.contains("metadata")) row.record.metadata = outcome.at("metadata");
  return {};
}

// ---- the table ----------------------------------------------------------------------------------

inline bool blank(std::string_view text) {
  return !text.empty() && text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}
inline std::string read_fiber_request(const hearth_fiber_request& request, ManagedRow& row) {
  const auto is_name = [](hearth_bytes bytes) {
    return bytes.len <= 256 && is_utf8(view(bytes)) && !blank(view(bytes));
  };
  if (request.name.len == 0 || !is_name(request.name))
    return "a fiber's name is 1 to 256 bytes of UTF-8";
  if (!is_name(request.id) || !is_name(request.key))
    return "a fiber's id and key are 1 to 256 bytes of UTF-8 and not blank";
  if (!is_json(request.input.len == 0 ? "null" : view(request.input)) ||
      !is_json(request.metadata.len == 0 ? "null" : view(request.metadata)))
    return "input and metadata are JSON";
  hearth::FiberRecord& record = row.record;
  record.name = view(request.name);
  if (request.key.len != 0) record.key = std::string(view(request.key));
  if (request.input.len != 0) record.input = hearth::detail::parse_record(view(request.input));
  if (request.metadata.len != 0)
    record.metadata = hearth::detail::parse_record(view(request.metadata));
  record.max_retries = static_cast<int>(request.max_retries);
  if (request.retry_base_ms != 0)
    row.retry_base_ms = static_cast<std::int64_t>(request.retry_base_ms);
  if (request.retry_max_ms != 0) row.retry_max_ms = static_cast<std::int64_t>(request.retry_max_ms);
  return {};
}

inline hearth_status start_managed(const hearth_host* host, hearth_agent id,
                                   const hearth_fiber_request* request, hearth_fiber* handle,
                                   hearth_bytes* text) {
  const Caller caller(host, id);
  if (caller.bad()) return caller.status;
  if (caller.in_transaction()) return caller.fail_in_transaction();
  AgentRecord& agent = *caller.agent;
  ManagedRow row;
  const std::string problem = read_fiber_request(*request, row);
  if (!problem.empty()) return caller.fail(HEARTH_E_INVALID, problem);
  ManagedRow* const by_id =
      request->id.len == 0 ? nullptr : find_managed_row(agent, view(request->id), {});
  ManagedRow* const by_key = find_managed_row(agent, {}, view(request->key));
  if (by_id && by_key && by_id != by_key)
    return caller.fail(HEARTH_E_INVALID, "id and key name different fibers");
  if (const ManagedRow* const old = by_id ? by_id : by_key) {
    const bool replaces = old->record.settled() && request->policy == HEARTH_FIBER_REPLACE;
    if (!replaces && (old->record.name != row.record.name || old->record.input != row.record.input))
      return caller.fail(HEARTH_E_CONFLICT,
                         "a managed fiber of this id or key has another name or input");
    if (!replaces && row.record.key && row.record.key != old->record.key)
      return caller.fail(HEARTH_E_CONFLICT,
                         "the managed fiber of this id has another key, or none");
    if (old->record.settled() && request->policy == HEARTH_FIBER_REJECT)
      return caller.fail(HEARTH_E_CONFLICT, "the fiber of this id or key is settled");
    if (!replaces) {
      *handle = 0;
      return caller.lend(managed_text(caller.engine, agent, *old), text);
    }
    std::erase_if(agent.durable.managed,
                  [gone = old->record.id](const auto& each) { return each.record.id == gone; });
  }
  if (caller.engine.start_fiber_status != HEARTH_OK)
    return caller.fail(caller.engine.start_fiber_status, "start fails in this test");
  FiberRecord run;
  run.handle = caller.engine.next_number();
  run.id = request->id.len == 0 ? durable_id(run.handle) : std::string(view(request->id));
  run.name = row.record.name;
  run.created_at_ms = caller.engine.wall_ms;
  run.running = run.managed = true;
  row.record.id = run.id;
  row.record.created_at = Time(std::chrono::milliseconds(run.created_at_ms));
  *handle = run.handle;
  Engine::write_row(agent, run);
  agent.fibers.push_back(run);
  agent.durable.managed.push_back(row);
  const std::string accepted = managed_text(caller.engine, agent, row);  // pending
  agent.durable.managed.back().record.status = FiberStatus::kRunning;
  agent.durable.managed.back().record.started_at = row.record.created_at;
  return caller.lend(accepted, text);
}

inline hearth_status resume_managed_row(const hearth_host* host, hearth_agent id, hearth_bytes name,
                                        hearth_fiber* handle) {
  const Caller caller(host, id);
  if (caller.bad()) return caller.status;
  if (caller.in_transaction()) return caller.fail_in_transaction();
  ManagedRow* const row = find_managed_row(*caller.agent, view(name), {});
  FiberRecord* const run = Engine::find_row(*caller.agent, view(name));
  if (!row || !run || !run->recovering)
    return caller.fail(HEARTH_E_NOT_FOUND, "no fiber of this id is being offered");
  if (caller.engine.start_fiber_status != HEARTH_OK)
    return caller.fail(caller.engine.start_fiber_status, "resume fails in this test");
  run->running = true;
  run->recovering = run->retrying = false;
  run->handle = *handle = caller.engine.next_number();
  row->record.status = FiberStatus::kRunning;
  return HEARTH_OK;
}

// The work failed and is to begin again: when.
inline void wait_for_retry(const Engine& engine, AgentRecord& agent, ManagedRow& row,
                           FiberRecord& run) {
  const int doublings = std::min(row.record.failures - 1, 40);
  const std::int64_t wait = std::min(row.retry_max_ms, row.retry_base_ms << doublings);
  run.running = false;
  run.retrying = true;
  run.attempts = 0;
  run.recoveries =
      std::max(0, run.recoveries - 1);  // the one that follows is no more than the one before
  run.due_ns = engine.steady_ns + static_cast<std::uint64_t>(wait) * 1'000'000;
  row.record.status = FiberStatus::kPending;
  Engine::write_row(agent, run);
}

inline hearth_status settle_managed(const hearth_host* host, hearth_agent id, hearth_fiber handle,
                                    std::uint32_t status, hearth_bytes body, hearth_bytes* text) {
  return with_fiber(host, id, handle, [&](const Caller& caller, FiberRecord& run) {
    AgentRecord& agent = *caller.agent;
    ManagedRow* const row = find_managed_row(agent, run.id, {});
    if (!row) return caller.fail(HEARTH_E_INVALID, "this fiber is not managed");
    hearth::FiberRecord& record = row->record;
    if (status == HEARTH_FIBER_COMPLETED) {
      if (body.len != 0 && !is_json(view(body)))
        return caller.fail(HEARTH_E_INVALID, "the result is not JSON");
      record.result = body.len == 0 ? Json() : hearth::detail::parse_record(view(body));
      record.error.reset();
      settle_row(caller.engine, agent, *row, FiberStatus::kCompleted);
    } else if (status == HEARTH_FIBER_ERROR) {
      record.error = std::string(view(body));
      if (record.failures++ < record.max_retries)
        wait_for_retry(caller.engine, agent, *row, run);
      else
        settle_row(caller.engine, agent, *row, FiberStatus::kError);
    } else if (status == HEARTH_FIBER_ABORTED) {
      record.error = std::string(view(body));
      settle_row(caller.engine, agent, *row, FiberStatus::kAborted);
    } else {
      return caller.fail(HEARTH_E_INVALID, "a fiber ends as completed, error or aborted");
    }
    return caller.lend(managed_text(caller.engine, agent, *row), text);
  });
}

// Finds the record, then does `use` with it.
template <class Use>
hearth_status with_managed(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                           hearth_bytes key, Use use) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  ManagedRow* const row = find_managed_row(*caller.agent, view(id), view(key));
  if (!row) return caller.fail(HEARTH_E_NOT_FOUND, "no managed fiber has this id or key");
  return use(caller, *row);
}
inline hearth_status inspect_managed(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                                     hearth_bytes key, hearth_bytes* text) {
  return with_managed(host, agent, id, key, [&](const Caller& caller, const ManagedRow& row) {
    return caller.lend(managed_text(caller.engine, *caller.agent, row), text);
  });
}
inline bool managed_matches(const hearth_fiber_filter& filter, const ManagedRow& row) {
  const hearth::FiberRecord& record = row.record;
  return (filter.statuses == 0 ||
          (filter.statuses & static_cast<std::uint32_t>(record.status)) != 0) &&
         (filter.name.len == 0 || view(filter.name) == record.name) &&
         (filter.before_ms == 0 ||
          record.created_at.time_since_epoch().count() < filter.before_ms) &&
         (filter.dead == 0 || record.dead);
}
inline hearth_status list_managed(const hearth_host* host, hearth_agent agent,
                                  const hearth_fiber_filter* filter, hearth_bytes* texts) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  Json list = Json::array();
  const auto& all = caller.agent->durable.managed;
  bool after = filter->after.len == 0;
  for (auto row = all.rbegin(); row != all.rend(); ++row) {
    if (!after) {
      after = row->record.id == view(filter->after);
      continue;
    }
    if (managed_matches(*filter, *row) && list.size() < (filter->limit == 0 ? 50 : filter->limit))
      list.push_back(managed_record(caller.engine, *caller.agent, *row));
  }
  return caller.lend(to_text(list), texts);
}
inline hearth_status cancel_managed(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                                    hearth_bytes key, hearth_bytes reason) {
  return with_managed(host, agent, id, key, [&](const Caller& caller, ManagedRow& row) {
    if (caller.in_transaction()) return caller.fail_in_transaction();
    if (row.record.settled()) return caller.fail(HEARTH_E_NOT_FOUND, "the fiber is settled");
    row.record.error = reason.len == 0 ? std::nullopt : std::optional(std::string(view(reason)));
    settle_row(caller.engine, *caller.agent, row, FiberStatus::kAborted);
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status resolve_managed(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                                     hearth_bytes outcome) {
  return with_managed(host, agent, id, {nullptr, 0}, [&](const Caller& caller, ManagedRow& row) {
    if (caller.in_transaction()) return caller.fail_in_transaction();
    if (row.record.status != FiberStatus::kInterrupted && !row.record.dead)
      return caller.fail(HEARTH_E_NOT_FOUND, "no interrupted or dead fiber has this id");
    const std::string problem = apply_outcome(caller.engine, *caller.agent, row, view(outcome));
    return problem.empty() ? hearth_status{HEARTH_OK} : caller.fail(HEARTH_E_INVALID, problem);
  });
}
inline hearth_status retry_managed(const hearth_host* host, hearth_agent agent, hearth_bytes id) {
  return with_managed(host, agent, id, {nullptr, 0}, [&](const Caller& caller, ManagedRow& row) {
    if (caller.in_transaction()) return caller.fail_in_transaction();
    hearth::FiberRecord& record = row.record;
    if (record.status != FiberStatus::kInterrupted && !record.dead)
      return caller.fail(HEARTH_E_NOT_FOUND, "no interrupted or dead fiber has this id");
    FiberRecord run;
    run.id = record.id;
    run.name = record.name;
    if (!record.snapshot.is_null()) run.snapshot = to_text(record.snapshot);
    run.created_at_ms = record.created_at.time_since_epoch().count();
    run.managed = true;
    record.status = FiberStatus::kRecovering;
    record.dead = false;
    record.completed_at.reset();
    record.error.reset();
    Engine::write_row(*caller.agent, run);
    caller.agent->fibers.push_back(std::move(run));
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status remove_managed(const hearth_host* host, hearth_agent agent,
                                    const hearth_fiber_filter* filter, std::uint64_t* removed) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (caller.in_transaction()) return caller.fail_in_transaction();
  hearth_fiber_filter wanted = *filter;
  if (wanted.statuses == 0)
    wanted.statuses = HEARTH_FIBER_COMPLETED | HEARTH_FIBER_ERROR | HEARTH_FIBER_ABORTED;
  std::vector<std::pair<Time, std::string>> settled;  // those settled longest ago first
  for (const ManagedRow& row : caller.agent->durable.managed) {
    if (row.record.settled() && managed_matches(wanted, row))
      settled.emplace_back(row.record.completed_at.value_or(Time()), row.record.id);
  }
  std::sort(settled.begin(), settled.end());
  const std::size_t most = wanted.limit == 0 ? 100 : wanted.limit;
  if (settled.size() > most) settled.resize(most);
  for (const auto& [at, id] : settled) {
    std::erase_if(caller.agent->durable.managed,
                  [&](const ManagedRow& row) { return row.record.id == id; });
  }
  *removed = settled.size();
  return HEARTH_OK;
}

inline constexpr hearth_managed_fibers_v1 kManagedFibers = {
    &start_managed,  &resume_managed_row, &settle_managed, &inspect_managed, &list_managed,
    &cancel_managed, &resolve_managed,    &retry_managed,  &remove_managed};

// ---- telling: FIBER_SETTLED ---------------------------------------------------------------------

inline bool is_untold(const ManagedRow& row) {
  return row.record.settled() && !row.told && !row.telling;
}
inline bool step_telling(Engine& engine, AgentRecord& agent) {
  auto& all = agent.durable.managed;
  const auto row = std::find_if(all.begin(), all.end(), [&](const ManagedRow& each) {
    return is_untold(each) && each.tell_after_ns <= engine.steady_ns;
  });
  if (row == all.end()) return false;
  row->telling = true;
  auto call = std::make_shared<CallRecord>();
  call->kind = HEARTH_EVENT_FIBER_SETTLED;
  call->then = [&engine, &agent, id = row->record.id](const CallRecord& ended) {
    ManagedRow* const told = find_managed_row(agent, id, {});
    if (!told || !told->telling) return;  // removed, or settled anew
    told->telling = false;
    told->told = ended.status == HEARTH_OK || ended.status == HEARTH_E_UNSUPPORTED;
    told->tell_after_ns = engine.steady_ns + 1'000'000'000;
  };
  engine.send(agent, call, std::string(row->record.name), managed_text(engine, agent, *row), 0);
  return true;
}

}  // namespace hearth::testing::detail

#pragma once
// The mock host's hearth.queue/1. Simpler than a server: items have no deadline.

#include <hearth/ext/queue.h>
#include <hearth/testing/caller.hpp>
#include <hearth/testing/schedule_table.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::testing::detail {

inline QueueRow* find_item(AgentRecord& agent, std::string_view id) {
  auto& all = agent.durable.queue;
  const auto row =
      std::find_if(all.begin(), all.end(), [&](const auto& it) { return it.id == id; });
  return row == all.end() ? nullptr : &*row;
}
inline void erase_item(AgentRecord& agent, const std::string& id) {
  std::erase_if(agent.durable.queue, [&](const QueueRow& each) { return each.id == id; });
}

inline hearth_status push_item(const hearth_host* host, hearth_agent agent,
                               const hearth_queue_request* request, hearth_bytes* record) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (caller.in_transaction()) return caller.fail_in_transaction();
  QueueRow row;
  std::string problem =
      read_request_call(request->callback, request->payload, row.callback, row.payload);
  if (problem.empty())
    problem = read_request_retry(request->max_attempts, request->retry_base_ms,
                                 request->retry_max_ms, row.retry);
  if (!problem.empty()) return caller.fail(HEARTH_E_INVALID, problem);
  row.id = durable_id(caller.engine.next_number());
  row.created_at_ms = caller.engine.wall_ms;
  caller.agent->durable.queue.push_back(row);
  return caller.lend(to_text(queue_record(row)), record);
}

// Finds the row, then does `use` with it.
template <class Use>
hearth_status with_item(const hearth_host* host, hearth_agent agent, hearth_bytes id, Use use) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  QueueRow* const row = find_item(*caller.agent, view(id));
  if (!row) return caller.fail(HEARTH_E_NOT_FOUND, "no queue item has this id");
  return use(caller, *row);
}
inline hearth_status get_item(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                              hearth_bytes* record) {
  return with_item(host, agent, id, [&](const Caller& caller, const QueueRow& row) {
    return caller.lend(to_text(queue_record(row)), record);
  });
}
inline bool item_matches(const hearth_queue_filter& filter, const QueueRow& row) {
  const bool same_member = filter.member.len == 0 || [&] {
    const auto member =
        row.payload.is_object() ? row.payload.find(view(filter.member)) : row.payload.end();
    return member != row.payload.end() &&
           *member == hearth::detail::parse_record(view(filter.value));
  }();
  return same_member && (filter.callback.len == 0 || view(filter.callback) == row.callback) &&
         (filter.state.len == 0 ||
          view(filter.state) == hearth::detail::word_of(hearth::detail::kQueueStates, row.state));
}
inline hearth_status list_items(const hearth_host* host, hearth_agent agent,
                                const hearth_queue_filter* filter, hearth_bytes* records) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (filter->member.len != 0 && !is_json(view(filter->value)))
    return caller.fail(HEARTH_E_INVALID, "the value is not JSON");
  Json list = Json::array();
  bool after = filter->after.len == 0;
  for (const QueueRow& row : caller.agent->durable.queue) {
    if (!after) {
      after = row.id == view(filter->after);
      continue;
    }
    if (item_matches(*filter, row) && list.size() < (filter->limit == 0 ? 100 : filter->limit))
      list.push_back(queue_record(row));
  }
  return caller.lend(to_text(list), records);
}
inline hearth_status remove_item(const hearth_host* host, hearth_agent agent, hearth_bytes id) {
  return with_item(host, agent, id, [&](const Caller& caller, const QueueRow& row) {
    if (caller.in_transaction()) return caller.fail_in_transaction();
    erase_item(*caller.agent, std::string(row.id));
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status remove_items(const hearth_host* host, hearth_agent agent,
                                  const hearth_queue_filter* filter, std::uint64_t* removed) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (caller.in_transaction()) return caller.fail_in_transaction();
  *removed = std::erase_if(caller.agent->durable.queue,
                           [&](const QueueRow& row) { return item_matches(*filter, row); });
  return HEARTH_OK;
}
inline hearth_status retry_item(const hearth_host* host, hearth_agent agent, hearth_bytes id) {
  return with_item(host, agent, id, [&](const Caller& caller, const QueueRow& found) {
    if (caller.in_transaction()) return caller.fail_in_transaction();
    if (found.state != QueueState::kDead)
      return caller.fail(HEARTH_E_NOT_FOUND, "no dead letter has this id");
    QueueRow row = found;
    erase_item(*caller.agent, row.id);
    row.state = QueueState::kWaiting;
    row.attempts = 0;
    row.next_at_ms = 0;
    caller.agent->durable.queue.push_back(std::move(row));
    return hearth_status{HEARTH_OK};
  });
}

inline constexpr hearth_queue_v1 kQueue = {&push_item,   &get_item,     &list_items,
                                           &remove_item, &remove_items, &retry_item};

// ---- delivery -----------------------------------------------------------------------------------

inline void end_item(Engine& engine, AgentRecord& agent, const std::string& id,
                     const CallRecord& ended) {
  QueueRow* const row = find_item(agent, id);
  if (!row) return;  // dequeued meanwhile
  if (ended.status == HEARTH_OK) return erase_item(agent, id);
  const bool missing = ended.status == HEARTH_E_NOT_FOUND || ended.status == HEARTH_E_UNSUPPORTED;
  row->last_error = ended.body;
  row->state = QueueState::kWaiting;
  if (missing || row->attempts >= row->retry.max_attempts) {
    row->state = QueueState::kDead;
    engine.write_log("warn queue item " + row->callback + " is dead: " + ended.body);
    return;
  }
  row->next_at_ms = engine.wall_ms +
                    hearth::detail::retry_delay(row->retry, row->attempts, engine.random()).count();
}

// The one that is next; null if none waits or one runs.
inline QueueRow* next_item(AgentRecord& agent) {
  for (QueueRow& row : agent.durable.queue) {
    if (row.state == QueueState::kRunning) return nullptr;
    if (row.state == QueueState::kWaiting) return &row;
  }
  return nullptr;
}

inline bool step_queue(Engine& engine, AgentRecord& agent) {
  QueueRow* const row = next_item(agent);
  if (!row || row->next_at_ms > engine.wall_ms) return false;
  row->state = QueueState::kRunning;
  ++row->attempts;
  const Json body = {{"id", row->id},
                     {"payload", row->payload},
                     {"created_at", row->created_at_ms},
                     {"attempt", row->attempts}};
  auto call = std::make_shared<CallRecord>();
  call->kind = HEARTH_EVENT_QUEUE_ITEM;
  call->then = [&engine, &agent, id = row->id](const CallRecord& ended) {
    end_item(engine, agent, id, ended);
  };
  engine.send(agent, call, std::string(row->callback), to_text(body), 0);
  return true;
}

}  // namespace hearth::testing::detail

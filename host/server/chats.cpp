#include "server/chats.hpp"

#include "extensions/durable_work.hpp"
#include "extensions/fibers.hpp"
#include "json/json.hpp"
#include "server/agent_sql.hpp"
#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <cstddef>
#include <optional>
#include <utility>

namespace hearth::server {
namespace {

using extensions::AgentContext;
using extensions::Wait;
using extensions::WaitKind;

constexpr std::string_view kSummary =
    "SELECT iif(t.stopping, 'stopping', iif(t.id IS NOT NULL, 'running', iif(waiting > 0, "
    "'waiting', iif(asks, 'asks', 'idle')))) AS state, t.id AS turn, t.began AS since_ms, "
    "waiting, messages, last_at_ms FROM (SELECT "
    "(SELECT count(*) FROM chat_turns WHERE state = 'queued') AS waiting, "
    "EXISTS (SELECT 1 FROM chat_messages WHERE pending) AS asks, "
    "(SELECT count(*) FROM chat_messages) AS messages, "
    "(SELECT max(coalesce(ended, began, created)) FROM chat_turns) AS last_at_ms) "
    "LEFT JOIN (SELECT id, began, stopping FROM chat_turns WHERE state = 'running' "
    "ORDER BY seq LIMIT 1) t ON true";

#define HEARTH_TURN                                                                     \
  "SELECT id, kind AS name, iif(stopping AND state = 'running', 'stopping', state) AS " \
  "state, created AS created_at, iif(state = 'queued', not_before, NULL) AS next_at, "  \
  "nullif(error, '') AS error, began AS began_at, ended AS ended_at, message_id, "      \
  "asked_by, step, work, progress, spent, incident FROM chat_turns "

constexpr std::string_view kTurns = HEARTH_TURN
    "WHERE ?1 = '' OR seq < (SELECT seq FROM chat_turns WHERE id = ?1) ORDER BY seq DESC LIMIT 100";
constexpr std::string_view kTurn = HEARTH_TURN "WHERE id = ?1";
#undef HEARTH_TURN

constexpr std::string_view kAsked =
    "SELECT json_extract(p.value, '$.state') = 'approval-requested' AS is_approval, "
    "coalesce(json_extract(p.value, '$.toolName'), substr(json_extract(p.value, '$.type'), 6)) "
    "AS tool, json_extract(p.value, '$.toolCallId') AS call, "
    "(SELECT max(coalesce(ended, began, created)) FROM chat_turns) AS since_ms "
    "FROM chat_messages m, json_each(iif(m.split, (SELECT group_concat(text, '') FROM (SELECT text "
    "FROM chat_pieces WHERE message = m.seq ORDER BY piece)), m.body), '$.parts') p WHERE "
    "m.pending "
    "AND NOT EXISTS (SELECT 1 FROM chat_turns WHERE state IN ('queued', 'running')) "
    "AND json_extract(p.value, '$.state') IN ('input-available', 'approval-requested') "
    "AND NOT coalesce(json_extract(p.value, '$.providerExecuted'), false)";

bool is_chat(AgentContext& agent) {
  return agent.database().has_table("chat_turns");
}

// The rows as objects; none if it is no chat.
Result<Json> read_chat(AgentContext& agent, std::string_view sql,
                       std::optional<std::string_view> value = std::nullopt) {
  Json rows = Json::array();
  if (!is_chat(agent)) return rows;
  const auto text = read_with_sql(agent, sql, value);
  if (!text) return text.error();
  const auto answer = parse_host_json(*text);
  if (!answer) return answer.error();
  const Json& columns = answer->at("columns");
  for (const Json& cells : answer->at("rows")) {
    Json& row = rows.emplace_back(Json::object());
    for (std::size_t i = 0; i < columns.size(); ++i) row[columns[i].get<std::string>()] = cells[i];
  }
  return rows;
}

// As the library names the fiber of a turn.
std::string fiber_key(std::string_view turn) {
  return "chat:" + std::string(turn);
}

// The record of the fiber that runs the turn; null: none does.
Result<Json> fiber_of(AgentContext& agent, std::string_view turn) {
  const auto text = agent.work().fibers().records().inspect("", fiber_key(turn));
  if (!text) return Json();
  return parse_host_json(*text);
}

// In the chat's tables a turn is running until the library has handled the end of its fiber.
void correct_state(Json& row, const Json& fiber) {
  if (text_member(row, "state") == "running" && text_member(fiber, "status") == "aborted")
    row["state"] = "stopping";
}

// The rows with their states corrected; `id`: the member that names the turn.
Result<Json> read_turns(AgentContext& agent, const char* id, std::string_view sql,
                        std::optional<std::string_view> value = std::nullopt) {
  auto rows = read_chat(agent, sql, value);
  if (!rows) return rows;
  for (Json& row : *rows) {
    if (text_member(row, "state") != "running") continue;
    const auto fiber = fiber_of(agent, text_member(row, id));
    if (!fiber) return fiber;
    correct_state(row, *fiber);
  }
  return rows;
}

}  // namespace

Result<std::string> chat_summary(AgentContext& agent) {
  const auto rows = read_turns(agent, "turn", kSummary);
  if (!rows) return rows.error();
  return rows->empty() ? std::string("null") : dump_json(rows->front());
}

Result<std::string> list_turns(AgentContext& agent, std::string_view after) {
  const auto rows = read_turns(agent, "id", kTurns, after);
  if (!rows) return rows.error();
  return dump_json(*rows);
}

Result<std::string> find_turn(AgentContext& agent, std::string_view id) {
  auto rows = read_chat(agent, kTurn, id);
  if (!rows) return rows.error();
  if (rows->empty()) return Error{Errc::kNotFound, "no turn has this id"};
  Json& turn = rows->front();
  for (const char* const part : {"spent", "incident"}) {
    if (auto its = parse_host_json(text_member(turn, part))) turn[part] = *std::move(its);
  }
  auto fiber = fiber_of(agent, id);
  if (!fiber) return fiber.error();
  correct_state(turn, *fiber);
  turn["fiber"] = *std::move(fiber);
  return dump_json(turn);
}

Result<void> cancel_turn(AgentContext& agent, std::string_view id, std::string_view why) {
  const auto done = extensions::FiberExtension(agent).cancel("", fiber_key(id), why);
  return done ? Result<void>() : done.error();
}

std::vector<Wait> chat_waits(AgentContext& agent) {
  std::vector<Wait> waits;
  const auto rows = read_chat(agent, kAsked);
  if (!rows) return waits;  // tables of the same name, of something else
  for (const Json& row : *rows) {
    Wait& wait = waits.emplace_back();
    wait.kind = row.at("is_approval") == 1 ? WaitKind::kApproval : WaitKind::kClientTool;
    wait.subject = text_member(row, "tool");
    wait.detail = text_member(row, "call");
    if (row.at("since_ms").is_number_integer())
      wait.since_ms = row.at("since_ms").get<std::int64_t>();
  }
  return waits;
}

}  // namespace hearth::server

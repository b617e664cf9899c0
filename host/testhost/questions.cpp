#include "testhost/questions.hpp"

#include "durable/jobs.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/sql.hpp"
#include "json/json.hpp"
#include "storage/agent_database.hpp"
#include "storage/plugin_sql.hpp"
#include "storage/statement.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

namespace hearth::testhost {
namespace {

using testing::FiberRecord;

Json column(storage::PluginSql& sql, storage::StatementHandle statement, int place) {
  using storage::ColumnType;
  switch (*sql.column_type(statement, place)) {
    case ColumnType::kInteger: return *sql.column_int64(statement, place);
    case ColumnType::kDouble: return *sql.column_double(statement, place);
    case ColumnType::kNull: return nullptr;
    default: return std::string(*sql.column_text(statement, place));
  }
}

// All pages of a listing, the oldest first.
template <class List>
std::string all_of(List list, bool newest_first) {
  Json all = Json::array();
  std::string after;
  for (;;) {
    const Result<std::string> text = list(after);
    if (text.has_error()) throw std::runtime_error(text.error().message);
    const Json page = *parse_host_json(*text);
    if (page.empty()) break;
    for (const Json& each : page) all.push_back(each);
    after = text_member(page.back(), "id");
  }
  if (newest_first) std::reverse(all.begin(), all.end());
  return dump_json(all);
}

bool has_jobs(extensions::AgentContext& agent) {
  return agent.database().exists() && durable::Jobs(agent.database()).exists();
}

}  // namespace

// The agent's own: a second one on its connection would take the authorizer away with it.
std::string rows_of(extensions::AgentContext& agent, const std::string& text) {
  storage::PluginSql& sql = agent.of<extensions::SqlExtension>().sql();
  const auto statement = sql.prepare(text);
  if (statement.has_error()) throw std::runtime_error(statement.error().message);
  const auto finalize = [&sql](const storage::StatementHandle* handle) {
    (void)sql.finalize(*handle);
  };
  const std::unique_ptr<const storage::StatementHandle, decltype(finalize)> open(&*statement,
                                                                                 finalize);
  const int columns = *sql.column_count(*statement);
  Json rows = Json::array();
  for (;;) {
    const auto outcome = sql.step(*statement);
    if (outcome.has_error()) throw std::runtime_error(outcome.error().message);
    if (*outcome == storage::StepOutcome::kDone) break;
    Json row = Json::array();
    for (int place = 0; place < columns; ++place) row.push_back(column(sql, *statement, place));
    rows.push_back(std::move(row));
  }
  return dump_json(rows);
}

std::vector<FiberRecord> fibers_of(extensions::AgentContext& agent, bool is_live) {
  std::vector<FiberRecord> fibers;
  if (!has_jobs(agent)) return fibers;
  storage::Statement find(
      agent.database().connection(),
      "SELECT id, name, (SELECT body FROM cf_agents_job_documents WHERE job = seq AND part = 3), "
      "created_at, attempts, claims, state = 2 OR dead, "
      "(SELECT body FROM cf_agents_job_documents WHERE job = seq AND part = 6), "
      "kind = 2 AND coalesce(type, '') <> 'brief' FROM cf_agents_jobs "
      "WHERE kind = 1 OR (kind = 2 AND (ended_at IS NULL OR dead)) ORDER BY seq");
  storage::Rows rows = find.query();
  while (rows.next()) {
    FiberRecord fiber;
    fiber.id = rows.text(0);
    fiber.name = rows.text(1);
    if (!rows.is_null(2)) fiber.snapshot = rows.text(2);
    fiber.created_at_ms = rows.integer(3);
    fiber.attempts = static_cast<int>(rows.integer(4));
    fiber.recoveries = static_cast<int>(rows.integer(5));
    fiber.dead = rows.integer(6) != 0;
    if (!rows.is_null(7)) fiber.last_error = rows.text(7);
    fiber.keeps_record = rows.integer(8) != 0;
    fibers.push_back(std::move(fiber));
  }
  for (FiberRecord& fiber : fibers) {
    if (!is_live) continue;
    durable::Fibers& live = agent.work().fibers();
    const durable::FiberNow now = live.recovery().now_of(fiber.id);
    fiber.recovering = now == durable::FiberNow::kRecovers;
    fiber.running = now == durable::FiberNow::kRuns;
  }
  return fibers;
}

std::string fiber_records_of(extensions::AgentContext& agent) {
  return all_of(
      [&](const std::string& after) {
        return agent.work().fibers().records().list({.after = after, .limit = 100});
      },
      true);
}

std::string schedules_of(extensions::AgentContext& agent) {
  return all_of(
      [&](const std::string& after) { return agent.work().schedules().list({.after = after}); },
      false);
}

std::string queue_of(extensions::AgentContext& agent) {
  return all_of(
      [&](const std::string& after) {
        return agent.work().queue().list({.after = after, .limit = 100});
      },
      false);
}

std::optional<std::int64_t> due_in(extensions::AgentContext& agent, std::string_view schedule) {
  if (!has_jobs(agent)) return std::nullopt;
  const auto job = durable::Jobs(agent.database()).find(durable::JobKind::kSchedule, schedule);
  return job ? std::optional(job->next_at_ms) : std::nullopt;
}

}  // namespace hearth::testhost

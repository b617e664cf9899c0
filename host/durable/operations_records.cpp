// The rows of operations: reading, listing, telling the agent's code, and removal.
#include "durable/operations.hpp"
#include "json/json.hpp"
#include "json/json_object_text.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace hearth::durable {

using storage::Param;
using storage::Rows;

namespace {

constexpr std::int64_t kSweptAtOnce = 100;

constexpr std::array kOperationTables = {
    "CREATE TABLE IF NOT EXISTS cf_agents_operations(seq INTEGER PRIMARY KEY, "
    "id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, effect INTEGER NOT NULL, state TEXT NOT NULL, "
    "root TEXT, scope TEXT, key TEXT, likeness TEXT NOT NULL, n INTEGER NOT NULL DEFAULT 0, "
    "behind INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 1, "
    "started_at INTEGER NOT NULL, horizon_at INTEGER, settled_at INTEGER, settled_by TEXT, "
    "note TEXT, told INTEGER, cost INTEGER NOT NULL DEFAULT 0, day INTEGER, "
    "by_request INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE IF NOT EXISTS cf_agents_operation_documents(operation INTEGER NOT NULL, "
    "part INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY(operation, part)) WITHOUT ROWID",
    // To count the equal operations before the last checkpoint, and to list those of a fiber.
    "CREATE INDEX IF NOT EXISTS cf_agents_operations_scope ON "
    "cf_agents_operations(scope, likeness, behind, n) WHERE scope IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS cf_agents_operations_state ON "
    "cf_agents_operations(state, settled_at)",
    "CREATE INDEX IF NOT EXISTS cf_agents_operations_untold ON cf_agents_operations(told) "
    "WHERE told IS NOT NULL",
    "CREATE TRIGGER IF NOT EXISTS cf_agents_operations_gone AFTER DELETE ON cf_agents_operations "
    "BEGIN DELETE FROM cf_agents_operation_documents WHERE operation = old.seq; END",
};

#define HEARTH_OPERATION_COLUMNS                                                           \
  "seq, id, kind, effect, state, root, scope, key, likeness, cost, attempts, started_at, " \
  "horizon_at, settled_at, settled_by, note, day, by_request"

constexpr std::array<std::string_view, 5> kEffectWords = {"read", "idempotent", "keyed", "probe",
                                                          "unsafe"};

}  // namespace

std::string_view to_string(OperationState state) {
  switch (state) {
    case OperationState::kRunning: return "running";
    case OperationState::kInterrupted: return "interrupted";
    case OperationState::kCompleted: return "completed";
    case OperationState::kNotExecuted: return "not_executed";
    case OperationState::kUnknown: return "unknown";
  }
  return "unknown";
}

// ---- rows ---------------------------------------------------------------------------------------

bool Operations::exists() {
  exists_ = exists_ || database_.has_table("cf_agents_operations");
  return exists_;
}

void Operations::prepare_write() {
  database_.begin_write();
  if (exists()) return;
  jobs_.prepare_write();  // retention reads the fibers' rows
  for (const char* const sql : kOperationTables)
    storage::Statement(database_.connection(), sql).execute();
  exists_ = true;
}

Operations::Row Operations::row_of(const Rows& rows) {
  Row row;
  int column = 0;
  row.seq = rows.integer(column++);
  row.id = rows.text(column++);
  row.kind = rows.text(column++);
  row.effect = static_cast<Effect>(rows.integer(column++));
  row.state = rows.text(column++);
  row.root = storage::text_or_none(rows, column++);
  row.scope = storage::text_or_none(rows, column++);
  row.key = storage::text_or_none(rows, column++);
  row.likeness = rows.text(column++);
  row.cost = rows.integer(column++);
  row.attempts = static_cast<int>(rows.integer(column++));
  row.started_at_ms = rows.integer(column++);
  row.horizon_at_ms = storage::integer_or_none(rows, column++);
  row.settled_at_ms = storage::integer_or_none(rows, column++);
  row.settled_by = storage::text_or_none(rows, column++);
  row.note = storage::text_or_none(rows, column++);
  row.day = storage::integer_or_none(rows, column++);
  row.acts_by_request = rows.integer(column++) != 0;
  return row;
}

std::optional<Operations::Row> Operations::find(std::string_view id) {
  if (!exists()) return std::nullopt;
  Rows rows =
      database_.kept("SELECT " HEARTH_OPERATION_COLUMNS " FROM cf_agents_operations WHERE id = ?")
          .query(std::array{Param(id)});
  if (!rows.next()) return std::nullopt;
  return row_of(rows);
}

std::optional<std::string> Operations::document(std::int64_t seq, OperationPart part) {
  Rows rows =
      database_
          .kept("SELECT body FROM cf_agents_operation_documents WHERE operation = ? AND part = ?")
          .query(std::array{Param(seq), Param(static_cast<std::int64_t>(part))});
  if (!rows.next()) return std::nullopt;
  return std::string(rows.text(0));
}

void Operations::put(std::int64_t seq, OperationPart part, std::string_view body) {
  database_
      .kept(
          "INSERT INTO cf_agents_operation_documents(operation, part, body) VALUES(?, ?, ?) "
          "ON CONFLICT(operation, part) DO UPDATE SET body = excluded.body")
      .execute(std::array{Param(seq), Param(static_cast<std::int64_t>(part)), Param(body)});
}

// ---- what an earlier instance left --------------------------------------------------------------

void Operations::count_crash(const EndedProcess& ended) {
  if (!ended.row || *ended.row <= kOperationRows || *ended.row == kSeveralRows) return;
  prepare_write();
  database_.kept("UPDATE cf_agents_operations SET told = told + ?2 WHERE seq = ?1")
      .execute(
          std::array{Param(*ended.row - kOperationRows), Param(std::int64_t{kMostTellings / 2})});
}

void Operations::load() {
  if (!exists()) return;
  {
    Rows rows =
        database_.kept("SELECT seq FROM cf_agents_operations WHERE told IS NOT NULL ORDER BY seq")
            .query({});
    while (rows.next()) untold_.push_back(rows.integer(0));
  }
  unknown_now_ = number("SELECT count(*) FROM cf_agents_operations WHERE state = 'unknown'");
  may_be_open_ = has_open();
  give_up_lost();
}

std::vector<Operations::Row> Operations::started_rows() {
  std::vector<Row> rows_now;
  Rows rows = database_
                  .kept("SELECT " HEARTH_OPERATION_COLUMNS
                        " FROM cf_agents_operations WHERE state = 'started' ORDER BY seq")
                  .query({});
  while (rows.next()) rows_now.push_back(row_of(rows));
  return rows_now;
}

// ---- what is known of it ------------------------------------------------------------------------

OperationState Operations::state_of(const Row& row) const {
  if (running_ids_.contains(row.id)) return OperationState::kRunning;
  if (row.state == "completed") return OperationState::kCompleted;
  if (row.state == "not_executed") return OperationState::kNotExecuted;
  return row.state == "unknown" ? OperationState::kUnknown : OperationState::kInterrupted;
}

std::string Operations::record_json(const Row& row, bool without_documents) {
  const auto effect = static_cast<std::size_t>(row.effect) - 1;
  JsonObjectText json;
  json.text("id", row.id)
      .text("kind", row.kind)
      .text("effect", kEffectWords[std::min(effect, kEffectWords.size() - 1)])
      .text("state", to_string(state_of(row)))
      .text_or_null("key", row.key)
      .text_or_null("scope", row.scope);
  if (!without_documents) {
    json.json_or_null("args", document(row.seq, OperationPart::kArguments))
        .json_or_null("result", document(row.seq, OperationPart::kResult));
  }
  json.number("cost", row.cost)
      .number("attempts", row.attempts)
      .number("started_at", row.started_at_ms)
      .number_or_null("horizon_at", row.horizon_at_ms)
      .number_or_null("settled_at", row.settled_at_ms)
      .text_or_null("settled_by", row.settled_by)
      .text_or_null("note", row.note);
  const auto request = answers_.find(row.seq);
  if (!request) return json.json("request", "null").take();
  JsonObjectText sent;
  sent.text("fingerprint", request->fingerprint)
      .number("dispatched_at", request->dispatched_at_ms)
      .number_or_null("status", request->status)
      .text_or_null("request_id", request->upstream_id)
      .number("stored_bytes", static_cast<std::int64_t>(request->bytes))
      .flag("whole", request->whole);
  return json.json("request", sent.take()).take();
}

Result<std::string> Operations::inspect(std::string_view id) {
  const auto row = find(id);
  if (!row) return Error{Errc::kNotFound, "no operation has this id"};
  return record_json(*row);
}

namespace {

// ?1: behind this one; ?2: the scope of the filter's fiber.
std::string_view listing_text(const OperationFilter& filter, bool is_of_fiber) {
  constexpr auto kSettled = static_cast<std::uint32_t>(OperationState::kCompleted) |
                            static_cast<std::uint32_t>(OperationState::kNotExecuted);
  if (is_of_fiber) {
    return filter.keyed_too
               ? "SELECT " HEARTH_OPERATION_COLUMNS
                 " FROM cf_agents_operations WHERE seq > ?1 AND (scope = ?2 OR root = ?2) "
                 "ORDER BY seq"
               : "SELECT " HEARTH_OPERATION_COLUMNS
                 " FROM cf_agents_operations WHERE seq > ?1 AND scope = ?2 ORDER BY seq";
  }
  if (filter.states != 0 && (filter.states & kSettled) == 0) {
    return "SELECT " HEARTH_OPERATION_COLUMNS
           " FROM cf_agents_operations WHERE state IN ('started', 'unknown') AND seq > ?1 "
           "AND ?2 = '' ORDER BY seq";
  }
  return "SELECT " HEARTH_OPERATION_COLUMNS
         " FROM cf_agents_operations WHERE seq > ?1 AND ?2 = '' ORDER BY seq";
}

}  // namespace

Result<std::string> Operations::list(const OperationFilter& filter) {
  std::int64_t behind = 0;
  if (!filter.after.empty()) {
    const auto last = find(filter.after);
    if (!last) return Error{Errc::kNotFound, "no operation has the id `after`"};
    behind = last->seq;
  }
  std::string page = "[";
  if (!exists()) return page + "]";
  const std::string scope =
      filter.fiber.empty() ? std::string() : scope_of(std::string(filter.fiber)).path;
  storage::Statement& statement = database_.kept(listing_text(filter, !scope.empty()));
  Rows rows = statement.query(std::array{Param(behind), Param(std::string_view(scope))});
  std::size_t count = 0;
  while (count < filter.limit && page.size() < kMaxPageBytes && rows.next()) {
    const Row row = row_of(rows);
    if (!filter.kind.empty() && row.kind != filter.kind) continue;
    if (filter.states != 0 && (filter.states & static_cast<std::uint32_t>(state_of(row))) == 0)
      continue;
    if (filter.begun_before_ms && row.started_at_ms >= *filter.begun_before_ms) continue;
    if (count++ > 0) page += ',';
    page += record_json(row, filter.without_documents);
  }
  return page + "]";
}

// ---- telling ------------------------------------------------------------------------------------

std::optional<UnknownOperation> Operations::next_untold() {
  while (has_untold()) {
    const std::int64_t seq = untold_.front();
    untold_.pop_front();
    std::optional<Row> row;
    {
      Rows rows = database_
                      .kept("SELECT " HEARTH_OPERATION_COLUMNS
                            " FROM cf_agents_operations WHERE seq = ? AND told IS NOT NULL")
                      .query(std::array{Param(seq)});
      if (rows.next()) row = row_of(rows);
    }
    if (!row) continue;
    prepare_write();
    database_
        .kept(
            "UPDATE cf_agents_operations SET told = iif(told < ?2, told + 1, NULL) WHERE seq = ?1")
        .execute(std::array{Param(seq), Param(std::int64_t{kMostTellings})});
    Rows rows =
        database_.kept("SELECT 1 FROM cf_agents_operations WHERE seq = ? AND told IS NOT NULL")
            .query(std::array{Param(seq)});
    if (!rows.next()) continue;  // it was told kMostTellings times
    telling_ = true;
    return UnknownOperation{row->id, row->kind, record_json(*row), seq};
  }
  return std::nullopt;
}

void Operations::told(std::string_view id, bool was_heard) {
  telling_ = false;
  if (!was_heard) return;
  prepare_write();
  database_.kept("UPDATE cf_agents_operations SET told = NULL WHERE id = ?")
      .execute(std::array{Param(id)});
}

std::vector<UnknownOperation> Operations::standing_unknown() {
  std::vector<UnknownOperation> standing;
  if (unknown_now_ == 0) return standing;
  Rows rows =
      database_
          .kept(
              "SELECT id, kind, started_at FROM cf_agents_operations WHERE state = 'unknown' "
              "ORDER BY seq DESC LIMIT ?")
          .query(std::array{Param(static_cast<std::int64_t>(kMostStanding))});
  while (rows.next())
    standing.push_back({.id = std::string(rows.text(0)),
                        .kind = std::string(rows.text(1)),
                        .since_ms = rows.integer(2)});
  std::ranges::reverse(standing);
  return standing;
}

Wake Operations::wake() const {
  Wake wake;
  const std::int64_t now = now_ms();
  wake.working = !untold_.empty() || telling_ || has_lost() ||
                 std::ranges::any_of(running_, [now](const auto& each) {
                   const Running& it = each.second;
                   const auto loss = loss_without_answer_ms(it);
                   return it.effect == Effect::kUnsafe || (loss && *loss <= now);
                 });
  if (!has_lost()) wake.at_ms = next_loss_ms_;
  if (may_be_open_) wake.unknown_operations = unknown_now_;
  return wake;
}

// ---- retention ----------------------------------------------------------------------------------

// True if no fiber of the row's work can run again. Parameter 1: roots_of_needed(), as JSON.
#define HEARTH_NO_FIBER_NEEDS                                                              \
  "AND NOT EXISTS (SELECT 1 FROM cf_agents_jobs j WHERE j.id = o.root AND j.kind = 2 AND " \
  "(j.ended_at IS NULL OR j.dead OR j.status = 'interrupted')) "                           \
  "AND (root IS NULL OR root NOT IN (SELECT value FROM json_each(?1))) "

// Leaves rows with a key alone: no end of a fiber shows that their keys are not used any more.
std::int64_t Operations::remove_for_room() {
  prepare_write();
  const std::string needed = dump_json(Json(roots_of_needed()));
  return remove_rows(
      "DELETE FROM cf_agents_operations WHERE seq IN (SELECT seq FROM cf_agents_operations "
      "o WHERE state IN ('completed', 'not_executed') AND "
      "scope IS NOT NULL " HEARTH_NO_FIBER_NEEDS "ORDER BY settled_at LIMIT ?2) RETURNING id",
      std::array{Param(std::string_view(needed)), Param(kSweptAtOnce)});
}

std::int64_t Operations::keep_ms(std::string_view kind) const {
  const auto found = settings_.kinds.find(kind);
  const bool is_own = found != settings_.kinds.end() && found->second.keep.count() > 0;
  return (is_own ? found->second.keep : settings_.keep).count();
}

std::optional<std::int64_t> Operations::next_expiry_ms() {
  std::optional<std::int64_t> next;
  Rows rows = database_
                  .kept(
                      "SELECT kind, min(settled_at) FROM cf_agents_operations WHERE state IN "
                      "('completed', 'not_executed') GROUP BY kind")
                  .query({});
  while (rows.next()) {
    const std::int64_t expiry = rows.integer(1) + keep_ms(rows.text(0));
    if (!next || expiry < *next) next = expiry;
  }
  return next;
}

void Operations::sweep() {
  const std::int64_t now = now_ms();
  const bool is_early = swept_at_ms_ <= now && now < next_sweep_ms_;
  if (is_early || !exists()) return;
  auto shortest = settings_.keep;
  std::string keeps = "{";
  for (const auto& [kind, settings] : settings_.kinds) {
    if (settings.keep.count() == 0) continue;
    shortest = std::min(shortest, settings.keep);
    if (keeps.size() > 1) keeps += ',';
    append_json_string(keeps, kind);
    keeps += ':' + std::to_string(settings.keep.count());
  }
  keeps += '}';
  // A row that is settled from now on is kept at least for the shortest time.
  const std::int64_t latest = now + shortest.count();
  swept_at_ms_ = now;
  next_sweep_ms_ = std::min(latest, next_expiry_ms().value_or(latest));
  if (now < next_sweep_ms_) return;
  prepare_write();
  const std::string needed = dump_json(Json(roots_of_needed()));
  remove_rows(
      "DELETE FROM cf_agents_operations WHERE seq IN (SELECT seq FROM cf_agents_operations o WHERE "
      "state IN ('completed', 'not_executed') AND settled_at <= ?2 AND settled_at <= ?3 - "
      "coalesce((SELECT value FROM json_each(?4) WHERE key = o.kind), ?5) " HEARTH_NO_FIBER_NEEDS
      "ORDER BY settled_at LIMIT ?6) RETURNING id",
      std::array{Param(std::string_view(needed)), Param(now - shortest.count()), Param(now),
                 Param(std::string_view(keeps)), Param(settings_.keep.count()),
                 Param(kSweptAtOnce)});
}

bool Operations::has_open() {
  return number(
             "SELECT EXISTS(SELECT 1 FROM cf_agents_operations "
             "WHERE state IN ('started', 'unknown'))") != 0;
}

std::int64_t Operations::number(std::string_view sql) {
  Rows rows = database_.kept(sql).query({});
  return rows.next() ? storage::integer_or_none(rows, 0).value_or(0) : 0;
}

Result<void> Operations::make_room() {
  if (!exists()) return {};
  const auto most = static_cast<std::int64_t>(settings_.most);
  // First an upper bound, for two lookups in the table's index.
  if (number("SELECT max(seq) - min(seq) + 1 FROM cf_agents_operations") < most) return {};
  if (number("SELECT count(*) FROM cf_agents_operations") < most) return {};
  if (remove_for_room() > 0) return {};
  return Error{Errc::kLimitExceeded, "the ledger of this agent's operations is full"};
}

}  // namespace hearth::durable

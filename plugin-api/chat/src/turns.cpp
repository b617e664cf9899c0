#include "unix_time.hpp"

#include <hearth/agent_base.hpp>
#include <hearth/chat/message.hpp>
#include <hearth/chat/turns.hpp>
#include <hearth/chat/wire.hpp>
#include <hearth/words.hpp>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace hearth::chat {

namespace {

constexpr std::array kTurnTables = {
    "CREATE TABLE IF NOT EXISTS chat_turns(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, "
    "kind TEXT NOT NULL, state TEXT NOT NULL, origin_ids TEXT NOT NULL, body TEXT, "
    "client_tools TEXT, key TEXT UNIQUE, owner TEXT NOT NULL, asked_by TEXT NOT NULL, "
    "message_id TEXT NOT NULL, "
    "not_before INTEGER NOT NULL, created INTEGER NOT NULL, began INTEGER, ended INTEGER, "
    "stopping INTEGER NOT NULL DEFAULT 0, step INTEGER NOT NULL DEFAULT 0, "
    "work INTEGER NOT NULL DEFAULT 0, progress INTEGER NOT NULL DEFAULT 0, "
    "spent TEXT NOT NULL DEFAULT '{}', plan TEXT NOT NULL DEFAULT '{}', incident TEXT NOT NULL "
    "DEFAULT '{}', stash TEXT, "
    "error TEXT NOT NULL DEFAULT '')",
    "CREATE INDEX IF NOT EXISTS chat_turns_line ON chat_turns(seq) "
    "WHERE state IN ('queued', 'running')",
};

constexpr std::array<std::pair<TurnState, std::string_view>, 6> kStateTexts = {{
    {TurnState::kQueued, "queued"},
    {TurnState::kRunning, "running"},
    {TurnState::kCompleted, "completed"},
    {TurnState::kError, "error"},
    {TurnState::kAborted, "aborted"},
    {TurnState::kSkipped, "skipped"},
}};
constexpr std::array<std::pair<TurnKind, std::string_view>, 4> kKindTexts = {{
    {TurnKind::kSubmit, "submit"},
    {TurnKind::kRegenerate, "regenerate"},
    {TurnKind::kContinuation, "continuation"},
    {TurnKind::kProgram, "program"},
}};

constexpr const char* kColumns =
    "SELECT id, kind, state, origin_ids, body, client_tools, owner, asked_by, message_id, "
    "not_before, "
    "created, ended, stopping, step, work, progress, spent, plan, incident, stash, error "
    "FROM chat_turns ";

// The plan of a turn that has ended: the author may not know its end yet.
#define HEARTH_UNTOLD "json_set(plan, '$.is_untold', json('true'))"

struct TurnRow {
  std::string id;
  std::string kind;
  std::string state;
  std::string origin_ids;
  std::optional<std::string> body;
  std::optional<std::string> client_tools;
  std::string owner;
  std::string asked_by;
  std::string message_id;
  std::int64_t not_before = 0;
  std::int64_t created = 0;
  std::optional<std::int64_t> ended;
  bool stopping = false;
  int step = 0;
  std::int64_t work = 0;
  std::int64_t progress = 0;
  std::string spent;
  std::string plan;
  std::string incident;
  std::optional<std::string> stash;
  std::string error;
  HEARTH_FIELDS(id, kind, state, origin_ids, body, client_tools, owner, asked_by, message_id,
                not_before, created, ended, stopping, step, work, progress, spent, plan, incident,
                stash, error)
};

std::optional<std::string> stored(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional(to_text(value));
}
Json loaded(const std::optional<std::string>& text) {
  return text ? parse_json(*text) : Json();
}

TurnRecord record_of(TurnRow row) {
  TurnRecord turn;
  turn.id = std::move(row.id);
  turn.kind = find_word<TurnKind>(kKindTexts, row.kind);
  turn.state = find_word<TurnState>(kStateTexts, row.state);
  turn.origin_ids = parse_json(row.origin_ids).get<std::vector<std::string>>();
  turn.body = loaded(row.body);
  turn.client_tools = loaded(row.client_tools);
  turn.owner = std::move(row.owner);
  turn.asked_by = std::move(row.asked_by);
  turn.message_id = std::move(row.message_id);
  turn.not_before = unix_time(row.not_before);
  turn.created = unix_time(row.created);
  if (row.ended) turn.ended = unix_time(*row.ended);
  turn.is_stopping = row.stopping;
  turn.step = row.step;
  turn.work = row.work;
  turn.progress = row.progress;
  turn.spent = read_json<Spent>(parse_json(row.spent), "spent");
  turn.plan = read_json<CallPlan>(parse_json(row.plan), "plan");
  turn.incident = read_json<Incident>(parse_json(row.incident), "incident");
  turn.stash = loaded(row.stash);
  turn.error = std::move(row.error);
  return turn;
}

std::optional<TurnRecord> first_record(Query rows) {
  std::optional<TurnRow> row = rows.optional<TurnRow>();
  if (!row) return std::nullopt;
  return record_of(std::move(*row));
}

// Of a long request the last ones.
std::vector<std::string> bounded_ids(std::vector<std::string> ids) {
  if (ids.size() > kMaxOriginIds) ids.erase(ids.begin(), ids.end() - kMaxOriginIds);
  return ids;
}

}  // namespace

std::string_view state_text(TurnState state) noexcept {
  return word_of(kStateTexts, state);
}

void check_request(const TurnRequest& request) {
  if (request.id.empty() || request.id.size() > kMaxTurnIdBytes || request.key.size() > kMaxIdBytes)
    throw Error(HEARTH_E_INVALID, "The id of a turn has at most 250 bytes, its key 256.");
  if (to_text(request.body).size() > kMaxCustomBodyBytes)
    throw Error(HEARTH_E_LIMIT, "The body of the turn is too large.");
  if (to_text(request.client_tools).size() > kMaxClientToolsBytes)
    throw Error(HEARTH_E_LIMIT, "The tools of the client are too large.");
}

bool TurnRecord::is_early(Time now) const noexcept {
  const bool may_be_joined = kind == TurnKind::kContinuation;  // which sets not_before anew
  const Time set_at = may_be_joined ? not_before - kCoalesce : created;
  return set_at <= now && now < not_before;
}

Turns::Turns(Agent& agent) : agent_(agent) {
  for (const char* const sql : kTurnTables) agent_.sql(sql);
}

// ---- the line -----------------------------------------------------------------------------------

Accepted Turns::accept(const TurnRequest& request, const LineConfig& config, Time now) {
  check_request(request);
  Accepted accepted;
  const auto known =
      agent_
          .sql("SELECT id FROM chat_turns WHERE id = ? OR key = ? LIMIT 1", request.id, request.key)
          .optional<std::string>();
  if (known) {
    accepted.place = Place::kKnown;
    accepted.id = *known;
    return accepted;
  }
  const std::vector<TurnInLine> before = line();
  const TurnInLine turn{request.id, request.kind, false, bounded_ids(request.origin_ids),
                        request.message_id};
  Placement placement = place_turn(before, turn, config, now);
  accepted.place = placement.place;
  accepted.joined = std::move(placement.joined);
  for (const TurnInLine& each : before) {
    if (std::ranges::find(placement.skipped, each.id) == placement.skipped.end()) continue;
    skip(each.id, now);
    accepted.skipped.push_back(each);
  }
  if (placement.place == Place::kJoins) {
    agent_.sql("UPDATE chat_turns SET not_before = ?, owner = ? WHERE id = ?",
               unix_ms(placement.not_before), request.owner, placement.continuation);
    accepted.id = placement.continuation;
  } else if (placement.place == Place::kQueued) {
    add(request, placement.not_before, now);
    accepted.id = request.id;
  }
  return accepted;
}

void Turns::add(const TurnRequest& request, Time not_before, Time now) {
  std::optional<std::string> body = stored(request.body);
  std::optional<std::string> tools = stored(request.client_tools);
  if (request.kind == TurnKind::kContinuation || request.kind == TurnKind::kProgram) {
    using Context = std::tuple<std::optional<std::string>, std::optional<std::string>>;
    const auto last = agent_
                          .sql(
                              "SELECT body, client_tools FROM chat_turns WHERE began IS NOT NULL "
                              "ORDER BY seq DESC LIMIT 1")
                          .optional<Context>();
    if (last && !body) body = std::get<0>(*last);
    if (last && !tools) tools = std::get<1>(*last);
  }
  const auto key = request.key.empty() ? std::nullopt : std::optional(request.key);
  const Query added = agent_.sql(
      "INSERT INTO chat_turns(id, kind, state, origin_ids, body, client_tools, key, owner, "
      "asked_by, message_id, not_before, created) "
      "VALUES (?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      request.id, word_of(kKindTexts, request.kind), Json(bounded_ids(request.origin_ids)), body,
      tools, key, request.owner, request.asked_by, request.message_id, unix_ms(not_before),
      unix_ms(now));
  agent_.sql("DELETE FROM chat_turns WHERE seq < ? AND state NOT IN ('queued', 'running')",
             added.last_insert_rowid() - static_cast<std::int64_t>(kKeptTurns));
}

void Turns::skip(std::string_view id, Time now) {
  agent_.sql(
      "UPDATE chat_turns SET state = 'skipped', body = NULL, client_tools = NULL, ended = ? "
      "WHERE id = ?",
      unix_ms(now), id);
}

std::vector<TurnInLine> Turns::line() const {
  std::vector<TurnInLine> turns;
  Query rows = agent_.sql(
      "SELECT id, kind, state, origin_ids, message_id FROM chat_turns WHERE state IN ('queued', "
      "'running') "
      "ORDER BY seq");
  using Row = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  while (auto row = rows.optional<Row>()) {
    auto& [id, kind, state, origin_ids, message_id] = *row;
    turns.push_back({std::move(id), find_word<TurnKind>(kKindTexts, kind), state == "running",
                     parse_json(origin_ids).get<std::vector<std::string>>(),
                     std::move(message_id)});
  }
  return turns;
}

std::unordered_set<std::string> Turns::answered_before(const TurnRecord& turn) const {
  std::unordered_set<std::string> answered;
  Query rows = agent_.sql(
      "SELECT origin_ids FROM chat_turns WHERE began IS NOT NULL AND seq < (SELECT seq FROM "
      "chat_turns WHERE id = ?) AND message_id IN (SELECT id FROM chat_messages)",
      turn.id);
  while (const auto ids = rows.optional<std::string>())
    for (auto& id : parse_json(*ids).get<std::vector<std::string>>())
      answered.insert(std::move(id));
  return answered;
}

std::optional<Head> Turns::head() const {
  const auto row = agent_
                       .sql(
                           "SELECT id, state = 'running' FROM chat_turns WHERE state "
                           "IN ('queued', 'running') ORDER BY seq LIMIT 1")
                       .optional<std::tuple<std::string, bool>>();
  if (!row) return std::nullopt;
  return Head{std::get<0>(*row), std::get<1>(*row)};
}

// ---- one turn -----------------------------------------------------------------------------------

std::optional<TurnRecord> Turns::find(std::string_view id) const {
  return first_record(agent_.sql(std::string(kColumns) + "WHERE id = ?", id));
}

std::optional<TurnRecord> Turns::find_key(std::string_view key) const {
  return first_record(agent_.sql(std::string(kColumns) + "WHERE key = ?", key));
}

std::optional<TurnRecord> Turns::failed() const {
  std::optional<TurnRecord> last = first_record(
      agent_.sql(std::string(kColumns) +
                 "WHERE began IS NOT NULL OR state = 'queued' ORDER BY seq DESC LIMIT 1"));
  if (last && last->state != TurnState::kError) last.reset();
  return last;
}

bool Turns::begin(std::string_view id, Time now) {
  const std::optional<Head> first = head();
  if (!first || first->id != id) return false;
  if (first->is_running) return true;
  if (const auto turn = find(id); !turn || turn->is_early(now)) return false;
  // The next turns that inherit do so from this one.
  agent_.sql(
      "UPDATE chat_turns SET body = NULL, client_tools = NULL WHERE seq = (SELECT seq FROM "
      "chat_turns WHERE began IS NOT NULL ORDER BY seq DESC LIMIT 1)");
  agent_.sql("UPDATE chat_turns SET state = 'running', began = ? WHERE id = ?", unix_ms(now), id);
  return true;
}

bool Turns::save(const TurnRecord& turn) {
  const auto stash = stored(turn.stash);
  if (stash && stash->size() > kMaxStashBytes)
    throw Error(HEARTH_E_LIMIT, "The stash of the turn is too large.");
  const Query saved = agent_.sql(
      "UPDATE chat_turns SET message_id = ?, step = ?, spent = ?, plan = ?, incident = ?, "
      "stash = ? "
      "WHERE id = ? AND state = 'running'",
      turn.message_id, turn.step, Json(turn.spent), Json(turn.plan), Json(turn.incident), stash,
      turn.id);
  return saved.changes() != 0;
}

bool Turns::count(std::string_view id, std::uint32_t work, std::uint32_t progress) {
  const Query counted = agent_.sql(
      "UPDATE chat_turns SET work = work + ?, progress = progress + ? "
      "WHERE id = ? AND state = 'running'",
      work, progress, id);
  return counted.changes() != 0;
}

bool Turns::end(std::string_view id, TurnState outcome, std::string_view error, Time now) {
  if (outcome == TurnState::kQueued || outcome == TurnState::kRunning)
    throw Error(HEARTH_E_INVALID, "a turn ends with an outcome");
  const Query ended = agent_.sql(
      "UPDATE chat_turns SET state = ?, error = ?, ended = ?, stash = NULL, plan = " HEARTH_UNTOLD
      " WHERE id = ? AND state = 'running'",
      state_text(outcome), error, unix_ms(now), id);
  return ended.changes() != 0;
}

Cancelled Turns::cancel(std::string_view id, Time now) {
  const auto state = agent_
                         .sql(
                             "SELECT state FROM chat_turns WHERE id = ? AND state IN ('queued', "
                             "'running')",
                             id)
                         .optional<std::string>();
  if (!state) return Cancelled::kNothing;
  if (*state == "queued") {
    skip(id, now);
    return Cancelled::kSkipped;
  }
  agent_.sql("UPDATE chat_turns SET stopping = 1 WHERE id = ?", id);
  return Cancelled::kStopping;
}

void Turns::told(std::string_view id) {
  agent_.sql("UPDATE chat_turns SET plan = json_remove(plan, '$.is_untold') WHERE id = ?", id);
}

std::optional<Time> Turns::oldest_untold() const {
  const auto created = agent_
                           .sql(
                               "SELECT min(created) FROM chat_turns "
                               "WHERE json_extract(plan, '$.is_untold')")
                           .value<std::optional<std::int64_t>>();
  return created ? std::optional(unix_time(*created)) : std::nullopt;
}

std::vector<TurnInLine> Turns::clear(Time now) {
  std::vector<TurnInLine> gone = line();
  agent_.sql(
      "UPDATE chat_turns SET state = CASE state WHEN 'queued' THEN 'skipped' WHEN 'running' THEN "
      "'aborted' ELSE state END, began = NULL, body = NULL, client_tools = NULL, key = NULL, "
      "stash = NULL, ended = coalesce(ended, ?), "
      "plan = CASE state WHEN 'running' THEN " HEARTH_UNTOLD " ELSE plan END",
      unix_ms(now));
  return gone;
}

}  // namespace hearth::chat

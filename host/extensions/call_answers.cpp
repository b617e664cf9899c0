#include "extensions/call_answers.hpp"

#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <utility>

namespace hearth::extensions {
namespace {

using storage::Param;
using storage::Rows;
using storage::Statement;

// Each noted call removes at most so many expired answers: more than it adds.
constexpr std::int64_t kExpiredAtOnce = 8;

// In the place of a code: the row must go.
constexpr std::int64_t kForgotten = -1;

Error too_large_to_keep() {
  return Error{Errc::kConflict,
               "the call has ended, and its answer is too large to be stored for a retry"};
}

}  // namespace

bool CallAnswers::keeps(Errc code) {
  switch (code) {
    case Errc::kClosing:
    case Errc::kUnavailable:
    case Errc::kCancelled: return false;
    default: return true;
  }
}

std::int64_t CallAnswers::now_ms() const {
  return unix_millis(agent_.clock().wall_now());
}

bool CallAnswers::exists() {
  return agent_.database().has_table("cf_agents_answers");
}

void CallAnswers::make_table() {
  sqlite3& connection = agent_.database().connection();
  Statement(connection,
            "CREATE TABLE cf_agents_answers(key TEXT PRIMARY KEY NOT NULL, "
            "fingerprint TEXT NOT NULL, code INTEGER, body TEXT NOT NULL, bytes INTEGER NOT NULL, "
            "expires_at INTEGER NOT NULL)")
      .execute();
  // With the bytes, so that the index alone is enough to count them.
  Statement(connection,
            "CREATE INDEX cf_agents_answers_expiry ON cf_agents_answers(expires_at, bytes)")
      .execute();
}

CallAnswers::Kept& CallAnswers::kept() {
  if (kept_) return *kept_;
  shorten_waits();
  Statement count(agent_.database().connection(),
                  "SELECT count(*), coalesce(sum(bytes), 0) FROM cf_agents_answers");
  Rows rows = count.query();
  if (rows.next()) return kept_.emplace(Kept{rows.integer(0), rows.integer(1)});
  return kept_.emplace(Kept{0, 0});
}

// Once an instance: calls that were cut off keep their places until they expire. If the clock was
// ahead when they began, they would keep them for long.
void CallAnswers::shorten_waits() {
  const std::int64_t latest = now_ms() + agent_.settings().answers.keep.count();
  Statement find(agent_.database().connection(),
                 "SELECT 1 FROM cf_agents_answers WHERE expires_at > ?");
  if (!find.query(latest).next()) return;
  agent_.database().begin_write();
  Statement shorten(agent_.database().connection(),
                    "UPDATE cf_agents_answers SET expires_at = ?1 WHERE expires_at > ?1");
  shorten.execute(latest);
}

bool CallAnswers::is_over(std::int64_t more_answers) {
  const AnswerSettings& limits = agent_.settings().answers;
  return std::cmp_greater(kept().answers + more_answers, limits.max_answers) ||
         std::cmp_greater(kept().bytes, limits.max_total_bytes);
}

bool CallAnswers::is_full() {
  if (!is_over(1)) return false;
  Statement find(agent_.database().connection(),
                 "SELECT 1 FROM cf_agents_answers WHERE code IS NOT NULL OR expires_at <= ?");
  return !find.query(now_ms()).next();
}

CallAnswers::Known CallAnswers::look(const CallKey& call) {
  if (has_unwritten()) write();  // notes of a call that has ended in an earlier turn
  if (!exists()) return {};
  {
    Statement find(agent_.database().connection(),
                   "SELECT fingerprint, code, body FROM cf_agents_answers "
                   "WHERE key = ? AND expires_at > ?");
    Rows rows = find.query(call.key, now_ms());
    if (rows.next()) {
      if (rows.text(0) != call.fingerprint) return {.verdict = Verdict::kAnother};
      if (rows.is_null(1)) return {.verdict = Verdict::kCutOff};
      std::string body(rows.text(2));
      if (rows.integer(1) == 0) return {.verdict = Verdict::kEnded, .outcome = std::move(body)};
      const auto code = static_cast<Errc>(rows.integer(1));
      return {.verdict = Verdict::kEnded, .outcome = Error{code, std::move(body)}};
    }
  }
  return {.verdict = is_full() ? Verdict::kFull : Verdict::kNew};
}

void CallAnswers::note_begun(const CallKey& call) {
  unwritten_.push_back({call, std::nullopt, {}});
}

void CallAnswers::note_ended(const CallKey& call, const Result<std::string_view>& outcome) {
  std::erase_if(unwritten_, [&](const Note& note) { return note.call.key == call.key; });
  if (outcome.has_error() && !keeps(outcome.error().code)) {
    unwritten_.push_back({call, kForgotten, {}});
  } else if (outcome.has_error()) {
    const Error& error = outcome.error();
    unwritten_.push_back({call, static_cast<std::int64_t>(error.code), error.message});
  } else if (outcome->size() > kMaxBodyBytes) {
    const Error error = too_large_to_keep();
    unwritten_.push_back({call, static_cast<std::int64_t>(error.code), error.message});
  } else {
    unwritten_.push_back({call, 0, std::string(*outcome)});
  }
}

bool CallAnswers::remove(const char* sql, std::span<const Param> params) {
  Statement statement(agent_.database().connection(), sql);
  bool any = false;
  for (Rows rows = statement.query(params); rows.next(); any = true) {
    --kept().answers;
    kept().bytes -= rows.integer(0);
  }
  return any;
}

void CallAnswers::put(const Note& note) {
  const std::string_view key = note.call.key;
  remove("DELETE FROM cf_agents_answers WHERE key = ? RETURNING bytes", storage::params_of(key));
  if (note.code == kForgotten) return;
  const auto bytes = static_cast<std::int64_t>(key.size() + note.body.size());
  Statement insert(agent_.database().connection(),
                   "INSERT INTO cf_agents_answers(key, fingerprint, code, body, bytes, expires_at) "
                   "VALUES(?, ?, ?, ?, ?, ?)");
  insert.execute(key, note.call.fingerprint, storage::nullable(note.code), note.body, bytes,
                 now_ms() + agent_.settings().answers.keep.count());
  ++kept().answers;
  kept().bytes += bytes;
}

void CallAnswers::make_room() {
  remove(
      "DELETE FROM cf_agents_answers WHERE key IN (SELECT key FROM cf_agents_answers "
      "WHERE expires_at <= ? ORDER BY expires_at LIMIT ?) RETURNING bytes",
      storage::params_of(now_ms(), kExpiredAtOnce));
  // By rowid, the order of the ends: the wall clock may have been set back in between.
  while (is_over(0) && remove("DELETE FROM cf_agents_answers WHERE rowid = "
                              "(SELECT rowid FROM cf_agents_answers WHERE code IS NOT NULL "
                              "ORDER BY rowid LIMIT 1) RETURNING bytes",
                              {})) {
  }
}

bool CallAnswers::write() {
  agent_.database().begin_write();
  if (!exists()) make_table();
  (void)kept();  // count before the change
  bool any_end = false;
  for (const Note& note : std::exchange(unwritten_, {})) {
    put(note);
    any_end = any_end || (note.code && note.code != kForgotten);
  }
  make_room();
  return any_end;
}

}  // namespace hearth::extensions

#include "storage/authorizer.hpp"

#include "base/assert.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <utility>

namespace hearth::storage {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_letter(char x, char y) {
  return lower(x) == lower(y);
}

bool starts_with_ignoring_case(std::string_view text, std::string_view start) {
  return text.size() >= start.size() && equal_ignoring_case(text.substr(0, start.size()), start);
}

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view one) { return equal_ignoring_case(name, one); });
}

// They describe the object that the argument names.
constexpr std::array<std::string_view, 8> kDescribingPragmas = {
    "table_info", "table_xinfo", "table_list",       "index_info",
    "index_list", "index_xinfo", "foreign_key_list", "foreign_key_check"};

// They return a number; an argument would set it. fts5 and rtree use the last two.
constexpr std::array<std::string_view, 5> kReadingPragmas = {
    "user_version", "page_count", "freelist_count", "page_size", "data_version"};

// All virtual tables that a plugin may make. (fts5vocab shows the terms of an fts5 table.)
constexpr std::array<std::string_view, 4> kModules = {"fts5", "fts5vocab", "rtree", "rtree_i32"};

constexpr std::string_view kNoTemporaries =
    "temporary tables, views and triggers are not available: they would vanish whenever the agent "
    "is evicted";

constexpr std::array<std::string_view, 2> kForbiddenFunctions = {"load_extension",
                                                                 "fts3_tokenizer"};

// The catalogue of tables. SQLite itself refuses SQL that writes to it, and reports its own writes.
bool is_catalogue(std::string_view table) {
  return equal_ignoring_case(table, "sqlite_master") ||
         equal_ignoring_case(table, "sqlite_schema") ||
         equal_ignoring_case(table, "sqlite_temp_master");
}

bool is_sqlite_table(std::string_view table) {
  return starts_with_ignoring_case(table, "sqlite_");
}

std::string shown(std::string_view name) {
  return "\"" + std::string(name) + "\"";
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_letter);
}

bool contains_ignoring_case(std::string_view text, std::string_view part) noexcept {
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same_letter) != text.end();
}

bool is_reserved_table(std::string_view name) noexcept {
  return starts_with_ignoring_case(name, "cf_agent") || is_sqlite_table(name);
}

bool mentions_host_tables(std::string_view sql) noexcept {
  return contains_ignoring_case(sql, "cf_agent");
}

struct Authorizer::Action {
  int code;
  std::string_view first;   // mostly the name of the changed object
  std::string_view second;  // mostly the table that the object belongs to
  std::string_view schema;  // main or temp
  bool has_second;
};

Authorizer::Authorizer(sqlite3& connection) : connection_(connection) {
  sqlite3_set_authorizer(&connection_, on_action, this);
}

Authorizer::~Authorizer() {
  sqlite3_set_authorizer(&connection_, nullptr, nullptr);
}

void Authorizer::enter() noexcept {
  HEARTH_ASSERT(!active_, "the authorizer is entered twice");
  active_ = true;
  seen_ = {};
  refusal_.clear();
}

void Authorizer::leave() noexcept {
  active_ = false;
}

int Authorizer::on_action(void* self, int code, const char* first, const char* second,
                          const char* schema, const char* /*inner*/) noexcept {
  auto& authorizer = *static_cast<Authorizer*>(self);
  if (!authorizer.active_) return SQLITE_OK;
  return authorizer.decide({.code = code,
                            .first = first == nullptr ? "" : first,
                            .second = second == nullptr ? "" : second,
                            .schema = schema == nullptr ? "" : schema,
                            .has_second = second != nullptr});
}

int Authorizer::refuse(std::string why) {
  refusal_ = std::move(why);
  return SQLITE_DENY;
}

int Authorizer::decide(const Action& action) {
  switch (action.code) {
    case SQLITE_READ:
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE: return decide_write(action);
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_VIEW:
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_CREATE_VTABLE:
    case SQLITE_ALTER_TABLE:
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_VIEW:
    case SQLITE_DROP_INDEX:
    case SQLITE_DROP_TRIGGER:
    case SQLITE_DROP_VTABLE: return decide_schema_change(action);
    case SQLITE_REINDEX:
      // CREATE INDEX reports how it fills the index.
      if (seen_.schema_change) return SQLITE_OK;
      return refuse("REINDEX is not available");
    case SQLITE_FUNCTION:
      if (equal_ignoring_case(action.second, "match")) seen_.match = true;
      if (!is_one_of(action.second, kForbiddenFunctions)) return SQLITE_OK;
      return refuse("the function " + std::string(action.second) + " is not available");
    case SQLITE_PRAGMA: return decide_pragma(action);
    case SQLITE_TRANSACTION:
      return refuse(std::string(action.first) +
                    " is not available in SQL text: everything up to the next suspension or end of "
                    "an event is one transaction, which the host commits; for a part "
                    "that can be undone use the savepoint calls");
    case SQLITE_SAVEPOINT:
      return refuse(
          "SAVEPOINT, RELEASE and ROLLBACK TO are not available in SQL text: use the savepoint "
          "calls");
    case SQLITE_ATTACH:
    case SQLITE_DETACH: return refuse("an agent has one database: no ATTACH or DETACH");
    case SQLITE_ANALYZE: return refuse("ANALYZE is not available");
    case SQLITE_CREATE_TEMP_TABLE:
    case SQLITE_CREATE_TEMP_INDEX:
    case SQLITE_CREATE_TEMP_TRIGGER:
    case SQLITE_CREATE_TEMP_VIEW:
    case SQLITE_DROP_TEMP_TABLE:
    case SQLITE_DROP_TEMP_INDEX:
    case SQLITE_DROP_TEMP_TRIGGER:
    case SQLITE_DROP_TEMP_VIEW:
      return refuse(
          "temporary tables, views and triggers are not available: they would vanish "
          "whenever the agent is evicted");
    default: return refuse("this kind of statement is not available");
  }
}

int Authorizer::decide_write(const Action& action) {
  if (is_catalogue(action.first)) return SQLITE_OK;
  // ALTER and DROP also update sqlite_sequence and similar tables.
  if (is_sqlite_table(action.first) && seen_.schema_change) return SQLITE_OK;
  if (is_reserved_table(action.first))
    return refuse("table " + shown(action.first) + " is the host's and cannot be written");
  seen_.write = true;
  if (action.code != SQLITE_DELETE) seen_.growth = true;
  return SQLITE_OK;
}

int Authorizer::decide_schema_change(const Action& action) {
  const int code = action.code;
  // ALTER TABLE reports (schema, table), other statements (name, table or module or nothing).
  const bool alters = code == SQLITE_ALTER_TABLE;
  const std::string_view name = alters ? action.second : action.first;
  // "CREATE TABLE temp.x" is reported as if it were not temporary.
  if ((alters ? action.first : action.schema) == "temp") return refuse(std::string(kNoTemporaries));
  const bool has_table = code == SQLITE_CREATE_INDEX || code == SQLITE_CREATE_TRIGGER ||
                         code == SQLITE_DROP_INDEX || code == SQLITE_DROP_TRIGGER;
  const std::string_view table = has_table ? action.second : name;

  // SQLite makes these together with a plugin's table: sqlite_autoindex_* and sqlite_sequence.
  const bool made_by_sqlite =
      is_sqlite_table(name) && (has_table || (code == SQLITE_CREATE_TABLE && seen_.schema_change));
  if ((is_reserved_table(name) && !made_by_sqlite) || (has_table && is_reserved_table(table))) {
    return refuse(shown(is_reserved_table(table) ? table : name) +
                  " is the host's: names that start with cf_agent or sqlite_ cannot be made, "
                  "changed or dropped, and nothing can be made on them");
  }
  if (code == SQLITE_CREATE_VTABLE && !is_one_of(action.second, kModules))
    return refuse("virtual tables of module " + shown(action.second) +
                  " are not available; those of fts5 and rtree are");
  seen_.schema_change = true;
  seen_.write = true;
  if (alters || code == SQLITE_CREATE_TABLE || code == SQLITE_CREATE_INDEX ||
      code == SQLITE_CREATE_VTABLE || code == SQLITE_CREATE_VIEW || code == SQLITE_CREATE_TRIGGER)
    seen_.growth = true;
  if (alters) seen_.alter = true;
  return SQLITE_OK;
}

int Authorizer::decide_pragma(const Action& action) {
  if (is_one_of(action.first, kDescribingPragmas)) return SQLITE_OK;
  if (is_one_of(action.first, kReadingPragmas)) {
    if (!action.has_second) return SQLITE_OK;
    return refuse("PRAGMA " + std::string(action.first) + " can be read but not set");
  }
  return refuse("PRAGMA " + std::string(action.first) + " is not available");
}

}  // namespace hearth::storage

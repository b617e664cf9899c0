#pragma once
// Checks what a plugin's SQL does to the agent's database.

#include <string>
#include <string_view>

struct sqlite3;

namespace hearth::storage {

// Compares as SQLite compares its keywords: ASCII letters are equal in either case.
[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;
[[nodiscard]] bool contains_ignoring_case(std::string_view text, std::string_view part) noexcept;

// True for names that belong to the host or to SQLite: cf_agent*, sqlite_*, in either case.
[[nodiscard]] bool is_reserved_table(std::string_view name) noexcept;

// True if the text may contain a name of the host's, also in quotes or in a comment.
[[nodiscard]] bool mentions_host_tables(std::string_view sql) noexcept;

// SQLite's authorizer for one connection. SQLite calls it whenever it compiles SQL. It also
// compiles triggers, views, virtual tables, and a statement again after the schema has changed. So
// the authorizer must be active while plugin statements are prepared *and* while they run.
//
// Allowed   reading everything; writing, creating, altering and dropping tables, indexes, views
//           and triggers that are not reserved; virtual tables of fts5 and rtree; PRAGMAs that only
//           describe (table_info, table_xinfo, table_list, index_info, index_list, index_xinfo,
//           foreign_key_list, and user_version, page_count, freelist_count without a value).
// Refused   everything else, in particular: any change to a reserved table, or anything made on
//           one; ATTACH, DETACH, VACUUM INTO; BEGIN, COMMIT, ROLLBACK, SAVEPOINT (the host owns the
//           transaction); temporary objects, which would vanish when the agent is evicted;
//           load_extension(); ANALYZE, REINDEX. Unknown actions of a newer SQLite are refused too.
// Blind     SQLite does not report everything: the new name in ALTER TABLE, the table that a
//           foreign key refers to, VACUUM. PluginSql refuses these with the help of seen().
//
// Threads   The connection's.
// Lifetime  Destroyed before the connection.
class Authorizer {
 public:
  // Starts inactive: everything is allowed, for the host's own statements.
  explicit Authorizer(sqlite3& connection);
  ~Authorizer();
  Authorizer(const Authorizer&) = delete;
  Authorizer& operator=(const Authorizer&) = delete;

  // Active between the two. Not nested.
  void enter() noexcept;
  void leave() noexcept;

  // What the SQL that was compiled since enter() does.
  struct Seen {
    bool write = false;          // changes a table of the plugin, or the schema
    bool growth = false;         // ... and may need more space
    bool schema_change = false;  // CREATE, ALTER or DROP
    bool alter = false;          // ALTER TABLE
    bool match = false;          // has MATCH
  };
  [[nodiscard]] const Seen& seen() const noexcept { return seen_; }

  // Why an action was refused since enter(), for the plugin's author. Empty: none was refused.
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }

 private:
  struct Action;
  static int on_action(void* self, int code, const char* first, const char* second,
                       const char* schema, const char* inner) noexcept;
  int decide(const Action& action);
  int decide_write(const Action& action);
  int decide_schema_change(const Action& action);
  int decide_pragma(const Action& action);
  int refuse(std::string why);

  sqlite3& connection_;
  bool active_ = false;
  Seen seen_;
  std::string refusal_;
};

}  // namespace hearth::storage

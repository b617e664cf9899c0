#pragma once
// Replaces auxiliary functions of FTS5: the time of SQLite's own grows with the square of the text.

struct fts5_api;  // NOLINT(readability-identifier-naming): SQLite's name
struct sqlite3;

namespace hearth::storage {

// Replaces highlight, snippet and bm25 (full_text_rank.hpp) on this connection, also where `rank`
// names one of them.
//
// Promises  The same results as SQLite's functions, except that a snippet has at least one token.
//           The time is that of sorting the matches in the row.
// Not here  Bounds on the text of a query: full_text_tokens.hpp and, for NEAR, full_text_query.hpp.
// Bounded   A row with more than 2^20 matches, summed over the phrases of the query, is
//           SQLITE_TOOBIG. Each call checks its StepBudget: SQLITE_INTERRUPT.
// Failure   StorageError if SQLite refuses a function.
void replace_full_text_functions(sqlite3& connection);

// Null: a SQLite without FTS5.
[[nodiscard]] fts5_api* full_text_api(sqlite3& connection);

}  // namespace hearth::storage

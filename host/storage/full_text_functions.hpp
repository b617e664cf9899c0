#pragma once
// Auxiliary functions of FTS5 of our own in the place of SQLite's whose time grows with the square
// of the text.

struct fts5_api;  // NOLINT(readability-identifier-naming): SQLite's name
struct sqlite3;

namespace hearth::storage {

// Replaces highlight, snippet and bm25 (full_text_rank.hpp) on this connection, for what names them
// as `rank` too.
//
// Promises  The results of SQLite's own, but that a snippet has one token at least. The time of
//           sorting the matches in the row.
// Not here  What FTS5 does with the text of a query: full_text_tokens.hpp and, for NEAR,
//           full_text_query.hpp.
// Bounded   A row with more than 2^20 matches, each phrase of the query counted, is refused:
//           SQLITE_TOOBIG. Each call looks at the time of its StepBudget: SQLITE_INTERRUPT.
// Failure   StorageError if SQLite refuses one.
void replace_full_text_functions(sqlite3& connection);

// Null: a SQLite without FTS5.
[[nodiscard]] fts5_api* full_text_api(sqlite3& connection);

}  // namespace hearth::storage

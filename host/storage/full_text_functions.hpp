#pragma once
// Auxiliary functions of FTS5 of our own in the place of SQLite's whose time grows with the square
// of the text.

struct sqlite3;

namespace hearth::storage {

// Replaces highlight, snippet and bm25 (full_text_rank.hpp) on this connection, for what names them
// as `rank` too.
//
// Promises  The results of SQLite's own, but that a snippet has one token at least. The time of
//           sorting the matches in the row.
// Not here  What FTS5 does with the text of a query, and NEAR: SQLite lets no one come between.
//           full_text_query.hpp bounds the texts that plugins bind.
// Bounded   A row with more than 2^20 matches, each phrase of the query counted, is refused:
//           SQLITE_TOOBIG.
// Failure   StorageError if SQLite refuses one.
void replace_full_text_functions(sqlite3& connection);

}  // namespace hearth::storage

#pragma once
// Auxiliary functions of FTS5 of our own in the place of SQLite's whose time grows with the square
// of the text.

struct sqlite3;

namespace hearth::storage {

// Replaces highlight and snippet on this connection, for what names them as `rank` too.
//
// Promises  The results of SQLite's own, but that a snippet has one token at least. The time of
//           sorting the matches in the row.
// Bounded   A row with more than 2^20 matches, each phrase of the query counted, is refused:
//           SQLITE_TOOBIG.
// Failure   StorageError if SQLite refuses one.
void replace_full_text_functions(sqlite3& connection);

}  // namespace hearth::storage

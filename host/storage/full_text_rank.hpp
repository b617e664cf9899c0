#pragma once
// bm25 for FTS5, which is the column `rank` too, in the place of SQLite's.

struct Fts5Context;
struct Fts5ExtensionApi;
struct sqlite3_context;
struct sqlite3_value;

namespace hearth::storage {

// An auxiliary function of FTS5: bm25(table, weight of the first column, ...).
//
// Promises  The results of SQLite's own (sqlite.org/fts5.html, "The bm25() function"). SQLite's
//           compares each match in the row with each phrase of the query; this one looks at each
//           match once.
// Bounded   The rows that have a phrase are counted for each phrase, once a query. More than 2^26
//           in all are refused with SQLITE_TOOBIG: some seconds.
void rank_by_bm25(const Fts5ExtensionApi* api, Fts5Context* row, sqlite3_context* context,
                  int count, sqlite3_value** weights);

}  // namespace hearth::storage

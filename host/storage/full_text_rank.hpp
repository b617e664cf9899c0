#pragma once
// bm25 for FTS5, which is also the column `rank`. Replaces SQLite's.

struct Fts5Context;
struct Fts5ExtensionApi;
struct sqlite3_context;
struct sqlite3_value;

namespace hearth::storage {

// An auxiliary function of FTS5: bm25(table, weight of the first column, ...).
//
// Promises  The same results as SQLite's (sqlite.org/fts5.html, "The bm25() function"). SQLite's
//           compares each match in the row with each phrase of the query; this function reads each
//           match once.
// Bounded   Once a query it counts the rows that have each phrase. More than 2^26 in total, which
//           take some seconds, are SQLITE_TOOBIG.
void rank_by_bm25(const Fts5ExtensionApi* api, Fts5Context* row, sqlite3_context* context,
                  int count, sqlite3_value** weights);

}  // namespace hearth::storage

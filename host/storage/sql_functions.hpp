#pragma once
// SQL functions of our own in the place of SQLite's whose time grows with the square of their
// arguments, or whose stack grows with them.

struct sqlite3;

namespace hearth::storage {

// A statement's time is looked at between its instructions, and a function is one instruction. So
// each function that plugins may call takes time in proportion to its arguments; those of SQLite
// that do not are replaced on this connection:
//
//   trim, ltrim, rtrim, instr, replace   the results of SQLite's own, for text that is valid UTF-8
//   json_patch                           SQLite's own, for documents up to 64 KiB each, or as much
//                                        together: the product of their lengths is bounded; beyond
//                                        it an error, SQLITE_TOOBIG
//   json_set, json_insert                SQLite's own, for paths of at most 1,000 steps; beyond
//                                        them SQLITE_TOOBIG
//
// A row may call hundreds of functions without a look at the time, so each of these looks at that
// of its StepBudget: SQLITE_INTERRUPT.
//
// Those of FTS5 are in full_text_functions.hpp.
//
// LIKE and GLOB stay SQLite's own, since it uses indexes for no others, and look at no time. They
// are bounded by the length of their patterns, which PluginSql sets for each statement.
//
// Failure   StorageError if SQLite refuses one.
void replace_slow_functions(sqlite3& connection);

}  // namespace hearth::storage

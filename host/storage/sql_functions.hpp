#pragma once
// Replaces SQL functions of SQLite whose time grows with the square of their arguments, or whose
// stack grows with them.

struct sqlite3;

namespace hearth::storage {

// SQLite checks a statement's time between instructions, and a function is one instruction. So each
// function that plugins may call must take time in proportion to its arguments. This replaces
// functions that do not, on this connection:
//
//   trim, ltrim, rtrim, instr, replace   the same results as SQLite's, for valid UTF-8
//   json_patch                           SQLite's, if the product of the lengths of the documents
//                                        is at most that of two documents of 64 KiB; otherwise
//                                        SQLITE_TOOBIG
//   json_set, json_insert                SQLite's, for paths of at most 1,000 steps; otherwise
//                                        SQLITE_TOOBIG
//
// A row may call hundreds of functions between two looks at the clock, so each of these checks its
// StepBudget: SQLITE_INTERRUPT.
//
// full_text_functions.hpp has the functions of FTS5.
//
// LIKE and GLOB stay SQLite's, because SQLite uses indexes only for its own. They do not check the
// time; PluginSql bounds the length of their patterns for each statement.
//
// Failure   StorageError if SQLite refuses a function.
void replace_slow_functions(sqlite3& connection);

}  // namespace hearth::storage

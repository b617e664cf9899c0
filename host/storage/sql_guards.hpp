#pragma once
// Limits by size for SQL functions of SQLite whose time or stack grows faster than their arguments.

struct sqlite3;

namespace hearth::storage {

// SQLite checks a statement's time between instructions, and a function is one instruction. A
// client that chooses the arguments of these functions could keep them busy for hours, or end the
// process by the depth of the stack. On this connection they are SQLITE_TOOBIG for large arguments,
// and SQLite's own for all others:
//
//   trim, ltrim, rtrim (with characters)   the product of the lengths of the first two arguments:
//                                          as two texts of 16 KiB
//   instr, replace, json_patch             the same, as two texts of 64 KiB
//   json_set, json_insert                  paths of at most 1,000 steps
//
// Each takes about a second at most. (LIKE and GLOB: SQLITE_LIMIT_LIKE_PATTERN_LENGTH.)
//
// Failure   StorageError if SQLite refuses a function.
void guard_slow_functions(sqlite3& connection);

}  // namespace hearth::storage

#pragma once
// The format of the files of a data directory.

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::storage {

class Connection;

// One number for all files: host.db, audit.db, server.db and those of agents, and for backups.
// Format 1 is that of version 1.0; tests/process/data_1.sql has such data as text. In 1.x:
//
//  F1 Steps    Each change raises the number: a new table, a new column, a new meaning of a value.
//  F2 Forward  A server reads each format from 1 to its own.
//  F3 Not back A server refuses a file of a later format, and changes nothing in it.
//  F4 Kept     A step adds tables and columns with a default, and removes and renames nothing.
//
// F1: a server that does not know an addition would not keep it right. Patch releases add nothing.
// F2: the change that raises the number adds a step from the number before, as SQL. The server
// takes the step when it opens a file, in one transaction with the new number.
// F3: the way back to an earlier server is a backup from before.
inline constexpr std::int64_t kDataFormat = 1;

// Why the file is refused, and what to do.
[[nodiscard]] std::string wrong_format(std::string_view file, std::int64_t found);

// Makes the tables of a new file: SQL text without BEGIN or COMMIT. PRAGMA user_version has the
// format.
//
// Atomic    The file has all tables, or none.
// Threads   Several connections may call this at once: one does the work, the others wait for it.
// Failure   StorageError, also for a file of another format. Nothing is written then.
void prepare_tables(Connection& connection, const char* tables);

// As prepare_tables(), without making anything.
void check_format(Connection& connection);

}  // namespace hearth::storage

#pragma once
// The format of the files of a data directory.

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::storage {

class Connection;

// One number for all files: host.db, audit.db, server.db and those of agents. It rises with each
// change after which this server would not read rightly what was written before. There are no
// migrations: a file of another format is refused, and stays as it is.
inline constexpr std::int64_t kDataFormat = 14;

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

#include "storage/data_format.hpp"

#include "base/error.hpp"
#include "storage/connection.hpp"

#include <sqlite3.h>

namespace hearth::storage {
namespace {

bool is_new(Connection& connection) {
  // In one statement: another connection may make the tables meanwhile. A version has 32 bits.
  constexpr std::int64_t kNoTables = std::int64_t{1} << 40U;
  const std::int64_t found = connection.query_integer(
      "SELECT iif(user_version = 0 AND NOT EXISTS(SELECT 1 FROM sqlite_schema), 1 << 40, "
      "user_version) FROM pragma_user_version");
  if (found == kDataFormat) return false;
  if (found == kNoTables) return true;
  throw StorageError(wrong_format(sqlite3_db_filename(&connection.handle(), "main"), found));
}

}  // namespace

std::string wrong_format(std::string_view file, std::int64_t found) {
  return std::string(file) + " has data format " + std::to_string(found) +
         ", and this server reads only format " + std::to_string(kDataFormat) +
         ": a later version of Hearth wrote it, or one from before 1.0. Nothing in it was changed. "
         "Serve this data directory with the version that wrote it, restore an earlier backup, or "
         "begin with an empty directory";
}

void check_format(Connection& connection) {
  static_cast<void>(is_new(connection));
}

void prepare_tables(Connection& connection, const char* tables) {
  if (!is_new(connection)) return;  // without a lock: the usual case
  Transaction transaction(connection);
  // Looked at again: another connection may have made them while this one waited for the lock.
  if (is_new(connection)) {
    connection.execute(tables);
    connection.execute(("PRAGMA user_version=" + std::to_string(kDataFormat)).c_str());
  }
  transaction.commit();
}

}  // namespace hearth::storage

#include "storage/migrations.hpp"

#include "base/error.hpp"
#include "storage/connection.hpp"

#include <sqlite3.h>

#include <string>

namespace hearth::storage {
namespace {

// Undoes a migration that an exception has interrupted.
class RollbackUnlessCommitted {
 public:
  explicit RollbackUnlessCommitted(Connection& connection) : connection_(connection) {}
  RollbackUnlessCommitted(const RollbackUnlessCommitted&) = delete;
  RollbackUnlessCommitted& operator=(const RollbackUnlessCommitted&) = delete;
  ~RollbackUnlessCommitted() {
    // Fails if there is nothing to undo, which does no harm.
    if (!committed_) sqlite3_exec(&connection_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  void commit() {
    connection_.execute("COMMIT");
    committed_ = true;
  }

 private:
  Connection& connection_;
  bool committed_ = false;
};

std::size_t version_of(Connection& connection, Migrations steps) {
  const std::int64_t version = connection.query_integer("PRAGMA user_version");
  if (version >= 0 && static_cast<std::size_t>(version) <= steps.size())
    return static_cast<std::size_t>(version);
  throw StorageError(std::string(sqlite3_db_filename(&connection.handle(), "main")) +
                     " has schema version " + std::to_string(version) +
                     ", but this server knows only versions up to " + std::to_string(steps.size()) +
                     ": it was written by a newer server");
}

}  // namespace

void migrate(Connection& connection, Migrations steps) {
  if (version_of(connection, steps) == steps.size()) return;  // without a lock: the usual case
  connection.execute("BEGIN IMMEDIATE");
  RollbackUnlessCommitted transaction(connection);
  // Read again: another connection may have migrated while this one waited for the lock.
  for (std::size_t next = version_of(connection, steps); next < steps.size(); ++next)
    connection.execute(steps[next]);
  connection.execute(("PRAGMA user_version=" + std::to_string(steps.size())).c_str());
  transaction.commit();
}

}  // namespace hearth::storage

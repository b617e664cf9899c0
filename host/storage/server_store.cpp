#include "storage/server_store.hpp"

#include "storage/connection.hpp"
#include "storage/data_format.hpp"
#include "storage/statement.hpp"

#include <string_view>
#include <utility>

namespace hearth::storage {
namespace {

constexpr const char* kServerStoreTables =
    "CREATE TABLE class_counts("
    "  class TEXT NOT NULL, counter TEXT NOT NULL, window INTEGER NOT NULL, used INTEGER NOT NULL,"
    "  PRIMARY KEY(class, counter)) WITHOUT ROWID";

}  // namespace

ServerStore::ServerStore(std::filesystem::path file) : file_(std::move(file)) {}

ServerStore::~ServerStore() = default;

// With a rollback journal and a sync for each commit, because there are few commits.
Connection& ServerStore::opened() {
  if (!connection_) {
    auto connection = std::make_unique<Connection>(file_, ConnectionOptions{.create = true});
    prepare_tables(*connection, kServerStoreTables);
    connection_ = std::move(connection);
  }
  return *connection_;
}

std::vector<ClassCount> ServerStore::class_counts() {
  std::vector<ClassCount> counts;
  if (!connection_ && !std::filesystem::exists(file_)) return counts;
  Statement all(opened().handle(),
                "SELECT class, counter, window, used FROM class_counts ORDER BY class, counter");
  for (Rows rows = all.query(); rows.next();) {
    counts.push_back({.agent_class = std::string(rows.text(0)),
                      .counter = std::string(rows.text(1)),
                      .window = rows.integer(2),
                      .used = rows.integer(3)});
  }
  return counts;
}

void ServerStore::store(const std::vector<ClassCount>& counts) {
  Connection& connection = opened();
  connection.execute("BEGIN IMMEDIATE");
  try {
    Statement put(connection.handle(),
                  "INSERT OR REPLACE INTO class_counts(class, counter, window, used) "
                  "VALUES(?, ?, ?, ?)");
    for (const ClassCount& each : counts)
      put.execute(each.agent_class, each.counter, each.window, each.used);
    connection.execute("COMMIT");
  } catch (...) {
    connection_.reset();  // rolls back
    throw;
  }
}

}  // namespace hearth::storage

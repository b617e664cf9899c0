#pragma once
// The rows of an agent's operations, with their documents and files.

#include "base/error.hpp"
#include "durable/operation_types.hpp"
#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <functional>
#include <span>
#include <utility>

namespace hearth::durable {

// Documents of a row.
enum class OperationPart : std::int64_t {
  kGivenUp = 0,  // empty; it was given up, and may still be begun again (P12)
  kArguments = 1,
  kResult = 2,
  kRequest = 3,
  kHead = 4,         // of the answer to the request
  kFirstPiece = 16,  // of the answer's body; the others have the next numbers
};

struct OperationRow {
  std::int64_t seq = 0;  // 0: not stored yet
  std::string id{};
  std::string kind{};
  Effect effect = Effect::kUnsafe;
  std::string state{};
  std::optional<std::string> root{};  // the id of the outermost fiber of its work
  std::optional<std::string> scope{};
  std::optional<std::string> key{};
  std::string likeness{};  // hash of its kind and arguments
  std::int64_t n = 0;      // set only for a new row
  std::int64_t cost = 0;
  std::optional<std::int64_t> day{};  // of the budget that it counts in; nothing: none
  bool acts_by_request = false;
  int attempts = 1;
  std::int64_t started_at_ms = 0;
  std::optional<std::int64_t> horizon_at_ms{};
  std::optional<std::int64_t> settled_at_ms{};
  std::optional<std::string> settled_by{};
  std::optional<std::string> note{};
};

// Reading makes nothing: an agent without operations has no tables.
//
// On disk    cf_agents_operations and cf_agents_operation_documents. A file has the id of its
//            operation as its name, in the agent's directory of files.
// Durable    Writes join the agent's implicit transaction; the caller commits.
// Savepoints No member may be called while a savepoint of the agent's code is open.
// Threads    The agent's shard.  Failure  StorageError.
class OperationTable {
 public:
  using Params = std::span<const storage::Param>;

  // The reference outlives this object.
  explicit OperationTable(storage::AgentDatabase& database) : database_(database) {}

  [[nodiscard]] storage::AgentDatabase& database() { return database_; }
  [[nodiscard]] bool exists();
  // Begins the write, and makes the tables if they are missing.
  void prepare_write();

  // Texts of SQL are literals: each is prepared once and kept. `from` is all that follows the
  // columns: "FROM cf_agents_operations WHERE ...".
  [[nodiscard]] std::optional<OperationRow> find(std::string_view id);
  [[nodiscard]] std::optional<OperationRow> first(std::string_view from,
                                                  const storage::ParamValue auto&... values) {
    std::optional<OperationRow> found;
    each(from, storage::params_of(values...), [&](OperationRow& row) {
      found = std::move(row);
      return false;
    });
    return found;
  }
  // Calls `see` with each row until it returns false. `see` may read with other texts than this
  // one, but not write.
  void each(std::string_view from, Params params, const std::function<bool(OperationRow&)>& see);
  // The tables exist.
  [[nodiscard]] storage::Rows rows(std::string_view sql,
                                   const storage::ParamValue auto&... values) {
    return database_.kept(sql).query(values...);
  }
  // The first column of the first row; 0: no row, or null.
  [[nodiscard]] std::int64_t number(std::string_view sql,
                                    const storage::ParamValue auto&... values) {
    if (!exists()) return 0;
    storage::Rows found = rows(sql, values...);
    return found.next() ? storage::integer_or_none(found, 0).value_or(0) : 0;
  }

  void run(std::string_view sql, const storage::ParamValue auto&... values) {
    prepare_write();
    database_.kept(sql).execute(values...);
  }
  // A new row, which gets its seq.
  void insert(OperationRow& row);
  // Removes the rows with their documents and files. `from` returns their ids. Returns the number.
  std::int64_t remove(std::string_view from, Params params);

  [[nodiscard]] std::optional<std::string> document(std::int64_t seq, OperationPart part);
  // `body`: a text, or bytes that need not be UTF-8.
  void put(std::int64_t seq, OperationPart part, const storage::Param& body);

  // The path of the operation's file, whose directory is made. kUnavailable: it cannot be made.
  Result<std::string> path_of(const OperationRow& row);

 private:
  storage::AgentDatabase& database_;
  bool exists_ = false;
};

}  // namespace hearth::durable

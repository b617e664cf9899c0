#pragma once
// What the ledger keeps of the request that an operation has sent, and of the answer to it.

#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::durable {

struct DispatchedRequest {
  std::string fingerprint;  // of its method, URL and body
  std::int64_t dispatched_at_ms = 0;
  std::optional<std::int64_t> status{};      // of the answer
  std::optional<std::string> upstream_id{};  // what the other side calls the request
  bool can_resume = false;                   // the rest of the answer can be asked for
  bool whole = false;                        // the answer has ended, and all of it is here
  std::uint64_t bytes = 0;                   // of its body, that are here

  // The other side has begun a good answer, whose rest can be asked for (or is here).
  [[nodiscard]] bool is_resumable() const {
    return can_resume && status && *status >= 200 && *status < 300;
  }
};

// One request of each operation, named by its row in cf_agents_operations.
//
// On disk    Documents of the operation: part 3 the request, 4 the head of its answer, from 16 on
//            the body, in pieces of kPieceBytes. They go with the operation's row.
// Durable, Threads, Failure   As Operations, which has made the tables and begun to write.
class OperationAnswers {
 public:
  // What comes in small pieces (a token at a time) is put together to rows of this size: each one
  // costs as much to write as is in the row by then.
  static constexpr std::size_t kPieceBytes = std::size_t{8} << 10;
  // A larger head is kept without its headers.
  static constexpr std::size_t kMaxHeadBytes = std::size_t{64} << 10;

  // The reference outlives it.
  explicit OperationAnswers(storage::AgentDatabase& database) : database_(database) {}
  // Gives up what holds the database.
  void close() { statements_.clear(); }

  [[nodiscard]] std::optional<DispatchedRequest> find(std::int64_t operation);
  // Replaces what is known of it; not its answer.
  void write(std::int64_t operation, const DispatchedRequest& request);
  // The head of the answer, as JSON.
  void put_head(std::int64_t operation, std::string_view json);
  void append(std::int64_t operation, std::string_view piece);
  // The body ends here; `bytes` is not more than there is.
  void cut(std::int64_t operation, std::uint64_t bytes);
  // Empty: none has come.
  [[nodiscard]] std::string head(std::int64_t operation);
  [[nodiscard]] std::string body(std::int64_t operation);
  // The request stays known.
  void drop_answer(std::int64_t operation);
  void drop(std::int64_t operation);

 private:
  storage::Statement& kept(std::string_view sql);
  void put(std::int64_t operation, std::int64_t part, std::string_view body);
  void remove_from(std::int64_t operation, std::int64_t part);

  storage::AgentDatabase& database_;
  std::map<const char*, std::unique_ptr<storage::Statement>> statements_;  // by their text's place
};

}  // namespace hearth::durable

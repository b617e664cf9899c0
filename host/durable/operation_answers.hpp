#pragma once
// The stored request of an operation, and the stored answer to it.

#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::durable {

struct DispatchedRequest {
  std::string fingerprint;  // of its method, URL and body
  std::int64_t dispatched_at_ms = 0;
  std::optional<std::int64_t> status{};      // of the answer
  std::optional<std::string> upstream_id{};  // the other side's id of the request
  bool can_resume = false;                   // the rest of the answer can be requested
  bool whole = false;                        // the answer has ended, and all of it is stored
  std::uint64_t bytes = 0;                   // of its body, that are stored

  // The other side has begun a good answer, and its rest can be requested (or is stored).
  [[nodiscard]] bool is_resumable() const {
    return can_resume && status && *status >= 200 && *status < 300;
  }
};

// One request of each operation. `operation` is its row in cf_agents_operations.
//
// On disk    Documents of the operation: part 3 the request, 4 the head of its answer, from 16 on
//            the body, in pieces of at most kPieceBytes. They are removed with the operation's
//            row.
// Durable, Threads, Failure   As Operations, which has made the tables and begun the write.
class OperationAnswers {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{8} << 10;
  // Small pieces (a token at a time) are joined to rows of this size: each append rewrites its row,
  // and SQLite keeps rows of up to 1,002 bytes of this table in one page. A longer one is in pages
  // of its own, which each append would free and take again: four pages a token instead of one.
  // The rest of a large piece is cut like this too, so that no row wastes the most of a page.
  static constexpr std::size_t kJoinedBytes = 960;
  // A larger head is stored without its headers.
  static constexpr std::size_t kMaxHeadBytes = std::size_t{64} << 10;

  // The reference outlives this object.
  explicit OperationAnswers(storage::AgentDatabase& database) : database_(database) {}

  [[nodiscard]] std::optional<DispatchedRequest> find(std::int64_t operation);
  // Replaces the stored request, but not the answer.
  void write(std::int64_t operation, const DispatchedRequest& request);
  // The head of the answer, as JSON.
  void put_head(std::int64_t operation, std::string_view json);
  void append(std::int64_t operation, std::string_view piece);
  // Cuts the body to `bytes`, which are not more than it has.
  void cut(std::int64_t operation, std::uint64_t bytes);
  // Empty: not received.
  [[nodiscard]] std::string head(std::int64_t operation);
  [[nodiscard]] std::string body(std::int64_t operation);
  // Removes the answer; the request stays.
  void drop_answer(std::int64_t operation);
  void drop(std::int64_t operation);

 private:
  void put(std::int64_t operation, std::int64_t part, std::string_view body);
  void remove_from(std::int64_t operation, std::int64_t part);

  storage::AgentDatabase& database_;
};

}  // namespace hearth::durable

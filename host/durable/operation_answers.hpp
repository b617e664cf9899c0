#pragma once
// The stored request of an operation, and the stored answer to it.

#include "durable/operation_table.hpp"

#include <cstddef>

namespace hearth::durable {

// One request of each operation. `operation` is its row in cf_agents_operations.
//
// On disk    Documents of the operation. The body is in pieces of at most kPieceBytes.
// Durable, Threads, Failure   As OperationTable, which outlives it.
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

  explicit OperationAnswers(OperationTable& table) : table_(table) {}

  [[nodiscard]] std::optional<DispatchedRequest> find(std::int64_t operation);
  // See DispatchedRequest.
  [[nodiscard]] bool is_resumable(std::int64_t operation) {
    const auto request = find(operation);
    return request && request->is_resumable();
  }
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
  void remove_from(std::int64_t operation, OperationPart part);

  OperationTable& table_;
};

}  // namespace hearth::durable

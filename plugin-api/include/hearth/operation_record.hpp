#pragma once
// The ledger's record of an operation: see operations.hpp.

#include <hearth/ext/operations.h>
#include <hearth/fields.hpp>
#include <hearth/operation_kind.hpp>
#include <hearth/time.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

enum class OperationState : std::uint32_t {
  kRunning = HEARTH_OPERATION_IS_RUNNING,          // in this instance
  kInterrupted = HEARTH_OPERATION_IS_INTERRUPTED,  // begun, cut off, and not judged yet
  kCompleted = HEARTH_OPERATION_IS_COMPLETED,
  kNotExecuted = HEARTH_OPERATION_IS_NOT_EXECUTED,  // certainly not
  kUnknown = HEARTH_OPERATION_IS_UNKNOWN,           // it may have been executed
};

// The request that an operation has sent, with FetchRequest::op.
struct OperationRequestRecord {
  std::string fingerprint;  // of its method, URL and body
  Time dispatched_at;
  std::optional<unsigned> status;  // of the answer
  // The other system's name for it, from the header Request-Id or X-Request-Id.
  std::optional<std::string> upstream_id;
  std::uint64_t stored_bytes = 0;  // of the answer's body
  bool whole = false;              // the answer has ended, and is stored
};

struct OperationRecord {
  std::string id;
  std::string kind;
  Effect effect = Effect::kUnsafe;
  OperationState state = OperationState::kUnknown;
  std::optional<std::string> key;
  std::optional<std::string> scope;  // the fiber's work that it belongs to
  Json args;
  Json result;
  std::uint64_t cost = 0;
  int attempts = 0;
  Time started_at;
  std::optional<Time> horizon_at;
  std::optional<Time> settled_at;
  std::optional<std::string> settled_by;  // the actor that resolved it
  std::optional<std::string> note;        // why, for people
  std::optional<OperationRequestRecord> request;

  // The text for models and people about an unknown operation.
  [[nodiscard]] std::string warning() const;
};

// The filter of list_operations(). A field with its default does not restrict.
struct OperationFilter {
  std::vector<OperationState> states = {};
  std::string kind = {};
  std::string fiber = {};    // a fiber's id: only operations of its work
  std::string after = {};    // an operation's id: only operations after it
  std::uint32_t limit = 50;  // 1 to 100
};

// The effects outside of an interrupted fiber, as far as the ledger knows.
struct RecoveredOperations {
  std::vector<OperationRecord> completed;
  std::vector<OperationRecord> not_executed;
  std::vector<OperationRecord> unknown;
  // Their effects allow another run, or the other system can be asked: that happens when the work
  // reaches them again.
  std::vector<OperationRecord> interrupted;
};

namespace detail {

inline std::string unknown_text(std::string_view id) {
  return "operation " + std::string(id) + " may have executed; verify before retrying";
}

// The place of `word` in `words`; for a word of a later host `fallback`.
template <std::size_t Count>
std::size_t place_of(const std::array<std::string_view, Count>& words, std::string_view word,
                     std::size_t fallback) {
  for (std::size_t place = 0; place < Count; ++place) {
    if (words[place] == word) return place;
  }
  return fallback;
}

OperationRecord read_operation(const Json& json);

}  // namespace detail

inline std::string OperationRecord::warning() const {
  return detail::unknown_text(id);
}

}  // namespace hearth

#pragma once
// The host's own statements of one connection.

#include "storage/statement.hpp"

#include <memory>
#include <string_view>
#include <unordered_map>

struct sqlite3;

namespace hearth::storage {

// Each is prepared at its first use, and found by the place of its literal from then on.
//
// Lifetime  The connection outlives it, or clear() comes before its end.
class KeptStatements {
 public:
  // The statement with the text `before` + `literal`. The reference is good until the next
  // release_unused() or clear(). Throws StorageError.
  [[nodiscard]] Statement& get(sqlite3& connection, std::string_view literal,
                               std::string_view before = {});

  // Finalises those that were not used since the last call.
  void release_unused() noexcept;
  void clear() noexcept { statements_.clear(); }

 private:
  struct Kept {
    std::unique_ptr<Statement> statement;
    bool used = true;  // since release_unused()
  };
  std::unordered_map<const char*, Kept> statements_;
};

}  // namespace hearth::storage

#pragma once
// The host's own statements of one connection.

#include "storage/statement.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

struct sqlite3;

namespace hearth::storage {

// Each is prepared at its first use, and found by the places of its literals from then on.
//
// Lifetime  The connection outlives it, or clear() comes before its end.
class KeptStatements {
 public:
  // The statement with the text `before` + `literal`, both literals. The reference is good until
  // the next release_unused() or clear(). Throws StorageError.
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
  // Of both literals: a compiler may give equal ones in two texts the same place.
  using Places = std::pair<const char*, const char*>;
  struct Hash {
    std::size_t operator()(const Places& places) const noexcept {
      constexpr std::hash<const char*> kOfOne;
      return kOfOne(places.first) * 31 + kOfOne(places.second);
    }
  };
  std::unordered_map<Places, Kept, Hash> statements_;
};

}  // namespace hearth::storage

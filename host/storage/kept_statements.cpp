#include "storage/kept_statements.hpp"

#include <iterator>
#include <string>
#include <utility>

namespace hearth::storage {

Statement& KeptStatements::get(sqlite3& connection, std::string_view literal,
                               std::string_view before) {
  Kept& kept = statements_[{before.data(), literal.data()}];
  kept.used = true;
  if (kept.statement == nullptr) {
    kept.statement = before.empty() ? std::make_unique<Statement>(connection, literal)
                                    : std::make_unique<Statement>(
                                          connection, std::string(before).append(literal));
  }
  return *kept.statement;
}

void KeptStatements::release_unused() noexcept {
  for (auto each = statements_.begin(); each != statements_.end();)
    each = std::exchange(each->second.used, false) ? std::next(each) : statements_.erase(each);
}

}  // namespace hearth::storage

#include <hearth/detail/listed_operations.hpp>

namespace hearth::detail {

ListedOperations::ListedOperations(const std::vector<NamedOperation>& operations) {
  for (const auto& [name, kind] : operations) {
    listed_.push_back({slice(name), static_cast<std::uint32_t>(kind.effect), 0, text(kind.same),
                       text(kind.interrupted), text(kind.upstream), text(kind.unknown)});
  }
  table_ = {sizeof table_, static_cast<std::uint32_t>(listed_.size()), listed_.data()};
}

}  // namespace hearth::detail

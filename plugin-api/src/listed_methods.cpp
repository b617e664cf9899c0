#include <hearth/detail/listed_methods.hpp>

namespace hearth::detail {

ListedMethods::ListedMethods(const std::vector<Method>& methods) {
  texts_.reserve(2 * methods.size());  // so that no text moves
  for (const Method& method : methods) {
    listed_.push_back({slice(method.name), method.flags, 0,
                       slice(std::string_view(method.description)),
                       keep(SchemaText::of_arguments(*method.schema)),
                       keep(SchemaText::of_result(*method.schema))});
  }
  table_ = {sizeof table_, static_cast<std::uint32_t>(listed_.size()), listed_.data()};
}

hearth_bytes ListedMethods::keep(std::string text) {
  texts_.push_back(std::move(text));
  return slice(std::string_view(texts_.back()));
}

}  // namespace hearth::detail

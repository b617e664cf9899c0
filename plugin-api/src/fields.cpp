#include <hearth/fields.hpp>

namespace hearth::detail {

std::string Place::text() const {
  std::string out = outer ? outer->text() : std::string();
  if (name.empty()) return out + "[" + std::to_string(index) + "]";
  if (!out.empty()) out += outer->outer || !outer->name.ends_with(' ') ? "." : "";
  return out + std::string(name);
}

}  // namespace hearth::detail

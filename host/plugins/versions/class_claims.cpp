#include "plugins/versions/class_claims.hpp"

#include "base/escape.hpp"
#include "protocol/class_segment.hpp"

#include <utility>

namespace hearth::plugins {

std::optional<Finding> ClassClaims::conflict(const std::vector<std::string>& classes,
                                             const std::filesystem::path& file) const {
  std::map<std::string, std::string_view> of_this_library;
  for (const std::string& name : classes) {
    const std::string segment = protocol::kebab_case(name);
    const auto address = [&segment] { return " are both reached at /agents/" + segment + "/"; };
    if (const auto [other, is_new] = of_this_library.emplace(segment, name); !is_new) {
      return finding("C1", "its classes " + show_name(name) + " and " + show_name(other->second) +
                               address() + ": rename one");
    }
    if (const std::string aliased = aliased_ ? aliased_(segment) : ""; !aliased.empty()) {
      return finding("C1", "its class " + show_name(name) + " is reached at /agents/" + segment +
                               "/, which is an alias of the class " + show_name(aliased) +
                               ": rename one");
    }
    const auto owner = owners_.find(segment);
    if (owner == owners_.end() || owner->second.file == file) continue;
    const std::string other_file = show_name(owner->second.file.native());
    if (owner->second.class_name == name) {
      return finding("C1", "it has the class " + show_name(name) + ", and so has " + other_file +
                               ", which is served: remove one of the two");
    }
    return finding("C1", "its class " + show_name(name) + " and " +
                             show_name(owner->second.class_name) + " of " + other_file + address() +
                             ": rename one");
  }
  return std::nullopt;
}

void ClassClaims::claim(const std::vector<std::string>& classes,
                        const std::filesystem::path& file) {
  release(file);
  for (const std::string& name : classes)
    owners_.emplace(protocol::kebab_case(name), Owner{name, file});
}

void ClassClaims::release(const std::filesystem::path& file) {
  std::erase_if(owners_, [&file](const auto& each) { return each.second.file == file; });
}

}  // namespace hearth::plugins

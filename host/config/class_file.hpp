#pragma once
// config/classes/*.yaml: which keys they have and what their values may be.

#include "config/config.hpp"
#include "config/diagnostic.hpp"
#include "config/yaml.hpp"

#include <string>
#include <string_view>

namespace hearth::config {

// What one class file says.
struct ClassFile {
  std::string name;  // empty when the file does not give a right one, which is reported
  Position name_at;
  ClassConfig config;
};

// The values of a tree, with the default for each key that is missing or wrong; what is wrong goes to
// `report`.
[[nodiscard]] ClassFile read_class_file(const YamlNode& root, Report& report);

}  // namespace hearth::config

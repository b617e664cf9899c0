#pragma once
// config/hearth.yaml: which keys it has and what their values may be.

#include "config/config.hpp"
#include "config/diagnostic.hpp"
#include "config/yaml.hpp"

#include <filesystem>

namespace hearth::config {

// What one server file says. Paths are relative to the current directory when `directory` was.
struct ServerFile {
  ServerConfig config;
  Position classes_at;  // where the value of `classes` stands; line 0 when the file does not say
};

// The values of a tree, with the default for each key that is missing or wrong; what is wrong goes to
// `report`. Relative paths, the default ones too, are taken from `directory`.
[[nodiscard]] ServerFile read_server_file(const YamlNode& root,
                                          const std::filesystem::path& directory, Report& report);

}  // namespace hearth::config

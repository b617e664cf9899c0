#pragma once
// The source of a setting's value.

#include "config/diagnostic.hpp"

#include <map>
#include <string>

namespace hearth::config {

// A flag of the command line, or a place in a file, or (both empty) the default.
struct Source {
  std::string flag;  // "--listen"
  std::string file;  // as diagnostics name it
  Position at;       // of the value
};

// By the path of the setting ("limits.max_value"). Settings without an entry have their default.
using Sources = std::map<std::string, Source, std::less<>>;

// "default", "config/hearth.yaml:12", "--listen". Always one line: the file's name is escaped.
[[nodiscard]] std::string to_string(const Source& source);

}  // namespace hearth::config

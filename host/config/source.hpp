#pragma once
// Where the value of a setting comes from.

#include "config/diagnostic.hpp"

#include <map>
#include <string>

namespace hearth::config {

// A flag of the command line, or else a place in a file, or else (both empty) the default.
struct Source {
  std::string flag;  // "--listen"
  std::string file;  // as diagnostics name it
  Position at;       // of the value
};

// By the path of the setting ("limits.max_value"). What is not in it has its default.
using Sources = std::map<std::string, Source, std::less<>>;

// "default", "config/hearth.yaml:12", "--listen". One line, whatever the file's name holds.
[[nodiscard]] std::string to_string(const Source& source);

}  // namespace hearth::config

#pragma once
// The configuration that a server is started with: its files, and the flags over them.

#include "cli/command_line.hpp"
#include "config/parse.hpp"

#include <string>

namespace hearth::cli {

// The files' values, or the defaults, with the flags over them; `sources` says which is from where.
// Without any word about plugins, and without a directory of that name, an installed hearth has the
// libraries that were installed with it.
[[nodiscard]] config::LoadResult load_with_flags(const ConfigurationFlags& flags);

// A line for each mistake, and how many there are.
[[nodiscard]] std::string mistakes_text(const config::Diagnostics& mistakes);

}  // namespace hearth::cli

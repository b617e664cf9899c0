#pragma once
// The configuration of a server: its files, and the flags over them.

#include "cli/command_line.hpp"
#include "config/parse.hpp"

#include <string>

namespace hearth::cli {

// The values of the files or the defaults, with the flags over them; `sources` has their sources.
// If neither file nor flag names plugins, and there is no directory `plugins`, the libraries that
// were installed with this hearth are served.
[[nodiscard]] config::LoadResult load_with_flags(const ConfigurationFlags& flags);

// A line for each mistake, and a line with their number.
[[nodiscard]] std::string mistakes_text(const config::Diagnostics& mistakes);

}  // namespace hearth::cli

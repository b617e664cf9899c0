#pragma once
// The version of this program.

#include <string>

namespace hearth::cli {

// Three lines without a last line feed: the version; the version of the plugin ABI, which decides
// whether a library is served; the compiler and libraries of the build.
[[nodiscard]] std::string version_text();

}  // namespace hearth::cli

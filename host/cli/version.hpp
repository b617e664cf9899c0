#pragma once
// What this program is.

#include <string>

namespace hearth::cli {

// Three lines without a last line feed: the version; the version of the plugin ABI, by which a
// library can tell whether it will be served; what it was built with.
[[nodiscard]] std::string version_text();

}  // namespace hearth::cli

#pragma once
// The symbol versions of the libraries in this process.

#include <string_view>

namespace hearth::plugins {

enum class VersionStanding {
  kPresent,    // the library is loaded here and defines it
  kMissing,    // the library is loaded here and does not define it: a plugin that needs it cannot
               // be loaded
  kNotLoaded,  // the library is not in this process: it cannot be compared
};

// Whether this process has `version` ("GLIBC_2.34") of the library named `library` ("libc.so.6").
//   Threads  Any.
[[nodiscard]] VersionStanding version_standing(std::string_view library, std::string_view version);

}  // namespace hearth::plugins

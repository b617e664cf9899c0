#pragma once
// The versions of symbols that the libraries of this process have.

#include <string_view>

namespace hearth::plugins {

enum class VersionStanding {
  kPresent,    // the library is loaded here and defines it
  kMissing,    // the library is loaded here and does not: what needs it cannot be loaded
  kNotLoaded,  // this process does not have the library, so there is nothing to compare with
};

// Where `version` ("GLIBC_2.34") of the library called `library` ("libc.so.6") stands in this
// process.
//   Threads  Any.
[[nodiscard]] VersionStanding version_standing(std::string_view library, std::string_view version);

}  // namespace hearth::plugins

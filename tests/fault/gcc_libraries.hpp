#pragma once
// The libraries of the zoo that g++ 12 builds. Without that compiler there are none, and their
// tests say so.

#include <cstdlib>
#include <string_view>

namespace hearth::testing {

// Why a test of these libraries is skipped, or fails where is_continuous_integration().
inline constexpr const char* kNoGcc12 =
    "g++ 12 builds no libraries here: install the package g++-12 (packaging/install-dependencies "
    "does, as Debian 12's g++), and configure the build anew";

// As CI services say it: CI=true. There everything that can be tested is, or the run is a failure.
inline bool is_continuous_integration() {
  const char* const said = std::getenv("CI");  // NOLINT(concurrency-mt-unsafe): no code sets it
  return said != nullptr && std::string_view(said) == "true";
}

// Of a library of the zoo, by its name.
constexpr bool is_by_gcc(std::string_view library) {
  return library.starts_with("gcc_");
}

}  // namespace hearth::testing

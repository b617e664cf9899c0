#include "cli/version.hpp"

#include <hearth/abi.h>

#include <boost/version.hpp>

namespace hearth::cli {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "gcc " __VERSION__;
#endif

std::string boost_version() {
  return std::to_string(BOOST_VERSION / 100'000) + "." +
         std::to_string(BOOST_VERSION / 100 % 1000) + "." + std::to_string(BOOST_VERSION % 100);
}

}  // namespace

std::string version_text() {
  return "hearth " HEARTH_VERSION "\nplugin ABI " + std::to_string(HEARTH_ABI_MAJOR) + "." +
         std::to_string(HEARTH_ABI_MINOR) + "\nbuilt with " + kCompiler + ", Boost " +
         boost_version();
}

}  // namespace hearth::cli

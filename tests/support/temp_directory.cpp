#include "support/temp_directory.hpp"

#include "base/assert.hpp"

#include <cstdlib>
#include <string>

namespace hearth::testing {

TempDirectory::TempDirectory() : TempDirectory(std::filesystem::temp_directory_path()) {}

TempDirectory::TempDirectory(const std::filesystem::path& above) {
  std::string pattern = (above / "hearth-test-XXXXXX").string();
  HEARTH_ASSERT(::mkdtemp(pattern.data()) != nullptr, "cannot create a temporary directory");
  path_ = pattern;
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace hearth::testing

#pragma once
// A fresh directory, removed with everything in it at the end of the test.

#include <filesystem>

namespace hearth::testing {

class TempDirectory {
 public:
  TempDirectory();
  // In another directory than the system's temporary one.
  explicit TempDirectory(const std::filesystem::path& above);
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace hearth::testing

#pragma once
// The build of an author's project, for `hearth dev`: runs cmake as an author would.

#include "base/error.hpp"
#include "plugins/versions/directory_watcher.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace hearth::cli {

// The output of a command (both streams), and how it ended.
struct CommandEnd {
  bool is_good = false;  // it was started, and ended with status 0
  std::string output;
  std::chrono::duration<double> took{};
};

// Runs a program from PATH, without input, and waits for its end.
[[nodiscard]] CommandEnd run_quietly(const std::vector<std::string>& command,
                                     const std::filesystem::path& directory);

// The files with CMake's presets, at the top of a project: CMake*.json.
[[nodiscard]] plugins::DirectoryImage look_at_presets(const std::filesystem::path& project);

// The directories of a project that may have sources: the project and all directories below it, at
// most 1,000. Leaves out hidden directories, CMake's build directories (a directory with a
// CMakeCache.txt, and each CMakeFiles), `build` and `node_modules` at the top, and `data`, where
// the server keeps its agents.
[[nodiscard]] std::vector<std::filesystem::path> source_directories(
    const std::filesystem::path& project, const std::filesystem::path& data);

// Makes the libraries in `served` equal to those in `built`. Makes the directory if it is absent.
//   Promises  Replaces a library in one step, and only if its bytes differ. Removes libraries that
//             `built` does not have.
//   Failure   A file or a directory cannot be read or written. Other libraries may have been
//             replaced by then; a second call does the rest.
[[nodiscard]] Result<void> bring_over(const std::filesystem::path& built,
                                      const std::filesystem::path& served);

// The project in the directory `project`. CMake builds it into project/build, with its preset `dev`
// if there is a CMakePresets.json. Builds the libraries of hearth_add_plugin(), and no unit tests.
//
//   Promises  `served()` changes only after a good build. While a linker fails or is at work, its
//             library is missing in `libraries()`, but stays in `served()`.
//   Threads  One at a time.
class ProjectBuild {
 public:
  explicit ProjectBuild(std::filesystem::path project) : project_(std::move(project)) {}

  [[nodiscard]] std::filesystem::path libraries() const { return project_ / "build/plugins"; }
  [[nodiscard]] std::filesystem::path served() const { return project_ / kServed; }
  static constexpr const char* kServed = "build/served";

  // Builds, and brings the libraries to served(). Configures first, if that has not succeeded yet
  // or the presets have changed since. (CMake itself handles a changed CMakeLists.txt.) The output
  // has the messages of the tools.
  [[nodiscard]] CommandEnd run();

 private:
  const std::filesystem::path project_;
  bool is_configured_ = false;
  plugins::DirectoryImage presets_;  // as they were when it was configured
};

}  // namespace hearth::cli

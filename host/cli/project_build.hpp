#pragma once
// The build of an author's project, for `hearth dev`: cmake, asked as a person would.

#include "base/error.hpp"
#include "plugins/versions/directory_watcher.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace hearth::cli {

// What a command has written (both streams) and how it ended.
struct CommandEnd {
  bool is_good = false;  // it could be started, and ended with status 0
  std::string output;
  std::chrono::duration<double> took{};
};

// Runs a program that is found in PATH, and waits for it. It reads nothing.
[[nodiscard]] CommandEnd run_quietly(const std::vector<std::string>& command,
                                     const std::filesystem::path& directory);

// The files that hold CMake's presets, of those at the top of a project: CMake*.json.
[[nodiscard]] plugins::DirectoryImage look_at_presets(const std::filesystem::path& project);

// The directories of a project that may hold sources: the project, and all below it but hidden
// ones, what CMake builds in (a directory with a CMakeCache.txt, and each CMakeFiles), `build` and
// `node_modules` at the top, and `data`, where the server keeps its agents. At most 1,000.
[[nodiscard]] std::vector<std::filesystem::path> source_directories(
    const std::filesystem::path& project, const std::filesystem::path& data);

// Brings the libraries in `served` to those in `built`. Makes the directory if it is absent.
//   Promises  A library is replaced in one step, and only if its bytes differ. A library that
//             `built` does not have is removed.
//   Failure   A file or a directory cannot be read or written. Other libraries may have been
//             brought over by then; calling it again does the rest.
[[nodiscard]] Result<void> bring_over(const std::filesystem::path& built,
                                      const std::filesystem::path& served);

// A project below `project` that CMake builds into project/build: its preset `dev` if there is a
// CMakePresets.json. What hearth_add_plugin() lists is built; unit tests are left to ctest.
//
//   Promises  `served()` changes only after a good build. A linker that fails, or takes long,
//             removes its library from `libraries()`; that library stays in `served()`.
//   Threads  One at a time.
class ProjectBuild {
 public:
  explicit ProjectBuild(std::filesystem::path project) : project_(std::move(project)) {}

  [[nodiscard]] std::filesystem::path libraries() const { return project_ / "build/plugins"; }
  [[nodiscard]] std::filesystem::path served() const { return project_ / kServed; }
  static constexpr const char* kServed = "build/served";

  // Builds, and brings the libraries to served(). Configures first if that has not succeeded yet,
  // or if the presets have changed since; CMake itself sees to a CMakeLists.txt that has changed.
  // What goes wrong is in the output, as the tools have said it.
  [[nodiscard]] CommandEnd run();

 private:
  const std::filesystem::path project_;
  bool is_configured_ = false;
  plugins::DirectoryImage presets_;  // as they were when it was configured
};

}  // namespace hearth::cli

#pragma once
// The build of an author's project, for `hearth dev`: cmake, asked as a person would.

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

// The directories of a project that may hold sources: all but hidden ones and, at the top, those
// whose name begins with "build", and "data" and "node_modules". At most 1,000.
[[nodiscard]] std::vector<std::filesystem::path> source_directories(
    const std::filesystem::path& project);

// A project below `project` that CMake builds into project/build: its preset `dev` if there is a
// CMakePresets.json. What hearth_add_plugin() lists is built; unit tests are left to ctest.
//
//   Threads  One at a time.
class ProjectBuild {
 public:
  explicit ProjectBuild(std::filesystem::path project) : project_(std::move(project)) {}

  [[nodiscard]] std::filesystem::path libraries() const { return project_ / "build/plugins"; }

  // Configures it if that has not succeeded yet, and builds. What goes wrong is in the output, as
  // the tools have said it.
  [[nodiscard]] CommandEnd run();

 private:
  const std::filesystem::path project_;
  bool is_configured_ = false;
};

}  // namespace hearth::cli

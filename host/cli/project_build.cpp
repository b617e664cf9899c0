#include "cli/project_build.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include <spawn.h>

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxDirectories = 1'000;
constexpr std::size_t kMaxLibraryBytes = std::size_t{1} << 30U;  // far above any debug build

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::string all_of(std::FILE* file) {
  std::string text;
  if (std::fseek(file, 0, SEEK_SET) != 0) return text;
  std::array<char, 4096> piece{};
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), file))
    text.append(piece.data(), count);
  return text;
}

// Returns the error number, or 0 and the process.
int start(const std::vector<std::string>& command, const fs::path& directory, int output,
          pid_t& process) {
  std::vector<std::string> texts = command;
  std::vector<char*> arguments;
  arguments.reserve(texts.size() + 1);
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  ::posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  // The building thread blocks all signals, but Ctrl-C must still end the build tools.
  sigset_t none{};
  ::sigemptyset(&none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  const int error =
      ::posix_spawnp(&process, arguments.front(), &actions, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

bool may_hold_sources(const fs::path& directory, const fs::path& data, bool is_at_the_top) {
  const std::string name = directory.filename().string();
  if (name.starts_with('.')) return false;
  if (is_at_the_top && (name == "build" || name == "node_modules")) return false;
  // CMake writes the cache at the end of the first configuration.
  std::error_code absent;
  if (name == "CMakeFiles" || fs::exists(directory / "CMakeCache.txt", absent)) return false;
  return !fs::equivalent(directory, data, absent);
}

}  // namespace

CommandEnd run_quietly(const std::vector<std::string>& command, const fs::path& directory) {
  const Clock::time_point begin = Clock::now();
  const std::unique_ptr<std::FILE, CloseFile> output(std::tmpfile());
  if (output == nullptr) {
    return {.output = "no temporary file: " + std::system_category().message(errno) + "\n"};
  }
  pid_t process = -1;
  if (const int error = start(command, directory, ::fileno(output.get()), process); error != 0) {
    return {.output = command.front() +
                      " cannot be started: " + std::system_category().message(error) + "\n"};
  }
  int status = -1;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return {.is_good = status == 0, .output = all_of(output.get()), .took = Clock::now() - begin};
}

std::vector<fs::path> source_directories(const fs::path& project, const fs::path& data) {
  std::vector<fs::path> found{project};
  std::error_code failure;
  fs::recursive_directory_iterator entry(project, fs::directory_options::skip_permission_denied,
                                         failure);
  for (; !failure && entry != fs::recursive_directory_iterator(); entry.increment(failure)) {
    std::error_code gone;
    if (entry->is_symlink(gone) || !entry->is_directory(gone)) continue;
    if (!may_hold_sources(entry->path(), data, entry.depth() == 0)) {
      entry.disable_recursion_pending();
      continue;
    }
    found.push_back(entry->path());
    if (found.size() == kMaxDirectories) break;
  }
  return found;
}

plugins::DirectoryImage look_at_presets(const fs::path& project) {
  plugins::DirectoryImage image =
      plugins::look_at({{.path = project, .extensions = {".json"}, .follows_links = true}});
  std::erase_if(
      image, [](const auto& file) { return !file.first.filename().native().starts_with("CMake"); });
  return image;
}

Result<void> bring_over(const fs::path& built, const fs::path& served) {
  std::error_code failure;
  fs::create_directories(served, failure);
  if (failure) return Error{Errc::kInternal, served.native() + ": " + failure.message()};
  const plugins::DirectoryImage wanted = plugins::look_at({{.path = built}});
  for (const auto& [path, stamp] : wanted) {
    const Result<std::string> content = read_file(path, kMaxLibraryBytes);
    if (!content) return content.error();
    const fs::path place = served / path.filename();
    const Result<std::string> before = read_file(place, kMaxLibraryBytes);
    if (before && *before == *content) continue;
    if (const auto written = write_file_atomically(place, *content); !written)
      return written.error();
  }
  for (const auto& [path, stamp] : plugins::look_at({{.path = served}})) {
    if (wanted.contains(built / path.filename())) continue;
    fs::remove(path, failure);
    if (failure) return Error{Errc::kInternal, path.native() + ": " + failure.message()};
  }
  return {};
}

CommandEnd ProjectBuild::run() {
  const Clock::time_point begin = Clock::now();
  plugins::DirectoryImage presets = look_at_presets(project_);
  if (!is_configured_ || presets != presets_) {
    std::vector<std::string> configure{"cmake", "-B", "build"};
    if (fs::exists(project_ / "CMakePresets.json")) {
      configure.insert(configure.end(), {"--preset", "dev"});
    } else {
      configure.insert(configure.end(), {"-S", ".", "-DCMAKE_BUILD_TYPE=Debug"});
    }
    CommandEnd configured = run_quietly(configure, project_);
    if (!configured.is_good) return configured;
    is_configured_ = true;
    presets_ = std::move(presets);
  }
  const unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
  CommandEnd built = run_quietly(
      {"cmake", "--build", "build", "--target", "hearth_dev", "--parallel", std::to_string(jobs)},
      project_);
  if (built.is_good) {
    if (const auto brought = bring_over(libraries(), served()); !brought) {
      built.is_good = false;
      built.output += brought.error().message + "\n";
    }
  }
  built.took = Clock::now() - begin;
  return built;
}

}  // namespace hearth::cli

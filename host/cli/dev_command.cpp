#include "base/mutex.hpp"
#include "cli/commands.hpp"
#include "cli/configuration.hpp"
#include "cli/project_build.hpp"
#include "plugins/versions/directory_watcher.hpp"
#include "server/supervisor.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using plugins::DirectoryImage;
using plugins::FileChanges;
using plugins::WatchedDirectory;

constexpr std::chrono::milliseconds kPause{200};     // between two looks at the sources
constexpr std::chrono::milliseconds kQuietTime{50};  // after the last change, until a build begins

void say(const std::string& text) {
  std::fputs(("hearth dev: " + text + "\n").c_str(), stderr);
}

std::string seconds_text(std::chrono::duration<double> time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", time.count());
  return text.data();
}

// "greeter.so and porter.so"
std::string names_of(const std::vector<fs::path>& files) {
  if (files.size() > 3) return std::to_string(files.size()) + " files";
  std::string text;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i > 0) text += i + 1 == files.size() ? " and " : ", ";
    text += files[i].filename().string();
  }
  return text;
}

// The directory of a project, and the server's data below it.
struct Project {
  fs::path path;
  fs::path data;
};

DirectoryImage look_at_sources(const Project& project) {
  std::vector<WatchedDirectory> directories;
  for (fs::path& each : source_directories(project.path, project.data)) {
    directories.push_back({.path = std::move(each),
                           .extensions = {".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx",
                                          ".ipp", ".inc", ".txt", ".cmake"},
                           .follows_links = true});
  }
  DirectoryImage image = look_at(directories);
  image.merge(look_at_presets(project.path));
  return image;
}

// Builds a project, and prints the result.
class SpokenBuild {
 public:
  explicit SpokenBuild(const fs::path& project) : build_(project) {}

  void run() {
    const std::vector<WatchedDirectory> libraries{{.path = build_.libraries()}};
    const DirectoryImage before = look_at(libraries);
    const CommandEnd end = build_.run();
    const std::vector<fs::path> made = difference(before, look_at(libraries)).changed;
    if (!end.is_good || end.output.find("warning:") != std::string::npos)
      std::fputs(end.output.c_str(), stderr);
    if (!end.is_good) {
      say("not built; what was built before is served until this is mended");
    } else if (made.empty()) {
      say("nothing to build");
    } else {
      say("built " + names_of(made) + " in " + seconds_text(end.took));
    }
    ended_ = fs::file_time_type::clock::now();
  }

  // Builders compare times: what was saved while a build ran would be older than what that build
  // has made, and never be built. Returns whether the time of a source was set.
  bool renew(const std::vector<fs::path>& sources) const {
    bool is_any = false;
    for (const fs::path& each : sources) {
      std::error_code failure;
      const auto saved = fs::last_write_time(each, failure);
      if (failure || saved > ended_) continue;
      fs::last_write_time(each, fs::file_time_type::clock::now(), failure);
      is_any = is_any || !failure;
    }
    return is_any;
  }

 private:
  ProjectBuild build_;
  fs::file_time_type ended_ = fs::file_time_type::min();
};

// While it lives, builds whenever a source is saved. It polls the sources, which also finds new
// directories and works on network file systems. That costs at most a twentieth of a processor.
//
//   Threads  Made and destroyed on one thread. Has its own thread, which blocks all signals. The
//            destructor waits for a running build.
class Rebuilder {
 public:
  // `known`: the sources as they were before the last build.
  Rebuilder(Project project, DirectoryImage known, SpokenBuild& build)
      : project_(std::move(project)), known_(std::move(known)), build_(build) {
    sigset_t all{};
    sigset_t before{};
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { serve(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Rebuilder() {
    {
      const MutexLock lock(mutex_);
      is_over_ = true;
    }
    over_.notify_one();
    thread_.join();
  }
  Rebuilder(const Rebuilder&) = delete;
  Rebuilder& operator=(const Rebuilder&) = delete;

 private:
  void serve() {
    Clock::duration look_took{};
    while (wait(std::max<Clock::duration>(kPause, 20 * look_took))) {
      const Clock::time_point begin = Clock::now();
      DirectoryImage now = look_at_sources(project_);
      look_took = Clock::now() - begin;
      if (now == known_) continue;
      if (build_.renew(difference(known_, now).changed)) now = look_at_sources(project_);
      // Editors write a file in several steps.
      while (wait(kQuietTime)) {
        DirectoryImage next = look_at_sources(project_);
        if (next == now) break;
        now = std::move(next);
      }
      const FileChanges changes = difference(known_, now);
      known_ = std::move(now);  // later changes are for the next build
      if (!changes.changed.empty()) say(names_of(changes.changed) + " changed");
      if (!changes.gone.empty()) say(names_of(changes.gone) + " removed");
      build_.run();
    }
  }

  // False: the object is being destroyed.
  bool wait(Clock::duration time) {
    const Clock::time_point end = Clock::now() + time;
    const MutexLock lock(mutex_);
    while (!is_over_ && over_.wait_until(mutex_, end)) {
    }
    return !is_over_;
  }

  const Project project_;
  DirectoryImage known_;  // used by the thread
  SpokenBuild& build_;
  Mutex mutex_;
  Condition over_;
  bool is_over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the fields above
};

// Makes CMake look first for the package of this hearth, installed or in its build tree.
void offer_package() {
  std::error_code failure;
  const fs::path binary = fs::read_symlink("/proc/self/exe", failure);
  if (failure) return;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): this process has no other thread yet
  ::setenv("Hearth_ROOT", binary.parent_path().parent_path().c_str(), 1);
}

}  // namespace

int run(const DevCommand& command) {
  const fs::path directory = fs::current_path();
  if (!fs::exists(directory / "CMakeLists.txt")) {
    say("there is no CMakeLists.txt here; `hearth new greeter && cd greeter` begins a project");
    return kExitBadUsage;
  }
  const config::LoadResult loaded = load_with_flags(command);
  if (!loaded) {
    std::fputs(mistakes_text(loaded.error()).c_str(), stderr);
    return kExitBadUsage;
  }
  offer_package();
  const Project project{.path = directory, .data = loaded->server.data};
  const DirectoryImage known = look_at_sources(project);
  SpokenBuild build(directory);
  if (!fs::exists(directory / "build")) say("the first build compiles the headers of Hearth, too");
  build.run();
  std::error_code failure;
  // If this fails, the server reports it.
  fs::create_directories(directory / ProjectBuild::kServed, failure);

  const auto logger =
      make_queued_stderr_logger(loaded->server.log.level, loaded->server.log.format);
  const Rebuilder rebuilder(project, known, build);
  return server::supervise(command.child_arguments, {}, *logger);
}

}  // namespace hearth::cli

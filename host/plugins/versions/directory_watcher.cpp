#include "plugins/versions/directory_watcher.hpp"

#include "base/assert.hpp"

#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <system_error>
#include <utility>

#include <poll.h>

namespace hearth::plugins {
namespace {

// A removal is news as well: linkers remove the old file before they write the new one.
constexpr std::uint32_t kInteresting = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                                       IN_ATTRIB | IN_MODIFY | IN_CREATE | IN_DELETE_SELF |
                                       IN_MOVE_SELF | IN_ONLYDIR;

constexpr std::int64_t kNanoseconds = 1'000'000'000;

FileStamp stamp_of(const struct stat& status) {
  return FileStamp{.device = status.st_dev,
                   .inode = status.st_ino,
                   .bytes = status.st_size,
                   .modified_ns = status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec,
                   .changed_ns = status.st_ctim.tv_sec * kNanoseconds + status.st_ctim.tv_nsec};
}

bool is_of_interest(const std::filesystem::path& path, const WatchedDirectory& directory) {
  if (!directory.names.empty())
    return std::ranges::find(directory.names, path.filename().native()) != directory.names.end();
  return !path.filename().native().starts_with('.') &&
         std::ranges::find(directory.extensions, path.extension().native()) !=
             directory.extensions.end();
}

// A broken link always has its own stamp.
bool examine(const std::filesystem::path& path, bool follows_links, struct stat& status) {
  return (follows_links && ::stat(path.c_str(), &status) == 0) ||
         ::lstat(path.c_str(), &status) == 0;
}

// False: the directory is there, but could not be listed completely.
bool look_at_one(const WatchedDirectory& directory, DirectoryImage& image) {
  std::error_code failure;
  std::filesystem::directory_iterator entry(directory.path, failure);
  std::size_t found = 0;
  for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    const std::filesystem::path& path = entry->path();
    if (!is_of_interest(path, directory)) continue;
    struct stat status{};
    if (!examine(path, directory.follows_links, status)) continue;  // gone again
    if (++found > directory.max_files) return true;
    image.emplace(path, stamp_of(status));
  }
  return !failure || failure == std::errc::no_such_file_or_directory ||
         failure == std::errc::not_a_directory;
}

}  // namespace

DirectoryImage look_at(const std::vector<WatchedDirectory>& directories,
                       const DirectoryImage& known) {
  DirectoryImage image;
  std::set<std::pair<std::filesystem::path, std::vector<std::string>>> seen;
  for (const WatchedDirectory& directory : directories) {
    std::error_code failure;
    const auto real = std::filesystem::canonical(directory.path, failure);
    if (!failure && directory.names.empty() && !seen.emplace(real, directory.extensions).second)
      continue;
    if (look_at_one(directory, image)) continue;
    for (const auto& [path, stamp] : known) {
      const bool is_here = directory.path / path.filename() == path;
      if (is_here && is_of_interest(path, directory)) image.emplace(path, stamp);
    }
  }
  return image;
}

FileChanges difference(const DirectoryImage& before, const DirectoryImage& after) {
  FileChanges changes;
  for (const auto& [path, stamp] : after) {
    const auto old = before.find(path);
    if (old == before.end() || old->second != stamp) changes.changed.push_back(path);
  }
  for (const auto& [path, stamp] : before) {
    if (!after.contains(path)) changes.gone.push_back(path);
  }
  return changes;
}

FileChanges merged(const FileChanges& first, const FileChanges& then) {
  std::map<std::filesystem::path, bool> is_there;
  for (const FileChanges* each : {&first, &then}) {
    for (const auto& path : each->changed) is_there[path] = true;
    for (const auto& path : each->gone) is_there[path] = false;
  }
  FileChanges all;
  for (const auto& [path, there] : is_there) (there ? all.changed : all.gone).push_back(path);
  return all;
}

DirectoryWatcher::DirectoryWatcher(WatchOptions options, DirectoryImage known, OnChange on_change,
                                   Logger& logger)
    : options_(std::move(options)),
      on_change_(std::move(on_change)),
      logger_(logger),
      news_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      stop_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      known_(std::move(known)) {
  if (!news_.is_open()) {
    logger_.write(
        LogLevel::kWarn, "watch.polling",
        {{"reason", std::system_category().message(errno)},
         {"advice", "changes are noticed a little later; raise fs.inotify.max_user_instances"}});
  }
  thread_ = std::thread([this] { serve(); });
}

DirectoryWatcher::~DirectoryWatcher() {
  HEARTH_ASSERT(stop_.is_open(), "a process without descriptors cannot start a server");
  const std::uint64_t once = 1;
  (void)!::write(stop_.get(), &once, sizeof once);
  thread_.join();
}

void DirectoryWatcher::serve() {
  while (!stopping_) {
    // Changes in a directory before it was watched made no news: look at once.
    if (!watch_directories()) wait(options_.poll_time);
    if (!stopping_) compare();
  }
}

bool DirectoryWatcher::watch_directories() {
  if (!news_.is_open()) return false;
  bool any_new = false;
  for (const WatchedDirectory& each : options_.directories) {
    const std::filesystem::path& directory = each.path;
    // Also for a watched directory: another one may have taken its place. For the same directory
    // this changes nothing.
    const int watch = ::inotify_add_watch(news_.get(), directory.c_str(), kInteresting);
    int& known = watched_.try_emplace(directory, -1).first->second;
    any_new = any_new || (watch >= 0 && watch != known);
    known = watch;
  }
  return any_new;
}

bool DirectoryWatcher::wait(std::chrono::milliseconds limit) {
  std::array<pollfd, 2> sources{pollfd{stop_.get(), POLLIN, 0}, pollfd{news_.get(), POLLIN, 0}};
  const nfds_t count = news_.is_open() ? 2 : 1;
  if (::poll(sources.data(), count, static_cast<int>(limit.count())) <= 0) return false;
  stopping_ = sources[0].revents != 0;
  // The content of the news does not matter: each means "look again".
  alignas(inotify_event) std::array<char, 4096> news{};
  while (news_.is_open() && ::read(news_.get(), news.data(), news.size()) > 0) {
  }
  return true;
}

void DirectoryWatcher::compare() {
  DirectoryImage now = look_at(options_.directories, known_);
  if (now == known_) return;
  // Waits until all is quiet: no news, and no difference between two looks, since the target of a
  // link makes no news.
  const Moment latest = std::chrono::steady_clock::now() + options_.longest_wait;
  for (bool quiet = false; !quiet && std::chrono::steady_clock::now() < latest;) {
    const bool heard = wait(options_.quiet_time);
    if (stopping_) return;
    DirectoryImage next = look_at(options_.directories, known_);
    quiet = !heard && next == now;
    now = std::move(next);
  }
  const FileChanges changes = difference(known_, now);
  known_ = std::move(now);
  if (!changes.none()) on_change_(changes);
}

}  // namespace hearth::plugins

#include "storage/data_directory.hpp"

#include "base/assert.hpp"
#include "base/files.hpp"
#include "base/sha256.hpp"
#include "storage/agent_database.hpp"
#include "storage/copy_mark.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace hearth::storage {
namespace {

// Half of SHA-256, 128 bits: two names do not get the same path by accident.
constexpr std::size_t kHashDigits = 32;

Error unusable(const std::filesystem::path& path, std::string_view doing, int error) {
  std::string message = "data directory " + path.string() + ": cannot " + std::string(doing) +
                        ": " + std::generic_category().message(error) + ". ";
  switch (error) {
    case EROFS: message += "The file system is read-only: choose a directory on another one"; break;
    case EACCES:
    case EPERM: message += "Give it to the user that the server runs as, or choose another"; break;
    case ENOENT: message += "Create the directory above it, or choose another"; break;
    case ENOTDIR: message += "A part of the path is a file: choose another directory"; break;
    case ENOSPC:
    case EDQUOT: message += "Make room on the disk"; break;
    default: message += "Choose another directory"; break;
  }
  return Error{Errc::kUnavailable, std::move(message)};
}

// The process id in the lock file, or "unknown": the server that has the lock writes it later.
std::string holder(int lock) {
  std::array<char, 32> text{};
  const ssize_t size = ::pread(lock, text.data(), text.size(), 0);
  std::string pid(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  pid.erase(std::min(pid.find_first_not_of("0123456789"), pid.size()));
  return pid.empty() ? "unknown" : pid;
}

// False: another process has the lock (EWOULDBLOCK), or errno. A server that was killed may leave
// its lock to a child for a moment, such as a library's trial, which then ends too.
bool take_lock(int lock) {
  constexpr int kTries = 100;
  for (int tries = 0; ::flock(lock, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK) return false;
    const std::string text = holder(lock);
    pid_t pid = 0;
    const bool is_pid =
        std::from_chars(text.data(), text.data() + text.size(), pid).ec == std::errc() && pid > 0;
    const bool lives = !is_pid || ::kill(pid, 0) == 0 || errno != ESRCH;
    errno = EWOULDBLOCK;
    if (lives || tries == kTries) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

// Writes this process id, for the error of a second server. This also proves that files can be
// written here. It overwrites the old content, which needs no room on most file systems. On a full
// disk the file gets empty.
int write_holder(int lock) {
  const std::string pid = std::to_string(::getpid()) + "\n";
  const ssize_t written = ::pwrite(lock, pid.data(), pid.size(), 0);
  int error = written < 0 ? errno : 0;
  if (error == 0 && static_cast<std::size_t>(written) != pid.size()) error = ENOSPC;
  const off_t length = error == 0 ? written : 0;
  return ::ftruncate(lock, length) == 0 ? error : errno;
}

[[noreturn]] void fail_to(std::string_view doing, const std::filesystem::path& path, int error) {
  throw StorageError(std::string(doing) + " " + path.string() + ": " +
                     std::generic_category().message(error));
}

// Makes the names of the directory and of its entries survive a loss of power. 0, or the errno.
int sync_names(const std::filesystem::path& path) {
  const std::filesystem::path parent = path / "..";
  for (const std::filesystem::path& each : {path, parent}) {
    const int error = hearth::sync_directory(each);
    // The server cannot have made `path` in a directory above that it may not read.
    if (error != 0 && !(error == EACCES && each == parent)) return error;
  }
  return 0;
}

// Makes removals from the directory survive a loss of power.
void sync_directory(const std::filesystem::path& path) {
  const FileDescriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) fail_to("open directory", path, errno);
  if (::fsync(directory.get()) != 0) fail_to("sync directory", path, errno);
}

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Whether SQLite could make the index of host.db's WAL, a file of 32 KiB.
bool has_room_for_index(const std::filesystem::path& directory) {
  constexpr std::size_t kIndexBytes = std::size_t{32} << 10;
  const std::filesystem::path path = directory / ".room";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return !is_out_of_room(errno);
  const std::string bytes(kIndexBytes, '\0');
  const ssize_t written = ::write(file, bytes.data(), bytes.size());
  const bool is_full = written < 0 ? is_out_of_room(errno) : std::cmp_less(written, kIndexBytes);
  ::close(file);
  ::unlink(path.c_str());
  return !is_full;
}

}  // namespace

Result<DataDirectory> DataDirectory::open(const std::filesystem::path& given) {
  // Drops a slash at the end, so that the path is a prefix of its files' paths.
  const std::filesystem::path path = given.has_filename() ? given : given.parent_path();
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return unusable(path, "create it", errno);
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return unusable(path, "look at it", errno);
  if (!S_ISDIR(status.st_mode)) return unusable(path, "use it", ENOTDIR);

  const std::filesystem::path file = path / "lock";
  const int lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return unusable(path, "open the file `lock` in it", errno);
  DataDirectory directory(path, FileDescriptor(lock));

  if (!take_lock(lock)) {
    if (errno != EWOULDBLOCK) return unusable(path, "lock it", errno);
    return Error{Errc::kConflict, "data directory " + path.string() +
                                      " is in use by another server (process " + holder(lock) +
                                      "). Stop it, or give this one a directory of its own"};
  }
  const int error = write_holder(lock);
  if (error != 0 && !is_out_of_room(error))
    return unusable(path, "write to the file `lock` in it", error);
  directory.names_holder_ = error == 0;
  remove_unfinished(path);
  if (!has_room_for_index(path)) {
    directory.directory_vfs_ = "unix-excl";
    directory.note_full();
  }
  if (const int failed = sync_names(path); failed != 0)
    return unusable(path, "sync it to the device", failed);
  return directory;
}

DataDirectory::DataDirectory(std::filesystem::path path, FileDescriptor lock) noexcept
    : path_(std::move(path)), lock_(std::move(lock)), copy_mark_(std::make_unique<CopyMark>()) {}

DataDirectory::DataDirectory(DataDirectory&& other) noexcept = default;

// The file stays: if it were removed, two servers could lock two files of the same name.
DataDirectory::~DataDirectory() = default;

bool DataDirectory::name_holder() {
  if (!names_holder_) names_holder_ = write_holder(lock_.get()) == 0;
  return names_holder_;
}

bool DataDirectory::has_room() const {
  if (!watch_->is_full) return true;
  const auto now = steady_ns();
  if (now < watch_->next_try_ns) return false;
  watch_->next_try_ns = now + std::chrono::nanoseconds(kTryEvery).count();
  if (!has_room_for_index(path_)) return false;
  watch_->is_full = false;
  return true;
}

bool DataDirectory::is_lost() const {
  const auto now = steady_ns();
  if (now < watch_->next_look_ns) return watch_->lost;
  watch_->next_look_ns = now + std::chrono::nanoseconds(kLookEvery).count();
  return look_for_loss();
}

bool DataDirectory::look_for_loss() const {
  if (watch_->lost) return true;
  struct stat held{};
  struct stat found{};
  const bool is_there = ::stat((path_ / "lock").c_str(), &found) == 0;
  // Any other error is temporary, or the next read or write meets it.
  const bool is_gone = !is_there && (errno == ENOENT || errno == ENOTDIR);
  const bool is_another = is_there && ::fstat(lock_.get(), &held) == 0 &&
                          (held.st_ino != found.st_ino || held.st_dev != found.st_dev);
  if (is_gone || is_another) watch_->lost = true;
  return watch_->lost;
}

void DataDirectory::check_not_lost() const {
  if (!look_for_loss()) return;
  throw StorageError("data directory " + path_.string() +
                     " was removed or replaced while the server runs. Stop the server, put the "
                     "directory back, from a backup if need be, and start the server");
}

std::filesystem::path DataDirectory::agent_path_below(const std::filesystem::path& data,
                                                      const AgentKey& key) {
  HEARTH_ASSERT(is_class_name(key.agent_class), "a class name that may not be part of a path");
  const std::string hash = sha256_hex(key.name).substr(0, kHashDigits);
  return data / "agents" / key.agent_class / hash.substr(0, 2) / (hash + ".db");
}

bool DataDirectory::sync_names_of(const AgentKey& key) const {
  std::filesystem::path directory = agent_path(key);
  try {
    do {
      directory = directory.parent_path();
      sync_directory(directory);
    } while (directory != path_ && directory.has_relative_path());
  } catch (const StorageError&) {
    return false;
  }
  return directory == path_;
}

void DataDirectory::each_agent_file(
    const std::function<bool(const std::filesystem::path&)>& found) const {
  namespace fs = std::filesystem;
  const fs::path agents = path_ / "agents";
  std::error_code failure;
  fs::recursive_directory_iterator entry(agents, failure);
  if (failure == std::errc::no_such_file_or_directory) return;
  for (; !failure && entry != fs::recursive_directory_iterator(); entry.increment(failure)) {
    if (entry->path().extension() == AgentDatabase::kFilesExtension) {
      entry.disable_recursion_pending();  // the agent's own files
      continue;
    }
    if (entry->path().extension() == ".db" && !found(entry->path())) return;
  }
  if (failure) throw StorageError("read " + agents.string() + ": " + failure.message());
}

void DataDirectory::check_directory_not_lost() const {
  struct stat status{};
  const bool is_there = ::stat(directory_path().c_str(), &status) == 0;
  if (is_there && status.st_size > 0) return;
  if (!is_there && errno != ENOENT) return;  // the next open reports it
  each_agent_file([&](const std::filesystem::path& file) -> bool {
    throw StorageError("it is " + std::string(is_there ? "empty" : "missing") +
                       ", but there are agents' files, such as " + file.string());
  });
}

void DataDirectory::remove_agent(const AgentKey& key) const {
  const std::filesystem::path database = agent_path(key);
  // The database last: the files beside it are useless without it.
  const std::filesystem::path files = AgentDatabase::files_beside(database);
  std::error_code failure;
  std::filesystem::remove_all(files, failure);
  if (failure && failure != std::errc::not_a_directory) fail_to("remove", files, failure.value());
  for (const char* suffix : {"-wal", "-journal", "-shm", ""}) {
    const std::filesystem::path file = database.string() + suffix;
    if (::unlink(file.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR)
      fail_to("remove", file, errno);
  }
  // Also if there were no files: an interrupted call may have removed them.
  std::error_code ignored;
  if (std::filesystem::exists(database.parent_path(), ignored))
    sync_directory(database.parent_path());
}

}  // namespace hearth::storage

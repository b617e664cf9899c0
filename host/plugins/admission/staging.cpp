#include "plugins/admission/staging.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "base/file_descriptor.hpp"
#include "base/files.hpp"
#include "plugins/admission/plugin_note.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace hearth::plugins {
namespace {

constexpr std::size_t kHashDigitsInName = 16;
// Names are free after a start: a collision means that another program writes there.
constexpr int kMaxNameCollisions = 1000;
constexpr int kFirstMemoryDescriptor = 10;

Error forbidden(const std::filesystem::path& path, std::string_view why) {
  return Error{Errc::kForbidden, show_name(path.native()) + " " + std::string(why)};
}

// 0, or the error number.
int write_bytes(int descriptor, std::span<const std::byte> bytes) {
  return write_all(descriptor, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// For a path that it knows the dynamic loader returns the library from before, and descriptors are
// reused.
bool is_loaded(const std::filesystem::path& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOLOAD | RTLD_NOW);
  if (library == nullptr) {
    ::dlerror();  // NOLINT(concurrency-mt-unsafe): glibc keeps it for each thread
    return false;
  }
  ::dlclose(library);
  return true;
}

Result<void> remove_leftovers(const std::filesystem::path& directory) {
  std::error_code failure;
  std::filesystem::directory_iterator entry(directory, failure);
  while (!failure && entry != std::filesystem::directory_iterator()) {
    // remove() takes files and empty directories. This server makes nothing else here.
    std::error_code ignored;
    std::filesystem::remove(entry->path(), ignored);
    entry.increment(failure);
  }
  if (failure) return system_refused(directory, "cannot be listed", failure.value());
  return {};
}

}  // namespace

Error system_refused(const std::filesystem::path& path, std::string_view what, int error) {
  return Error{Errc::kUnavailable,
               show_name(path.native()) + " " + std::string(what) + ": " + system_text(error)};
}

Result<bool> make_private_directory(const std::filesystem::path& directory) {
  if (::mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    if (is_out_of_room(errno)) return false;
    return system_refused(directory, "cannot be made", errno);
  }
  struct stat status{};
  if (::lstat(directory.c_str(), &status) != 0)
    return system_refused(directory, "cannot be examined", errno);
  if (!S_ISDIR(status.st_mode)) return forbidden(directory, "is no directory");
  if (status.st_uid != ::geteuid()) return forbidden(directory, "belongs to another user");
  if ((status.st_mode & ALLPERMS) != S_IRWXU && ::chmod(directory.c_str(), S_IRWXU) != 0)
    return system_refused(directory, "cannot be made private", errno);
  return true;
}

StagedFile::StagedFile(std::filesystem::path path, std::uint64_t generation)
    : path_(std::move(path)), generation_(generation) {}

StagedFile::StagedFile(FileDescriptor memory, std::uint64_t generation)
    : path_("/proc/self/fd/" + std::to_string(memory.get())),
      generation_(generation),
      memory_(std::move(memory)) {}

StagedFile::~StagedFile() {
  if (!path_.empty() && !memory_.is_open()) ::unlink(path_.c_str());
}

StagedFile::StagedFile(StagedFile&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      generation_(other.generation_),
      memory_(std::move(other.memory_)) {}

StagedFile& StagedFile::operator=(StagedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(generation_, other.generation_);
  std::swap(memory_, other.memory_);
  return *this;
}

Result<StagingArea> StagingArea::open(const std::filesystem::path& directory) {
  std::error_code failure;
  const std::filesystem::path path =
      std::filesystem::absolute(directory, failure).lexically_normal();
  if (failure) return system_refused(directory, "has no absolute path", failure.value());
  const auto made = make_private_directory(path);
  if (!made) return made.error();
  if (!*made) return StagingArea(path, false);
  if (auto removed = remove_leftovers(path); !removed) return removed.error();
  return StagingArea(path, true);
}

Result<StagedFile> StagingArea::stage(std::string_view plugin, std::string_view sha256,
                                      std::span<const std::byte> bytes) {
  HEARTH_ASSERT(is_valid_plugin_name(plugin), "only a checked name becomes a part of a path");
  HEARTH_ASSERT(sha256.size() >= kHashDigitsInName, "a hash has 64 digits");
  const std::string stem =
      std::string(plugin) + "-" + std::string(sha256.substr(0, kHashDigitsInName)) + "-g";
  if (!is_made_) is_made_ = ::mkdir(directory_.c_str(), S_IRWXU) == 0;
  if (!is_made_ && is_out_of_room(errno)) return stage_in_memory(stem, bytes);
  for (int attempt = 0; attempt < kMaxNameCollisions; ++attempt) {
    const std::uint64_t generation = ++last_generation_;
    const std::filesystem::path path = directory_ / (stem + std::to_string(generation) + ".so");
    const FileDescriptor fd(::open(
        path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IXUSR));
    if (!fd.is_open() && errno == EEXIST) continue;
    if (!fd.is_open() && is_out_of_room(errno)) return stage_in_memory(stem, bytes);
    if (!fd.is_open()) return system_refused(path, "cannot be made", errno);
    StagedFile staged(path, generation);  // removes the file if the rest fails
    if (const int error = write_bytes(fd.get(), bytes); error != 0) {
      if (is_out_of_room(error)) return stage_in_memory(stem, bytes);
      return system_refused(path, "cannot be written", error);
    }
    // Independent of the umask.
    if (::fchmod(fd.get(), S_IRUSR | S_IXUSR) != 0)
      return system_refused(path, "cannot be made read-only", errno);
    return staged;
  }
  return forbidden(directory_, "is full of files that this server did not put there");
}

Result<StagedFile> StagingArea::stage_in_memory(const std::string& stem,
                                                std::span<const std::byte> bytes) {
  const std::string name = stem + std::to_string(++last_generation_) + ".so";
  const auto refused = [&name](std::string_view what) {
    return system_refused(name, std::string(what) + " in memory, the disk being full", errno);
  };
  for (;;) {
    const FileDescriptor made(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    // Above the descriptors that a child gets.
    FileDescriptor memory(::fcntl(made.get(), F_DUPFD_CLOEXEC, kFirstMemoryDescriptor));
    if (!memory.is_open()) return refused("cannot be made");
    if (const int error = write_bytes(memory.get(), bytes); error != 0) {
      errno = error;
      return refused("cannot be written");
    }
    if (::fchmod(memory.get(), S_IRUSR | S_IXUSR) != 0 ||
        ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) != 0)
      return refused("cannot be made read-only");
    StagedFile staged(std::move(memory), last_generation_);
    if (!is_loaded(staged.path())) return staged;
    taken_.push_back(std::move(staged));
  }
}

}  // namespace hearth::plugins

#include "storage/sync_calls.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include <linux/magic.h>

namespace hearth::storage {
namespace {

constexpr long kXfs = 0x58465342;  // not in the system's header

class OpenFile final : public SyncedFile {
 public:
  OpenFile(int fd, bool covered) : fd_(fd), covered_(covered) {}
  ~OpenFile() override { ::close(fd_); }

  int sync_data() override { return ::fdatasync(fd_) == 0 ? 0 : errno; }
  bool covered_by_sync_everything() const override { return covered_; }

 private:
  const int fd_;
  const bool covered_;
};

// A sync of a mapping does the same as fsync() of a descriptor, with the same errors, but unmapping
// drops no locks. The mapping is not used to read or write.
class MappedPage final : public SyncedFile {
 public:
  static constexpr std::size_t kBytes = 4096;

  MappedPage(void* page, bool covered) : page_(page), covered_(covered) {}
  ~MappedPage() override { ::munmap(page_, kBytes); }

  int sync_data() override { return ::msync(page_, kBytes, MS_SYNC) == 0 ? 0 : errno; }
  bool covered_by_sync_everything() const override { return covered_; }

 private:
  void* const page_;
  const bool covered_;
};

// Makes the file, empty, if it does not exist.
int open_for_syncing(const std::filesystem::path& path, int access) {
  constexpr mode_t kMode = 0644;  // SQLite's own
  const int fd = ::open(path.c_str(), access | O_CREAT | O_CLOEXEC, kMode);
  if (fd >= 0) return fd;
  const int error = errno;
  const std::string text =
      "open " + path.string() + " for syncing: " + std::generic_category().message(error);
  if (error == EMFILE || error == ENFILE) throw OutOfDescriptors(text);
  throw StorageError(text);
}

// syncfs() reports failed writes since Linux 5.8.
bool kernel_reports_errors() {
  utsname system{};
  int major = 0;
  int minor = 0;
  if (::uname(&system) != 0) return false;
  if (std::sscanf(system.release, "%d.%d", &major, &minor) != 2) return false;
  return major > 5 || (major == 5 && minor >= 8);
}

bool file_system_is_known(int fd) {
  struct statfs status{};
  if (::fstatfs(fd, &status) != 0) return false;
  return status.f_type == EXT4_SUPER_MAGIC || status.f_type == kXfs ||
         status.f_type == BTRFS_SUPER_MAGIC;
}

}  // namespace

SystemSyncCalls::SystemSyncCalls(const std::filesystem::path& root) {
  const int fd = ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  struct stat status{};
  if (kernel_reports_errors() && file_system_is_known(fd) && ::fstat(fd, &status) == 0) {
    root_ = fd;
    device_ = status.st_dev;
  } else {
    ::close(fd);
  }
}

SystemSyncCalls::~SystemSyncCalls() {
  if (root_ >= 0) ::close(root_);
}

std::unique_ptr<SyncedFile> SystemSyncCalls::open(const std::filesystem::path& path) {
  const int fd = open_for_syncing(path, O_RDONLY);
  return std::make_unique<OpenFile>(fd, covers(fd));
}

std::unique_ptr<SyncedFile> SystemSyncCalls::open_first_page(const std::filesystem::path& path) {
  // Linux syncs a shared mapping only if its descriptor is writable.
  const int fd = open_for_syncing(path, O_RDWR);
  void* const page = ::mmap(nullptr, MappedPage::kBytes, PROT_READ, MAP_SHARED, fd, 0);
  const int error = errno;
  const bool covered = covers(fd);
  ::close(fd);
  if (page == MAP_FAILED)
    throw StorageError("map " + path.string() +
                       " for syncing: " + std::generic_category().message(error));
  return std::make_unique<MappedPage>(page, covered);
}

bool SystemSyncCalls::covers(int fd) const {
  struct stat status{};
  return root_ >= 0 && ::fstat(fd, &status) == 0 && status.st_dev == device_;
}

int SystemSyncCalls::sync_directory(const std::filesystem::path& path) {
  return hearth::sync_directory(path);
}

int SystemSyncCalls::sync_everything() {
  if (root_ < 0) return ENOSYS;
  return ::syncfs(root_) == 0 ? 0 : errno;
}

}  // namespace hearth::storage

#include "storage/single_owner_vfs.hpp"

#include "base/assert.hpp"
#include "storage/wal_file.hpp"

#include <sqlite3.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>

namespace hearth::storage {
namespace {

// Tells a file of this VFS to free memory. SQLite leaves opcodes from 100 on to applications.
constexpr int kReleaseIndexMemory = 0x4845;

// The region size of every SQLite with WAL (WALINDEX_PGSZ). One region covers 4096 pages in the
// WAL, and a checkpoint starts at 1000: only a very large transaction needs more than a few
// regions.
constexpr std::size_t kRegionBytes = std::size_t{32} * 1024;
constexpr std::size_t kMaxRegions = 256;
constexpr std::size_t kMemoryPageBytes = 4096;

constinit thread_local bool met_full_disk = false;

// SQLite calls one of these two to write, depending on its build.
ssize_t note(ssize_t written) {
  if (written < 0 && errno == ENOSPC) met_full_disk = true;
  return written;
}
ssize_t write_and_note(int fd, const void* from, std::size_t bytes) {
  return note(::write(fd, from, bytes));
}
ssize_t write_at_and_note(int fd, const void* from, std::size_t bytes, off_t at) {
  return note(::pwrite(fd, from, bytes, at));
}
static_assert(sizeof(off_t) == 8);  // so that it is pwrite64() as well

void watch_writes(sqlite3_vfs& system) {
  const auto at = reinterpret_cast<sqlite3_syscall_ptr>(write_at_and_note);
  system.xSetSystemCall(&system, "write", reinterpret_cast<sqlite3_syscall_ptr>(write_and_note));
  system.xSetSystemCall(&system, "pwrite", at);
  system.xSetSystemCall(&system, "pwrite64", at);
}

// The wal-index: SQLite asks for its regions one by one and expects zeros.
struct WalIndex {
  std::byte** regions = nullptr;  // grown by one at a time, in order
  std::size_t count = 0;
};

// SQLite allocates this for a database file: this object, and behind it the system's own.
struct OwnedFile {
  sqlite3_file base;
  WalIndex index;
  bool locked;  // the exclusive lock is held, until the file is closed
};

// The system's file starts at the next boundary with the largest alignment.
constexpr std::size_t kSystemFileOffset =
    (sizeof(OwnedFile) + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);

OwnedFile& owned(sqlite3_file* file) {
  return *reinterpret_cast<OwnedFile*>(file);
}

sqlite3_file* system_file(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<std::byte*>(file) + kSystemFileOffset);
}

const sqlite3_io_methods& system_methods(sqlite3_file* file) {
  return *system_file(file)->pMethods;
}

void free_index(WalIndex& index) {
  for (std::byte* region : std::span(index.regions, index.count)) ::munmap(region, kRegionBytes);
  delete[] index.regions;
  index = WalIndex{};
}

// False when there is no memory.
bool add_region(WalIndex& index) {
  void* const region =
      ::mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (region == MAP_FAILED) return false;
  auto** const regions = new (std::nothrow) std::byte*[index.count + 1];
  if (regions == nullptr) {
    ::munmap(region, kRegionBytes);
    return false;
  }
  std::copy_n(index.regions, index.count, regions);
  delete[] index.regions;
  regions[index.count++] = static_cast<std::byte*>(region);
  index.regions = regions;
  return true;
}

void release_zero_pages(const WalIndex& index) {
  static constexpr std::array<std::byte, kMemoryPageBytes> kZeros{};
  for (std::byte* region : std::span(index.regions, index.count)) {
    const auto is_zero = [region](std::size_t at) {
      return at < kRegionBytes && std::memcmp(region + at, kZeros.data(), kMemoryPageBytes) == 0;
    };
    for (std::size_t at = 0; at < kRegionBytes; at += kMemoryPageBytes) {
      std::size_t end = at;
      while (is_zero(end)) end += kMemoryPageBytes;
      if (end == at) continue;
      // An anonymous page reads as zeros after MADV_DONTNEED, so a page of zeros loses nothing. One
      // call for several pages, because each call interrupts the other processors.
      ::madvise(region + at, end - at, MADV_DONTNEED);
      at = end;
    }
  }
}

// ---- this VFS's own methods: locks and the index -----------------------------------------------

int on_close(sqlite3_file* file) {
  free_index(owned(file).index);
  return system_methods(file).xClose(system_file(file));  // drops the lock
}

int on_lock(sqlite3_file* file, int) {
  if (owned(file).locked) return SQLITE_OK;
  for (const int level : {SQLITE_LOCK_SHARED, SQLITE_LOCK_EXCLUSIVE}) {
    if (const int rc = system_methods(file).xLock(system_file(file), level); rc != SQLITE_OK) {
      system_methods(file).xUnlock(system_file(file), SQLITE_LOCK_NONE);
      return rc;
    }
  }
  owned(file).locked = true;
  return SQLITE_OK;
}

int on_unlock(sqlite3_file*, int) {
  return SQLITE_OK;  // P1: kept until the file is closed
}

int on_check_reserved_lock(sqlite3_file*, int* is_reserved) {
  *is_reserved = 0;  // no other connection can hold a lock
  return SQLITE_OK;
}

int on_shm_map(sqlite3_file* file, int number, int bytes, int extend, void volatile** region) {
  HEARTH_ASSERT(bytes == int{kRegionBytes}, "this SQLite lays its wal-index out differently");
  WalIndex& index = owned(file).index;
  const auto wanted = static_cast<std::size_t>(number);
  *region = nullptr;
  if (wanted >= index.count && extend == 0) return SQLITE_OK;
  if (wanted >= kMaxRegions) {
    note_full_disk();
    return SQLITE_FULL;
  }
  while (index.count <= wanted) {
    if (!add_region(index)) return SQLITE_IOERR_NOMEM;
  }
  *region = index.regions[wanted];
  return SQLITE_OK;
}

// With one connection on one thread there is no reader or writer to exclude.
int on_shm_lock(sqlite3_file*, int, int, int) {
  return SQLITE_OK;
}
void on_shm_barrier(sqlite3_file*) {}

int on_shm_unmap(sqlite3_file* file, int) {
  free_index(owned(file).index);
  return SQLITE_OK;
}

int on_file_control(sqlite3_file* file, int operation, void* argument) {
  if (operation == kReleaseIndexMemory) {
    release_zero_pages(owned(file).index);
    return SQLITE_OK;
  }
  return system_methods(file).xFileControl(system_file(file), operation, argument);
}

// ---- methods that call the system's file -------------------------------------------------------

int on_read(sqlite3_file* file, void* to, int bytes, sqlite3_int64 offset) {
  return system_methods(file).xRead(system_file(file), to, bytes, offset);
}
int on_write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
  return system_methods(file).xWrite(system_file(file), from, bytes, offset);
}
int on_truncate(sqlite3_file* file, sqlite3_int64 size) {
  return system_methods(file).xTruncate(system_file(file), size);
}
int on_sync(sqlite3_file* file, int flags) {
  return system_methods(file).xSync(system_file(file), flags);
}
int on_file_size(sqlite3_file* file, sqlite3_int64* size) {
  return system_methods(file).xFileSize(system_file(file), size);
}
int on_sector_size(sqlite3_file* file) {
  return system_methods(file).xSectorSize(system_file(file));
}
int on_device_characteristics(sqlite3_file* file) {
  return system_methods(file).xDeviceCharacteristics(system_file(file));
}

// Version 2: with a wal-index, without memory-mapped reads.
constexpr sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_file_size,
    .xLock = on_lock,
    .xUnlock = on_unlock,
    .xCheckReservedLock = on_check_reserved_lock,
    .xFileControl = on_file_control,
    .xSectorSize = on_sector_size,
    .xDeviceCharacteristics = on_device_characteristics,
    .xShmMap = on_shm_map,
    .xShmLock = on_shm_lock,
    .xShmBarrier = on_shm_barrier,
    .xShmUnmap = on_shm_unmap,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int on_open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  sqlite3_vfs* const system = sqlite3_vfs_find(nullptr);
  if ((flags & SQLITE_OPEN_WAL) != 0) return open_wal(system, name, file, flags, flags_out);
  // Only the database itself is locked and indexed; its journals are the system's files.
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0)
    return system->xOpen(system, name, file, flags, flags_out);
  OwnedFile* const mine = new (static_cast<void*>(file)) OwnedFile{};
  const int rc = system->xOpen(system, name, system_file(file), flags, flags_out);
  // SQLite calls xClose exactly when pMethods is set, also after a failed open.
  if (system_file(file)->pMethods != nullptr) mine->base.pMethods = &kMethods;
  return rc;
}

}  // namespace

bool full_disk_was_met() noexcept {
  return met_full_disk;
}

void forget_full_disk() noexcept {
  met_full_disk = false;
}

void note_full_disk() noexcept {
  met_full_disk = true;
}

void release_index_memory(sqlite3& connection) noexcept {
  sqlite3_file_control(&connection, "main", kReleaseIndexMemory, nullptr);
}

void register_single_owner_vfs() {
  sqlite3_vfs* const system = sqlite3_vfs_find(nullptr);
  HEARTH_ASSERT(system != nullptr, "SQLite has no default VFS");
  watch_writes(*system);
  // All methods but xOpen are the system's. SQLite keeps the pointer for ever.
  static sqlite3_vfs vfs = [](const sqlite3_vfs& base) {
    sqlite3_vfs copy = base;
    copy.zName = kSingleOwnerVfs;
    copy.szOsFile = std::max(static_cast<int>(kSystemFileOffset), kWalFileBytes) + base.szOsFile;
    copy.pNext = nullptr;
    copy.xOpen = on_open;
    return copy;
  }(*system);
  const int rc = sqlite3_vfs_register(&vfs, 0);
  HEARTH_ASSERT(rc == SQLITE_OK, "registering a VFS cannot fail");
}

}  // namespace hearth::storage

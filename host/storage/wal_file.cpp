#include "storage/wal_file.hpp"

#include "base/error.hpp"
#include "storage/single_owner_vfs.hpp"
#include "storage/wal_format.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>

namespace hearth::storage {
namespace {

// Pages of a size that is not that of agents' files are written as SQLite writes them.

// SQLite sees this object; the system's own is behind it, once the file exists.
struct WalFile {
  sqlite3_file base;
  sqlite3_vfs* system;
  const char* name;
  int flags;
  bool waits;         // a frame's header waits to be written at `end`
  sqlite3_int64 end;  // of the last write; -1: none
  std::array<std::byte, kWalFrameHeaderBytes> header;
};

constexpr std::size_t kSystemWalOffset =
    (sizeof(WalFile) + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);
static_assert(kSystemWalOffset <= kWalFileBytes);

WalFile& ours(sqlite3_file* file) {
  return *reinterpret_cast<WalFile*>(file);
}

sqlite3_file* wal_of_system(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<std::byte*>(file) + kSystemWalOffset);
}

// Null: there is no file yet.
const sqlite3_io_methods* made(sqlite3_file* file) {
  return wal_of_system(file)->pMethods;
}

// SQLite calls xClose exactly when pMethods is set, also after a failed open. Here the system
// object's pMethods tells whether there is a file.
int open_system_file(sqlite3_file* file, int* flags_out) {
  const WalFile& wal = ours(file);
  const int rc = wal.system->xOpen(wal.system, wal.name, wal_of_system(file), wal.flags, flags_out);
  if (rc == SQLITE_OK) return rc;
  if (made(file) != nullptr) made(file)->xClose(wal_of_system(file));
  wal_of_system(file)->pMethods = nullptr;
  return rc;
}

int put(sqlite3_file* file, const void* from, std::size_t bytes, sqlite3_int64 offset) {
  if (made(file) == nullptr && open_system_file(file, nullptr) != SQLITE_OK) {
    note_full_disk();
    return SQLITE_FULL;
  }
  const int rc = made(file)->xWrite(wal_of_system(file), from, static_cast<int>(bytes), offset);
  ours(file).end = rc == SQLITE_OK ? offset + static_cast<sqlite3_int64>(bytes) : -1;
  return rc;
}

int put_header(sqlite3_file* file) {
  WalFile& wal = ours(file);
  if (!wal.waits) return SQLITE_OK;
  wal.waits = false;
  return put(file, wal.header.data(), wal.header.size(), wal.end);
}

int put_frame(sqlite3_file* file, const void* page) {
  WalFile& wal = ours(file);
  wal.waits = false;
  std::array<std::byte, kWalFrameHeaderBytes + kPageBytes> frame;  // NOLINT: filled at once
  std::memcpy(frame.data(), wal.header.data(), kWalFrameHeaderBytes);
  std::memcpy(frame.data() + kWalFrameHeaderBytes, page, kPageBytes);
  return put(file, frame.data(), frame.size(), wal.end);
}

int write_wal(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
  WalFile& wal = ours(file);
  const auto count = static_cast<std::size_t>(bytes);
  if (wal.waits && count == kPageBytes &&
      offset == wal.end + static_cast<sqlite3_int64>(kWalFrameHeaderBytes))
    return put_frame(file, from);
  if (const int rc = put_header(file); rc != SQLITE_OK) return rc;
  // Only headers are also rewritten before the end; those do not wait.
  if (count != kWalFrameHeaderBytes || offset != wal.end) return put(file, from, count, offset);
  std::memcpy(wal.header.data(), from, kWalFrameHeaderBytes);
  wal.waits = true;
  return SQLITE_OK;
}

int close_wal(sqlite3_file* file) {
  const int rc = put_header(file);
  const int closed = made(file) == nullptr ? SQLITE_OK : made(file)->xClose(wal_of_system(file));
  return rc == SQLITE_OK ? closed : rc;
}

int read_wal(sqlite3_file* file, void* to, int bytes, sqlite3_int64 offset) {
  if (const int rc = put_header(file); rc != SQLITE_OK) return rc;
  if (made(file) != nullptr) return made(file)->xRead(wal_of_system(file), to, bytes, offset);
  std::memset(to, 0, static_cast<std::size_t>(bytes));
  return SQLITE_IOERR_SHORT_READ;
}

int truncate_wal(sqlite3_file* file, sqlite3_int64 size) {
  if (const int rc = put_header(file); rc != SQLITE_OK) return rc;
  return made(file) == nullptr ? SQLITE_OK : made(file)->xTruncate(wal_of_system(file), size);
}

int sync_wal_file(sqlite3_file* file, int flags) {
  if (const int rc = put_header(file); rc != SQLITE_OK) return rc;
  return made(file) == nullptr ? SQLITE_OK : made(file)->xSync(wal_of_system(file), flags);
}

int wal_size(sqlite3_file* file, sqlite3_int64* size) {
  *size = 0;
  if (const int rc = put_header(file); rc != SQLITE_OK) return rc;
  return made(file) == nullptr ? SQLITE_OK : made(file)->xFileSize(wal_of_system(file), size);
}

int wal_control(sqlite3_file* file, int operation, void* argument) {
  if (made(file) == nullptr) return SQLITE_NOTFOUND;
  return made(file)->xFileControl(wal_of_system(file), operation, argument);
}

// SQLite does not lock a WAL or ask for its device characteristics: it uses the database's file.
int lock_nothing(sqlite3_file*, int) {
  return SQLITE_OK;
}
int find_nothing(sqlite3_file*, int* is_reserved) {
  *is_reserved = 0;
  return SQLITE_OK;
}
int know_nothing(sqlite3_file*) {
  return 0;
}

constexpr sqlite3_io_methods kWalMethods = {
    .iVersion = 1,
    .xClose = close_wal,
    .xRead = read_wal,
    .xWrite = write_wal,
    .xTruncate = truncate_wal,
    .xSync = sync_wal_file,
    .xFileSize = wal_size,
    .xLock = lock_nothing,
    .xUnlock = lock_nothing,
    .xCheckReservedLock = find_nothing,
    .xFileControl = wal_control,
    .xSectorSize = know_nothing,
    .xDeviceCharacteristics = know_nothing,
    .xShmMap = nullptr,
    .xShmLock = nullptr,
    .xShmBarrier = nullptr,
    .xShmUnmap = nullptr,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

// SQLite's own error is from its second attempt, to read a file that does not exist.
bool lacks_room_for(const char* name) {
  const int fd = ::open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return is_out_of_room(errno);
  ::close(fd);
  ::unlink(name);
  return false;
}

}  // namespace

int open_wal(sqlite3_vfs* system, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  auto* const wal = new (static_cast<void*>(file)) WalFile{.base = {},
                                                           .system = system,
                                                           .name = name,
                                                           .flags = flags,
                                                           .waits = false,
                                                           .end = -1,
                                                           .header = {}};
  wal_of_system(file)->pMethods = nullptr;
  const int rc = open_system_file(file, flags_out);
  if (rc != SQLITE_OK) {
    if ((rc & 0xff) != SQLITE_CANTOPEN || !lacks_room_for(name)) return rc;
    if (flags_out != nullptr) *flags_out = flags;
  }
  wal->base.pMethods = &kWalMethods;
  return SQLITE_OK;
}

}  // namespace hearth::storage

#include "support/watched_syncs.hpp"

#include <sqlite3.h>

#include <mutex>
#include <utility>

namespace hearth::testing {

struct WatchedSyncs::Vfs {
  explicit Vfs(Watch told) : watch(std::move(told)), real(sqlite3_vfs_find(nullptr)), ours(*real) {
    ours.zName = kName;
    ours.pAppData = this;
    ours.xOpen = open;
    sqlite3_vfs_register(&ours, 0);
    current = this;
  }
  ~Vfs() {
    sqlite3_vfs_unregister(&ours);
    current = nullptr;
  }
  Vfs(const Vfs&) = delete;
  Vfs& operator=(const Vfs&) = delete;

  static int open(sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* file, int flags,
                  int* out) {
    auto& self = *static_cast<Vfs*>(vfs->pAppData);
    const int rc = self.real->xOpen(self.real, name, file, flags, out);
    if (rc != SQLITE_OK || file->pMethods == nullptr) return rc;
    const bool is_database = (flags & SQLITE_OPEN_MAIN_DB) != 0;
    const std::scoped_lock lock(self.mutex);
    sqlite3_io_methods& methods = is_database ? self.of_database : self.of_others;
    if (methods.iVersion == 0) {
      methods = *file->pMethods;
      self.real_sync = methods.xSync;
      methods.xSync = is_database ? sync<true> : sync<false>;
    }
    file->pMethods = &methods;
    return rc;
  }
  template <bool kIsDatabase>
  static int sync(sqlite3_file* file, int flags) {
    const int rc = current->watch(kIsDatabase);
    return rc == SQLITE_OK ? current->real_sync(file, flags) : rc;
  }

  inline static Vfs* current = nullptr;  // SQLite gives xSync nothing of ours
  const Watch watch;
  sqlite3_vfs* const real;
  sqlite3_vfs ours;
  std::mutex mutex;
  sqlite3_io_methods of_database{};
  sqlite3_io_methods of_others{};
  int (*real_sync)(sqlite3_file*, int) = nullptr;
};

WatchedSyncs::WatchedSyncs(Watch watch) : vfs_(std::make_unique<Vfs>(std::move(watch))) {}

WatchedSyncs::~WatchedSyncs() = default;

}  // namespace hearth::testing

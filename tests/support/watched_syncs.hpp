#pragma once
// The system's own VFS, with a look at each sync.

#include <functional>
#include <memory>

namespace hearth::testing {

// A VFS that reports each sync before it is made, and may let it fail. Only one may exist at a
// time.
//
// Threads   `watch` is called on whichever thread syncs.  Lifetime  Outlives every connection over
//           it.
class WatchedSyncs {
 public:
  // Returns the result of the sync: SQLITE_OK, or an error. `is_database` is false for a WAL or a
  // journal.
  using Watch = std::function<int(bool is_database)>;

  // SQLite must be initialised (storage::initialize_sqlite()).
  explicit WatchedSyncs(Watch watch);
  ~WatchedSyncs();
  WatchedSyncs(const WatchedSyncs&) = delete;
  WatchedSyncs& operator=(const WatchedSyncs&) = delete;

  static constexpr const char* kName = "watched-syncs";

 private:
  struct Vfs;
  std::unique_ptr<Vfs> vfs_;
};

}  // namespace hearth::testing

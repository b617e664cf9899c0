#pragma once
// A disk that loses power: what was written and not synced is kept, dropped or torn as a random
// source says.

#include "storage/sync_calls.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

struct sqlite3_vfs;  // NOLINT(readability-identifier-naming): SQLite's name

namespace hearth::testing {

// A sqlite3_vfs over real files below one directory, which play the system's memory: every reader
// sees what was written last. Beside them it keeps what has reached the device:
//
//   bytes   A write or a truncation is on the device after a sync of its file. Before that, a loss
//           of power keeps it, drops it (the file may have grown all the same), or keeps some of
//           its 512-byte sectors, each by itself.
//   names   A file or a directory that was made or removed is so on the device after a sync of the
//           directory that names it. Before that, each change is kept or dropped by itself. Syncing
//           a file brings no name with it, with one exception, which SQLite's rollback needs and
//           its own VFS has: the first sync of a new rollback journal does.
//   errors  A failed sync loses some of the file's unsynced writes for good, though memory still
//           shows them. Every descriptor that was open hears of it once; later syncs of it succeed.
//
// Directories are made, and files may be removed, behind its back: it looks at the real ones.
//
// Threads   One.  Lifetime  Outlives every connection over it.
class SimulatedDisk final : public storage::SyncCalls {
 public:
  using Random = std::mt19937_64;

  // `root` is there and empty. `name` is the VFS's.
  SimulatedDisk(std::filesystem::path root, std::string name);
  ~SimulatedDisk() override;

  [[nodiscard]] const std::filesystem::path& root() const { return root_; }
  [[nodiscard]] const std::string& vfs() const { return name_; }

  // The power goes in the middle of the n-th write, truncation, sync, making or removal from now.
  void cut_after(std::uint64_t operations) { left_ = operations; }
  // Now: nothing changes any more, and every call fails.
  void cut();
  [[nodiscard]] bool is_off() const { return off_; }
  // Puts in place what the device has kept, and the power on. Nobody has a file open.
  void restore(Random& random);

  // As if the process were killed: until go_on() nothing changes and every call fails, and nothing
  // is lost.
  void suspend() { suspended_ = true; }
  void go_on() { suspended_ = false; }

  // The sync of a file that comes after so many others fails. 0: the next.
  void fail_sync_after(std::uint64_t syncs, Random& random) {
    fail_in_ = syncs + 1;
    random_ = &random;
  }

  // Syncs that say yes and do nothing.
  enum class Lie { kNone, kBytes, kNames };
  void lie(Lie lie) { lie_ = lie; }

  // ---- SyncCalls: the service's way to the disk ----
  std::unique_ptr<storage::SyncedFile> open(const std::filesystem::path& path) override;
  std::unique_ptr<storage::SyncedFile> open_first_page(const std::filesystem::path& path) override;
  int sync_directory(const std::filesystem::path& path) override;
  int sync_everything() override;

 private:
  struct Change {
    std::int64_t offset = 0;  // or the new size
    std::string bytes;
    bool is_truncation = false;
  };
  // A file, whatever it is called.
  struct Node {
    std::string durable;
    std::vector<Change> pending;
    std::uint64_t errors = 0;
    bool is_new_journal = false;
  };
  class Descriptor;
  struct Vfs;

  using Names = std::map<std::string, std::shared_ptr<Node>>;

  // False: the power is off, or goes with this operation.
  [[nodiscard]] bool step();
  [[nodiscard]] bool works() const { return !off_ && !suspended_; }
  std::shared_ptr<Node> opened(const std::string& path, bool is_new, bool is_journal);
  void changed(Node& node, Change change);
  // 0, or the error that a descriptor hears which has heard of `heard` errors before.
  int sync(Node& node, std::uint64_t& heard);
  void make_durable(Node& node);
  void lose_some(Node& node);
  void look_at_names();
  void names_are_durable(const std::string& directory);
  [[nodiscard]] static std::string survivor(const Node& node, Random& random);
  static void apply(std::string& image, const Change& change);

  const std::filesystem::path root_;
  const std::string name_;
  std::unique_ptr<sqlite3_vfs> vfs_;
  Names names_;          // as everybody sees them
  Names durable_names_;  // as the device has them
  std::set<std::string> directories_;
  std::set<std::string> durable_directories_;
  std::uint64_t left_ = 0;  // operations until the cut; 0: none is planned
  std::uint64_t fail_in_ = 0;
  std::uint64_t everything_errors_ = 0;
  std::uint64_t everything_heard_ = 0;
  Random* random_ = nullptr;
  Lie lie_ = Lie::kNone;
  bool off_ = false;
  bool suspended_ = false;
};

}  // namespace hearth::testing

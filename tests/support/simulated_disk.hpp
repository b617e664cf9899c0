#pragma once
// A disk that loses power: a random source decides whether writes that were not synced are kept,
// dropped or torn.

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

// A sqlite3_vfs over real files below one directory. These files play the system's memory: every
// reader sees the last write. The disk also keeps what has reached the device:
//
//   bytes   A write or a truncation is on the device after a sync of its file. Before that, a loss
//           of power keeps it, drops it (the file may have grown all the same), or keeps some of
//           its 512-byte sectors, each independently.
//   names   A new or removed file or directory is so on the device after a sync of the directory
//           that names it. Before that, each change is kept or dropped independently. A sync of a
//           file does not sync its name. The only exception is the first sync of a new rollback
//           journal: SQLite's rollback needs it, and SQLite's own VFS does it.
//   errors  A failed sync loses some of the file's unsynced writes for good, though memory still
//           shows them. Every open descriptor gets the error once; its later syncs succeed.
//
// Tests make directories, and may remove files, without this VFS: it looks at the real ones.
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
  // Restores what the device has kept, and switches the power on. No file may be open.
  void restore(Random& random);

  // As if the process were killed: until go_on() nothing changes and every call fails. Nothing is
  // lost.
  void suspend() { suspended_ = true; }
  void go_on() { suspended_ = false; }

  // A sync of a file fails, after so many others. 0: the next one.
  void fail_sync_after(std::uint64_t syncs, Random& random) {
    fail_in_ = syncs + 1;
    random_ = &random;
  }

  // Syncs that succeed and do nothing.
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
  // A file, under any name.
  struct Node {
    std::string durable;
    std::vector<Change> pending;
    std::uint64_t errors = 0;
    bool is_new_journal = false;
  };
  class Descriptor;
  struct Vfs;

  using Names = std::map<std::string, std::shared_ptr<Node>>;

  // False: the power is off, or fails during this operation.
  [[nodiscard]] bool step();
  [[nodiscard]] bool works() const { return !off_ && !suspended_; }
  std::shared_ptr<Node> opened(const std::string& path, bool is_new, bool is_journal);
  void changed(Node& node, Change change);
  // 0, or the error for a descriptor that has got `heard` errors before.
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
  Names names_;          // as every reader sees them
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

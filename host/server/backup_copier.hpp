#pragma once
// Copies the files of a data directory as they were at the mark, while the server runs.

#include "server/backup_set.hpp"
#include "storage/data_directory.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hearth::server {

// How far a backup is. Any thread.
struct BackupProgress {
  std::atomic<std::size_t> agents = 0;  // to copy
  std::atomic<std::size_t> done = 0;
  std::atomic<std::uint64_t> bytes = 0;  // copied
  std::atomic<std::size_t> linked = 0;   // files that are hard links to the last backup
  std::atomic<bool> must_stop = false;
  std::atomic<std::size_t> left_out = 0;  // agents and other files that could not be read
  std::string why_left_out;               // of the first one; written before `left_out` says so

  // Only the thread that copies.
  void leave_out(std::string_view why) {
    if (left_out == 0) why_left_out = why;
    ++left_out;
  }
};

// In the backup: copies of databases that other connections use, made by SQLite. The copier copies
// them again, with their digests and at its rate.
inline constexpr const char* kRawCopies = ".raw";

// Threads    One of its own. It uses no SQLite, starts no thread and sends nothing to a loop,
//            because a loop's descriptors are not open there: see run().
// Failure    StorageError.
class BackupCopier {
 public:
  // `last`: the last backup, or empty. `rate`: bytes a second.
  BackupCopier(const storage::DataDirectory& data, std::filesystem::path to,
               const std::filesystem::path& last, std::uint64_t rate, BackupProgress& progress);

  // Copies the agents of CopyMark, kRawCopies, and the small files that belong to no agent. What
  // cannot be read is left out, as `progress` says.
  //
  // The calling thread leaves the process's table of descriptors for one of its own. When a process
  // closes any descriptor of a file, it loses its locks on the file, those of a live agent's
  // connection, too; and a table counts as a process.
  void run();

  [[nodiscard]] std::vector<BackupFile> take_files() { return std::move(files_); }

 private:
  void copy_agent(const storage::AgentKey& key);
  void copy_wal(const std::filesystem::path& wal);
  void copy_all_below(const std::filesystem::path& directory);
  // A file that is gone is none: it was removed, with what it belongs to.
  void copy(const std::filesystem::path& file, const std::string& path,
            std::uint64_t limit = std::numeric_limits<std::uint64_t>::max());
  // One that cannot be read is left out.
  void copy_alone(const std::filesystem::path& file, const std::string& path);
  [[nodiscard]] std::string path_in_backup(const std::filesystem::path& file) const;
  [[nodiscard]] bool link(const BackupFile& file, const std::filesystem::path& target) const;
  void pace(std::size_t bytes);

  const storage::DataDirectory& data_;
  const std::filesystem::path to_;
  const std::filesystem::path last_;
  std::unordered_map<std::string, BackupFile> last_files_;
  const std::uint64_t rate_;
  BackupProgress& progress_;
  std::chrono::steady_clock::time_point next_;  // when the next piece may be copied
  std::vector<BackupFile> files_;
};

}  // namespace hearth::server

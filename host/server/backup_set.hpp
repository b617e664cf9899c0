#pragma once
// A backup on disk: a directory with copies of files, and the manifest that names them.

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace hearth::server {

struct BackupFile {
  std::string path;  // below the backup, as it was below the data directory
  std::uint64_t bytes = 0;
  std::string sha256;
  std::string source;  // tells whether the file has changed since: source_of(); or empty
};

struct BackupManifest {
  std::int64_t mark_ms = 0;  // Unix time: each write that was acknowledged before is in the copies
  std::size_t agents = 0;
  std::vector<BackupFile> files;
};

// DIR/20261128T051500Z/manifest           written last; see write_manifest()
// DIR/20261128T051500Z/host.db, agents/...
// DIR/.unfinished/                        a backup in the making, or what a killed one has left
inline constexpr const char* kManifestFile = "manifest";
inline constexpr const char* kUnfinishedBackup = ".unfinished";

// `given`, if it is a backup, or the newest backup in it, by the names that the server gives: one
// that was renamed does not count. kNotFound: there is none.
[[nodiscard]] Result<std::filesystem::path> find_backup(const std::filesystem::path& given);

// What find_backup() then takes for the newest: "20261128T051500Z", by the time of the mark. With a
// number behind it, "20261128T051500Z-2", if one of that second is there, or one that is later,
// because the clock was ahead.
[[nodiscard]] std::string backup_name(std::int64_t mark_ms, const std::filesystem::path& directory);

// Failure  kInvalidArgument: the manifest is damaged, is of another format of data, or names a path
//          that is not below the backup. Those of read_file(): it is missing or cannot be read.
[[nodiscard]] Result<BackupManifest> read_manifest(const std::filesystem::path& backup);
// A line "hearth-backup 1", the format of data, the mark, how many agents and files; and then for
// each file a line: SHA-256, bytes, source or -, path.
[[nodiscard]] Result<void> write_manifest(const std::filesystem::path& backup,
                                          const BackupManifest& manifest);

// Inode, size and times of a file; empty if it was written so recently that a later write could
// leave the same times.
[[nodiscard]] std::string source_of(const std::filesystem::path& file);

// Makes the directories above a file, 0700.
// Failure  StorageError.
void make_private_parents(const std::filesystem::path& file);

// Of a file alone that is to be copied: others may be whole.
class SourceUnreadable : public StorageError {
 public:
  using StorageError::StorageError;
};
class SourceIsGone : public SourceUnreadable {
 public:
  using SourceUnreadable::SourceUnreadable;
};

// Copies at most `limit` bytes to a file that does not exist yet, 0600, and makes its parents, too.
// Calls `moved` with the bytes of each piece. `path` and `source` of the result are empty.
// Failure  StorageError. SourceUnreadable: `from` cannot be read, or is no regular file; a part of
//          it may be at `to`. SourceIsGone: there is none.
BackupFile copy_bytes(const std::filesystem::path& from, const std::filesystem::path& to,
                      std::uint64_t limit = std::numeric_limits<std::uint64_t>::max(),
                      const std::function<void(std::size_t)>& moved = nullptr);

// As copy_bytes(), for a file of a backup. StorageError, if it is not as the manifest says.
void copy_checked(const std::filesystem::path& backup, const BackupFile& file,
                  const std::filesystem::path& to);

// Brings all of the file system to the device. Failure  StorageError.
void sync_file_system(const std::filesystem::path& directory);

}  // namespace hearth::server

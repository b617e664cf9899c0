#pragma once
// Private copies of libraries, under names that are never used twice.
//
// The dynamic loader knows a library by its path: the same path would give the old code after a
// change. And a mapped file that is truncated crashes the process. So the server only loads copies
// that no other program reaches: <data>/staged/<plugin>-<first 16 of its hash>-g<number>.so.
//
// On a full disk the copy is a file without a name, in memory. The loader opens it as
// /proc/self/fd/<descriptor>. /proc/<pid>/maps, and so a debugger, shows the name that the file
// would have had.

#include "base/error.hpp"
#include "base/file_descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// Makes `directory` (its parent must exist) with mode 0700, or makes an existing one private.
// False: there is no room for it.
//   Failure  kForbidden: it belongs to another user, is a symbolic link or is no directory.
//            kUnavailable: the system refused (read-only, permissions). The message names the path.
[[nodiscard]] Result<bool> make_private_directory(const std::filesystem::path& directory);

// `"/data/staged" cannot be made: No space left on device`, kUnavailable.
[[nodiscard]] Error system_refused(const std::filesystem::path& path, std::string_view what,
                                   int error);

// One private copy.
// Lifetime  The destructor removes the file. A mapped library stays mapped without it, but
//           debuggers look for it: keep the object as long as the library.
class StagedFile {
 public:
  StagedFile(std::filesystem::path path, std::uint64_t generation);
  // In memory.
  StagedFile(FileDescriptor memory, std::uint64_t generation);
  ~StagedFile();
  StagedFile(StagedFile&& other) noexcept;
  StagedFile& operator=(StagedFile&& other) noexcept;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Of a copy in memory: a child cannot open it by a name. -1: it is a file.
  [[nodiscard]] int descriptor() const { return memory_.get(); }
  // The number in its name, counted from 1 within this process.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

 private:
  std::filesystem::path path_;  // absolute; empty: moved from
  std::uint64_t generation_;
  FileDescriptor memory_;
};

// The directory of the private copies.
// Threads   The loader's.
// Requires  No other server uses it: this process holds the data directory's lock.
class StagingArea {
 public:
  // make_private_directory(), and removes the files of an earlier process. On a full disk stage()
  // tries again.
  [[nodiscard]] static Result<StagingArea> open(const std::filesystem::path& directory);

  // Writes a copy, mode 0500, to the disk; on a full disk to memory. `plugin` is a valid plugin
  // name and `sha256` has 64 hexadecimal digits.
  //   Promises  This object has never used the name before, and there was no such file.
  //   Failure   kUnavailable: the system refused; no file is left.
  [[nodiscard]] Result<StagedFile> stage(std::string_view plugin, std::string_view sha256,
                                         std::span<const std::byte> bytes);

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }

 private:
  StagingArea(std::filesystem::path directory, bool is_made)
      : directory_(std::move(directory)), is_made_(is_made) {}

  [[nodiscard]] Result<StagedFile> stage_in_memory(const std::string& stem,
                                                   std::span<const std::byte> bytes);

  std::filesystem::path directory_;  // absolute
  bool is_made_;                     // false: the disk was full
  std::uint64_t last_generation_ = 0;
  std::vector<StagedFile> taken_;  // the dynamic loader knows their paths as other libraries
};

}  // namespace hearth::plugins

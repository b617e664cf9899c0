#pragma once
// Private copies of libraries, under names that are never used twice.
//
// The dynamic loader remembers a library by its path, so the same path after a change would give
// the old code; and a mapped file that somebody truncates kills the process. So what is loaded is
// always a copy that only this server can reach: <data>/staged/<plugin>-<first 16 of its
// hash>-g<number>.so. Where there is no room for that file the copy lies in memory, as a file
// without a name, which the loader opens as /proc/self/fd/<descriptor>; /proc/<pid>/maps, and so a
// debugger, shows the name that it would have had.

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

// One private copy.
// Lifetime  The file is removed with the object. A library that is mapped stays mapped without it,
//           but debuggers look for it: keep the object as long as the library.
class StagedFile {
 public:
  StagedFile(std::filesystem::path path, std::uint64_t generation);
  // In memory.
  StagedFile(FileDescriptor memory, std::uint64_t generation);
  ~StagedFile();
  StagedFile(StagedFile&& other) noexcept;
  StagedFile& operator=(StagedFile&& other) noexcept;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Of a copy in memory, which has no name that a child could open it by. -1: it is a file.
  [[nodiscard]] int descriptor() const { return memory_.get(); }
  // The number in its name, counted from 1 within this process.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

 private:
  std::filesystem::path path_;  // absolute; empty: moved from
  std::uint64_t generation_;
  FileDescriptor memory_;
};

// The directory of the private copies.
// Threads   One at a time: the loader's.
// Requires  No other server uses it (the data directory's lock sees to that).
class StagingArea {
 public:
  // Makes `directory` (its parent must exist) with mode 0700, or takes an existing one of ours and
  // removes what an earlier process left in it. Without room for it stage() tries again.
  //   Failure  kForbidden: it belongs to somebody else, is a symbolic link or is no directory.
  //            kUnavailable: the system refused (read-only, permissions). The message names the
  //            path.
  [[nodiscard]] static Result<StagingArea> open(const std::filesystem::path& directory);

  // Writes a copy, mode 0500; to the disk if that has room. `plugin` is a valid plugin name and
  // `sha256` 64 hexadecimal digits.
  //   Promises  The name was never used by this object before and no such file existed.
  //   Failure   kUnavailable: the system refused; nothing is left behind.
  [[nodiscard]] Result<StagedFile> stage(std::string_view plugin, std::string_view sha256,
                                         std::span<const std::byte> bytes);

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }

 private:
  StagingArea(std::filesystem::path directory, bool is_made)
      : directory_(std::move(directory)), is_made_(is_made) {}

  [[nodiscard]] Result<StagedFile> stage_in_memory(const std::string& stem,
                                                   std::span<const std::byte> bytes);

  std::filesystem::path directory_;  // absolute
  bool is_made_;                     // false: there was no room for it
  std::uint64_t last_generation_ = 0;
  std::vector<StagedFile> taken_;  // whose paths the dynamic loader knows as something else
};

}  // namespace hearth::plugins

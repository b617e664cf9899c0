#pragma once
// A file that wants to be loaded, read once.

#include "base/clock.hpp"
#include "plugins/admission/file_rules.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace hearth::plugins {

// The bytes of a library as they were at one moment. Everything that follows (rules, hash, private
// copy) looks at these bytes and never at the file again, so nobody can swap it in between.
struct Candidate {
  std::filesystem::path file;
  std::vector<std::byte> bytes;
  std::string sha256;  // of the bytes, 64 hexadecimal digits
};

// How a file is read that somebody may be copying into place right now.
struct ReadingPolicy {
  uid_t user;  // whose files are trusted, besides root's
  // A file that changed less than this ago is looked at again later: compilers and cp write in
  // steps, and the longest pause between two of them is a flush to a slow disk.
  std::chrono::milliseconds settle_time{200};
  int attempts = 10;
  // Waits; a test moves its clock instead.
  std::function<void(std::chrono::milliseconds)> pause;
};

// Reads `file` through one descriptor.
//
// Promises  A symbolic link is not followed, and opening never waits (a pipe is refused). What is
//           returned was stable: size, times, device and inode were the same before and after, and
//           no change lay within settle_time.
// Failure   A finding of F1, F2, F3, F5, F6 (still changing after all attempts) or F7 (cannot be
//           read).
// Bounded   kMaxLibraryBytes; attempts x settle_time of waiting.
// Threads   Blocks. Call it on the loader's thread.
[[nodiscard]] Checked<Candidate> read_candidate(const std::filesystem::path& file,
                                                const Clock& clock, const ReadingPolicy& policy);

}  // namespace hearth::plugins

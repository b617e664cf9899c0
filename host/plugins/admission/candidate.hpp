#pragma once
// A file that is to be loaded, read once.

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

// The bytes of a library at one moment. The next steps (rules, hash, private copy) use these bytes
// and never the file again: a file that is replaced in between has no effect.
struct Candidate {
  std::filesystem::path file;
  std::vector<std::byte> bytes;
  std::string sha256;  // of the bytes, 64 hexadecimal digits
};

// How to read a file that another program may be writing.
struct ReadingPolicy {
  uid_t user;  // its files and root's are trusted
  // A file that changed less than this ago is read again later: compilers and cp write in steps.
  // The longest pause between two steps is a flush to a slow disk.
  std::chrono::milliseconds settle_time{200};
  int attempts = 10;
  // Waits; a test moves its clock instead.
  std::function<void(std::chrono::milliseconds)> pause;
};

// Reads `file` through one descriptor.
//
// Promises  A symbolic link is not followed, and opening never waits (a pipe is refused). The file
//           was stable: size, times, device and inode were the same before and after reading, and
//           it had not changed for settle_time.
// Failure   A finding of F1, F2, F3, F5, F6 (still changing after all attempts) or F7 (cannot be
//           read).
// Bounded   kMaxLibraryBytes; it waits at most attempts x settle_time.
// Threads   Blocks. Call it on the loader's thread.
[[nodiscard]] Checked<Candidate> read_candidate(const std::filesystem::path& file,
                                                const Clock& clock, const ReadingPolicy& policy);

}  // namespace hearth::plugins

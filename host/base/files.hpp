#pragma once
// Small whole files: read one within a bound, replace one atomically.

#include "base/error.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace hearth {

// The bytes of a regular file, read to its end.
//   Bounded   Takes at most `max_bytes` + 1 bytes of memory, whatever the file's size says.
//   Failure   kNotFound (no such file), kForbidden (permissions), kLimitExceeded (longer than
//             `max_bytes`), kInvalidArgument (a directory, a pipe, a device: it is not read, and
//             opening a pipe does not wait for its other end), kInternal (the system failed). The
//             message has the path and the system's text.
//   Threads   Blocks on the disk.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path,
                                            std::size_t max_bytes);

// Replaces or creates the file at `path`. Readers see the old file or the new one, never a part,
// also after a loss of power. On success the new file is on the disk.
//   Promises  A failure leaves the old file unchanged, and no temporary file. The file's mode is
//             `mode`, whatever the umask is. A symbolic link at `path` is replaced, not followed.
//   Failure   kNotFound (no such directory), kForbidden (permissions, a read-only file system),
//             kUnavailable (is_out_of_room), kInternal. The message has the path and the system's
//             text.
//   Threads   Blocks on the disk. Several threads may write one path: the last one wins.
[[nodiscard]] Result<void> write_file_atomically(
    const std::filesystem::path& path, std::string_view content,
    std::filesystem::perms mode = std::filesystem::perms{0644});

// Writes all of it, however many calls of the system that takes. 0, or the errno.
[[nodiscard]] int write_all(int descriptor, std::string_view content);

// Brings the names in a directory to the device, those of new files and removals. 0, or the errno.
[[nodiscard]] int sync_directory(const std::filesystem::path& directory);

// Removes the files that calls of write_file_atomically() have left in the directory because their
// process was killed. No such call may be in progress there.
void remove_unfinished(const std::filesystem::path& directory);

// Whether the directory has an entry of this name. A broken symbolic link counts.
[[nodiscard]] bool is_there(const std::filesystem::path& path);

}  // namespace hearth

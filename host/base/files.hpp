#pragma once
// Small whole files: read one within a bound, replace one so that nobody ever sees half of it.

#include "base/error.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace hearth {

// The bytes of a regular file, read to its end.
//   Bounded   Takes at most `max_bytes` + 1 bytes of memory, whatever the file's size says.
//   Failure   kNotFound (no such file), kForbidden (permissions), kLimitExceeded (longer than
//             `max_bytes`), kInvalidArgument (a directory, a pipe, a device: nothing is read from
//             one, and opening a pipe does not wait for its other end), kInternal (the system
//             failed). The message names the path and what the system said.
//   Threads   Blocks on the disk.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path,
                                            std::size_t max_bytes);

// Puts `content` in place of what `path` names, or creates it: a reader, and a machine that loses
// power, sees the old file or the new one, never a part. On success the new one is on the disk.
//   Promises  A failure leaves the old file as it was, and no temporary one. The file's mode is
//             `mode`, whatever the umask says; a symbolic link at `path` is replaced, not followed.
//   Failure   kNotFound (no such directory), kForbidden (permissions, a read-only file system),
//             kUnavailable (is_out_of_room), kInternal. The message names the path and what the
//             system said.
//   Threads   Blocks on the disk. Writers of one path do not disturb each other: the last one wins.
[[nodiscard]] Result<void> write_file_atomically(
    const std::filesystem::path& path, std::string_view content,
    std::filesystem::perms mode = std::filesystem::perms{0644});

// Whether the directory has an entry of this name. A link that leads nowhere is one.
[[nodiscard]] bool is_there(const std::filesystem::path& path);

}  // namespace hearth

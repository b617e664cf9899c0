#pragma once
// Whether this process may open more files.

namespace hearth::storage {

// True if so many descriptors could be had at this moment. Takes them for a moment: a few
// microseconds. False only if the process or the system has no more; whatever else is wrong with
// one is met by who opens a file.
// Threads  Any; another thread may take what was found.
[[nodiscard]] bool can_open_files(unsigned count);

}  // namespace hearth::storage

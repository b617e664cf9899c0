#pragma once
// Whether this process may open more files.

namespace hearth::storage {

// Whether this many descriptors are free now. It opens them and closes them again, which takes a
// few microseconds. False only if the process or the system has no more; other errors are left to
// the code that opens a file.
// Threads  Any; another thread may take the free descriptors afterwards.
[[nodiscard]] bool can_open_files(unsigned count);

}  // namespace hearth::storage

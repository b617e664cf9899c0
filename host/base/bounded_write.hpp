#pragma once
// Writing to a descriptor whose reader may never read.

#include <chrono>
#include <cstddef>
#include <string_view>

namespace hearth {

struct Written {
  std::size_t bytes = 0;
  bool refused = false;  // the system takes no more: the disk is full, or the reader is gone
};

// Writes `text`, waiting at most `patience` in all for the other end. Less than all was written
// when the time was over, or when the system refused.
//
// Promises  Pieces of at most kAtomicWrite bytes are written when the descriptor says that it has
//           room for one. So a write blocks only if another process takes that room first.
// Threads   All; also in a signal handler and in a forked child.
Written write_within(int descriptor, std::string_view text,
                     std::chrono::milliseconds patience) noexcept;

// A pipe takes so many bytes whole (PIPE_BUF): no other writer's bytes come in between.
inline constexpr std::size_t kAtomicWrite = 4096;

}  // namespace hearth

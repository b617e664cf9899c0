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

// Writes `text`, and waits at most `patience` in total for the other end. It writes only a part if
// the time runs out or the system refuses.
//
// Promises  Each piece has at most kAtomicWrite bytes, and is written when the descriptor reports
//           room. So a write blocks only if another process takes that room first.
// Threads   All; also in a signal handler and in a forked child.
Written write_within(int descriptor, std::string_view text,
                     std::chrono::milliseconds patience) noexcept;

// A pipe takes this many bytes as one piece (PIPE_BUF): no other writer's bytes are in between.
inline constexpr std::size_t kAtomicWrite = 4096;

}  // namespace hearth

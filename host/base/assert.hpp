#pragma once
// HEARTH_ASSERT(condition, why) states an invariant and is always on; HEARTH_DEBUG_ASSERT is for
// checks too dear to ship. Neither may have side effects, and neither is for conditions that a
// user, a peer or a disk can cause.

namespace hearth::detail {
[[noreturn]] void assert_failed(const char* condition, const char* why, const char* file,
                                int line) noexcept;
}  // namespace hearth::detail

#define HEARTH_ASSERT(condition, why) \
  (static_cast<bool>(condition)       \
       ? void(0)                      \
       : ::hearth::detail::assert_failed(#condition, why, __FILE__, __LINE__))
#ifdef NDEBUG
#define HEARTH_DEBUG_ASSERT(condition, why) void(0)
#else
#define HEARTH_DEBUG_ASSERT(condition, why) HEARTH_ASSERT(condition, why)
#endif

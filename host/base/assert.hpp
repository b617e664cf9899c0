#pragma once
// HEARTH_ASSERT(condition, why) states an invariant and is always on. HEARTH_DEBUG_ASSERT is for
// checks that are too slow for a release. A condition has no side effects. Do not assert what a
// user, a peer or a disk can cause: return an error.

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

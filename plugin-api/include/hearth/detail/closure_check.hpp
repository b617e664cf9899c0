#pragma once
// Refuses a coroutine lambda whose captures are gone when it goes on.
//
// A coroutine keeps its parameters, and of a lambda only a pointer to it. So a lambda with captures
// must live as long as its coroutine: in the frame of a coroutine that awaits it, or where
// run_fiber() and its like keep it. One that lies on the stack of the thread is gone by the time
// its task is awaited, since the function that made it has returned.

#include <hearth/error.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <pthread.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEARTH_HAS_FAKE_STACKS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HEARTH_HAS_FAKE_STACKS 1
#endif
#ifdef HEARTH_HAS_FAKE_STACKS
extern "C" void* __asan_get_current_fake_stack();
extern "C" void* __asan_addr_is_in_fake_stack(void*, void*, void**, void**);
#endif

namespace hearth::detail {

template <class T>
constexpr std::string_view type_text() {
  return __PRETTY_FUNCTION__;
}

// A lambda with captures, by the compilers' names for one.
template <class T>
inline constexpr bool kIsCapturingLambda = [] {
  if constexpr (std::is_class_v<T>) {
    const std::string_view text = type_text<T>();
    return !std::is_empty_v<T> && (text.find("= (lambda at ") != std::string_view::npos ||
                                   text.find("::<lambda(") != std::string_view::npos);
  }
  return false;
}();

inline bool is_on_the_stack(const void* object) noexcept {
  // Nothing is when it is far from here: the question after this one is dearer.
  constexpr std::uintptr_t kFar = std::uintptr_t{64} << 20;
  const auto place = reinterpret_cast<std::uintptr_t>(object);
#ifdef HEARTH_HAS_FAKE_STACKS
  if (void* const fake = __asan_get_current_fake_stack();
      fake && __asan_addr_is_in_fake_stack(fake, const_cast<void*>(object), nullptr, nullptr))
    return true;
#endif
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (place < here || place - here > kFar) return false;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  void* lowest = nullptr;
  std::size_t bytes = 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &bytes) == 0;
  pthread_attr_destroy(&attributes);
  return known && place - reinterpret_cast<std::uintptr_t>(lowest) < bytes;
}

template <class First>
void refuse_dying_lambda(const First& first) {
  if constexpr (kIsCapturingLambda<First>) {
    if (is_on_the_stack(&first))
      throw Error(
          HEARTH_E_INVALID,
          "a lambda with captures is a coroutine that outlives it: give it to start_fiber(), "
          "run_fiber(), retry() or keep_alive_while(), which keep it, or await it where it "
          "was made");
  }
}

}  // namespace hearth::detail

#pragma once
// The stack of a crashing thread, for the crash handler: the file and the offset of each frame. The
// next process names the functions (diagnosis/code_symbols.hpp), because a handler must not read
// files.

#include "diagnosis/code_symbols.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <ucontext.h>

namespace hearth::diagnosis {

inline constexpr std::size_t kMaxCrashFrames = 32;

// Loads what walk_crashed_stack() needs. Call it once, before the first crash; not from a handler.
void prepare_stack_walk();

// Writes addresses in the functions that this thread is in to the beginning of `into`, innermost
// first, and returns that part. Starts where the signal interrupted the thread; without a context,
// at the caller. What does not fit is left out.
//   Safety    Async-signal-safe. On a stack that was overwritten it may fault.
[[nodiscard]] std::span<const std::uintptr_t> walk_crashed_stack(
    const ucontext_t* context, std::span<std::uintptr_t, kMaxCrashFrames> into) noexcept;

// Where the address is in its file. For this program the file is kProgramFile. For a library whose
// private copy is in memory it is the name of the library's own file, without a directory.
//   Safety    Async-signal-safe. The name is valid while the file stays mapped.
[[nodiscard]] CodePlaceView find_place(std::uintptr_t address) noexcept;
inline constexpr std::string_view kProgramFile = "hearth";

}  // namespace hearth::diagnosis

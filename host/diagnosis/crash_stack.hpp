#pragma once
// The stack of a thread that crashes, for the handler of the crash: where in which file each frame
// is. The next process names the functions (diagnosis/code_symbols.hpp), since a handler must not
// read files.

#include "diagnosis/code_symbols.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <ucontext.h>

namespace hearth::diagnosis {

inline constexpr std::size_t kMaxCrashFrames = 32;

// Loads what walk_crashed_stack() needs. Once, before the first crash; not from a handler.
void prepare_stack_walk();

// Addresses in the functions that this thread is in, innermost first: from where a signal has
// interrupted it, or, without a context, from the caller. What does not fit is left out. The
// addresses that `into` begins with.
//   Safety    Async-signal-safe. On a stack that was overwritten it may fault.
[[nodiscard]] std::span<const std::uintptr_t> walk_crashed_stack(
    const ucontext_t* context, std::span<std::uintptr_t, kMaxCrashFrames> into) noexcept;

// Where the address is in its file. Of this program itself the file is kProgramFile; of a library
// whose private copy is in memory it is the name of the library's own file, without a directory.
//   Safety    Async-signal-safe. The name is valid while the file stays mapped.
[[nodiscard]] CodePlaceView find_place(std::uintptr_t address) noexcept;
inline constexpr std::string_view kProgramFile = "hearth";

}  // namespace hearth::diagnosis

#pragma once
// Addresses of code as a person reads them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hearth::loader {

inline constexpr std::size_t kMaxSymbolText = 100;

// `on_event+0x1c (zoo.so+0x12f4)` for each: the function, as far as the file still names it (one that was stripped does not), the file
// without its directory, and the distance from the beginning of each. An address that is in no file is `0x7f00deadbeef`.
//
// Promises  Functions that other objects cannot see are found as well, by the file's symbol table: a library hides all of its own.
// Bounded   Of a file it reads tables of at most 64 MiB, in small pieces; names are cut at kMaxSymbolText bytes.
// Threads   Any; not from a signal handler. Waits for nobody who is loading a library, however long its constructors take.
[[nodiscard]] std::vector<std::string> name_addresses(std::span<const std::uintptr_t> addresses);

}  // namespace hearth::loader

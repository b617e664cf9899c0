#pragma once
// Addresses of code as a person reads them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::diagnosis {

inline constexpr std::size_t kMaxSymbolText = 100;

// `on_event+0x1c (zoo.so+0x12f4)` for each: the function, as far as the file still names it (one
// that was stripped does not), the file without its directory, and the distance from the beginning
// of each. An address that is in no file is `0x7f00deadbeef`.
//
// Promises  Functions that other objects cannot see are found as well, by the file's symbol table:
//           a library hides all of its own.
// Bounded   Of a file it reads tables of at most 64 MiB, in small pieces; names are cut at
//           kMaxSymbolText bytes.
// Threads   Any; not from a signal handler. Waits for nobody who is loading a library, however long
//           its constructors take.
[[nodiscard]] std::vector<std::string> name_addresses(std::span<const std::uintptr_t> addresses);

// A place in the code of a file, which need not be mapped. Text: std::string_view where it is
// borrowed.
template <class Text>
struct BasicCodePlace {
  Text file;  // empty: none
  std::uint64_t offset = 0;
};
using CodePlace = BasicCodePlace<std::string>;
using CodePlaceView = BasicCodePlace<std::string_view>;

// The same for places that another process has left. Functions of a file that is not there any
// more, or whose path is not absolute, have no names. (A file that was replaced gives wrong ones.)
[[nodiscard]] std::vector<std::string> name_places(std::span<const CodePlace> places);

// `inner+0x8 (room.so+0x11f8) < outer+0x1c (room.so+0x12f4)`: a stack in a line.
[[nodiscard]] std::string join_stack(std::span<const std::string> frames);

}  // namespace hearth::diagnosis

#pragma once
// Addresses of code as text for people: function, file, offset and line. elfutils reads the files.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::diagnosis {

inline constexpr std::size_t kMaxSymbolText = 100;

// `on_event+0x1c (zoo.so+0x12f4, zoo.cpp:41)` for each address: the function, the file without its
// directory, the offset in each, and the line of the source. A file without line numbers (-g1) has
// no lines, a stripped file names no functions either. An address that is in no file is
// `0x7f00deadbeef`.
//
// Promises  Hidden functions are found too, by the file's symbol table: a library hides all of its
//           own functions.
// Bounded   Reads no symbols from a table of more than 64 MiB, and no lines from a file with more
//           than 128 MiB of debugging information. Cuts names at kMaxSymbolText bytes.
// Threads   Any; not from a signal handler. Does not wait while another thread loads a library,
//           however long its constructors take.
[[nodiscard]] std::vector<std::string> name_addresses(std::span<const std::uintptr_t> addresses);

// A place in the code of a file. The file need not be mapped. Text: std::string_view where the
// name is borrowed.
template <class Text>
struct BasicCodePlace {
  Text file;  // empty: none
  std::uint64_t offset = 0;
};
using CodePlace = BasicCodePlace<std::string>;
using CodePlaceView = BasicCodePlace<std::string_view>;

// The same for places that another process has recorded. Functions have no names if their file is
// gone or its path is not absolute. A file that was replaced gives wrong names.
[[nodiscard]] std::vector<std::string> name_places(std::span<const CodePlace> places);

// `inner+0x8 (room.so+0x11f8) < outer+0x1c (room.so+0x12f4)`: a stack on one line.
[[nodiscard]] std::string join_stack(std::span<const std::string> frames);

}  // namespace hearth::diagnosis

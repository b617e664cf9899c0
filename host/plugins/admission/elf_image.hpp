#pragma once
// What an ELF file says about itself, read from bytes in memory, without running or mapping it.

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// An entry of the program header table: a part that the dynamic loader maps, or a mark.
struct ElfSegment {
  std::uint32_t type;   // PT_*
  std::uint32_t flags;  // PF_*
  std::uint64_t offset;
  std::uint64_t file_size;
  std::uint64_t address;
  std::uint64_t memory_size;
  std::uint64_t alignment;
};

enum class ElfBinding { kGlobal, kWeak, kUnique, kOther };

// A symbol that other objects can find.
struct ElfExport {
  std::string_view name;
  std::uint64_t address;
  std::uint64_t size;
  ElfBinding binding;
  bool is_object;  // data; false: a function or thread-local storage
};

// A version of another library's symbols that this library needs: GLIBC_2.34 of libc.so.6.
struct ElfNeededVersion {
  std::string_view library;
  std::string_view name;
  bool is_weak;  // the dynamic loader only warns if it is missing
};

struct ElfNote {
  std::string_view owner;  // without its NUL
  std::uint32_t type;
  std::span<const std::byte> description;
};

// The facts of a shared library for this machine.
//
// Lifetime  Every view points into the bytes that were parsed: the buffer must outlive the image.
struct ElfImage {
  std::vector<ElfSegment> segments;
  std::vector<ElfExport> exports;            // defined, global or weak, not hidden
  std::vector<std::string_view> imports;     // undefined names
  std::vector<std::string_view> needed;      // DT_NEEDED, in order
  std::vector<ElfNeededVersion> versions;    // DT_VERNEED, in order
  std::vector<ElfNote> notes;                // of all note sections, in order
  std::optional<std::string_view> run_path;  // DT_RUNPATH; without it DT_RPATH
  bool is_program = false;                   // has an interpreter or is marked as an executable
  bool has_text_relocations = false;         // DT_TEXTREL or DF_TEXTREL
  bool has_executable_stack = false;  // also without PT_GNU_STACK, as the dynamic loader does
  bool has_writable_code = false;     // a loadable segment that is both writable and executable
  bool never_unloads = false;         // DF_1_NODELETE
  bool has_static_tls = false;        // DF_STATIC_TLS
  bool binds_now = false;             // DT_BIND_NOW, DF_BIND_NOW or DF_1_NOW
  bool has_relro = false;             // PT_GNU_RELRO: its tables become read-only once it is linked
};

// The counts come from the file. A file with larger counts is refused before it costs memory.
inline constexpr std::size_t kMaxElfSegments = 128;
inline constexpr std::size_t kMaxElfDynamicEntries = 4096;
inline constexpr std::size_t kMaxElfSymbols = std::size_t{1} << 20;
inline constexpr std::size_t kMaxElfNotes = 1024;
inline constexpr std::size_t kMaxElfVersions = 4096;
inline constexpr std::uint64_t kMaxElfAddressSpan = std::uint64_t{4} << 30;

// Reads `file`, which may be anything.
//
// Promises  No byte outside `file` is read, whatever it holds. An accepted file has inside the
//           file: both header tables, every section, every loadable segment. It has inside its
//           loadable segments: the dynamic section, symbols, versions, strings, relocations and
//           initialisers. So a half-copied library is refused, even if the dynamic loader would
//           load it (it is cut after its last segment).
// Failure   kUnsupported: not a 64-bit little-endian shared object for this machine.
//           kInvalidArgument: it is one, but damaged or incomplete. The message is half a sentence
//           that continues "the file ...".
// Bounded   Linear in the size of the file, and by the constants above.
//
// It does not check the contents of hash tables and relocations. A library that is damaged there
// crashes in the probe's child (probe.hpp).
[[nodiscard]] Result<ElfImage> parse_elf_image(std::span<const std::byte> file);

}  // namespace hearth::plugins

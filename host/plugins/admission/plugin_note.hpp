#pragma once
// The ELF note of a plugin: readable before any code of the library runs.
//
// The layout is hearth_note of hearth/abi.h, followed by a manifest in JSON.

#include "base/error.hpp"
#include "plugins/admission/elf_image.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// Limits of a manifest.
inline constexpr std::size_t kMaxManifestBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxClassesOfPlugin = 256;
inline constexpr std::size_t kMaxExtensionsOfPlugin = 64;
inline constexpr std::size_t kMaxVersionBytes = 64;

// The fields in front of the manifest.
struct NoteHeader {
  std::uint16_t abi_major = 0;
  std::uint16_t abi_minor = 0;
  std::uint16_t min_host_minor = 0;
  std::uint32_t plugin_struct_size = 0;
};

struct PluginManifest {
  std::string plugin;   // "counter": also a part of file names, so it is checked like a class name
  std::string version;  // chosen by the author: "1.0.0"
  std::vector<std::string> classes;  // at least one, not checked further: see is_valid_class_name
  std::vector<std::string> extensions;  // "hearth.sql/1": those that it requires
};

struct PluginNote {
  NoteHeader header;
  PluginManifest manifest;
};

// The notes with owner HEARTH and the plugin's type, in the order of the file: normally one.
[[nodiscard]] std::vector<std::span<const std::byte>> find_plugin_notes(const ElfImage& image);

// The header of a note's description. kInvalidArgument: too short, or a wrong magic number.
[[nodiscard]] Result<NoteHeader> decode_note_header(std::span<const std::byte> description);

// The manifest of a note's description. Unknown keys are allowed: newer SDKs may say more.
//   Failure   kInvalidArgument: sizes that do not fit, no JSON, a missing key, a wrong type, a bad
//             name. kLimitExceeded: past one of the bounds above.
[[nodiscard]] Result<PluginManifest> decode_manifest(std::span<const std::byte> description);

// [A-Za-z_][A-Za-z0-9_-]{0,63}
[[nodiscard]] bool is_valid_class_name(std::string_view name) noexcept;

// [A-Za-z0-9_][A-Za-z0-9_-]{0,63}
[[nodiscard]] bool is_valid_plugin_name(std::string_view name) noexcept;

// One to kMaxVersionBytes of printable ASCII.
[[nodiscard]] bool is_valid_version(std::string_view text) noexcept;

}  // namespace hearth::plugins

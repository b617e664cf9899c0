#include "plugins/admission/plugin_note.hpp"

#include "base/names.hpp"
#include "json/json.hpp"

#include <hearth/abi.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace hearth::plugins {
namespace {

constexpr std::size_t kMaxNameBytes = 64;

// hearth_note without the three sizes and the owner: the ELF parser has removed them.
constexpr std::size_t kDescriptionOffset = offsetof(hearth_note, magic);
constexpr std::size_t kFixedBytes = sizeof(hearth_note) - kDescriptionOffset;
static_assert(kFixedBytes == 24);

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_rest(char c) {
  return is_letter(c) || is_digit(c) || c == '-';
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && std::ranges::all_of(name, is_name_rest);
}

// The fixed fields; the owner and the sizes in front stay zero.
hearth_note fixed_fields(std::span<const std::byte> description) {
  hearth_note note{};
  std::memcpy(reinterpret_cast<std::byte*>(&note) + kDescriptionOffset, description.data(),
              kFixedBytes);
  return note;
}

Error invalid(std::string why) {
  return Error{Errc::kInvalidArgument, std::move(why)};
}

Result<std::string> manifest_text(const Json& manifest, const char* key) {
  const auto found = manifest.find(key);
  if (found == manifest.end()) return invalid(std::string("its manifest lacks \"") + key + "\"");
  if (!found->is_string())
    return invalid(std::string("in its manifest \"") + key + "\" is no string");
  return found->get<std::string>();
}

Result<std::vector<std::string>> manifest_list(const Json& manifest, const char* key,
                                               std::size_t limit) {
  const auto found = manifest.find(key);
  const std::string name = std::string("\"") + key + "\"";
  if (found == manifest.end()) return invalid("its manifest lacks " + name);
  if (!found->is_array()) return invalid("in its manifest " + name + " is no list");
  if (found->size() > limit) {
    return Error{Errc::kLimitExceeded, "in its manifest " + name + " has more than " +
                                           std::to_string(limit) + " entries"};
  }
  std::vector<std::string> texts;
  for (const Json& entry : *found) {
    if (!entry.is_string())
      return invalid("in its manifest " + name + " holds something that is no string");
    texts.push_back(entry.get<std::string>());
  }
  return texts;
}

bool is_extension_id(std::string_view id) {
  const auto printable = [](char c) { return c > ' ' && c <= '~'; };
  return !id.empty() && id.size() <= kMaxNameBytes && std::ranges::all_of(id, printable);
}

Result<PluginManifest> read_manifest(const Json& json) {
  if (!json.is_object()) return invalid("its manifest is no JSON object");
  PluginManifest manifest;
  auto plugin = manifest_text(json, "plugin");
  if (!plugin) return plugin.error();
  if (!is_valid_plugin_name(*plugin)) {
    return invalid("in its manifest \"plugin\" is no name (letters, digits, _ and -, at most 64)");
  }
  auto version = manifest_text(json, "version");
  if (!version) return version.error();
  if (!is_valid_version(*version)) {
    return invalid("in its manifest \"version\" is not 1 to 64 printable ASCII characters");
  }
  auto classes = manifest_list(json, "classes", kMaxClassesOfPlugin);
  if (!classes) return classes.error();
  if (classes->empty()) return invalid("its manifest names no class");
  manifest.plugin = *std::move(plugin);
  manifest.version = *std::move(version);
  manifest.classes = *std::move(classes);
  if (!json.contains("extensions")) return manifest;
  auto extensions = manifest_list(json, "extensions", kMaxExtensionsOfPlugin);
  if (!extensions) return extensions.error();
  if (!std::ranges::all_of(*extensions, is_extension_id)) {
    return invalid("in its manifest \"extensions\" holds something that is no extension's name");
  }
  manifest.extensions = *std::move(extensions);
  return manifest;
}

}  // namespace

std::vector<std::span<const std::byte>> find_plugin_notes(const ElfImage& image) {
  std::vector<std::span<const std::byte>> found;
  for (const ElfNote& note : image.notes) {
    if (note.owner == HEARTH_NOTE_OWNER && note.type == HEARTH_NOTE_TYPE) {
      found.push_back(note.description);
    }
  }
  return found;
}

Result<NoteHeader> decode_note_header(std::span<const std::byte> description) {
  if (description.size() < kFixedBytes) return invalid("its note is too short");
  const hearth_note note = fixed_fields(description);
  const std::uint64_t magic = std::uint64_t{note.magic[1]} << 32 | note.magic[0];
  // The major version is part of the magic number. The error for another version names it.
  constexpr std::uint64_t kMajorMask = std::uint64_t{0xFF} << 56;
  if ((magic & ~kMajorMask) != (HEARTH_MAGIC & ~kMajorMask))
    return invalid("its note has a wrong magic number");
  return NoteHeader{.abi_major = note.abi_major,
                    .abi_minor = note.abi_minor,
                    .min_host_minor = note.min_host_minor,
                    .plugin_struct_size = note.plugin_struct_size};
}

Result<PluginManifest> decode_manifest(std::span<const std::byte> description) {
  if (description.size() < kFixedBytes) return invalid("its note is too short");
  const std::uint32_t size = fixed_fields(description).manifest_size;
  if (size > kMaxManifestBytes)
    return Error{Errc::kLimitExceeded, "its manifest is larger than 64 KiB"};
  if (size > description.size() - kFixedBytes) return invalid("its manifest does not fit its note");
  const auto bytes = description.subspan(kFixedBytes, size);
  // A manifest is flat. Eight levels leave room for additions of newer SDKs.
  const auto json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 8);
  if (!json) return invalid("its manifest is no JSON: " + json.error().message);
  return read_manifest(*json);
}

bool is_valid_class_name(std::string_view name) noexcept {
  return hearth::is_class_name(name);  // one rule: the class becomes a part of paths there
}

bool is_valid_plugin_name(std::string_view name) noexcept {
  return is_name(name) && name.front() != '-';
}

bool is_valid_version(std::string_view text) noexcept {
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  return !text.empty() && text.size() <= kMaxVersionBytes && std::ranges::all_of(text, printable);
}

}  // namespace hearth::plugins

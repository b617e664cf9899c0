#pragma once
// The libraries of tests/plugins/libraries, as files and as bytes, and edits of their ELF tables.

#include "support/built.hpp"

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins::testing {

using Bytes = std::vector<std::byte>;

// Where the test plugin called `name` was built.
inline std::filesystem::path built_library(std::string_view name) {
  return hearth::testing::built::loader_case(name);
}

inline Bytes read_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("no test library " + path.string());
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline Bytes library_bytes(std::string_view name) {
  return read_bytes(built_library(name));
}

inline void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  std::filesystem::permissions(path, std::filesystem::perms{0644});
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

inline Bytes bytes_of_text(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

template <class T>
T get(const Bytes& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <class T>
void put(Bytes& bytes, std::size_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

inline Elf64_Ehdr header_of(const Bytes& bytes) {
  return get<Elf64_Ehdr>(bytes, 0);
}

// Where the first program header of `type` lies; throws if there is none.
inline std::size_t program_header_at(const Bytes& bytes, std::uint32_t type) {
  const Elf64_Ehdr header = header_of(bytes);
  for (std::size_t index = 0; index < header.e_phnum; ++index) {
    const std::size_t at = header.e_phoff + index * sizeof(Elf64_Phdr);
    if (get<Elf64_Phdr>(bytes, at).p_type == type) return at;
  }
  throw std::runtime_error("no such program header");
}

// Where the entry with `tag` of the dynamic section lies; throws if there is none.
inline std::size_t dynamic_entry_at(const Bytes& bytes, std::int64_t tag) {
  const auto segment = get<Elf64_Phdr>(bytes, program_header_at(bytes, PT_DYNAMIC));
  for (std::size_t at = segment.p_offset; at < segment.p_offset + segment.p_filesz;
       at += sizeof(Elf64_Dyn)) {
    if (get<Elf64_Dyn>(bytes, at).d_tag == tag) return at;
  }
  throw std::runtime_error("no such dynamic entry");
}

// The first place of `text`; throws if there is none.
inline std::size_t find_text(const Bytes& bytes, std::string_view text) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t at = all.find(text);
  if (at == std::string_view::npos) throw std::runtime_error("no such bytes");
  return at;
}

// Where the note's hearth_note begins.
inline std::size_t note_at(const Bytes& bytes) {
  using namespace std::string_view_literals;
  return find_text(bytes, "HEARTH\0\0HEARTH\0\1"sv) - 12;
}

}  // namespace hearth::plugins::testing

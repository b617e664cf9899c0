#include "diagnosis/code_symbols.hpp"

#include "base/escape.hpp"
#include "base/file_descriptor.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include <cxxabi.h>
#include <link.h>

namespace hearth::diagnosis {
namespace {

constexpr std::uint64_t kMaxTableBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMaxSections = 4096;
constexpr const char* kThisProgram = "/proc/self/exe";
constexpr std::string_view kOurFiles = "/proc/self/";

// One address, its file, and what is known about it.
struct Place {
  std::uintptr_t address = 0;
  std::string file;  // empty: none
  std::uint64_t offset = 0;
  std::uint64_t function = 0;  // where it begins
  std::uint64_t name_at = 0;   // in the file
  bool has_function = false;
};

// dladdr() would wait while another thread loads a library. dl_iterate_phdr() does not wait for
// constructors.
int look_at_object(dl_phdr_info* object, std::size_t /*size*/, void* given) {
  auto& places = *static_cast<std::vector<Place>*>(given);
  for (std::size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    for (Place& place : places) {
      if (place.address < begin || place.address - begin >= segment.p_memsz) continue;
      // The program itself has no name here.
      place.file = object->dlpi_name[0] == '\0' ? kThisProgram : object->dlpi_name;
      place.offset = place.address - object->dlpi_addr;
    }
  }
  return 0;
}

// The symbol tables of a file. Nothing that the file says is trusted.
class SymbolFile {
 public:
  explicit SymbolFile(const std::string& path)
      : file_(path.starts_with('/') ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                                    : -1) {}

  // Finds the functions of those places that are in this file.
  void find(std::span<Place*> places) const {
    Elf64_Ehdr header{};
    if (!read(0, &header, sizeof header)) return;
    const bool is_ours = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                         header.e_ident[EI_CLASS] == ELFCLASS64 &&
                         header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shnum <= kMaxSections;
    if (!is_ours) return;
    std::vector<Elf64_Shdr> sections(header.e_shnum);
    if (!read(header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr))) return;
    // The full table first: the dynamic one names only visible symbols.
    for (const Elf64_Word type : {Elf64_Word{SHT_SYMTAB}, Elf64_Word{SHT_DYNSYM}}) {
      for (const Elf64_Shdr& table : sections) {
        if (table.sh_type != type || table.sh_link >= sections.size()) continue;
        look_into(table, sections[table.sh_link], places);
      }
    }
  }

  [[nodiscard]] std::string name_at(std::uint64_t offset) const {
    std::array<char, 1024> text{};
    const ssize_t size =
        ::pread(file_.get(), text.data(), text.size() - 1, static_cast<off_t>(offset));
    return size <= 0 ? std::string() : std::string(text.data());
  }

 private:
  bool read(std::uint64_t offset, void* into, std::size_t size) const {
    if (offset > kMaxOffset) return false;
    return ::pread(file_.get(), into, size, static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(size);
  }

  void look_into(const Elf64_Shdr& table, const Elf64_Shdr& names, std::span<Place*> places) const {
    std::array<Elf64_Sym, 1024> symbols;
    const std::uint64_t size = std::min(table.sh_size, kMaxTableBytes) / sizeof(Elf64_Sym);
    for (std::uint64_t first = 0; first < size; first += symbols.size()) {
      const std::size_t count = std::min<std::uint64_t>(symbols.size(), size - first);
      if (!read(table.sh_offset + first * sizeof(Elf64_Sym), symbols.data(),
                count * sizeof(Elf64_Sym)))
        return;
      for (const Elf64_Sym& symbol : std::span(symbols).first(count)) {
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
        if (symbol.st_name >= names.sh_size) continue;
        for (Place* const place : places) note(*place, symbol, names);
      }
    }
  }

  static void note(Place& place, const Elf64_Sym& symbol, const Elf64_Shdr& names) {
    if (place.has_function || place.offset < symbol.st_value ||
        place.offset - symbol.st_value >= symbol.st_size)
      return;
    place.has_function = true;
    place.function = symbol.st_value;
    place.name_at = names.sh_offset + symbol.st_name;
  }

  static constexpr std::uint64_t kMaxOffset = std::uint64_t{1} << 40;

  FileDescriptor file_;
};

std::string readable_symbol(const std::string& name) {
  int status = -1;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  std::string text;
  append_escaped(text, status == 0 ? plain.get() : name, EscapeStyle::kHuman);
  if (text.size() > kMaxSymbolText) text = text.substr(0, kMaxSymbolText - 3) + "...";
  return text;
}

std::string hex(std::uint64_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), kDigits[number % 16]);
    number /= 16;
  } while (number != 0);
  return "0x" + text;
}

// The name for people of a file that is opened through /proc: this program, or a private copy in
// memory.
std::string readable_file(const std::string& opened) {
  std::filesystem::path file = opened;
  std::error_code failure;
  if (opened.starts_with(kOurFiles)) file = std::filesystem::read_symlink(opened, failure);
  std::string name = file.filename().native();
  if (constexpr std::string_view kNoName = " (deleted)"; name.ends_with(kNoName))
    name.resize(name.size() - kNoName.size());
  return name;
}

std::string place_text(const Place& place, const std::string& function) {
  if (place.file.empty()) return hex(place.address);
  const std::string name = readable_file(place.file);
  std::string where;
  append_escaped(where, name, EscapeStyle::kHuman);
  where += "+" + hex(place.offset);
  if (function.empty()) return where;
  return function + "+" + hex(place.offset - place.function) + " (" + where + ")";
}

std::vector<std::string> texts_of(std::vector<Place>& places) {
  std::vector<std::string> texts(places.size());
  std::vector<bool> is_done(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (is_done[i]) continue;
    // All places of one file at once.
    std::vector<Place*> same;
    for (std::size_t k = i; k < places.size(); ++k) {
      if (places[k].file == places[i].file) same.push_back(&places[k]);
    }
    const SymbolFile file(places[i].file);
    file.find(same);
    for (std::size_t k = i; k < places.size(); ++k) {
      if (places[k].file != places[i].file) continue;
      const std::string name =
          places[k].has_function ? readable_symbol(file.name_at(places[k].name_at)) : std::string();
      texts[k] = place_text(places[k], name);
      is_done[k] = true;
    }
  }
  return texts;
}

}  // namespace

std::vector<std::string> name_addresses(std::span<const std::uintptr_t> addresses) {
  std::vector<Place> places;
  for (const std::uintptr_t address : addresses) places.push_back({.address = address, .file = {}});
  ::dl_iterate_phdr(look_at_object, &places);
  return texts_of(places);
}

std::vector<std::string> name_places(std::span<const CodePlace> places) {
  std::vector<Place> found;
  for (const CodePlace& place : places)
    found.push_back({.address = place.offset, .file = place.file, .offset = place.offset});
  return texts_of(found);
}

std::string join_stack(std::span<const std::string> frames) {
  std::string text;
  for (const std::string& each : frames) text += (text.empty() ? "" : " < ") + each;
  return text;
}

}  // namespace hearth::diagnosis

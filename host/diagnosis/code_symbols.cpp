#include "diagnosis/code_symbols.hpp"

#include "base/escape.hpp"
#include "base/file_descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <system_error>

#include <cxxabi.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <link.h>

namespace hearth::diagnosis {
namespace {

constexpr std::uint64_t kMaxTableBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxDebugBytes = std::uint64_t{128} << 20;
constexpr const char* kThisProgram = "/proc/self/exe";
constexpr std::string_view kOurFiles = "/proc/self/";

// One address, its file, and what is known about it.
struct Place {
  std::uintptr_t address = 0;
  std::string file;  // empty: none
  std::uint64_t offset = 0;
  std::string function;  // as the linker knows it; empty: unknown
  std::uint64_t into_function = 0;
  std::string line;  // `room.cpp:41`; empty: unknown
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

// The symbols and line numbers of a file, read and not mapped: a file that is overwritten meanwhile
// gives wrong names, and no fault.
class SymbolFile {
 public:
  explicit SymbolFile(const std::string& path)
      : file_(path.starts_with('/') ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                                    : -1) {
    ::elf_version(EV_CURRENT);
    elf_.reset(::elf_begin(file_.get(), ELF_C_READ, nullptr));
  }

  // Finds the functions and lines of those places that are in this file.
  void find(std::span<Place*> places) const {
    // The full table first: the dynamic one names only visible symbols.
    for (const Elf64_Word type : {Elf64_Word{SHT_SYMTAB}, Elf64_Word{SHT_DYNSYM}}) {
      for_each_section([&](Elf_Scn* section, const GElf_Shdr& header) {
        if (header.sh_type == type && header.sh_size <= kMaxTableBytes)
          find_functions(section, header, places);
      });
    }
    if (debug_bytes() <= kMaxDebugBytes) find_lines(places);
  }

 private:
  struct End {
    void operator()(Elf* elf) const { ::elf_end(elf); }
    void operator()(Dwarf* dwarf) const { ::dwarf_end(dwarf); }
  };

  void for_each_section(const auto& look) const {
    for (Elf_Scn* each = nullptr; (each = ::elf_nextscn(elf_.get(), each)) != nullptr;) {
      GElf_Shdr header{};
      if (::gelf_getshdr(each, &header) != nullptr) look(each, header);
    }
  }

  void find_functions(Elf_Scn* section, const GElf_Shdr& header, std::span<Place*> places) const {
    Elf_Data* const symbols = ::elf_getdata(section, nullptr);
    GElf_Sym symbol{};
    for (int i = 0; ::gelf_getsym(symbols, i, &symbol) != nullptr; ++i) {
      if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
      for (Place* const place : places) {
        const bool is_in =
            place->offset >= symbol.st_value && place->offset - symbol.st_value < symbol.st_size;
        if (!place->function.empty() || !is_in) continue;
        const char* const name = ::elf_strptr(elf_.get(), header.sh_link, symbol.st_name);
        place->function = name == nullptr ? "" : name;
        place->into_function = place->offset - symbol.st_value;
      }
    }
  }

  [[nodiscard]] std::uint64_t debug_bytes() const {
    std::size_t names = 0;
    if (::elf_getshdrstrndx(elf_.get(), &names) != 0) return 0;
    std::uint64_t bytes = 0;
    for_each_section([&](Elf_Scn* /*section*/, const GElf_Shdr& header) {
      const char* const name = ::elf_strptr(elf_.get(), names, header.sh_name);
      if (name != nullptr && std::string_view(name).starts_with(".debug_"))
        bytes += std::min(header.sh_size, kMaxDebugBytes + 1);
    });
    return bytes;
  }

  void find_lines(std::span<Place*> places) const {
    const std::unique_ptr<Dwarf, End> dwarf(::dwarf_begin_elf(elf_.get(), DWARF_C_READ, nullptr));
    Dwarf_CU* unit = nullptr;
    Dwarf_Die source{};
    while (::dwarf_get_units(dwarf.get(), unit, &unit, nullptr, nullptr, &source, nullptr) == 0) {
      for (Place* const place : places) {
        if (!place->line.empty() || ::dwarf_haspc(&source, place->offset) != 1) continue;
        Dwarf_Line* const line = ::dwarf_getsrc_die(&source, place->offset);
        const char* const file = ::dwarf_linesrc(line, nullptr, nullptr);
        int number = 0;
        if (file == nullptr || ::dwarf_lineno(line, &number) != 0) continue;
        place->line =
            std::filesystem::path(file).filename().native() + ":" + std::to_string(number);
      }
    }
  }

  FileDescriptor file_;
  std::unique_ptr<Elf, End> elf_;
};

std::string escaped(std::string_view text) {
  std::string plain;
  append_escaped(plain, text, EscapeStyle::kHuman);
  return plain;
}

std::string readable_symbol(const std::string& name) {
  int status = -1;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  std::string text = escaped(status == 0 ? plain.get() : name);
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

std::string place_text(const Place& place) {
  if (place.file.empty()) return hex(place.address);
  std::string where = escaped(readable_file(place.file)) + "+" + hex(place.offset);
  if (place.function.empty()) return where;
  if (!place.line.empty()) where += ", " + escaped(place.line);
  return readable_symbol(place.function) + "+" + hex(place.into_function) + " (" + where + ")";
}

std::vector<std::string> texts_of(std::vector<Place>& places) {
  std::map<std::string_view, std::vector<Place*>> files;
  for (Place& each : places) files[each.file].push_back(&each);
  for (auto& [path, in_it] : files) SymbolFile(std::string(path)).find(in_it);
  std::vector<std::string> texts;
  texts.reserve(places.size());
  for (const Place& each : places) texts.push_back(place_text(each));
  return texts;
}

}  // namespace

std::vector<std::string> name_addresses(std::span<const std::uintptr_t> addresses) {
  std::vector<Place> places;
  for (const std::uintptr_t address : addresses) places.emplace_back().address = address;
  ::dl_iterate_phdr(look_at_object, &places);
  return texts_of(places);
}

std::vector<std::string> name_places(std::span<const CodePlace> places) {
  std::vector<Place> found;
  for (const CodePlace& place : places) {
    Place& kept = found.emplace_back();
    kept.address = kept.offset = place.offset;
    kept.file = place.file;
  }
  return texts_of(found);
}

std::string join_stack(std::span<const std::string> frames) {
  std::string text;
  for (const std::string& each : frames) text += (text.empty() ? "" : " < ") + each;
  return text;
}

}  // namespace hearth::diagnosis

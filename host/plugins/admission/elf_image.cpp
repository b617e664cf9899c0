#include "plugins/admission/elf_image.hpp"

#include "base/assert.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

namespace hearth::plugins {
namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kHostMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kHostMachine = EM_AARCH64;
#else
#error "Hearth's plugins are for x86-64 and AArch64"
#endif
static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kPageSize = 4096;

Error damaged(std::string how) {
  return Error{Errc::kInvalidArgument, std::move(how)};
}
Error foreign(std::string how) {
  return Error{Errc::kUnsupported, std::move(how)};
}

// All access to the file goes through it, and is checked against the file's size.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> all) : all_(all) {}

  [[nodiscard]] std::uint64_t size() const { return all_.size(); }

  // Written so that no sum can overflow.
  [[nodiscard]] bool contains(std::uint64_t offset, std::uint64_t size) const {
    return offset <= all_.size() && size <= all_.size() - offset;
  }

  [[nodiscard]] std::optional<std::span<const std::byte>> slice(std::uint64_t offset,
                                                                std::uint64_t size) const {
    if (!contains(offset, size)) return std::nullopt;
    return all_.subspan(offset, size);
  }

  // Requires  contains() is true for these bytes.
  [[nodiscard]] std::span<const std::byte> part(std::uint64_t offset, std::uint64_t size) const {
    HEARTH_ASSERT(contains(offset, size),
                  "a table is checked as a whole before its parts are read");
    return all_.subspan(offset, size);
  }

  // A copy, since a table may be unaligned. Requires as part().
  template <class T>
  [[nodiscard]] T at(std::uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, part(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }

  // As at(); absent if the bytes are not all in the file.
  template <class T>
  [[nodiscard]] std::optional<T> read(std::uint64_t offset) const {
    if (!contains(offset, sizeof(T))) return std::nullopt;
    return at<T>(offset);
  }

 private:
  std::span<const std::byte> all_;
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The string at `offset` of a string table; absent if it has no end inside it.
std::optional<std::string_view> string_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size()) return std::nullopt;
  const std::size_t end = table.find('\0', offset);
  if (end == std::string_view::npos) return std::nullopt;
  return table.substr(offset, end - offset);
}

// The values of the dynamic section, by tag. Tags that may come more than once are kept separately.
struct DynamicSection {
  std::vector<std::pair<std::int64_t, std::uint64_t>> entries;

  [[nodiscard]] std::optional<std::uint64_t> find(std::int64_t tag) const {
    for (const auto& [entry_tag, value] : entries) {
      if (entry_tag == tag) return value;
    }
    return std::nullopt;
  }
};

// One parse. Each step returns an error, or nothing.
class ElfParser {
 public:
  explicit ElfParser(std::span<const std::byte> file) : file_(file) {}

  Result<ElfImage> parse() {
    using Step = std::optional<Error> (ElfParser::*)();
    // The order matters: each step relies on the checks of the steps before.
    for (const Step step :
         {&ElfParser::read_header, &ElfParser::read_segments, &ElfParser::check_load_map,
          &ElfParser::read_sections, &ElfParser::read_dynamic, &ElfParser::check_tables,
          &ElfParser::read_strings, &ElfParser::read_symbols, &ElfParser::read_versions,
          &ElfParser::read_notes}) {
      if (std::optional<Error> error = (this->*step)()) return *std::move(error);
    }
    return std::move(image_);
  }

 private:
  std::optional<Error> read_header() {
    constexpr std::string_view kMagic(
        "\x7f"
        "ELF",
        4);
    if (!as_text(file_.part(0, file_.size())).starts_with(kMagic))
      return foreign("is not an ELF file");
    const auto header = file_.read<Elf64_Ehdr>(0);
    if (!header) return damaged("ends inside its first header");
    if (header->e_ident[EI_CLASS] != ELFCLASS64) return foreign("is not for 64-bit systems");
    if (header->e_ident[EI_DATA] != ELFDATA2LSB) return foreign("is not little-endian");
    if (header->e_ident[EI_VERSION] != EV_CURRENT) return foreign("has an unknown ELF version");
    const auto os = header->e_ident[EI_OSABI];
    if (os != ELFOSABI_NONE && os != ELFOSABI_GNU) return foreign("is for another system");
    if (header->e_machine != kHostMachine) return foreign("is for another processor");
    if (header->e_type == ET_EXEC) return foreign("is a program, not a shared library");
    if (header->e_type == ET_REL) return foreign("is an object file, not a shared library");
    if (header->e_type != ET_DYN) return foreign("is not a shared library");
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_shentsize != sizeof(Elf64_Shdr)) {
      return damaged("has header tables of a wrong entry size");
    }
    header_ = *header;
    return std::nullopt;
  }

  std::optional<Error> read_segments() {
    const std::uint64_t count = header_.e_phnum;
    if (count == 0 || count > kMaxElfSegments) return damaged("has an impossible segment count");
    if (!file_.contains(header_.e_phoff, count * sizeof(Elf64_Phdr))) {
      return damaged("ends before its program header table does");
    }
    bool stack_is_stated = false;
    for (std::uint64_t index = 0; index < count; ++index) {
      const auto raw = file_.at<Elf64_Phdr>(header_.e_phoff + index * sizeof(Elf64_Phdr));
      image_.segments.push_back({.type = raw.p_type,
                                 .flags = raw.p_flags,
                                 .offset = raw.p_offset,
                                 .file_size = raw.p_filesz,
                                 .address = raw.p_vaddr,
                                 .memory_size = raw.p_memsz,
                                 .alignment = raw.p_align});
      if (raw.p_type == PT_INTERP) image_.is_program = true;
      if (raw.p_type == PT_GNU_STACK) {
        stack_is_stated = true;
        if ((raw.p_flags & PF_X) != 0) image_.has_executable_stack = true;
      }
      if (raw.p_type == PT_GNU_RELRO) image_.has_relro = true;
      const bool writable_code = (raw.p_flags & (PF_W | PF_X)) == (PF_W | PF_X);
      if (raw.p_type == PT_LOAD && writable_code) image_.has_writable_code = true;
    }
    if (!stack_is_stated) image_.has_executable_stack = true;
    return std::nullopt;
  }

  // The parts that the dynamic loader maps: inside the file, in order, without overlap, within the
  // limit.
  std::optional<Error> check_load_map() {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    bool any = false;
    for (const ElfSegment& segment : image_.segments) {
      if (segment.type != PT_LOAD) continue;
      if (!file_.contains(segment.offset, segment.file_size)) {
        return damaged("ends before its loadable segments do");
      }
      if (segment.memory_size < segment.file_size)
        return damaged("has a segment that cannot be mapped");
      if (segment.alignment > 1 && !std::has_single_bit(segment.alignment)) {
        return damaged("has a segment of an impossible alignment");
      }
      if ((segment.address - segment.offset) % kPageSize != 0) {
        return damaged("has a segment that cannot be mapped");
      }
      if (!any) first = segment.address;
      if (segment.address < end || segment.address - first > kMaxElfAddressSpan ||
          segment.memory_size > kMaxElfAddressSpan) {
        return damaged("has segments that overlap or lie too far apart");
      }
      // The sum may overflow only for an address near 2^64, which fails in the next test.
      if (segment.address > UINT64_MAX - segment.memory_size) {
        return damaged("has a segment at an impossible address");
      }
      end = segment.address + segment.memory_size;
      any = true;
    }
    if (!any) return damaged("has nothing to load");
    return std::nullopt;
  }

  std::optional<Error> read_sections() {
    const std::uint64_t count = header_.e_shnum;
    if (header_.e_shoff == 0 || count == 0) return damaged("has no section table");
    if (!file_.contains(header_.e_shoff, count * sizeof(Elf64_Shdr))) {
      return damaged("ends before its section table does: it is incomplete");
    }
    sections_.reserve(count);
    for (std::uint64_t index = 0; index < count; ++index) {
      const auto raw = file_.at<Elf64_Shdr>(header_.e_shoff + index * sizeof(Elf64_Shdr));
      const bool has_bytes = raw.sh_type != SHT_NOBITS && raw.sh_type != SHT_NULL;
      if (has_bytes && !file_.contains(raw.sh_offset, raw.sh_size)) {
        return damaged("ends before its sections do: it is incomplete");
      }
      sections_.push_back(raw);
    }
    return std::nullopt;
  }

  // The bytes of the file that will be at `address`; absent if they are not all from the file.
  [[nodiscard]] std::optional<std::span<const std::byte>> loaded(std::uint64_t address,
                                                                 std::uint64_t size) const {
    for (const ElfSegment& segment : image_.segments) {
      if (segment.type != PT_LOAD || address < segment.address) continue;
      const std::uint64_t skip = address - segment.address;
      if (skip > segment.file_size || size > segment.file_size - skip) continue;
      return file_.slice(segment.offset + skip, size);
    }
    return std::nullopt;
  }

  std::optional<Error> read_dynamic() {
    const auto is_dynamic = [](const ElfSegment& segment) { return segment.type == PT_DYNAMIC; };
    if (std::ranges::count_if(image_.segments, is_dynamic) != 1) {
      return damaged("has no dynamic section, or several");
    }
    const ElfSegment& segment = *std::ranges::find_if(image_.segments, is_dynamic);
    const auto bytes = loaded(segment.address, segment.file_size);
    if (!bytes) return damaged("has its dynamic section outside of what is loaded");
    const Bytes table(*bytes);
    for (std::uint64_t at = 0; dynamic_.entries.size() < kMaxElfDynamicEntries;
         at += sizeof(Elf64_Dyn)) {
      const auto entry = table.read<Elf64_Dyn>(at);
      if (!entry) return damaged("has a dynamic section without an end");
      if (entry->d_tag == DT_NULL) return std::nullopt;
      dynamic_.entries.emplace_back(entry->d_tag, entry->d_un.d_val);
    }
    return damaged("has a dynamic section that is too long");
  }

  // Tables that the dynamic loader follows before any code of the library runs.
  std::optional<Error> check_tables() {
    constexpr std::array<std::pair<std::int64_t, std::int64_t>, 5> kTables = {
        {{DT_RELA, DT_RELASZ},
         {DT_JMPREL, DT_PLTRELSZ},
         {DT_INIT_ARRAY, DT_INIT_ARRAYSZ},
         {DT_FINI_ARRAY, DT_FINI_ARRAYSZ},
         {DT_RELR, DT_RELRSZ}}};
    for (const auto& [address_tag, size_tag] : kTables) {
      const auto address = dynamic_.find(address_tag);
      if (!address) continue;
      const auto size = dynamic_.find(size_tag);
      if (!size || !loaded(*address, *size)) {
        return damaged("has a relocation or initialiser table outside of what is loaded");
      }
    }
    const auto hash = dynamic_.find(DT_GNU_HASH);
    const auto old_hash = dynamic_.find(DT_HASH);
    if (!hash && !old_hash) return damaged("has no symbol hash table");
    if ((hash && !loaded(*hash, 16)) || (old_hash && !loaded(*old_hash, 8))) {
      return damaged("has its symbol hash table outside of what is loaded");
    }
    return std::nullopt;
  }

  std::optional<Error> read_strings() {
    const auto address = dynamic_.find(DT_STRTAB);
    const auto size = dynamic_.find(DT_STRSZ);
    const auto bytes = address && size ? loaded(*address, *size) : std::nullopt;
    if (!bytes) return damaged("has no string table in what is loaded");
    strings_ = as_text(*bytes);
    std::optional<std::string_view> old_run_path;
    for (const auto& [tag, value] : dynamic_.entries) {
      note_flags(tag, value);
      if (tag != DT_NEEDED && tag != DT_RUNPATH && tag != DT_RPATH) continue;
      const auto text = string_at(strings_, value);
      if (!text) return damaged("names a library outside of its string table");
      if (tag == DT_NEEDED) image_.needed.push_back(*text);
      if (tag == DT_RUNPATH) image_.run_path = *text;
      if (tag == DT_RPATH) old_run_path = *text;
    }
    if (!image_.run_path) image_.run_path = old_run_path;
    return std::nullopt;
  }

  void note_flags(std::int64_t tag, std::uint64_t value) {
    if (tag == DT_TEXTREL) image_.has_text_relocations = true;
    if (tag == DT_FLAGS && (value & DF_TEXTREL) != 0) image_.has_text_relocations = true;
    if (tag == DT_FLAGS && (value & DF_STATIC_TLS) != 0) image_.has_static_tls = true;
    if (tag == DT_FLAGS_1 && (value & DF_1_PIE) != 0) image_.is_program = true;
    if (tag == DT_FLAGS_1 && (value & DF_1_NODELETE) != 0) image_.never_unloads = true;
    if (tag == DT_BIND_NOW) image_.binds_now = true;
    if (tag == DT_FLAGS && (value & DF_BIND_NOW) != 0) image_.binds_now = true;
    if (tag == DT_FLAGS_1 && (value & DF_1_NOW) != 0) image_.binds_now = true;
  }

  // Only the section table has the number of symbols. Both must mean the same symbol table.
  std::optional<Error> read_symbols() {
    const auto address = dynamic_.find(DT_SYMTAB);
    const auto section = std::ranges::find_if(
        sections_, [](const Elf64_Shdr& s) { return s.sh_type == SHT_DYNSYM; });
    if (!address || section == sections_.end() || section->sh_addr != *address) {
      return damaged("has no symbol table that its section table knows");
    }
    const std::uint64_t count = section->sh_size / sizeof(Elf64_Sym);
    if (count > kMaxElfSymbols) return damaged("has too many symbols");
    const auto bytes = loaded(*address, count * sizeof(Elf64_Sym));
    if (!bytes) return damaged("has its symbol table outside of what is loaded");
    const Bytes table(*bytes);
    for (std::uint64_t index = 1; index < count; ++index) {  // the first one is always empty
      const auto symbol = table.at<Elf64_Sym>(index * sizeof(Elf64_Sym));
      const auto name = string_at(strings_, symbol.st_name);
      if (!name) return damaged("has a symbol with a name outside of its string table");
      add_symbol(symbol, *name);
    }
    return std::nullopt;
  }

  void add_symbol(const Elf64_Sym& symbol, std::string_view name) {
    if (name.empty()) return;  // marks of sections
    if (symbol.st_shndx == SHN_UNDEF) {
      image_.imports.push_back(name);
      return;
    }
    const auto visibility = ELF64_ST_VISIBILITY(symbol.st_other);
    if (visibility == STV_HIDDEN || visibility == STV_INTERNAL) return;
    ElfBinding binding = ElfBinding::kOther;
    switch (ELF64_ST_BIND(symbol.st_info)) {
      case STB_LOCAL: return;
      case STB_GLOBAL: binding = ElfBinding::kGlobal; break;
      case STB_WEAK: binding = ElfBinding::kWeak; break;
      case STB_GNU_UNIQUE: binding = ElfBinding::kUnique; break;
      default: break;
    }
    image_.exports.push_back({.name = name,
                              .address = symbol.st_value,
                              .size = symbol.st_size,
                              .binding = binding,
                              .is_object = ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT});
  }

  // A chain of libraries, each with a chain of versions. Each entry has the distance to the next
  // one; only the counts bound the walk.
  std::optional<Error> read_versions() {
    const auto address = dynamic_.find(DT_VERNEED);
    const auto count = dynamic_.find(DT_VERNEEDNUM);
    if (!address || !count) return std::nullopt;
    std::uint64_t at = *address;
    for (std::uint64_t index = 0; index < *count; ++index) {
      if (index >= kMaxElfVersions) return damaged("needs too many versions of symbols");
      const auto need = loaded_entry<Elf64_Verneed>(at);
      if (!need || need->vn_version != VER_NEED_CURRENT)
        return damaged("has a damaged version table");
      if (auto error = read_versions_of(*need, at)) return error;
      if (need->vn_next == 0) return std::nullopt;
      at += need->vn_next;
    }
    return std::nullopt;
  }

  std::optional<Error> read_versions_of(const Elf64_Verneed& need, std::uint64_t at) {
    const auto library = string_at(strings_, need.vn_file);
    if (!library) return damaged("has a version table with a name outside of its string table");
    std::uint64_t entry_at = at + need.vn_aux;
    for (unsigned index = 0; index < need.vn_cnt; ++index) {
      if (image_.versions.size() >= kMaxElfVersions) {
        return damaged("needs too many versions of symbols");
      }
      const auto entry = loaded_entry<Elf64_Vernaux>(entry_at);
      const auto name = entry ? string_at(strings_, entry->vna_name) : std::nullopt;
      if (!name) return damaged("has a damaged version table");
      image_.versions.push_back(
          {.library = *library, .name = *name, .is_weak = (entry->vna_flags & VER_FLG_WEAK) != 0});
      if (entry->vna_next == 0) break;
      entry_at += entry->vna_next;
    }
    return std::nullopt;
  }

  // The entry of a table that will be at `address`; absent if it is not all from the file.
  template <class T>
  [[nodiscard]] std::optional<T> loaded_entry(std::uint64_t address) const {
    const auto bytes = loaded(address, sizeof(T));
    if (!bytes) return std::nullopt;
    return Bytes(*bytes).at<T>(0);
  }

  std::optional<Error> read_notes() {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_NOTE) read_note_section(section);
    }
    return std::nullopt;
  }

  // A note that does not fit its section ends the walk. If Hearth's note is then missing, that is
  // an error of its own.
  void read_note_section(const Elf64_Shdr& section) {
    const Bytes bytes(file_.part(section.sh_offset, section.sh_size));
    const std::uint64_t alignment = section.sh_addralign == 8 ? 8 : 4;
    const auto aligned = [alignment](std::uint64_t at) {
      return (at + alignment - 1) / alignment * alignment;
    };
    std::uint64_t at = 0;
    while (image_.notes.size() < kMaxElfNotes) {
      const auto head = bytes.read<Elf64_Nhdr>(at);
      if (!head) return;
      // Sizes are 32 bits wide, so none of these sums overflows.
      const std::uint64_t owner_at = at + sizeof(Elf64_Nhdr);
      const std::uint64_t description_at = aligned(owner_at + head->n_namesz);
      const auto owner = bytes.slice(owner_at, head->n_namesz);
      const auto description = bytes.slice(description_at, head->n_descsz);
      if (!owner || !description) return;
      std::string_view name = as_text(*owner);
      if (name.ends_with('\0')) name.remove_suffix(1);
      image_.notes.push_back({.owner = name, .type = head->n_type, .description = *description});
      at = aligned(description_at + head->n_descsz);
    }
  }

  Bytes file_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  DynamicSection dynamic_;
  std::string_view strings_;
  ElfImage image_;
};

}  // namespace

Result<ElfImage> parse_elf_image(std::span<const std::byte> file) {
  return ElfParser(file).parse();
}

}  // namespace hearth::plugins

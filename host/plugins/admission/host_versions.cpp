#include "plugins/admission/host_versions.hpp"

#include <elf.h>

#include <cstdint>
#include <cstring>

#include <link.h>

namespace hearth::plugins {
namespace {

struct WantedVersion {
  std::string_view library;
  std::string_view version;
  VersionStanding standing = VersionStanding::kNotLoaded;
};

// The tables of a loaded object. They are trusted: the dynamic loader has checked and mapped them.
struct Tables {
  const char* strings = nullptr;
  const char* versions = nullptr;  // Elf64_Verdef, in a chain
  std::uint64_t count = 0;
};

Tables tables_of(const dl_phdr_info& object) {
  Tables tables;
  const ElfW(Dyn)* entry = nullptr;
  for (unsigned index = 0; index < object.dlpi_phnum; ++index) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[index];
    if (segment.p_type != PT_DYNAMIC) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): ELF has addresses
    entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + segment.p_vaddr);
  }
  // glibc has turned most offsets into addresses, except where the section is read-only.
  const auto address = [&object](std::uint64_t value) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): as above
    return reinterpret_cast<const char*>(value < object.dlpi_addr ? value + object.dlpi_addr
                                                                  : value);
  };
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) tables.strings = address(entry->d_un.d_ptr);
    if (entry->d_tag == DT_VERDEF) tables.versions = address(entry->d_un.d_ptr);
    if (entry->d_tag == DT_VERDEFNUM) tables.count = entry->d_un.d_val;
  }
  return tables;
}

bool defines(const Tables& tables, std::string_view version) {
  if (tables.strings == nullptr || tables.versions == nullptr) return false;
  const char* at = tables.versions;
  for (std::uint64_t index = 0; index < tables.count; ++index) {
    ElfW(Verdef) definition;
    std::memcpy(&definition, at, sizeof definition);
    ElfW(Verdaux) name;
    std::memcpy(&name, at + definition.vd_aux, sizeof name);
    if (version == tables.strings + name.vda_name) return true;
    if (definition.vd_next == 0) return false;
    at += definition.vd_next;
  }
  return false;
}

int look_for_version(dl_phdr_info* object, std::size_t /*size*/, void* context) {
  WantedVersion& wanted = *static_cast<WantedVersion*>(context);
  std::string_view name = object->dlpi_name != nullptr ? object->dlpi_name : "";
  name.remove_prefix(name.rfind('/') + 1);               // npos + 1 is 0
  if (name.empty() || name != wanted.library) return 0;  // the program itself has no name
  wanted.standing = defines(tables_of(*object), wanted.version) ? VersionStanding::kPresent
                                                                : VersionStanding::kMissing;
  return 1;
}

}  // namespace

VersionStanding version_standing(std::string_view library, std::string_view version) {
  WantedVersion wanted{.library = library, .version = version};
  ::dl_iterate_phdr(look_for_version, &wanted);
  return wanted.standing;
}

}  // namespace hearth::plugins

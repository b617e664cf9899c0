#include "plugins/admission/elf_image.hpp"

#include "plugins/test_libraries.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <random>

namespace hearth::plugins {
namespace {

using namespace testing;

// The bytes lie at the very end of their allocation, so that a sanitizer sees a read past them.
Result<ElfImage> parse_exactly(const Bytes& bytes) {
  const auto exact = std::make_unique<std::byte[]>(bytes.size());
  std::ranges::copy(bytes, exact.get());
  auto image = parse_elf_image({exact.get(), bytes.size()});
  if (!image) return image.error();
  // Reading is the check: a sanitizer stops the test at a view that is not readable while the bytes
  // live.
  volatile char sink = 0;
  const auto touch = [&sink](std::string_view text) {
    for (const char c : text) sink = c;
  };
  for (const ElfExport& symbol : image->exports) touch(symbol.name);
  for (const std::string_view name : image->imports) touch(name);
  for (const std::string_view name : image->needed) touch(name);
  for (const ElfNeededVersion& version : image->versions) {
    touch(version.library);
    touch(version.name);
  }
  if (image->run_path) touch(*image->run_path);
  for (const ElfNote& note : image->notes) {
    touch(note.owner);
    touch({reinterpret_cast<const char*>(note.description.data()), note.description.size()});
  }
  return image;
}

Errc parse_error_of(const Bytes& bytes) {
  const auto image = parse_exactly(bytes);
  EXPECT_FALSE(image);
  return image ? Errc{} : image.error().code;
}

// The error of plain.so with another value at this place.
template <class T>
Errc error_with(std::size_t at, const T& value) {
  Bytes bytes = library_bytes("plain");
  put(bytes, at, value);
  return parse_error_of(bytes);
}

TEST(ElfImageTest, ReadsWhatALibrarySaysAboutItself) {
  const Bytes bytes = library_bytes("plain");
  const auto image = parse_elf_image(bytes).value();
  ASSERT_EQ(image.exports.size(), 1U);
  EXPECT_EQ(image.exports[0].name, "hearth_plugin_v1");
  EXPECT_EQ(image.exports[0].size, 48U);
  EXPECT_TRUE(image.exports[0].is_object);
  EXPECT_EQ(image.exports[0].binding, ElfBinding::kGlobal);
  EXPECT_NE(std::ranges::find(image.needed, "libc.so.6"), image.needed.end());
  EXPECT_NE(std::ranges::find(image.imports, "malloc"), image.imports.end());
  EXPECT_NE(std::ranges::find(image.notes, "HEARTH", &ElfNote::owner), image.notes.end());
  EXPECT_FALSE(image.is_program);
  EXPECT_FALSE(image.has_executable_stack);
  EXPECT_FALSE(image.has_writable_code);
  EXPECT_FALSE(image.has_text_relocations);
  EXPECT_FALSE(image.never_unloads);
  EXPECT_FALSE(image.run_path);
}

TEST(ElfImageTest, ReadsTheVersionsThatALibraryNeeds) {
  const Bytes bytes = library_bytes("plain");
  const auto image = parse_elf_image(bytes).value();
  const auto found = std::ranges::find(image.versions, "libc.so.6", &ElfNeededVersion::library);
  ASSERT_NE(found, image.versions.end());
  EXPECT_TRUE(found->name.starts_with("GLIBC_2."));
  EXPECT_FALSE(found->is_weak);
  EXPECT_TRUE(image.binds_now);
  EXPECT_TRUE(image.has_relro);
}

TEST(ElfImageTest, RefusesAVersionTableThatIsDamaged) {
  const Bytes plain = library_bytes("plain");
  const auto with = [&](std::int64_t tag, std::uint64_t value) {
    Bytes bytes = plain;
    put(bytes, dynamic_entry_at(bytes, tag) + offsetof(Elf64_Dyn, d_un), value);
    return bytes;
  };
  EXPECT_EQ(parse_error_of(with(DT_VERNEED, 0xffff'ffff'ffff'fff0)), Errc::kInvalidArgument);
  EXPECT_EQ(parse_error_of(with(DT_VERNEED, 0)), Errc::kInvalidArgument) << "no version of a table";
  // A count that is too large ends where the chain does.
  EXPECT_TRUE(parse_exactly(with(DT_VERNEEDNUM, 1'000'000)));

  // Names outside of the string table, and a chain that leaves the loaded part.
  const auto table = get<std::uint64_t>(plain, dynamic_entry_at(plain, DT_VERNEED) + 8);
  for (const std::size_t field :
       {offsetof(Elf64_Verneed, vn_file), offsetof(Elf64_Verneed, vn_aux)})
    // In the first segment, where addresses are offsets.
    EXPECT_EQ(error_with(table + field, std::uint32_t{0x7fff'fff0}), Errc::kInvalidArgument)
        << field;
}

TEST(ElfImageTest, KnowsAProgramFromALibrary) {
  const Bytes bytes = read_bytes("/proc/self/exe");
  const auto image = parse_elf_image(bytes).value();
  EXPECT_TRUE(image.is_program);
}

TEST(ElfImageTest, WhatIsNoElfFileIsForeign) {
  EXPECT_EQ(parse_error_of({}), Errc::kUnsupported);
  EXPECT_EQ(parse_error_of(bytes_of_text("hello")), Errc::kUnsupported);
  EXPECT_EQ(parse_error_of(bytes_of_text(
                "#!/bin/sh\necho a longer text that is no library at all, sixty-four bytes")),
            Errc::kUnsupported);
  EXPECT_EQ(parse_error_of(bytes_of_text("\x7f"
                                         "EL")),
            Errc::kUnsupported);
}

TEST(ElfImageTest, WhatIsForAnotherSystemIsForeign) {
  const auto with = error_with<std::uint8_t>;
  EXPECT_EQ(with(EI_CLASS, ELFCLASS32), Errc::kUnsupported);
  EXPECT_EQ(with(EI_DATA, ELFDATA2MSB), Errc::kUnsupported);
  EXPECT_EQ(with(EI_OSABI, ELFOSABI_FREEBSD), Errc::kUnsupported);
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_machine), EM_S390), Errc::kUnsupported);
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_type), ET_EXEC), Errc::kUnsupported);
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_type), ET_REL), Errc::kUnsupported);
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_type), ET_CORE), Errc::kUnsupported);
}

// Also those that the dynamic loader would take: only the section table is missing from them.
TEST(ElfImageTest, ATruncatedFileIsIncompleteWhereverItEnds) {
  const Bytes plain = library_bytes("plain");
  for (const unsigned percent : {1U, 10U, 25U, 50U, 75U, 90U, 99U}) {
    Bytes bytes = plain;
    bytes.resize(plain.size() * percent / 100);
    EXPECT_EQ(parse_error_of(bytes), Errc::kInvalidArgument) << percent << " percent";
  }
  Bytes one_byte_short = plain;
  one_byte_short.pop_back();
  EXPECT_EQ(parse_error_of(one_byte_short), Errc::kInvalidArgument);
}

TEST(ElfImageTest, EveryLengthOfAFileIsHandled) {
  const Bytes plain = library_bytes("plain");
  for (std::size_t size = 0; size < plain.size(); size += size < 1024 ? 1 : 61) {
    EXPECT_FALSE(
        parse_exactly(Bytes(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(size))))
        << size << " bytes";
  }
}

TEST(ElfImageTest, RefusesHeadersThatPointOutsideTheFile) {
  const Bytes plain = library_bytes("plain");
  std::vector<std::size_t> places{offsetof(Elf64_Ehdr, e_phoff), offsetof(Elf64_Ehdr, e_shoff)};
  for (const std::size_t field : {offsetof(Elf64_Phdr, p_offset), offsetof(Elf64_Phdr, p_filesz),
                                  offsetof(Elf64_Phdr, p_vaddr), offsetof(Elf64_Phdr, p_memsz)})
    places.push_back(program_header_at(plain, PT_LOAD) + field);
  for (const std::int64_t tag : {DT_STRTAB, DT_STRSZ, DT_SYMTAB, DT_NEEDED})
    places.push_back(dynamic_entry_at(plain, tag) + offsetof(Elf64_Dyn, d_un));
  for (const std::uint64_t far : {~std::uint64_t{0}, std::uint64_t{1} << 63, ~std::uint64_t{63}}) {
    for (const std::size_t place : places)
      EXPECT_EQ(error_with(place, far), Errc::kInvalidArgument) << far << " at " << place;
  }
}

TEST(ElfImageTest, RefusesCountsThatNoLibraryHas) {
  for (const auto segments : std::initializer_list<std::uint16_t>{0, 129, 0xffff})
    EXPECT_EQ(error_with(offsetof(Elf64_Ehdr, e_phnum), segments), Errc::kInvalidArgument)
        << segments;
  for (const auto sections : std::initializer_list<std::uint16_t>{0, 0xffff})
    EXPECT_EQ(error_with(offsetof(Elf64_Ehdr, e_shnum), sections), Errc::kInvalidArgument)
        << sections;
}

TEST(ElfImageTest, RefusesADynamicSectionWithoutAnEnd) {
  Bytes bytes = library_bytes("plain");
  const auto segment = get<Elf64_Phdr>(bytes, program_header_at(bytes, PT_DYNAMIC));
  const std::size_t end = segment.p_offset + segment.p_filesz;
  for (std::size_t at = segment.p_offset; at < end; at += sizeof(Elf64_Dyn)) {
    if (get<Elf64_Dyn>(bytes, at).d_tag == DT_NULL) put(bytes, at, std::int64_t{DT_DEBUG});
  }
  EXPECT_EQ(parse_error_of(bytes), Errc::kInvalidArgument);
}

TEST(ElfImageTest, AStackThatIsNotMentionedIsExecutable) {
  Bytes bytes = library_bytes("plain");
  put(bytes, program_header_at(bytes, PT_GNU_STACK), std::uint32_t{PT_NULL});
  const auto image = parse_elf_image(bytes).value();
  EXPECT_TRUE(image.has_executable_stack);
}

// The parser must refuse or read a file with random damage, and never crash. Damaged are bytes of
// the whole file, bytes of the tables (where the parser looks), and whole blocks.
class ElfMutationTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(ElfMutationTest, NoDamageMakesTheParserCrash) {
  constexpr int kMutations = 5000;
  const unsigned seed = GetParam();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Bytes plain = library_bytes("plain");
  const Elf64_Ehdr header = header_of(plain);
  const auto dynamic = get<Elf64_Phdr>(plain, program_header_at(plain, PT_DYNAMIC));
  struct Range {
    std::size_t begin;
    std::size_t size;
  };
  const Range targets[] = {{0, plain.size()},
                           {0, sizeof(Elf64_Ehdr)},
                           {header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr)},
                           {header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)},
                           {dynamic.p_offset, dynamic.p_filesz}};
  const auto below = [&random](std::size_t limit) { return random() % limit; };
  int read = 0;
  for (int mutation = 0; mutation < kMutations; ++mutation) {
    Bytes bytes = plain;
    const Range& target = targets[below(std::size(targets))];
    const std::size_t at = target.begin + below(target.size);
    switch (below(4)) {
      case 0: bytes[at] = static_cast<std::byte>(random()); break;
      case 1: bytes[at] ^= std::byte{1} << static_cast<int>(below(8)); break;
      case 2:  // a block of one value
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    std::min<std::size_t>(bytes.size() - at, 1 + below(256)),
                    below(2) == 0 ? std::byte{0} : std::byte{0xff});
        break;
      default:  // an extreme number
        if (at + 8 <= bytes.size()) put(bytes, at, ~std::uint64_t{0} >> below(64));
        break;
    }
    if (parse_exactly(bytes)) ++read;
  }
  RecordProperty("seed", static_cast<int>(seed));
  EXPECT_GT(read, 0) << "damage in code and debug information is not the parser's business";
  EXPECT_LT(read, kMutations);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ElfMutationTest, ::testing::Values(1U, 2U, 3U, 4U));

}  // namespace
}  // namespace hearth::plugins

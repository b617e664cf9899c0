#include "diagnosis/code_symbols.hpp"

#include "base/files.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <gnu/libc-version.h>

namespace hearth::diagnosis {
namespace {

__attribute__((noinline)) void a_function_of_this_test() {
  asm volatile("nop\n\tnop");  // its second byte is its own, however it is optimised
}
constexpr int kItsLine = __LINE__ - 3;

TEST(CodeSymbolsTest, FunctionsThatNobodyElseSeesAreNamedAndThoseOfOtherLibraries) {
  const auto ours = reinterpret_cast<std::uintptr_t>(&a_function_of_this_test);
  const auto libc = reinterpret_cast<std::uintptr_t>(&::gnu_get_libc_version);
  const std::vector<std::uintptr_t> asked{ours + 1, libc, ours};
  const auto names = name_addresses(asked);
  ASSERT_EQ(names.size(), 3U);
  EXPECT_NE(names[0].find("a_function_of_this_test()+0x1 (diagnosis_tests+0x"), std::string::npos)
      << names[0];
  EXPECT_NE(names[1].find("gnu_get_libc_version+0x0 (libc.so.6+0x"), std::string::npos) << names[1];
  EXPECT_NE(names[2].find("a_function_of_this_test()+0x0 (diagnosis_tests+0x"), std::string::npos)
      << names[2];
}

TEST(CodeSymbolsTest, CodeWithLineNumbersNamesItsLine) {
  const std::vector<std::uintptr_t> asked{
      reinterpret_cast<std::uintptr_t>(&a_function_of_this_test),
      reinterpret_cast<std::uintptr_t>(&::gnu_get_libc_version)};
  const auto names = name_addresses(asked);
  EXPECT_TRUE(names[0].ends_with(", code_symbols_test.cpp:" + std::to_string(kItsLine) + ")"))
      << names[0];
  EXPECT_EQ(names[1].find(", "), std::string::npos) << "it has no line numbers: " << names[1];
}

TEST(CodeSymbolsTest, AnAddressInNoFileIsANumber) {
  const std::vector<std::uintptr_t> asked{0, 0xdead};
  EXPECT_EQ(name_addresses(asked), (std::vector<std::string>{"0x0", "0xdead"}));
  EXPECT_TRUE(name_addresses({}).empty());
}

TEST(CodeSymbolsTest, AFileThatIsCutOrOverwrittenIsReadWithoutAFault) {
  const testing::TempDirectory directory;
  const auto copy = directory.path() / "copy.so";
  const std::string whole = read_file("/proc/self/exe", std::size_t{1} << 30).value();
  const std::vector<CodePlace> asked{{.file = copy.native(), .offset = 0x1000}};
  for (const std::size_t part : {0U, 1U, 3U, 8U, 15U, 16U}) {
    std::string text = whole.substr(0, whole.size() / 16 * part);
    std::ofstream(copy, std::ios::binary) << text;
    EXPECT_NE(name_places(asked).front().find("copy.so+0x1000"), std::string::npos) << part;
    // Section headers stay, and what they tell of is nonsense.
    for (std::size_t i = 64; i + 4096 < text.size() && part == 16; i += 64) text[i] = '\xff';
    std::ofstream(copy, std::ios::binary) << text;
    EXPECT_NE(name_places(asked).front().find("copy.so+0x1000"), std::string::npos) << part;
  }
}

TEST(CodeSymbolsTest, LongNamesAreCut) {
  struct AnObjectWhoseNameIsQuiteLongButNotLongerThanPeopleWriteThemInTestsAndElsewhere {
    __attribute__((noinline)) static void and_its_member_function_whose_name_is_long_as_well() {
      asm volatile("");
    }
  };
  const std::vector<std::uintptr_t> asked{reinterpret_cast<std::uintptr_t>(
      &AnObjectWhoseNameIsQuiteLongButNotLongerThanPeopleWriteThemInTestsAndElsewhere::
          and_its_member_function_whose_name_is_long_as_well)};
  const std::string name = name_addresses(asked).front();
  EXPECT_EQ(name.find("...+0x0 ("), kMaxSymbolText - 3) << name;
}

}  // namespace
}  // namespace hearth::diagnosis

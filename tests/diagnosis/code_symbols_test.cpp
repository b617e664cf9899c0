#include "diagnosis/code_symbols.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <gnu/libc-version.h>

namespace hearth::diagnosis {
namespace {

__attribute__((noinline)) void a_function_of_this_test() {
  asm volatile("nop\n\tnop");  // its second byte is its own, however it is optimised
}

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

TEST(CodeSymbolsTest, AnAddressInNoFileIsANumber) {
  const std::vector<std::uintptr_t> asked{0, 0xdead};
  EXPECT_EQ(name_addresses(asked), (std::vector<std::string>{"0x0", "0xdead"}));
  EXPECT_TRUE(name_addresses({}).empty());
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

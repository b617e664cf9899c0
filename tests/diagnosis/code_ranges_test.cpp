#include "diagnosis/code_ranges.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gnu/libc-version.h>

namespace hearth::diagnosis {
namespace {

void here() {}

std::uintptr_t address_of(void (*function)()) {
  return reinterpret_cast<std::uintptr_t>(function);
}

TEST(CodeRangesTest, CodeIsFoundAsLongAsItIsPublished) {
  const auto address = address_of(here);
  EXPECT_EQ(find_code_owner(address), nullptr);
  {
    static const int data = 0;
    const PublishedCode code("/plugins/a.so", "0123", 7, "Room,Lobby", &data);
    const CallOwner* const owner = find_code_owner(address);
    ASSERT_NE(owner, nullptr);
    EXPECT_EQ(owner->library, "/plugins/a.so");
    EXPECT_EQ(owner->sha256, "0123");
    EXPECT_EQ(owner->generation, 7U);
    EXPECT_EQ(owner->agent_class, "Room,Lobby");
    EXPECT_EQ(find_code_owner(reinterpret_cast<std::uintptr_t>(&::gnu_get_libc_version)), nullptr)
        << "the C library is another one";
    EXPECT_EQ(find_code_owner(0), nullptr);
    EXPECT_EQ(find_code_owner(reinterpret_cast<std::uintptr_t>(&code)), nullptr) << "the stack";
  }
  EXPECT_EQ(find_code_owner(address), nullptr);
}

TEST(CodeRangesTest, WhoHasFoundAnOwnerMayReadItAfterItsLibraryIsGone) {
  auto code =
      std::make_unique<PublishedCode>("/plugins/a.so", std::string(64, 'a'), 7,
                                      std::string(1000, 'R'), reinterpret_cast<const void*>(&here));
  const CallOwner* const owner = find_code_owner(address_of(here));
  ASSERT_NE(owner, nullptr);
  code.reset();
  for (std::size_t i = 0; i < kRememberedOwners - 1; ++i) {
    const PublishedCode other("/plugins/b.so", "4567", i, "Lobby",
                              reinterpret_cast<const void*>(&here));
  }
  EXPECT_EQ(find_code_owner(address_of(here)), nullptr);
  EXPECT_EQ(owner->agent_class, std::string(1000, 'R'));
  EXPECT_EQ(owner->sha256, std::string(64, 'a'));
}

TEST(CodeRangesTest, TheRangeIsTheCodeAndNothingElse) {
  static const int data = 0;
  const CodeRange range = find_code_range(&data);
  EXPECT_TRUE(range.contains(address_of(here)));
  EXPECT_FALSE(range.contains(reinterpret_cast<std::uintptr_t>(&::gnu_get_libc_version)));
  EXPECT_FALSE(CodeRange{}.contains(0));
  const auto somewhere = std::make_unique<int>(1);
  EXPECT_EQ(find_code_range(somewhere.get()).until, 0U);
}

TEST(CodeRangesTest, AnAddressInNoLibraryPublishesNothing) {
  const auto somewhere = std::make_unique<int>(1);
  const PublishedCode code("/plugins/a.so", "0123", 7, "Room", somewhere.get());
  EXPECT_EQ(find_code_owner(reinterpret_cast<std::uintptr_t>(somewhere.get())), nullptr);
}

TEST(CodeRangesTest, MoreLibrariesThanThereIsRoomForAreNobodys) {
  std::vector<std::unique_ptr<PublishedCode>> all;
  for (int i = 0; i < 2048; ++i)
    all.push_back(std::make_unique<PublishedCode>(
        "/a.so", "", 1, "A", reinterpret_cast<const void*>(&::gnu_get_libc_version)));
  const PublishedCode late("/late.so", "", 1, "Late", reinterpret_cast<const void*>(&here));
  EXPECT_EQ(find_code_owner(address_of(here)), nullptr);
  // The last may have found no place, if another test has left libraries behind.
  all.front().reset();
  const PublishedCode again("/again.so", "", 1, "Again", reinterpret_cast<const void*>(&here));
  ASSERT_NE(find_code_owner(address_of(here)), nullptr);
  EXPECT_EQ(find_code_owner(address_of(here))->library, "/again.so");
}

}  // namespace
}  // namespace hearth::diagnosis

#include "extensions/registry.hpp"

#include <hearth/ext/sql.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace hearth::extensions {
namespace {

TEST(RegistryTest, TheExtensionsAreSortedAndEachHasATableOfItsOwn) {
  std::vector<const void*> tables;
  for (const Registered& each : registered_extensions()) {
    ASSERT_NE(each.table, nullptr) << each.id;
    EXPECT_EQ(find_extension(each.id), &each) << each.id;
    EXPECT_EQ(std::ranges::count(tables, each.table), 0) << each.id;
    tables.push_back(each.table);
  }
  EXPECT_FALSE(tables.empty());
  EXPECT_TRUE(std::ranges::is_sorted(registered_extensions(), {}, &Registered::id));
}

TEST(RegistryTest, WhatIsNotThereIsNull) {
  EXPECT_NE(find_extension(HEARTH_EXT_SQL), nullptr);
  EXPECT_EQ(find_extension("hearth.sql/9"), nullptr);
  EXPECT_EQ(find_extension(name_of_extension("")), nullptr);
  EXPECT_EQ(find_extension(name_of_extension(nullptr)), nullptr);
}

}  // namespace
}  // namespace hearth::extensions

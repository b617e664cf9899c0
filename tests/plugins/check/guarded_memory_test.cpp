#include "plugins/check/guarded_memory.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace hearth::plugins {
namespace {

using GuardedMemoryDeathTest = ::testing::Test;

// Keeps the compiler from leaving a read out.
char read_at(const void* address) {
  return *static_cast<const volatile char*>(address);
}

TEST(GuardedMemoryTest, LendsACopy) {
  GuardedMemory memory;
  const std::string text = "borrowed";
  const void* const copy = memory.lend(text, "a text");
  EXPECT_EQ(std::memcmp(copy, text.data(), text.size()), 0);
  EXPECT_STREQ(memory.label_at(copy), "a text");
  EXPECT_EQ(memory.label_at(&text), nullptr);
  EXPECT_EQ(memory.lend("", "nothing"), nullptr);
}

TEST(GuardedMemoryDeathTest, WhatWasTakenBackCannotBeRead) {
  GuardedMemory memory;
  const void* const kept = memory.keep("for ever", "kept");
  const std::size_t mark = memory.mark();
  const void* const lent = memory.lend("a while", "lent");
  EXPECT_EQ(read_at(lent), 'a');
  memory.retire(mark);
  EXPECT_EQ(read_at(kept), 'f');
  EXPECT_DEATH(read_at(lent), "");
  EXPECT_STREQ(memory.label_at(lent), "lent");
}

TEST(GuardedMemoryDeathTest, ReadingBehindItsEndIsFoundOut) {
  GuardedMemory memory;
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{5000}}) {
    const auto* const lent = static_cast<const char*>(memory.lend(std::string(size, 'x'), "lent"));
    EXPECT_EQ(read_at(lent + size - 1), 'x');
    EXPECT_DEATH(read_at(lent + size), "") << size;
    EXPECT_STREQ(memory.label_at(lent + size), "lent");
  }
}

TEST(GuardedMemoryTest, MoreThanItKeepsIsStillLent) {
  GuardedMemory memory;
  const void* const first = memory.lend("first", "first");
  const void* const kept = memory.keep("kept", "kept");
  for (std::size_t count = 0; count < GuardedMemory::kMaxRegions; ++count) {
    const std::size_t mark = memory.mark();
    ASSERT_EQ(read_at(memory.lend("more", "more")), 'm');
    memory.retire(mark);
  }
  const char* const label = memory.label_at(first);
  EXPECT_TRUE(label == nullptr || std::string(label) != "first");
  EXPECT_EQ(read_at(kept), 'k');
}

}  // namespace
}  // namespace hearth::plugins

#include "plugins/generation/class_methods.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::plugins {
namespace {

using Names = std::vector<std::string>;

class ClassMethodsTest : public ::testing::Test {
 protected:
  void add(std::string_view name, std::uint32_t flags = HEARTH_METHOD_IDEMPOTENT) {
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): its size is beside it
    methods_.push_back({.name = {name.data(), name.size()}, .flags = flags, .reserved = 0});
  }
  Checked<Names> read() {
    table_ = {.struct_size = sizeof table_,
              .count = static_cast<std::uint32_t>(methods_.size()),
              .methods = methods_.data()};
    return read_idempotent_methods(&table_, "Counter");
  }
  void expect_refused(const Checked<Names>& outcome, const std::string& why) {
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().rule, "L2");
    EXPECT_EQ(outcome.error().reason, "the hearth.methods/1 of its class Counter " + why);
  }

  hearth_methods_v1 table_{};
  std::vector<hearth_method> methods_;
};

TEST_F(ClassMethodsTest, AClassWithoutATablePromisesNothing) {
  EXPECT_EQ(read_idempotent_methods(nullptr, "Counter").value(), Names{});
  EXPECT_EQ(read().value(), Names{});
}

TEST_F(ClassMethodsTest, GivesTheIdempotentOnesSortedAndOnce) {
  add("status");
  add("put", 0);
  add("get");
  add("status");
  add("new flags", HEARTH_METHOD_IDEMPOTENT | 0x80);
  add("only new flags", 0x80);
  EXPECT_EQ(read().value(), (Names{"get", "new flags", "status"}));
}

TEST_F(ClassMethodsTest, ALaterTableIsLonger) {
  add("get");
  ASSERT_TRUE(read());
  table_.struct_size += 8;
  EXPECT_EQ(read_idempotent_methods(&table_, "Counter").value(), Names{"get"});
}

TEST_F(ClassMethodsTest, ATableThatIsTooShortIsRefused) {
  table_.struct_size = sizeof table_ - 1;
  expect_refused(read_idempotent_methods(&table_, "Counter"),
                 "has a struct_size of 15: set it to sizeof(hearth_methods_v1)");
}

TEST_F(ClassMethodsTest, MethodsThatAreNotThereAreRefused) {
  table_ = {.struct_size = sizeof table_, .count = 1, .methods = nullptr};
  expect_refused(read_idempotent_methods(&table_, "Counter"), "has no methods");
}

TEST_F(ClassMethodsTest, TheirNumberIsBounded) {
  for (int i = 0; i < HEARTH_METHODS_MAX; ++i) add("get");
  EXPECT_TRUE(read());
  add("get");
  expect_refused(read(), "has 1025 methods, more than 1024");
}

TEST_F(ClassMethodsTest, NoMoreThanTheBoundIsReadOfATableThatLies) {
  add("get");
  table_ = {.struct_size = sizeof table_, .count = 0xffffffff, .methods = methods_.data()};
  EXPECT_FALSE(read_idempotent_methods(&table_, "Counter"));
}

TEST_F(ClassMethodsTest, NamesAreBoundedUtf8AlsoOfMethodsWithoutPromises) {
  const std::string longest(HEARTH_METHOD_NAME_MAX, 'x');
  add(longest);
  EXPECT_EQ(read().value(), Names{longest});
  const std::string why = "has a method whose name is not 1 to 256 bytes of UTF-8";
  const std::string longer = longest + "x";
  for (const std::string_view bad : {std::string_view(longer), std::string_view(""),
                                     std::string_view("\xff"), std::string_view()}) {
    methods_.clear();
    add(bad, 0);
    expect_refused(read(), why);
  }
}

}  // namespace
}  // namespace hearth::plugins

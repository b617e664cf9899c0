#include "plugins/generation/class_methods.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::plugins {
namespace {

using Names = std::vector<std::string>;

hearth_bytes lent(std::string_view text) {
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): its size is beside it
  return {text.data(), text.size()};
}

class ClassMethodsTest : public ::testing::Test {
 protected:
  // A method that the test may change.
  hearth_method& add(std::string_view name = "get",
                     std::uint32_t flags = HEARTH_METHOD_IDEMPOTENT) {
    methods_.push_back({.name = lent(name),
                        .flags = flags,
                        .reserved = 0,
                        .description = {},
                        .arguments = {},
                        .result = {}});
    return methods_.back();
  }
  Checked<ClassMethods> read() {
    table_ = {.struct_size = sizeof table_,
              .count = static_cast<std::uint32_t>(methods_.size()),
              .methods = methods_.data()};
    return read_table();
  }
  Checked<ClassMethods> read_table() { return read_class_methods(&table_, "Counter"); }
  static void expect_refused(const Checked<ClassMethods>& outcome, const std::string& why) {
    EXPECT_EQ(outcome.error().rule, "L2");
    EXPECT_EQ(outcome.error().reason, "the hearth.methods/1 of its class Counter " + why);
  }

  hearth_methods_v1 table_{};
  std::vector<hearth_method> methods_;
};

TEST_F(ClassMethodsTest, AClassWithoutATablePromisesNothing) {
  const auto none = read_class_methods(nullptr, "Counter");
  EXPECT_EQ(none->idempotent, Names{});
  EXPECT_EQ(none->listed, "[]");
  EXPECT_EQ(read()->idempotent, Names{});
}

TEST_F(ClassMethodsTest, GivesTheIdempotentOnesSortedAndOnce) {
  add("status");
  add("put", 0);
  add("get");
  add("status");
  add("new flags", HEARTH_METHOD_IDEMPOTENT | 0x80);
  add("only new flags", 0x80);
  EXPECT_EQ(read()->idempotent, (Names{"get", "new flags", "status"}));
}

TEST_F(ClassMethodsTest, ALaterTableIsLonger) {
  add("get");
  ASSERT_TRUE(read());
  table_.struct_size += 8;
  EXPECT_EQ(read_table()->idempotent, Names{"get"});
}

TEST_F(ClassMethodsTest, ATableThatIsTooShortIsRefused) {
  table_.struct_size = sizeof table_ - 1;
  expect_refused(read_table(), "has a struct_size of 15: set it to sizeof(hearth_methods_v1)");
}

TEST_F(ClassMethodsTest, MethodsThatAreNotThereAreRefused) {
  table_ = {.struct_size = sizeof table_, .count = 1, .methods = nullptr};
  expect_refused(read_table(), "has no methods");
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
  EXPECT_FALSE(read_table());
}

TEST_F(ClassMethodsTest, NamesAreBoundedUtf8AlsoOfMethodsWithoutPromises) {
  const std::string longest(HEARTH_METHOD_NAME_MAX, 'x');
  add(longest);
  EXPECT_EQ(read()->idempotent, Names{longest});
  const std::string why = "has a method whose name is not 1 to 256 bytes of UTF-8";
  const std::string longer = longest + "x";
  for (const std::string_view bad : {std::string_view(longer), std::string_view(""),
                                     std::string_view("\xff"), std::string_view()}) {
    methods_.clear();
    add(bad, 0);
    expect_refused(read(), why);
  }
}

TEST_F(ClassMethodsTest, WhatIsNotSaidOfAMethodIsLeftOut) {
  add("get");
  add("put", 0);
  EXPECT_EQ(read()->listed,
            R"([{"exclusive":false,"idempotent":true,"name":"get","read_only":false,)"
            R"("streaming":false},{"exclusive":false,"idempotent":false,"name":"put",)"
            R"("read_only":false,"streaming":false}])");
}

TEST_F(ClassMethodsTest, WhatIsToldOfAMethodIsListedAsItIs) {
  hearth_method& method = add("get", 0);
  method.flags = std::uint32_t{HEARTH_METHOD_STREAMING} | HEARTH_METHOD_EXCLUSIVE | 0x80;
  method.description = lent("Counts \"on\".");
  method.arguments = lent(R"({ "type": "array" })");
  method.result = lent(R"({"type":"integer"})");
  EXPECT_EQ(read()->listed,
            R"([{"arguments":{"type":"array"},"description":"Counts \"on\".","exclusive":true,)"
            R"("idempotent":false,"name":"get","read_only":false,"result":{"type":"integer"},)"
            R"("streaming":true}])");
  EXPECT_EQ(read()->idempotent, Names{});
  EXPECT_EQ(read()->exclusive, Names{"get"});
}

TEST_F(ClassMethodsTest, WhatOnlyReadsCanBeRepeated) {
  add("get", HEARTH_METHOD_READ_ONLY);
  add("again");
  EXPECT_EQ(read()->idempotent, (Names{"again", "get"}));
  EXPECT_EQ(read()->read_only, Names{"get"});
  EXPECT_NE(read()->listed.find(R"("idempotent":true,"name":"get","read_only":true)"),
            std::string::npos);
}

TEST_F(ClassMethodsTest, TheFirstOfANameCounts) {
  add("get", 0).description = lent("first");
  add();
  EXPECT_EQ(read()->idempotent, Names{});
  EXPECT_NE(read()->listed.find("first"), std::string::npos);
}

TEST_F(ClassMethodsTest, ADescriptionIsBoundedUtf8) {
  const std::string longest(HEARTH_METHOD_DESCRIPTION_MAX, 'x');
  add().description = lent(longest);
  EXPECT_TRUE(read());
  const std::string longer = longest + "x";
  for (const hearth_bytes bad : {lent(longer), lent("\xff"), hearth_bytes{nullptr, 1}}) {
    methods_[0].description = bad;
    expect_refused(read(),
                   R"(has a method "get" whose description is not UTF-8 of at most 4096 bytes)");
  }
}

TEST_F(ClassMethodsTest, ASchemaIsABoundedObject) {
  hearth_method& method = add("get", 0);
  const std::string longest = "{" + std::string(HEARTH_METHOD_SCHEMA_MAX - 2, ' ') + "}";
  method.arguments = method.result = lent(longest);
  EXPECT_TRUE(read());
  const std::string longer = longest + " ";
  for (const hearth_bytes bad : {lent(longer), lent("true"), lent("{"), hearth_bytes{nullptr, 1}}) {
    method.result = {};
    method.arguments = bad;
    expect_refused(read(),
                   R"(has a method "get" whose schema of the arguments is not a JSON object )"
                   "of at most 16384 bytes");
    method.arguments = {};
    method.result = bad;
    expect_refused(read(), R"(has a method "get" whose schema of the result is not a JSON object )"
                           "of at most 16384 bytes");
  }
}

}  // namespace
}  // namespace hearth::plugins

#include "plugins/check/check_script.hpp"

#include "plugins/test_libraries.hpp"
#include "support/built.hpp"

#include <hearth/abi.h>
#include <hearth/ext/operations.h>
#include <hearth/ext/subagents.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {
namespace {

using namespace std::string_view_literals;

std::vector<std::string> names_in(std::string_view text, std::size_t limit = 100) {
  return find_names(std::as_bytes(std::span(text)), limit);
}

TEST(CheckScriptTest, FindsTextsThatCouldBeNames) {
  EXPECT_EQ(names_in("\0count\0get-all\0two words\0x\0 9lives\0count\0_private\0"sv),
            (std::vector<std::string>{"count", "get-all", "_private"}));
  EXPECT_TRUE(names_in("no end").empty());
  EXPECT_TRUE(names_in("").empty());
  EXPECT_EQ(names_in("aa\0bb\0cc\0"sv, 2).size(), 2U);
}

TEST(CheckScriptTest, LeavesOutNamesThatEveryLibraryHas) {
  EXPECT_TRUE(names_in("_ZNSt3foo\0hearth.sql/1\0hearth_plugin_v1\0libc.so.6\0GLIBC_2.2.5\0"
                       "__cxa_finalize\0zoo.c\0"sv)
                  .empty());
}

TEST(CheckScriptTest, FindsTheMethodsOfALibrary) {
  const auto names = find_names(testing::read_bytes(hearth::testing::built::zoo("good")), 1000);
  for (const char* const method : {"echo", "wait", "note"})
    EXPECT_NE(std::ranges::find(names, method), names.end()) << method;
}

TEST(CheckScriptTest, ALifeHasEveryKindOfEvent) {
  hearth_class table{};
  table.flags = HEARTH_CLASS_CHECKS_STATE | HEARTH_CLASS_WATCHES_STATE;
  std::set<std::uint32_t> kinds;
  for (const CheckEvent& event : life_events(table, {})) kinds.insert(event.kind);
  for (std::uint32_t kind = HEARTH_EVENT_START; kind <= 15; ++kind)
    EXPECT_TRUE(kinds.contains(kind)) << event_name(kind);
  EXPECT_TRUE(kinds.contains(HEARTH_EVENT_SUB_AGENT));
  EXPECT_TRUE(kinds.contains(HEARTH_EVENT_OPERATION_UNKNOWN));
  EXPECT_EQ(event_name(HEARTH_EVENT_SUB_AGENT), "SUB_AGENT");
  EXPECT_EQ(event_name(HEARTH_EVENT_OPERATION_UNKNOWN), "OPERATION_UNKNOWN");
  table.flags = 0;
  kinds.clear();
  for (const CheckEvent& event : life_events(table, {})) kinds.insert(event.kind);
  EXPECT_FALSE(kinds.contains(HEARTH_EVENT_STATE_CHECK)) << "only classes that ask for it";
  EXPECT_FALSE(kinds.contains(HEARTH_EVENT_STATE_CHANGED));
}

TEST(CheckScriptTest, EachMethodIsCalledWithSeveralArguments) {
  const std::vector<std::string> methods = {"one", "two"};
  std::size_t calls = 0;
  for (const CheckEvent& event : life_events(hearth_class{}, methods))
    calls += event.kind == HEARTH_EVENT_CALL && event.name != kNoSuchMethod ? 1 : 0;
  EXPECT_EQ(calls, 6U);
}

}  // namespace
}  // namespace hearth::plugins

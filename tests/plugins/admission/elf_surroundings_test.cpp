#include "plugins/admission/elf_surroundings.hpp"

#include "plugins/admission/file_rules.hpp"
#include "plugins/test_libraries.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

namespace hearth::plugins {
namespace {

using namespace testing;

// The reason that `rule` gives for plain.so after an edit of the parsed image; empty if the rule is
// kept.
std::string reason_of(std::string_view rule, const std::function<void(ElfImage&)>& edit) {
  const Bytes bytes = library_bytes("plain");
  auto image = parse_elf_image(bytes);
  if (!image) throw std::runtime_error(image.error().message);
  edit(*image);
  std::vector<Finding> findings;
  check_surroundings(*image, findings);
  const auto found = std::ranges::find(findings, rule, &Finding::rule);
  return found == findings.end() ? "" : found->reason;
}

TEST(ElfSurroundingsTest, AGoodLibraryBreaksNothing) {
  for (const std::string_view rule : {"E10", "E11", "E12", "E13", "E14", "E15", "E16", "E17"})
    EXPECT_EQ(reason_of(rule, [](ElfImage&) {}), "") << rule;
}

TEST(ElfSurroundingsTest, E10_ALibraryThatIsNotEverywhereIsNamed) {
  const auto reason = reason_of("E10", [](ElfImage& image) {
    image.needed.push_back("libm.so.6");
    image.needed.push_back("libpython3.11.so.1.0");
  });
  EXPECT_NE(reason.find("needs libpython3.11.so.1.0,"), std::string::npos) << reason;
  EXPECT_EQ(reason.find("libm"), std::string::npos) << reason;
}

TEST(ElfSurroundingsTest, E11_WhatActsOnTheProcessIsNamedEachOnce) {
  for (const std::string_view name :
       {"exit", "_exit", "fork", "execve", "system", "dlopen", "dlclose", "signal", "sigaction",
        "setlocale", "pthread_atfork", "_ZSt13set_terminatePFvvE"}) {
    const auto reason = reason_of("E11", [&](ElfImage& image) {
      image.imports.push_back(name);
      image.imports.push_back(name);
    });
    const std::size_t first = reason.find(name);
    ASSERT_NE(first, std::string::npos) << name;
    EXPECT_EQ(reason.find("\"" + std::string(name) + "\"", first + 1), std::string::npos) << name;
  }
  EXPECT_TRUE(fails_check(rule("E11")));
  EXPECT_EQ(rule("E11").severity, Severity::kWarning) << "a server goes on serving it";
}

TEST(ElfSurroundingsTest, E11_ALongListIsCutShort) {
  const auto reason = reason_of("E11", [](ElfImage& image) {
    for (const std::string_view name : {"exit", "_exit", "fork", "vfork", "execve", "system"})
      image.imports.push_back(name);
  });
  EXPECT_NE(reason.find("and 2 more"), std::string::npos) << reason;
}

TEST(ElfSurroundingsTest, E12_AVersionThatThisSystemLacksIsRefusedUnlessItIsWeak) {
  const auto needs = [](bool weak, std::string_view library) {
    return reason_of("E12", [=](ElfImage& image) {
      image.versions.push_back({.library = library, .name = "GLIBC_99.1", .is_weak = weak});
    });
  };
  EXPECT_NE(needs(false, "libc.so.6").find("GLIBC_99.1"), std::string::npos);
  EXPECT_EQ(needs(true, "libc.so.6"), "");
  EXPECT_EQ(needs(false, "libunknown.so.1"), "") << "nothing to compare with";
  EXPECT_EQ(rule("E12").severity, Severity::kRefusal);
}

TEST(ElfSurroundingsTest, E13ToE15_SayHowItWasLinked) {
  EXPECT_NE(reason_of("E13", [](ElfImage& image) { image.notes.clear(); }), "");
  EXPECT_NE(reason_of("E14", [](ElfImage& image) { image.has_static_tls = true; }), "");
  EXPECT_NE(reason_of("E15", [](ElfImage& image) { image.binds_now = false; }), "");
  EXPECT_NE(reason_of("E15", [](ElfImage& image) { image.has_relro = false; }), "");
}

TEST(ElfSurroundingsTest, E16_ASanitizerThatTheServerDoesNotHaveIsRefused) {
  const auto reason =
      reason_of("E16", [](ElfImage& image) { image.imports.push_back("__msan_init"); });
  EXPECT_NE(reason.find("-fsanitize=memory"), std::string::npos) << reason;
}

TEST(ElfSurroundingsTest, E17_WhatOutlivesTheLibraryIsNamed) {
  for (const std::string_view name :
       {"pthread_create", "pthread_key_create", "__cxa_thread_atexit_impl", "atexit"}) {
    const auto reason = reason_of("E17", [&](ElfImage& image) { image.imports.push_back(name); });
    EXPECT_NE(reason.find(name), std::string::npos) << name;
  }
  EXPECT_FALSE(fails_check(rule("E17")));
}

}  // namespace
}  // namespace hearth::plugins

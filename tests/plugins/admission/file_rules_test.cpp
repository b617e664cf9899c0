#include "plugins/admission/file_rules.hpp"

#include "plugins/test_libraries.hpp"
#include "support/temp_directory.hpp"

#include <hearth/abi.h>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hearth::plugins {
namespace {

using namespace testing;
using hearth::testing::TempDirectory;

// The rule that refuses the bytes; empty if none does.
std::string refusal_of(const Bytes& bytes) {
  const Inspection inspection = inspect_library(bytes);
  const Finding* const refusal = inspection.refusal();
  EXPECT_EQ(inspection.note.has_value(), refusal == nullptr);
  if (refusal == nullptr) return {};
  EXPECT_EQ(refusal->severity, Severity::kRefusal);
  EXPECT_TRUE(refusal->reason.starts_with("it")) << refusal->reason;
  return refusal->rule;
}

std::string refusal_of_library(std::string_view name) {
  return refusal_of(library_bytes(name));
}

// plain.so with one edit.
std::string refusal_after(const std::function<void(Bytes&)>& edit) {
  Bytes bytes = library_bytes("plain");
  edit(bytes);
  return refusal_of(bytes);
}

std::vector<std::string> warnings_of(std::string_view name) {
  std::vector<std::string> warnings;
  for (const Finding& found : inspect_library(library_bytes(name)).findings) {
    EXPECT_EQ(found.severity, Severity::kWarning) << found.reason;
    warnings.push_back(found.rule);
  }
  return warnings;
}

TEST(FileRulesTest, EachRuleHasItsOwnNameAndASentence) {
  std::set<std::string_view> ids;
  for (const Rule& each : rules()) {
    EXPECT_TRUE(ids.insert(each.id).second) << each.id;
    EXPECT_TRUE(each.sentence.ends_with('.')) << each.id;
    EXPECT_EQ(&rule(each.id), &each);
    EXPECT_EQ(finding(each.id, "x").severity, each.severity);
  }
}

TEST(FileRulesTest, AGoodLibraryBreaksNoRule) {
  const Inspection inspection = inspect_library(library_bytes("plain"));
  EXPECT_TRUE(inspection.findings.empty()) << inspection.findings.front().reason;
  ASSERT_TRUE(inspection.note);
  EXPECT_EQ(inspection.note->manifest.classes, std::vector<std::string>{"Plain"});
}

TEST(FileRulesTest, E1_WhatIsNoLibraryForThisMachineIsRefused) {
  EXPECT_EQ(refusal_of(bytes_of_text("just text")), "E1");
  EXPECT_EQ(refusal_of({}), "E1");
}

TEST(FileRulesTest, E2_AnIncompleteLibraryIsRefused) {
  const Bytes plain = library_bytes("plain");
  for (const unsigned percent : {1U, 10U, 50U, 75U, 90U, 99U}) {
    EXPECT_EQ(refusal_after([&](Bytes& bytes) { bytes.resize(plain.size() * percent / 100); }),
              "E2")
        << percent;
  }
}

TEST(FileRulesTest, E3_AProgramIsRefused) {
  EXPECT_EQ(refusal_of(read_bytes("/proc/self/exe")), "E3");
  EXPECT_EQ(refusal_after([](Bytes& bytes) {
              put(bytes, program_header_at(bytes, PT_GNU_RELRO), std::uint32_t{PT_INTERP});
            }),
            "E3");
}

TEST(FileRulesTest, E4_ExecutableDataIsRefused) {
  EXPECT_EQ(refusal_of_library("executable_stack"), "E4");
  EXPECT_EQ(refusal_after([](Bytes& bytes) {
              const std::size_t at =
                  program_header_at(bytes, PT_LOAD) + offsetof(Elf64_Phdr, p_flags);
              put(bytes, at, std::uint32_t{PF_R | PF_W | PF_X});
            }),
            "E4");
}

TEST(FileRulesTest, E5_TextRelocationsAreRefused) {
  const auto replace_entry = [](std::int64_t tag, std::uint64_t value) {
    return [tag, value](Bytes& bytes) {
      const std::size_t at = dynamic_entry_at(bytes, DT_SYMENT);  // of a size that never changes
      put(bytes, at, Elf64_Dyn{.d_tag = tag, .d_un = {.d_val = value}});
    };
  };
  EXPECT_EQ(refusal_after(replace_entry(DT_TEXTREL, 0)), "E5");
  EXPECT_EQ(refusal_after(replace_entry(DT_FLAGS, DF_TEXTREL)), "E5");
}

TEST(FileRulesTest, E6_ARunPathIsRefusedAndShown) {
  const Inspection inspection = inspect_library(library_bytes("run_path"));
  ASSERT_NE(inspection.refusal(), nullptr);
  EXPECT_EQ(inspection.refusal()->rule, "E6");
  EXPECT_NE(inspection.refusal()->reason.find("/usr/lib/elsewhere"), std::string::npos);
}

TEST(FileRulesTest, ALibraryThatBreaksOneRuleIsRefusedByIt) {
  const std::pair<const char*, const char*> rows[] = {{"hidden_entry", "E7"},
                                                      {"function_entry", "E7"},
                                                      {"bad_manifest", "N4"},
                                                      {"bad_class_name", "N5"}};
  for (const auto& [library, rule] : rows) EXPECT_EQ(refusal_of_library(library), rule) << library;
}

TEST(FileRulesTest, E8E9_OtherExportsAndWhatCannotBeUnloadedAreWarnings) {
  EXPECT_EQ(warnings_of("second_export"), std::vector<std::string>{"E8"});
  EXPECT_EQ(warnings_of("no_delete"), std::vector<std::string>{"E9"});
  EXPECT_EQ(warnings_of("unique_symbol"), (std::vector<std::string>{"E8", "E9"}));
}

TEST(FileRulesTest, E12_ALibraryForANewerSystemIsRefused) {
  Bytes bytes = library_bytes("plain");
  const std::size_t at = find_text(bytes, "GLIBC_2.");
  put(bytes, at + 6, '9');
  EXPECT_EQ(refusal_of(bytes), "E12");
}

TEST(FileRulesTest, ARefusalAlwaysFailsACheckAndSomeWarningsDo) {
  for (const Rule& each : rules()) {
    if (each.severity == Severity::kRefusal) EXPECT_TRUE(fails_check(each)) << each.id;
  }
  for (const char* const id : {"E8", "E9", "E11"}) EXPECT_TRUE(fails_check(rule(id))) << id;
  for (const char* const id : {"E10", "E13", "E17"}) EXPECT_FALSE(fails_check(rule(id))) << id;
}

TEST(FileRulesTest, N1_ALibraryWithoutANoteIsRefused) {
  EXPECT_EQ(refusal_of_library("no_note"), "N1");
  EXPECT_EQ(refusal_after([](Bytes& bytes) { bytes[note_at(bytes) + 20] ^= std::byte{1}; }), "N1");
}

// The versions in a note: what the library is built for, and the oldest host that will do.
TEST(FileRulesTest, N2N3_AHostTakesItsMajorVersionAndSaysWhatToDoAboutOthers) {
  static_assert(HEARTH_ABI_MAJOR == 1);
  const std::string mine = "1." + std::to_string(HEARTH_ABI_MINOR);
  constexpr std::uint16_t kNext = HEARTH_ABI_MINOR + 1;
  const std::string next = "1." + std::to_string(kNext);
  struct Version {
    std::uint16_t major;
    std::uint16_t minor;
    std::uint16_t min_host_minor;
    std::string rule;
    std::string reason;
  };
  const std::string built_for = "it is built for version ";
  const std::string rebuild = "rebuild it with this server's hearth/abi.h";
  const std::string has = " of the ABI, and this server has " + mine + ": ";
  for (const Version& each : {
           Version{1, 0, 0, "", ""},
           Version{1, HEARTH_ABI_MINOR, HEARTH_ABI_MINOR, "", ""},
           Version{1, kNext, 0, "", ""},
           Version{1, kNext, HEARTH_ABI_MINOR, "", ""},
           Version{1, UINT16_MAX, 0, "", ""},
           Version{1, kNext, kNext, "N3",
                   "it needs a server with version " + next + " of the ABI, and this one has " +
                       mine + ": update the server"},
           Version{0, 2, 0, "N2", built_for + "0.2" + has + rebuild},
           Version{0, kNext, kNext, "N2", built_for + "0." + std::to_string(kNext) + has + rebuild},
           Version{2, 0, 0, "N2", built_for + "2.0" + has + "update the server, or " + rebuild},
       }) {
    Bytes bytes = library_bytes("plain");
    const std::size_t at = note_at(bytes) + offsetof(hearth_note, abi_major);
    put(bytes, at, each.major);
    put(bytes, at + 2, each.minor);
    put(bytes, at + 4, each.min_host_minor);
    const Inspection inspection = inspect_library(bytes);
    const Finding* const refusal = inspection.refusal();
    EXPECT_EQ(refusal == nullptr ? "" : refusal->rule, each.rule) << each.major << each.minor;
    EXPECT_EQ(refusal == nullptr ? "" : refusal->reason, each.reason);
  }
}

TEST(FileRulesTest, N2_ATableSmallerThanTheFirstVersionsIsRefused) {
  EXPECT_EQ(refusal_after([](Bytes& bytes) { put(bytes, note_at(bytes) + 36, std::uint32_t{40}); }),
            "N2");
}

TEST(FileRulesTest, N6_AnExtensionThatTheServerLacksIsRefusedByName) {
  const Inspection inspection = inspect_library(library_bytes("needs_more"));
  ASSERT_NE(inspection.refusal(), nullptr);
  EXPECT_EQ(inspection.refusal()->rule, "N6");
  EXPECT_NE(inspection.refusal()->reason.find("hearth.moon/9"), std::string::npos);
}

TEST(FileRulesTest, AllBrokenRulesAreToldAtOnce) {
  Bytes bytes = library_bytes("run_path");
  put(bytes, program_header_at(bytes, PT_GNU_STACK) + offsetof(Elf64_Phdr, p_flags),
      std::uint32_t{PF_X});
  std::vector<std::string> broken;
  for (const Finding& each : inspect_library(bytes).findings) broken.push_back(each.rule);
  EXPECT_EQ(broken, (std::vector<std::string>{"E4", "E6"}));
}

// ---- files and directories ----

TEST(FileRulesTest, F1F2F3F5_TheStatusOfAFileDecides) {
  constexpr uid_t kServer = 1000;
  constexpr mode_t kGood = S_IFREG | 0644;
  constexpr auto kMost = static_cast<off_t>(kMaxLibraryBytes);
  struct Row {
    const char* name;
    mode_t mode;
    uid_t owner;
    off_t size;
    const char* rule;  // "" for accepted
  };
  for (const Row& row : std::initializer_list<Row>{{"Good", kGood, 0, 1000, ""},
                                                   {"ADirectory", S_IFDIR | 0600, 0, 1000, "F1"},
                                                   {"APipe", S_IFIFO | 0600, 0, 1000, "F1"},
                                                   {"ADevice", S_IFCHR | 0600, 0, 1000, "F1"},
                                                   {"ASocket", S_IFSOCK | 0600, 0, 1000, "F1"},
                                                   {"OfTheServersUser", kGood, kServer, 1000, ""},
                                                   {"OfAnotherUser", kGood, 1001, 1000, "F2"},
                                                   {"AGroupWrites", S_IFREG | 0664, 0, 1000, "F3"},
                                                   {"OthersWrite", S_IFREG | 0646, 0, 1000, "F3"},
                                                   {"AllWrite", S_IFREG | 0777, 0, 1000, "F3"},
                                                   {"Empty", kGood, 0, 0, "F5"},
                                                   {"AsLargeAsMayBe", kGood, 0, kMost, ""},
                                                   {"TooLarge", kGood, 0, kMost + 1, "F5"}}) {
    struct stat status{};
    status.st_mode = row.mode;
    status.st_uid = row.owner;
    status.st_size = row.size;
    const auto found = check_status(status, kServer);
    EXPECT_EQ(found ? found->rule : "", row.rule) << row.name;
  }
}

// Rule F4, with these words.
void expect_refused(const std::filesystem::path& directory, const std::vector<std::string>& parts) {
  const Error refusal = check_directory(directory, ::geteuid()).error();
  EXPECT_EQ(refusal.code, Errc::kForbidden);
  for (const std::string& part : parts)
    EXPECT_NE(refusal.message.find(part), std::string::npos) << refusal.message;
}

TEST(FileRulesTest, F4_ADirectoryThatOthersCanWriteIsRefused) {
  const TempDirectory directory;
  const auto plugins = directory.path() / "plugins";
  std::filesystem::create_directory(plugins);
  EXPECT_TRUE(check_directory(plugins, ::geteuid()));
  for (const mode_t mode : {0770U, 0707U, 0777U, 01777U}) {
    ASSERT_EQ(::chmod(plugins.c_str(), mode), 0);
    SCOPED_TRACE(mode);
    expect_refused(plugins, {"F4"});
  }
}

TEST(FileRulesTest, F4_ADirectoryBelowOneThatOthersCanWriteIsRefusedUnlessThatIsSticky) {
  const TempDirectory directory;
  const auto above = directory.path() / "above";
  const auto plugins = above / "plugins";
  std::filesystem::create_directories(plugins);
  for (const mode_t mode : {0777U, 0775U, 0707U, 0730U}) {
    ASSERT_EQ(::chmod(above.c_str(), mode), 0);
    SCOPED_TRACE(mode);
    expect_refused(plugins, {above.native(), "chmod go-w or +t"});
    ASSERT_EQ(::chmod(above.c_str(), mode | 01000), 0);
    EXPECT_TRUE(check_directory(plugins, ::geteuid())) << std::oct << mode;
  }
}

TEST(FileRulesTest, F4_ADirectoryBelowAForeignOneIsRefusedEvenIfThatIsSticky) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  const TempDirectory directory;
  const auto above = directory.path() / "above";
  const auto plugins = above / "between" / "plugins";
  std::filesystem::create_directories(plugins);
  ASSERT_EQ(::chown(above.c_str(), 12345, 0), 0);
  for (const mode_t mode : {0755U, 0700U, 01777U}) {
    ASSERT_EQ(::chmod(above.c_str(), mode), 0);
    SCOPED_TRACE(mode);
    expect_refused(plugins, {above.native(), "F4"});
  }
  EXPECT_TRUE(check_directory(plugins, 12345)) << "the server's own user may own it";
}

TEST(FileRulesTest, F4_AForeignDirectoryIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  const TempDirectory directory;
  const auto plugins = directory.path() / "plugins";
  std::filesystem::create_directory(plugins);
  ASSERT_EQ(::chown(plugins.c_str(), 12345, 0), 0);
  EXPECT_FALSE(check_directory(plugins, ::geteuid()));
  EXPECT_TRUE(check_directory(plugins, 12345));
}

TEST(FileRulesTest, AMissingDirectoryIsToldFromABadOne) {
  const TempDirectory directory;
  EXPECT_EQ(check_directory(directory.path() / "none", ::geteuid()).error().code, Errc::kNotFound);
  write_bytes(directory.path() / "file", bytes_of_text("x"));
  EXPECT_EQ(check_directory(directory.path() / "file", ::geteuid()).error().code,
            Errc::kInvalidArgument);
}

TEST(FileRulesTest, ALinkToADirectoryIsFollowed) {
  const TempDirectory directory;
  const auto real = directory.path() / "real";
  std::filesystem::create_directory(real);
  std::filesystem::create_directory_symlink(real, directory.path() / "link");
  EXPECT_TRUE(check_directory(directory.path() / "link", ::geteuid()));
  ASSERT_EQ(::chmod(real.c_str(), 0777), 0);
  EXPECT_FALSE(check_directory(directory.path() / "link", ::geteuid()));
}

}  // namespace
}  // namespace hearth::plugins

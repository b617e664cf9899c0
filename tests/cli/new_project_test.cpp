#include "cli/new_project.hpp"

#include "base/files.hpp"
#include "cli/commands.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

TEST(ProjectNameTest, IsLowerCaseWordsWithSingleHyphens) {
  for (const char* name : {"a", "greeter", "chat-room", "a1b-b2", "v2", "json", "run", "agent"}) {
    EXPECT_EQ(project_name_problem(name), "") << name;
  }
}

TEST(ProjectNameTest, IsNothingThatAPathOrATargetCouldTrip) {
  for (const char* name :
       {"", "-a", "a-", "a--b", "A", "1a", "a_b", "a b", "a/b", "..", "a.b", "\xC3\xA9"}) {
    EXPECT_NE(project_name_problem(name), "") << name;
  }
  EXPECT_EQ(project_name_problem(std::string(40, 'a')), "");
  EXPECT_NE(project_name_problem(std::string(41, 'a')), "");
}

TEST(ProjectNameTest, IsNoNameThatStandsForSomethingElseInTheProject) {
  struct Case {
    const char* name;
    const char* why;
  };
  for (const Case& each : {
           Case{"all", "CMake has a target"},
           Case{"clean", "CMake has a target"},
           Case{"codegen", "CMake has a target"},
           Case{"depend", "CMake has a target"},
           Case{"help", "CMake has a target"},
           Case{"install", "CMake has a target"},
           Case{"package", "CMake has a target"},
           Case{"preinstall", "CMake has a target"},
           Case{"test", "CMake has a target"},
           Case{"dl", "linked with a library"},
           Case{"null", "YAML reads"},
           Case{"options", "a struct of its own name"},
           Case{"state", "a struct of its own name"},
           Case{"hearth-plugin", "HEARTH_PLUGIN makes"},
           Case{"hearth-plugin-text", "HEARTH_PLUGIN makes"},
       }) {
    const std::string problem = project_name_problem(each.name);
    EXPECT_NE(problem.find(each.why), std::string::npos) << each.name << ": " << problem;
    EXPECT_NE(problem.find(std::string(each.name) + "-agent"), std::string::npos) << problem;
  }
}

// The class is capitalised, and the file's name is no word of the language.
TEST(ProjectNameTest, MayBeAWordOfTheLanguageOrANameOfTheSdk) {
  for (const char* name : {"class", "int", "std", "hearth", "namespace", "task", "connection"})
    EXPECT_EQ(project_name_problem(name), "") << name;
}

TEST(ProjectNameTest, IsNoTargetOfCMakeInCapitalsOrWithUnderscores) {
  for (const char* name :
       {"ALL_BUILD", "INSTALL", "PACKAGE", "RUN_TESTS", "ZERO_CHECK", "edit_cache", "rebuild_cache",
        "package_source", "list_install_components", "install/local", "install/strip"})
    EXPECT_NE(project_name_problem(name), "") << name;
}

TEST(ProjectNameTest, IsTheUrlSegmentOfItsClass) {
  // A class of capitals alone could be a macro, such as EOF, as well.
  EXPECT_NE(project_name_problem("e-o-f").find("be /agents/eof; take eof"), std::string::npos);
  EXPECT_NE(project_name_problem("room-2b").find("be /agents/room2b"), std::string::npos);
}

TEST(FillInTest, PutsEachSpellingOfTheNameInItsPlace) {
  EXPECT_EQ(fill_in("@NAME@ @FILE@ @CLASS@", "chat-room"), "chat-room chat_room ChatRoom");
  EXPECT_EQ(fill_in("@CLASS@", "room-2b"), "Room2b");
  EXPECT_EQ(fill_in("a@NAME@@NAME@b", "x"), "axxb");
}

TEST(FillInTest, LeavesOtherSignsAlone) {
  EXPECT_EQ(fill_in("me@example.org @OTHER@ @ @NAME", "x"), "me@example.org @OTHER@ @ @NAME");
  EXPECT_EQ(fill_in("", "x"), "");
}

class MakeProjectTest : public ::testing::Test {
 protected:
  Answer make(const std::string& name, const fs::path& directory) {
    return answer(NewCommand{.name = name, .directory = directory});
  }

  testing::TempDirectory temporary_;
  const fs::path root_ = temporary_.path();
};

TEST_F(MakeProjectTest, WritesEveryFileWithItsNamesFilledIn) {
  const Answer answer = make("chat-room", root_ / "project");
  ASSERT_EQ(answer.status, kExitClean) << answer.text;
  ASSERT_FALSE(template_files().empty());
  for (const TemplateFile& file : template_files()) {
    const fs::path path = root_ / "project" / fill_in(file.path, "chat-room");
    const auto text = read_file(path, 1 << 20);
    ASSERT_TRUE(text) << text.error().message;
    for (const char* placeholder : {"@NAME@", "@FILE@", "@CLASS@"}) {
      EXPECT_EQ(text->find(placeholder), std::string::npos) << path;
    }
  }
  EXPECT_TRUE(fs::exists(root_ / "project/CMakeLists.txt"));
  EXPECT_TRUE(fs::exists(root_ / "project/README.md"));
}

TEST_F(MakeProjectTest, TellsTheNextSteps) {
  const std::string text = make("greeter", root_ / "project").text;
  EXPECT_NE(text.find("cd " + (root_ / "project").string()), std::string::npos) << text;
  EXPECT_NE(text.find("ctest"), std::string::npos);
  EXPECT_NE(text.find("/agents/greeter/"), std::string::npos);
}

TEST_F(MakeProjectTest, TakesAnEmptyDirectoryThatExists) {
  fs::create_directory(root_ / "empty");
  EXPECT_EQ(make("greeter", root_ / "empty").status, kExitClean);
}

TEST_F(MakeProjectTest, ChangesNothingInADirectoryThatIsInUse) {
  fs::create_directory(root_ / "used");
  ASSERT_TRUE(write_file_atomically(root_ / "used/file", "mine"));
  const Answer answer = make("greeter", root_ / "used");
  EXPECT_EQ(answer.status, kExitBadUsage);
  EXPECT_NE(answer.text.find("is not empty"), std::string::npos) << answer.text;
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "used"), {}), 1);
}

TEST_F(MakeProjectTest, RefusesAFileInTheDirectorysPlace) {
  ASSERT_TRUE(write_file_atomically(root_ / "file", "mine"));
  const Answer answer = make("greeter", root_ / "file");
  EXPECT_EQ(answer.status, kExitBadUsage);
  EXPECT_NE(answer.text.find("is no directory"), std::string::npos) << answer.text;
}

TEST_F(MakeProjectTest, RefusesABadNameBeforeItWritesAnything) {
  const Answer answer = make("../evil", root_ / "project");
  EXPECT_EQ(answer.status, kExitBadUsage);
  EXPECT_NE(answer.text.find("\"../evil\""), std::string::npos) << answer.text;
  EXPECT_FALSE(fs::exists(root_ / "project"));
}

TEST_F(MakeProjectTest, SaysWhatTheDiskSaid) {
  const Answer answer = make("greeter", "/proc/no-place-for-files");
  EXPECT_EQ(answer.status, kExitFailed);
  EXPECT_NE(answer.text.find("/proc/no-place-for-files"), std::string::npos) << answer.text;
}

}  // namespace
}  // namespace hearth::cli

// Files of agents that are lost or restored from a backup: what the server refuses, and how
// `hearth repair` mends them.

#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

class RepairTest : public ProcessTest {
 protected:
  RepairTest() {
    install(bundled("counter"), "counter.so");
    install(bundled("reminders"), "reminders.so");
  }

  // The files of agents' databases.
  [[nodiscard]] std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(root_ / "data/agents")) {
      if (entry.path().extension() == ".db") found.push_back(entry.path());
    }
    return found;
  }
  [[nodiscard]] fs::path only_file() const {
    const auto found = files();
    EXPECT_EQ(found.size(), 1U);
    return found.at(0);
  }

  // Whether `hearth repair` ends so, and says all of these.
  template <class... Parts>
  [[nodiscard]] ::testing::AssertionResult repair(const std::vector<std::string>& more,
                                                  const Ending& ending,
                                                  const Parts&... parts) const {
    std::vector<std::string> arguments{"repair", "--data", "data"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return says(arguments, ending, parts...);
  }

  void serve_and_stop() const {
    const auto server = serve_ready();
    EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
    EXPECT_EQ(server->stop(), kClean);
  }
};

struct Loss {
  const char* name;
  bool is_killed;
  void (*lose)(const fs::path& file);
  const char* told;
};

void PrintTo(const Loss& loss, std::ostream* out) {
  *out << loss.name;
}

void remove_all_of(const fs::path& file) {
  for (const char* const suffix : {"", "-wal"}) fs::remove(file.native() + suffix);
}
void empty_all_of(const fs::path& file) {
  std::ofstream{file} << "";
  fs::remove(file.native() + "-wal");
}

void cut_to_zeros(const fs::path& file) {
  std::ofstream{file} << std::string(100, '\0');
  fs::remove(file.native() + "-wal");
}

class LostFileTest : public RepairTest, public ::testing::WithParamInterface<Loss> {};

TEST_P(LostFileTest, AnAgentThatHasStoredDataIsRefusedUntilItsLossIsAccepted) {
  {
    const auto server = serve_ready();
    EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
    EXPECT_EQ(GetParam().is_killed ? server->kill().signal : server->stop().signal,
              GetParam().is_killed ? 9 : 0);
  }
  const fs::path file = only_file();
  GetParam().lose(file);
  {
    const auto server = serve_ready();
    const Reply refused = request(*server, "POST", "/agents/counter/a");
    EXPECT_EQ(refused.status, 503) << refused.body;
    EXPECT_TRUE(lacks(refused.body, "data/"));
    EXPECT_EQ(increment(*server, "b"), R"({"count":1})");
    server->wait_for_log(file.filename().native() + " " + GetParam().told);
    server->wait_for_log("hearth repair --forget-missing");
    EXPECT_EQ(server->stop(), kClean);
  }
  EXPECT_TRUE(repair({}, kFailed, R"(MISSING    Counter "a")"));
  EXPECT_TRUE(repair({"--forget-missing"}, kClean, R"(forgotten  Counter "a")"));
  const auto server = serve_ready();
  EXPECT_EQ(increment(*server, "a"), R"({"count":1})") << "a new agent";
  EXPECT_EQ(increment(*server, "b"), R"({"count":2})");
}

INSTANTIATE_TEST_SUITE_P(
    Files, LostFileTest,
    ::testing::Values(Loss{"removed_after_a_stop", false, remove_all_of, "is missing"},
                      Loss{"removed_after_a_kill", true, remove_all_of, "is missing"},
                      Loss{"emptied_after_a_stop", false, empty_all_of, "is empty"},
                      Loss{"emptied_after_a_kill", true, empty_all_of, "is empty"},
                      Loss{"cut_after_a_stop", false, cut_to_zeros, "has lost what was in it"}),
    [](const auto& each) { return std::string(each.param.name); });

struct LostDirectory {
  const char* name;
  void (*lose)(const fs::path& file);
  const char* told;
};

void PrintTo(const LostDirectory& loss, std::ostream* out) {
  *out << loss.name;
}

void overwrite(const fs::path& file) {
  std::ofstream{file} << std::string(8192, 'x');
}

class LostDirectoryTest : public RepairTest, public ::testing::WithParamInterface<LostDirectory> {};

TEST_P(LostDirectoryTest, AServerWithoutTheDirectoryOfItsAgentsDoesNotStartUntilItIsRebuilt) {
  serve_and_stop();
  GetParam().lose(root_ / "data/host.db");
  {
    const auto server = serve();
    EXPECT_EQ(server->wait(), kFailed);
    EXPECT_TRUE(contains(server->log(), "data/host.db", GetParam().told, "hearth repair"));
  }
  EXPECT_TRUE(repair({}, kClean, R"(listed     Counter "a")"));
  const Said again = say({"repair", "--data", "data"});
  EXPECT_EQ(again.ending, kClean);
  EXPECT_EQ(again.all(), "1 agents have files, 0 of them were not listed\n") << "nothing to do";
  const auto server = serve_ready();
  EXPECT_EQ(increment(*server, "a"), R"({"count":2})");
}

INSTANTIATE_TEST_SUITE_P(Files, LostDirectoryTest,
                         ::testing::Values(LostDirectory{"removed", remove_all_of, "is missing"},
                                           LostDirectory{"emptied", empty_all_of, "is empty"},
                                           LostDirectory{"damaged", overwrite, "not a database"}),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_F(RepairTest, WorkOfAnAgentThatComesBackFromABackupIsDoneWithoutAClient) {
  {
    const auto server = serve_ready();
    (void)AgentClient(*server, "/agents/reminders/a").call("remind_in", R"(["tea",0.8])");
    EXPECT_EQ(server->stop(), kClean);
  }
  const fs::path file = only_file();
  const fs::path backup = root_ / "backup.db";
  fs::rename(file, backup);
  EXPECT_TRUE(repair({"--forget-missing"}, kClean));
  fs::rename(backup, file);
  EXPECT_TRUE(repair({}, kClean, R"(listed     Reminders "a")", R"(scheduled  Reminders "a")"));
  const auto server = serve_ready({"--log-level", "debug"});
  server->wait_for_log("schedule:execute");
}

TEST_F(RepairTest, WhatIsNoAgentsFileIsNamedAndLeftAlone) {
  serve_and_stop();
  const fs::path file = only_file();
  const fs::path copy = file.parent_path() / "copy.db";
  const fs::path text = file.parent_path() / "text.db";
  fs::copy_file(file, copy);
  std::ofstream{text} << std::string(9000, 't');
  EXPECT_TRUE(repair({}, kFailed, "copy.db: it is the file of another agent, and belongs at",
                     "DAMAGED    " + (fs::canonical(root_) / "data").native(), "text.db: "));
  EXPECT_EQ(fs::file_size(text), 9000U);
  EXPECT_TRUE(fs::exists(copy));
}

TEST_F(RepairTest, ARunningServerAndAWrongDirectoryAreRefused) {
  EXPECT_TRUE(repair({}, kFailed, "there is no data directory"));
  const auto server = serve_ready();
  EXPECT_TRUE(repair({}, kFailed, "is in use by another server"));
}

TEST_F(RepairTest, ADirectoryInTheFilesPlaceIsNamedAndTheRestIsRepaired) {
  serve_and_stop();
  const fs::path file = only_file();
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_TRUE(
      repair({}, kFailed, file.filename().native() + ": it is a directory", "0 agents have files"));
}

}  // namespace
}  // namespace hearth::testing

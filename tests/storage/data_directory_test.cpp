#include "storage/data_directory.hpp"

#include "storage/agent_database.hpp"
#include "support/storage_error_of.hpp"
#include "support/temp_directory.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace hearth::storage {
namespace {

class DataDirectoryTest : public ::testing::Test {
 protected:
  const testing::TempDirectory temp_;
  const std::filesystem::path path_ = temp_.path() / "data";
};

TEST_F(DataDirectoryTest, P1_MakesItPrivateIfItIsAbsent) {
  const auto directory = DataDirectory::open(path_).value();
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms{0700});
}

TEST_F(DataDirectoryTest, RemovesWhatAKilledWriterHasLeft) {
  std::filesystem::create_directory(path_);
  std::ofstream(path_ / "versions.json.unfinished-x1Y2z3") << "{";
  ASSERT_TRUE(DataDirectory::open(path_));
  EXPECT_FALSE(std::filesystem::exists(path_ / "versions.json.unfinished-x1Y2z3"));
}

TEST_F(DataDirectoryTest, HasNoRoomFromAFullDiskOnUntilAWriteSucceeds) {
  const auto directory = DataDirectory::open(path_);
  EXPECT_TRUE(directory->has_room());
  directory->note_full();
  EXPECT_TRUE(directory->has_room()) << "the first look tries to write";
  directory->note_full();
  EXPECT_FALSE(directory->has_room()) << "not at every look";
}

TEST_F(DataDirectoryTest, ASlashAtTheEndOfItsPathSaysNothing) {
  const auto directory = DataDirectory::open(path_ / "").value();
  EXPECT_EQ(directory.path(), path_);
  const AgentKey key{"Counter", "a"};
  std::filesystem::create_directories(directory.agent_path(key).parent_path());
  EXPECT_TRUE(directory.sync_names_of(key));
}

TEST_F(DataDirectoryTest, P1_LeavesTheModeOfAnExistingOne) {
  ASSERT_EQ(::mkdir(path_.c_str(), 0750), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0750), 0);
  ASSERT_TRUE(DataDirectory::open(path_));
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms{0750});
}

TEST_F(DataDirectoryTest, P2_RefusesASecondServerAndNamesTheFirst) {
  const auto first = DataDirectory::open(path_).value();
  const auto second = DataDirectory::open(path_);
  EXPECT_EQ(second.error().code, Errc::kConflict);
  EXPECT_NE(second.error().message.find("process " + std::to_string(::getpid())), std::string::npos)
      << second.error().message;
  EXPECT_NE(second.error().message.find(path_.string()), std::string::npos);
}

// A file that may not grow behaves as on a full disk.
TEST_F(DataDirectoryTest, P2_WithoutRoomItIsLockedAndNamesNobodyUntilThereIs) {
  ASSERT_TRUE(DataDirectory::open(path_));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  auto first = DataDirectory::open(path_);
  EXPECT_FALSE(first && first->name_holder());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, ignored);
  ASSERT_TRUE(first) << first.error().message;
  const auto named = [this] { return DataDirectory::open(path_).error().message; };
  EXPECT_NE(named().find("process unknown"), std::string::npos) << named();
  EXPECT_TRUE(first->name_holder());
  EXPECT_NE(named().find("process " + std::to_string(::getpid())), std::string::npos) << named();
}

TEST_F(DataDirectoryTest, P2_TheLockGoesWithTheObject) {
  {
    ASSERT_TRUE(DataDirectory::open(path_));
  }
  EXPECT_TRUE(DataDirectory::open(path_));
}

TEST_F(DataDirectoryTest, P2_TheLockMovesWithTheObject) {
  auto first = DataDirectory::open(path_).value();
  const DataDirectory moved = std::move(first);
  EXPECT_EQ(moved.path(), path_);
  EXPECT_FALSE(DataDirectory::open(path_));
}

TEST_F(DataDirectoryTest, P2_TheLockGoesWithAKilledProcess) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = DataDirectory::open(path_);
    const char answer = held ? 'y' : 'n';
    if (::write(ready[1], &answer, 1) == 1) ::pause();
    ::_exit(0);
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  EXPECT_NE(DataDirectory::open(path_).error().message.find(std::to_string(child)),
            std::string::npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(DataDirectory::open(path_));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(DataDirectoryTest, P2_ALockFileThatHoldsNoProcessIsRefusedAtOnce) {
  const auto held = DataDirectory::open(path_).value();
  for (const char* const text : {"99999999999999999999", "0", "", "x"}) {
    std::ofstream(path_ / "lock") << text;
    EXPECT_FALSE(DataDirectory::open(path_)) << text;
  }
}

TEST_F(DataDirectoryTest, P2_AChildOfAKilledProcessThatEndsTooIsWaitedFor) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = DataDirectory::open(path_);
    if (::fork() == 0) {
      ::usleep(300'000);
      ::_exit(0);
    }
    ::_exit(held ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(DataDirectory::open(path_));
}

TEST_F(DataDirectoryTest, WhereItCannotBeIsRefusedWithWhatToDo) {
  std::ofstream(path_) << "not a directory";
  const std::filesystem::path below_nothing = temp_.path() / "no" / "data";
  const std::tuple<const char*, std::filesystem::path, std::vector<std::string>> rows[] = {
      {"a file in its place", path_, {"is a file"}},
      {"a missing parent", below_nothing, {"Create the directory above it"}},
      {"nothing can be made there, for root as well", "/proc/self", {"/proc/self", "lock"}},
  };
  for (const auto& [name, place, parts] : rows) {
    const Error refusal = DataDirectory::open(place).error();
    EXPECT_EQ(refusal.code, Errc::kUnavailable) << name;
    for (const std::string& part : parts)
      EXPECT_NE(refusal.message.find(part), std::string::npos) << name << ": " << refusal.message;
  }
}

TEST_F(DataDirectoryTest, RefusesALockThatIsALinkToElsewhere) {
  ASSERT_EQ(::mkdir(path_.c_str(), 0700), 0);
  std::filesystem::create_symlink(temp_.path() / "elsewhere", path_ / "lock");
  EXPECT_FALSE(DataDirectory::open(path_));
  EXPECT_FALSE(std::filesystem::exists(temp_.path() / "elsewhere"));
}

TEST_F(DataDirectoryTest, P3_PathsHoldTheClassAndAHashOfTheName) {
  const auto directory = DataDirectory::open(path_).value();
  // The first half of SHA-256("alice"), from sha256sum.
  EXPECT_EQ(directory.agent_path({"Counter", "alice"}),
            path_ / "agents/Counter/2b/2bd806c97f0e00af1a1fc3328fa763a9.db");
  EXPECT_EQ(directory.directory_path(), path_ / "host.db");
}

TEST_F(DataDirectoryTest, P3_NoNameLeavesItsClassesDirectory) {
  const auto directory = DataDirectory::open(path_).value();
  using std::string_literals::operator""s;
  for (const std::string& name :
       {"../../etc/passwd"s, "/"s, "a\0b"s, ""s, std::string(10'000, 'x')}) {
    const auto path = directory.agent_path({"Counter", name});
    EXPECT_EQ(path.parent_path().parent_path(), path_ / "agents/Counter");
    EXPECT_EQ(path.filename().string().size(), 32U + 3U);
  }
}

TEST_F(DataDirectoryTest, RemovesEveryFileOfAnAgentAndNoneOfItsNeighbours) {
  const auto directory = DataDirectory::open(path_).value();
  const AgentKey key{"Counter", "alice"};
  const std::filesystem::path database = directory.agent_path(key);
  std::filesystem::create_directories(database.parent_path());
  const std::filesystem::path neighbour = database.parent_path() / "2b00.db";
  std::ofstream{neighbour} << "x";
  for (const char* suffix : {"", "-wal", "-shm", "-journal"})
    std::ofstream{database.string() + suffix} << "x";
  const std::filesystem::path files = AgentDatabase::files_beside(database);
  std::filesystem::create_directory(files);
  std::ofstream{files / "of an operation.db"} << "x";
  std::vector<std::filesystem::path> databases;
  directory.each_agent_file([&](const std::filesystem::path& file) {
    databases.push_back(file);
    return true;
  });
  EXPECT_EQ(databases.size(), 2U) << "what an agent has written is no agent";
  directory.remove_agent(key);
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(database.parent_path()))
    left.push_back(entry.path());
  EXPECT_EQ(left, std::vector{neighbour});
}

TEST_F(DataDirectoryTest, RemovingAnAgentThatHasNoFilesIsNoError) {
  const auto directory = DataDirectory::open(path_).value();
  directory.remove_agent({"Counter", "alice"});  // nor a directory
  std::filesystem::create_directories(directory.agent_path({"Counter", "alice"}).parent_path());
  directory.remove_agent({"Counter", "alice"});
}

TEST_F(DataDirectoryTest, AFileThatCannotBeRemovedIsNamed) {
  const auto directory = DataDirectory::open(path_).value();
  const AgentKey key{"Counter", "alice"};
  const std::filesystem::path stubborn = directory.agent_path(key).string() + "-journal";
  std::filesystem::create_directories(stubborn);
  const std::string why = hearth::testing::storage_error_of([&] { directory.remove_agent(key); });
  EXPECT_NE(why.find(stubborn.string() + ": Is a directory"), std::string::npos) << why;
}

TEST_F(DataDirectoryTest, TellsADirectoryOfAgentsThatWasLostFromOneThatWasNeverMade) {
  const auto directory = DataDirectory::open(path_).value();
  directory.check_directory_not_lost();  // a server's first start
  const std::filesystem::path file = directory.agent_path({"Counter", "alice"});
  std::filesystem::create_directories(file.parent_path());
  directory.check_directory_not_lost();  // nor are directories without a file in them any loss
  std::ofstream{file} << "x";
  const auto refusal = [&] {
    return hearth::testing::storage_error_of([&] { directory.check_directory_not_lost(); });
  };
  EXPECT_TRUE(refusal().starts_with("it is missing")) << refusal();
  EXPECT_NE(refusal().find(file.string()), std::string::npos) << refusal();
  std::ofstream{directory.directory_path()} << "";
  EXPECT_TRUE(refusal().starts_with("it is empty")) << refusal();
  std::ofstream{directory.directory_path()} << "x";
  directory.check_directory_not_lost();
}

TEST_F(DataDirectoryTest, NoticesThatItIsGoneOrAnother) {
  const std::filesystem::path aside = path_.native() + "-aside";
  struct {
    const char* what;
    std::function<void()> lose;
  } const losses[] = {
      {"removed", [&] { std::filesystem::remove_all(path_); }},
      {"moved away", [&] { std::filesystem::rename(path_, aside); }},
      {"replaced",
       [&] {
         std::filesystem::rename(path_, aside);
         std::filesystem::create_directory(path_);
         std::ofstream{path_ / "lock"} << "";
       }},
  };
  for (const auto& [what, lose] : losses) {
    std::filesystem::remove_all(aside);
    std::filesystem::remove_all(path_);
    const auto directory = DataDirectory::open(path_);
    ASSERT_TRUE(directory);
    directory->check_not_lost();
    lose();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!directory->is_lost() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    EXPECT_NE(hearth::testing::storage_error_of([&] {
                directory->check_not_lost();
              }).find("was removed or replaced"),
              std::string::npos)
        << what;
  }
}

TEST_F(DataDirectoryTest, TheNamesThatLeadToAnAgentsFileCanBeSynced) {
  const auto directory = DataDirectory::open(path_).value();
  const AgentKey key{"Counter", "alice"};
  EXPECT_FALSE(directory.sync_names_of(key)) << "they are not there";
  std::filesystem::create_directories(directory.agent_path(key).parent_path());
  EXPECT_TRUE(directory.sync_names_of(key));
}

TEST_F(DataDirectoryTest, AbortsOnAClassThatMayNotBePartOfAPath) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto directory = DataDirectory::open(path_).value();
  EXPECT_DEATH((void)directory.agent_path({"../x", "a"}), "may not be part of a path");
}

}  // namespace
}  // namespace hearth::storage

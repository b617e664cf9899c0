#include "runtime/agent_files.hpp"

#include "storage/data_directory.hpp"
#include "storage/directory.hpp"
#include "support/manual_clock.hpp"
#include "support/recording_logger.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace hearth::runtime {
namespace {

const storage::AgentKey kAgent{"Counter", "a"};

class AgentFilesTest : public ::testing::Test {
 protected:
  hearth::testing::TempDirectory temporary_;
  storage::DataDirectory data_ = storage::DataDirectory::open(temporary_.path() / "data").value();
  storage::Directory directory_{data_.directory_path()};
  hearth::testing::ManualClock clock_;
  hearth::testing::RecordingLogger logger_;
  AgentFiles files_{data_, directory_, clock_, logger_};
};

TEST_F(AgentFilesTest, AnAgentIsUnknownUntilSomethingOfItIsKept) {
  EXPECT_EQ(files_.kept(kAgent), storage::Kept::kUnknown);
  files_.record(kAgent);
  EXPECT_EQ(files_.kept(kAgent), storage::Kept::kUnknown) << "a record alone proves no file";
  files_.note_kept(kAgent, storage::Kept::kOnDevice);
  EXPECT_EQ(files_.kept(kAgent), storage::Kept::kOnDevice);
  EXPECT_TRUE(logger_.events().empty());
}

TEST_F(AgentFilesTest, ItsFileLiesInTheDataDirectory) {
  EXPECT_EQ(files_.path(kAgent), data_.agent_path(kAgent));
}

TEST_F(AgentFilesTest, ADataDirectoryThatIsGoneIsAnError) {
  std::filesystem::remove_all(temporary_.path() / "data");
  EXPECT_THROW(files_.record(kAgent), StorageError);
  EXPECT_THROW((void)files_.kept(kAgent), StorageError);
}

}  // namespace
}  // namespace hearth::runtime

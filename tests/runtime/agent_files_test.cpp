#include "runtime/agent_files.hpp"

#include "extensions/agent_context.hpp"
#include "storage/data_directory.hpp"
#include "storage/directory.hpp"
#include "support/manual_clock.hpp"
#include "support/recording_logger.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

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

// Clients make objects as often as they like.
TEST_F(AgentFilesTest, NewObjectsHaveABoundedNumberOfAuditEntries) {
  hearth::testing::SeededRandom random;
  constexpr int kObjects = 300;
  const SteadyTime began = BootClock::now();
  for (int i = 0; i < kObjects; ++i)
    EXPECT_TRUE(files_.record_object({"Counter", std::to_string(i)}, random));
  const std::chrono::duration<double> took = BootClock::now() - began;
  const double most =
      extensions::kAuditLimit.burst + 1 + took.count() * extensions::kAuditLimit.per_second;
  EXPECT_LE(static_cast<double>(logger_.count("object.created")), most);
}

TEST_F(AgentFilesTest, ADataDirectoryThatIsGoneIsAnError) {
  std::filesystem::remove_all(temporary_.path() / "data");
  EXPECT_THROW(files_.record(kAgent), StorageError);
  EXPECT_THROW((void)files_.kept(kAgent), StorageError);
}

}  // namespace
}  // namespace hearth::runtime

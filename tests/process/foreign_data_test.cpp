// Commands of root on the data directory of a server that is another user's: what root would make
// there, that server could not use.

#include "process/process_fixture.hpp"

#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <ostream>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

struct OfflineCommand {
  const char* name;
  std::vector<std::string> arguments;
  Ending ending;
};

void PrintTo(const OfflineCommand& command, std::ostream* out) {
  *out << command.name;
}

class ForeignDataTest : public ProcessTest, public ::testing::WithParamInterface<OfflineCommand> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "is not root";
    fs::create_directory(root_ / "data");
  }
  void give_away(const fs::path& file) const {
    constexpr uid_t kNobody = 65534;
    ASSERT_EQ(::chown((root_ / file).c_str(), kNobody, kNobody), 0);
  }
  // The command, which must be refused.
  [[nodiscard]] std::string refused() const {
    const auto command = run(GetParam().arguments);
    EXPECT_EQ(command->wait(), GetParam().ending) << command->out();
    return command->log();
  }
};

TEST_P(ForeignDataTest, RootLeavesNothingInADirectoryOfAnotherUser) {
  give_away("data");
  const std::string said = refused();
  EXPECT_NE(said.find("data belongs to: sudo -u '#65534'"), std::string::npos) << said;
  EXPECT_TRUE(fs::is_empty(root_ / "data"));
}

// As a volume that belongs to root and to the group of the server's user.
TEST_P(ForeignDataTest, TheServersUserIsTheOneThatHasTheLock) {
  put("data/lock", "");
  give_away("data/lock");
  const std::string said = refused();
  EXPECT_NE(said.find("data/lock belongs to: sudo -u '#65534'"), std::string::npos) << said;
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "data"), {}), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Offline, ForeignDataTest,
    ::testing::Values(
        OfflineCommand{"repair", {"repair", "--data", "data"}, kFailed},
        OfflineCommand{"release", {"quarantine", "release", "Counter", "--data", "data"}, kFailed},
        OfflineCommand{
            "check", {"check", "--data", "data", built::bundled("echo-c").native()}, kBadUsage}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace hearth::testing

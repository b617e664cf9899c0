// Libraries that are installed slowly, or in other ways than a rename, while the server runs.

#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hearth::testing {
namespace {

class ReloadCopyTest : public ProcessTest {
 protected:
  ReloadCopyTest() {
    put("hearth.yaml", "reload: {quiet_time: 50ms, trial_time: 5s, removal_grace: 1s}\n");
    install(version_file("1"), "versioned.so");
    server_ = serve_ready({"--config", "hearth.yaml", "--log-level", "debug"});
  }
  ~ReloadCopyTest() override {
    if (server_) server_->stop();
  }

  static std::filesystem::path version_file(const std::string& version) {
    return built::agent("versioned-" + version);
  }
  static std::string bytes_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  [[nodiscard]] std::filesystem::path file() const { return root_ / "plugins" / "versioned.so"; }
  // In the place of the file that is there, as `cp` does.
  [[nodiscard]] std::ofstream open_in_place() const {
    return std::ofstream(file(), std::ios::binary | std::ios::trunc);
  }
  void run_tool(const std::vector<std::string>& command) const {
    ServerProcess tool(command, root_);
    ASSERT_EQ(tool.wait(), kClean) << tool.log();
  }
  [[nodiscard]] std::size_t logged(std::string_view text) const {
    return times_in(server_->log(), text);
  }

  std::unique_ptr<ServerProcess> server_;
};

TEST_F(ReloadCopyTest, ACopyThatStallsHalfWayIsRefusedAndTakenOnceItIsWhole) {
  AgentClient client(*server_, "/agents/versioned/a");
  EXPECT_EQ(client.call("add"), 1);
  const std::string whole = bytes_of(version_file("2"));
  const std::string_view first_half = std::string_view(whole).substr(0, whole.size() / 2);
  std::ofstream copy = open_in_place();
  copy << first_half << std::flush;
  // The writer pauses, with the file open, until the server has judged the content.
  server_->wait_for_log("plugin.refused");
  EXPECT_EQ(client.call("version"), "1.0.0");
  EXPECT_EQ(client.call("add"), 2);
  EXPECT_EQ(logged("reload.begun"), 0U);
  copy << std::string_view(whole).substr(first_half.size()) << std::flush;
  copy.close();
  server_->wait_for_log("reload.done");
  EXPECT_EQ(client.call("version"), "2.0.0") << "on the socket that was open all the time";
  EXPECT_EQ(client.call("add"), 3);
  EXPECT_EQ(logged("reload.begun"), 1U);
}

// As a tool writes that reserves the space first: the size is right from the beginning, bytes that
// are not written yet are zeros.
TEST_F(ReloadCopyTest, ACopyIntoReservedSpaceThatStallsIsRefusedAndTakenOnceItIsWhole) {
  AgentClient client(*server_, "/agents/versioned/a");
  const std::string whole = bytes_of(version_file("2"));
  // All but the last page: everything that is mapped is there, the tables behind it are not.
  const std::string_view most = std::string_view(whole).substr(0, whole.size() - 4096);
  std::ofstream copy = open_in_place();
  std::filesystem::resize_file(file(), whole.size());
  copy << most << std::flush;
  server_->wait_for_log("plugin.refused");
  EXPECT_EQ(client.call("version"), "1.0.0");
  EXPECT_EQ(logged("reload.begun"), 0U);
  copy << std::string_view(whole).substr(most.size()) << std::flush;
  copy.close();
  server_->wait_for_log("reload.done");
  EXPECT_EQ(client.call("version"), "2.0.0");
}

TEST_F(ReloadCopyTest, ACopyOverSecondsIsOneNewVersion) {
  AgentClient client(*server_, "/agents/versioned/a");
  EXPECT_EQ(client.call("version"), "1.0.0");
  const std::string whole = bytes_of(version_file("2"));
  constexpr std::size_t kParts = 100;
  {
    std::ofstream copy = open_in_place();
    const std::size_t step = whole.size() / kParts + 1;
    for (std::size_t at = 0; at < whole.size(); at += step) {
      copy << std::string_view(whole).substr(at, step) << std::flush;
      // The pace of a network. Whether some pause is longer than the quiet time does not matter.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  server_->wait_for_log("reload.done");
  EXPECT_EQ(client.call("version"), "2.0.0");
  EXPECT_EQ(logged("reload.begun"), 1U);
  EXPECT_EQ(logged("reload.taken_back"), 0U);
}

TEST_F(ReloadCopyTest, ANewLibraryThatStallsHalfWayIsServedOnceItIsWhole) {
  const std::string whole = bytes_of(bundled("counter"));
  std::ofstream copy(root_ / "plugins" / "counter.so", std::ios::binary);
  copy << std::string_view(whole).substr(0, whole.size() / 2) << std::flush;
  server_->wait_for_log("plugin.refused");
  EXPECT_EQ(request(*server_, "POST", "/agents/counter/a").status, 400);
  copy << std::string_view(whole).substr(whole.size() / 2) << std::flush;
  copy.close();
  server_->wait_for_log("reload.done");
  EXPECT_EQ(increment(*server_, "a"), R"({"count":1})");
}

TEST_F(ReloadCopyTest, StrippedInPlaceItIsTheSameVersionOnOtherBytes) {
  AgentClient client(*server_, "/agents/versioned/a");
  EXPECT_EQ(client.call("add"), 1);
  const auto size = std::filesystem::file_size(file());
  run_tool({"strip", "plugins/versioned.so"});
  ASSERT_LT(std::filesystem::file_size(file()), size);
  server_->wait_for_log("reload.done");
  EXPECT_EQ(client.call("version"), "1.0.0");
  EXPECT_EQ(client.call("add"), 2);
}

TEST_F(ReloadCopyTest, ALinkInItsPlaceIsRefusedAndTheOldOneGoesOn) {
  AgentClient client(*server_, "/agents/versioned/a");
  EXPECT_EQ(client.call("version"), "1.0.0");
  run_tool({"cp", version_file("2").string(), "elsewhere.so"});
  run_tool({"ln", "-sf", "../elsewhere.so", "plugins/versioned.so"});
  server_->wait_for_log("rule=F1");
  EXPECT_EQ(client.call("version"), "1.0.0");
  run_tool({"mv", "elsewhere.so", "plugins/versioned.so"});
  server_->wait_for_log("reload.done");
  EXPECT_EQ(client.call("version"), "2.0.0");
}

}  // namespace
}  // namespace hearth::testing

#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace hearth::testing {
namespace {

// Plays a full disk: the system refuses to make any file of the server longer than this.
class FullDiskTest : public ProcessTest {
 protected:
  FullDiskTest() {
    install(bundled("counter"), "counter.so");
    server_ = serve_ready();
  }

  void limit_files(rlim_t bytes) const {
    rlimit limit{};
    if (::prlimit(server_->pid(), RLIMIT_FSIZE, nullptr, &limit) != 0) fail();
    limit.rlim_cur = bytes;
    if (::prlimit(server_->pid(), RLIMIT_FSIZE, &limit, nullptr) != 0) fail();
  }

  std::unique_ptr<ServerProcess> server_;

 private:
  [[noreturn]] static void fail() {
    throw std::system_error(errno, std::generic_category(), "prlimit");
  }
};

TEST_F(FullDiskTest, AWriteThatCannotBeKeptIsAnErrorAndWhatWasKeptIsServedAfterwards) {
  ASSERT_EQ(increment(*server_, "old"), R"({"count":1})");
  limit_files(0);
  for (const char* name : {"old", "new"}) {
    const Reply refused = request(*server_, "POST", std::string("/agents/counter/") + name);
    EXPECT_GE(refused.status, 500) << refused.body;
    EXPECT_TRUE(refused.body.starts_with(R"({"error":{"code":)")) << refused.body;
    // What the system said is for the log.
    EXPECT_TRUE(lacks(refused.body, root_.string()));
  }
  EXPECT_EQ(request(*server_, "GET", "/healthz").status, 200);

  limit_files(RLIM_INFINITY);
  EXPECT_EQ(increment(*server_, "old"), R"({"count":2})");
  EXPECT_EQ(increment(*server_, "new"), R"({"count":1})");
  EXPECT_EQ(server_->stop(), kClean);
}

TEST_F(FullDiskTest, O9_AnObjectWhoseWritesFailHibernatesAndKeepsWhatItHasAnswered) {
  put("classes/counter.yaml", "class: counter\nobjects: true\n");
  EXPECT_EQ(server_->stop(), kClean);
  server_ = serve_ready({"--log-level", "debug"});
  const auto ask = [this](const std::string& method, const std::string& path) {
    return request(*server_, method, "/objects/counter/a" + path);
  };
  EXPECT_EQ(ask("POST", "/call/increment").body, R"({"success":true,"data":1,"result":1})");
  limit_files(0);
  const Reply refused = ask("POST", "/call/increment");
  EXPECT_GE(refused.status, 500) << refused.body;
  EXPECT_TRUE(refused.body.starts_with(R"({"success":false,"error":")")) << refused.body;
  server_->wait_for_log("agent.evicted class=Counter agent=a");
  limit_files(RLIM_INFINITY);
  EXPECT_EQ(ask("POST", "/call/get").body, R"({"success":true,"data":1,"result":1})");
  EXPECT_EQ(ask("POST", "/call/increment").body, R"({"success":true,"data":2,"result":2})");
}

TEST_F(FullDiskTest, ClientsOfAnAgentThatCannotWriteHearOfItAndCanComeBack) {
  AgentClient client(server_->port(), "/agents/counter/a");
  (void)client.call("increment");
  limit_files(0);
  client.begin("increment");
  // The call is never acknowledged: it fails, or the socket is closed with a code that lets clients
  // reconnect.
  for (Frame frame = client.read_frame();; frame = client.read_frame()) {
    if (frame.opcode == 8) {
      EXPECT_TRUE(frame.close_code() == 1011 || frame.close_code() == 1001) << frame.close_code();
      break;
    }
    if (frame.payload.find(R"("type":"rpc")") == std::string::npos) continue;
    EXPECT_TRUE(contains(frame.payload, R"("success":false)"));
    break;
  }
  limit_files(RLIM_INFINITY);
  EXPECT_EQ(increment(*server_, "a"), R"({"count":2})");
}

}  // namespace
}  // namespace hearth::testing

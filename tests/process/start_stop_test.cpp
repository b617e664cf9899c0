#include "base/file_descriptor.hpp"
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"
#include "support/environment.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <poll.h>
#include <pty.h>
#include <signal.h>

namespace hearth::testing {
namespace {

class StartStopTest : public ProcessTest {
 protected:
  StartStopTest() { install(bundled("counter"), "counter.so"); }

  // Connects to a counter, and begins work there with these arguments of count_to.
  static void begin_counting(RawClient& client, const std::string& arguments) {
    ASSERT_EQ(client.upgrade("/agents/counter/a").status, 101);
    client.send(RawClient::text_frame(R"({"type":"rpc","id":"1","method":"count_to","args":)" +
                                      arguments + "}"));
    while (client.read_text().find(R"("id":"1")") == std::string::npos) {  // the first part
    }
  }
  // The server closes the socket as going away, and then ends. Returns the last text before that.
  static std::string expect_goes_away(ServerProcess& server, RawClient& client) {
    std::string last;
    Frame frame = client.read_frame();
    for (; frame.opcode == 1; frame = client.read_frame()) last = frame.payload;
    EXPECT_EQ(frame.close_code(), 1001);
    client.send(RawClient::close_frame(1001));
    EXPECT_EQ(server.wait(), kClean);
    return last;
  }
};

TEST_F(StartStopTest, SaysOnOneLineOfStdoutThatItServesAndNothingElse) {
  const auto server = serve_ready();
  EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(server->out(),
            "hearth ready: listening on 127.0.0.1:" + std::to_string(server->port()) + "\n");
}

TEST_F(StartStopTest, AThreadGivesBackMemoryThatIsFreeUnlessASanitizerAllocates) {
  const auto server = serve_ready();
  int found = 0;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(server->pid()) + "/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "jemalloc_bg_thd") ++found;
  }
  EXPECT_EQ(found > 0, !kSanitized);
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(StartStopTest, WhereItsAddressIsInUseItSaysThatOnceAndBlamesNoLibrary) {
  const auto first = serve_ready();
  const auto second = run({"serve", "--listen", "127.0.0.1:" + std::to_string(first->port()),
                           "--data", "other", "--log-format", "human"});
  EXPECT_EQ(second->wait(), kFailed);
  const std::string& log = second->log();
  const std::size_t failed = log.find("server.start_failed");
  ASSERT_NE(failed, std::string::npos) << log;
  EXPECT_EQ(log.find('\n', failed) + 1, log.size()) << log;
  EXPECT_TRUE(lacks(log, "plugin.pinned"));
}

TEST_F(StartStopTest, BothSignalsEndItCleanly) {
  for (const int number : {SIGTERM, SIGINT}) {
    const auto server = serve_ready();
    server->signal(number);
    EXPECT_EQ(server->wait(), kClean);
    EXPECT_TRUE(contains(server->log(), "server.stopped"));
  }
}

TEST_F(StartStopTest, OpenSocketsAreClosedAsGoingAway) {
  const auto server = serve_ready();
  AgentClient client(server->port(), "/agents/counter/a");
  server->signal(SIGTERM);
  expect_goes_away(*server, client);
}

TEST_F(StartStopTest, WorkThatRunsIsFinishedAndAnsweredFirst) {
  const auto server = serve_ready();
  RawClient client(server->port());
  begin_counting(client, "[5,100]");
  server->signal(SIGTERM);
  const std::string last = expect_goes_away(*server, client);
  EXPECT_TRUE(contains(last, R"("done":true)"));
}

TEST_F(StartStopTest, ASecondSignalEndsItAtOnce) {
  const auto server = serve_ready();
  RawClient client(server->port());
  // Longer than the grace, so that only the second signal can end it now.
  begin_counting(client, "[2,600000]");
  server->signal(SIGTERM);
  server->wait_for_log("server.stopping");
  // Again and again: a signal together with the first one does not count as a second one.
  std::jthread impatience([&server](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      server->signal(SIGINT);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  EXPECT_EQ(server->wait(), (Ending{.status = 128 + SIGINT, .signal = 0}));
}

TEST_F(StartStopTest, TheEchoOfASignalIsNoSecondOne) {
  const auto server = serve_ready();
  RawClient client(server->port());
  begin_counting(client, "[3,100]");
  server->signal(SIGTERM);
  server->signal(SIGINT);
  expect_goes_away(*server, client);
}

TEST_F(StartStopTest, WhoeverStartsItMayIgnoreTheEndsOfChildren) {
  ::signal(SIGCHLD, SIG_IGN);  // inherited
  const auto server = serve();
  ::signal(SIGCHLD, SIG_DFL);
  server->wait_until_ready();
  EXPECT_EQ(increment(*server, "a"), R"({"count":1})") << "the trial of its library has ended well";
}

// A server with a terminal of its own: one that ignores SIGHUP as under nohup(1), or a supervised
// one that does not.
class ServerOnTerminal {
 public:
  explicit ServerOnTerminal(const std::filesystem::path& directory, bool is_supervised = false) {
    const std::string program = built::server();
    std::array<int, 2> log{};
    if (::pipe2(log.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      if (!is_supervised) ::signal(SIGHUP, SIG_IGN);
      ::dup2(log[1], STDERR_FILENO);
      if (::chdir(directory.c_str()) == 0)
        ::execl(program.c_str(), "hearth", "serve", "--listen", "127.0.0.1:0",
                is_supervised ? "--supervised" : nullptr, nullptr);
      ::_exit(127);
    }
    ::close(log[1]);
    log_pipe_ = log[0];
  }
  ~ServerOnTerminal() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(log_pipe_);
    close_terminal();
  }
  ServerOnTerminal(const ServerOnTerminal&) = delete;
  ServerOnTerminal& operator=(const ServerOnTerminal&) = delete;

  void close_terminal() {
    if (terminal_ >= 0) ::close(std::exchange(terminal_, -1));
  }
  // False: its log ended, or nothing came for too long.
  bool logs(const std::string& text) {
    std::array<char, 4096> part{};
    while (log_.find(text) == std::string::npos) {
      pollfd news{.fd = log_pipe_, .events = POLLIN, .revents = 0};
      if (::poll(&news, 1, 20'000) <= 0) return false;
      const ssize_t size = ::read(log_pipe_, part.data(), part.size());
      if (size <= 0) return false;
      log_.append(part.data(), static_cast<std::size_t>(size));
    }
    return true;
  }
  [[nodiscard]] const std::string& log() const { return log_; }

 private:
  pid_t pid_ = -1;
  int terminal_ = -1;
  int log_pipe_ = -1;
  std::string log_;
};

TEST_F(StartStopTest, AServerThatIgnoresHangupsOutlivesItsTerminal) {
  ServerOnTerminal server(root_);
  ASSERT_TRUE(server.logs("server.ready")) << server.log();
  server.close_terminal();
  EXPECT_TRUE(server.logs("server.reload")) << server.log();
  EXPECT_TRUE(lacks(server.log(), "server.stopping"));
}

TEST_F(StartStopTest, ASupervisedServerEndsWithItsTerminalAndIsNotStartedAgain) {
  ServerOnTerminal server(root_, true);
  ASSERT_TRUE(server.logs("server.ready")) << server.log();
  server.close_terminal();
  EXPECT_FALSE(server.logs("supervisor.restart")) << server.log();
  EXPECT_TRUE(contains(server.log(), "server.stopped"));
}

TEST_F(StartStopTest, WorkThatDoesNotEndIsCutAfterTheGrace) {
  put("hearth.yaml", "limits:\n  shutdown_grace: 100ms\n");
  const auto server = serve_ready({"--config", "hearth.yaml"});
  RawClient client(server->port());
  begin_counting(client, "[2,600000]");
  server->signal(SIGTERM);
  expect_goes_away(*server, client);
}

TEST_F(StartStopTest, APortInUseSaysWhichAndWhatToDo) {
  const auto first = serve_ready();
  const std::string address = "127.0.0.1:" + std::to_string(first->port());
  const Said second = say({"serve", "--listen", address, "--data", "other"});
  EXPECT_EQ(second.ending, kFailed);
  EXPECT_EQ(second.out, "");
  EXPECT_TRUE(contains(second.err, address, "--listen 127.0.0.1:0"));
}

TEST_F(StartStopTest, ASecondServerOnTheSameDataIsRefusedAndTheFirstGoesOn) {
  const auto first = serve_ready();
  const auto second = serve();
  EXPECT_EQ(second->wait(), kFailed);
  EXPECT_TRUE(contains(second->log(),
                       "in use by another server (process " + std::to_string(first->pid()) + ")"));
  EXPECT_EQ(increment(*first, "a"), R"({"count":1})");
}

TEST_F(StartStopTest, TheLockGoesWithAKilledServer) {
  const auto first = serve_ready();
  EXPECT_EQ(increment(*first, "a"), R"({"count":1})");
  EXPECT_EQ(first->kill(), kKilled);
  const auto second = serve_ready();
  EXPECT_EQ(count(*second, "a"), R"({"count":1})");
}

TEST_F(StartStopTest, ADataDirectoryThatCannotBeWrittenIsRefusedWithAdvice) {
  std::filesystem::create_directory(root_ / "locked");
  std::filesystem::permissions(root_ / "locked", std::filesystem::perms{0555});
  std::filesystem::permissions(root_, std::filesystem::perms{0755});
  // Permissions do not bind root, so the server runs as another user then.
  std::vector<std::string> command{"hearth-under-test", "serve",  "--listen",
                                   "127.0.0.1:0",       "--data", "locked"};
  std::filesystem::copy_file(built::server(), root_ / "hearth-under-test");
  command[0] = root_ / "hearth-under-test";
  if (::geteuid() == 0) {
    const std::vector<std::string> as_nobody{"setpriv", "--reuid=65534", "--regid=65534",
                                             "--clear-groups"};
    command.insert(command.begin(), as_nobody.begin(), as_nobody.end());
  }
  ServerProcess server(command, root_);
  EXPECT_EQ(server.wait(), kFailed);
  EXPECT_TRUE(contains(server.log(), "locked", "Permission denied",
                       "Give it to the user that the server runs as"));
}

TEST_F(StartStopTest, LogsAreJsonWhenNobodyWatches) {
  const auto server = run({"serve", "--listen", "127.0.0.1:0"});
  server->wait_until_ready();
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_TRUE(server->log().starts_with("{\"time\":")) << server->log();
  EXPECT_TRUE(contains(server->log(), "\"event\":\"server.stopped\""));
}

TEST_F(StartStopTest, ItsManagerIsToldWhenItIsReadyAndHowLongItMayTakeToStop) {
  put("hearth.yaml", "limits: {shutdown_grace: 5m}\n");
  const FileDescriptor manager(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::ranges::copy((root_ / "notify").native(), address.sun_path);
  ASSERT_EQ(::bind(manager.get(), reinterpret_cast<const sockaddr*>(&address),  // NOLINT
                   sizeof address),
            0);
  const auto told = [&manager] {
    std::array<char, 100> bytes{};
    const ssize_t count = ::recv(manager.get(), bytes.data(), bytes.size(), 0);
    return std::string(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  };
  const auto server = serve_under({"env", "NOTIFY_SOCKET=" + (root_ / "notify").native()},
                                  {"--config", "hearth.yaml"});
  server->wait_until_ready();
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(told(), "READY=1");
  EXPECT_EQ(told(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=340000000");
}

}  // namespace
}  // namespace hearth::testing

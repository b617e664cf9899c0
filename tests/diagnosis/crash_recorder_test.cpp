#include "diagnosis/crash_recorder.hpp"

#include "diagnosis/crash_record.hpp"
#include "diagnosis/exit_status.hpp"
#include "support/temp_directory.hpp"
#include "support/unread_pipe.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <signal.h>

namespace hearth::diagnosis {
namespace {

// Whether a thread of this process waits for something.
bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t end_of_name = text.rfind(')');
  return end_of_name != std::string::npos && text.compare(end_of_name, 3, ") S") == 0;
}

// A child whose record goes into a pipe without space: the thread that writes the record blocks in
// the middle.
class CrashRecorderTest : public ::testing::Test {
 protected:
  CrashRecorderTest() {
    EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    record_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const int filled = ::open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    const std::array<char, 4096> filler{};
    while (::write(filled, filler.data(), filler.size()) > 0) {
    }
    ::close(filled);
    EXPECT_EQ(::pipe2(calling_.data(), O_CLOEXEC), 0);
  }
  ~CrashRecorderTest() override {
    ::close(record_);
    ::close(calling_[0]);
  }

  // One thread of it crashes, and while that writes another one ends the process as hung.
  void start() {
    child_ = ::fork();
    if (child_ == 0) {
      if (stderr_ >= 0) ::dup2(stderr_, STDERR_FILENO);
      crash_and_hang();
    }
    ::close(calling_[1]);
    char byte = 0;
    EXPECT_EQ(::read(calling_[0], &byte, 1), 1) << "it has not come that far";
  }
  // Its status.
  [[nodiscard]] int wait() const {
    int status = 0;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    return status;
  }
  // All that is in the pipe until the child is gone.
  [[nodiscard]] std::string read_record() const {
    ::fcntl(record_, F_SETFL, 0);
    std::string text;
    std::array<char, 4096> piece{};
    for (ssize_t size = 0; (size = ::read(record_, piece.data(), piece.size())) > 0;)
      text.append(piece.data(), static_cast<std::size_t>(size));
    text.erase(0, text.find_first_not_of('\0'));
    return text;
  }

  pid_t child_ = -1;
  int stderr_ = -1;  // of the child; -1: ours

 private:
  [[noreturn]] void crash_and_hang() const {
    const rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    CrashRecorder recorder(path_);
    std::atomic<pid_t> crashing{0};
    const std::thread thread([&crashing] {
      crashing = ::gettid();
      ::raise(SIGSEGV);
    });
    while (crashing == 0 || !sleeps(crashing)) std::this_thread::yield();
    const CallOwner owner("/plugins/a.so", "0123", 7, "Room");
    const CallScope scope(owner, "message", AgentLabel());
    RunningCall call;
    find_running_call(call);
    if (::write(calling_[1], "c", 1) != 1) ::_exit(99);
    recorder.end_as_hung(call);
  }

  testing::TempDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "pending";
  int record_ = -1;
  std::array<int, 2> calling_{-1, -1};
};

TEST_F(CrashRecorderTest, WhoHangsWaitsForTheRecordOfWhoCrashes) {
  start();
  const std::string text = read_record();
  const int status = wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
  const auto record = parse_crash(text);
  ASSERT_TRUE(record) << text;
  EXPECT_EQ(record->reason, "SIGSEGV");
  EXPECT_EQ(record->pid, child_);
}

TEST_F(CrashRecorderTest, AStandardErrorThatIsNotReadDoesNotMakeOfACrashAHang) {
  const testing::UnreadPipe unread;
  unread.fill();
  stderr_ = unread.writing_end();
  start();
  const auto record = parse_crash(read_record());
  const int status = wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
  EXPECT_EQ(record.value().reason, "SIGSEGV");
}

TEST_F(CrashRecorderTest, WhoHangsDoesNotWaitForEver) {
  start();
  const int status = wait();  // the pipe is not read
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kExitHung) << status;
}

// A library that goes at this moment has the process's handlers put back.
TEST(CrashRecorderHandlerTest, AHandlerThatIsPutBackMeanwhileDoesNotKeepTheProcess) {
  const hearth::testing::TempDirectory directory;
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit none{};
      ::setrlimit(RLIMIT_CORE, &none);
      ::close(STDERR_FILENO);
      ::alarm(20);
      const CrashRecorder recorder(directory.path() / "pending");
      struct sigaction ours{};
      ::sigaction(SIGSEGV, nullptr, &ours);
      const std::thread other([&ours] {
        struct sigaction now = ours;
        while (now.sa_handler != SIG_DFL) ::sigaction(SIGSEGV, nullptr, &now);
        ::sigaction(SIGSEGV, &ours, nullptr);
      });
      volatile int* const nowhere = nullptr;
      *nowhere = 1;  // NOLINT(clang-analyzer-core.NullDereference): so that it comes again
      ::_exit(99);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << round;
    EXPECT_EQ(WTERMSIG(status), SIGSEGV) << round;
  }
}

}  // namespace
}  // namespace hearth::diagnosis

#include "plugins/admission/process_guard.hpp"

#include "support/temp_directory.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <locale>
#include <new>
#include <string>
#include <vector>

#include <pthread.h>

namespace hearth::plugins {
namespace {

namespace fs = std::filesystem;

using hearth::testing::TempDirectory;
using Changes = std::vector<std::string>;

mode_t mask_now() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

void (*handler_now(int signal))(int) {
  struct sigaction action{};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler;
}

TEST(ProcessGuardTest, NothingIsSaidWhereNothingWasDone) {
  ProcessGuard guard;
  EXPECT_EQ(guard.changes(), Changes{});
  EXPECT_EQ(guard.restore(), Changes{});
}

TEST(ProcessGuardTest, TheUmaskIsPutBack) {
  const mode_t before = ::umask(027);
  ProcessGuard guard;
  ::umask(0);
  EXPECT_EQ(guard.changes(), Changes{"the umask is another"});
  EXPECT_EQ(mask_now(), 0U) << "changes() has changed it";
  EXPECT_EQ(guard.restore(), Changes{"the umask is another"});
  EXPECT_EQ(mask_now(), 027U);
  ::umask(before);
}

TEST(ProcessGuardTest, TheDirectoryIsPutBackThoughItWasRenamed) {
  const TempDirectory temporary;
  const fs::path before = fs::current_path();
  fs::create_directory(temporary.path() / "old");
  fs::current_path(temporary.path() / "old");
  {
    ProcessGuard guard;
    fs::rename(temporary.path() / "old", temporary.path() / "new");
    fs::current_path("/");
    EXPECT_EQ(guard.restore().front(), "the current directory is \"/\"");
  }
  EXPECT_EQ(fs::current_path(), fs::canonical(temporary.path() / "new"));
  fs::current_path(before);
}

TEST(ProcessGuardTest, WhatCannotBePutBackIsNamed) {
  // No NAME=value: it cannot be set again.
  std::string odd = "HEARTH_GUARD_ODD";
  std::vector<char*> variables{odd.data()};
  for (char** each = environ; *each != nullptr; ++each) variables.push_back(*each);
  variables.push_back(nullptr);
  char** const before = environ;
  environ = variables.data();
  ProcessGuard guard;
  environ = before;
  EXPECT_EQ(guard.changes(), Changes{"the environment was changed"});
  EXPECT_EQ(guard.restore(), Changes{"the environment was changed (it stays)"});
}

TEST(ProcessGuardTest, ADirectoryWithoutANameIsStillEntered) {
  const TempDirectory temporary;
  const fs::path before = fs::current_path();
  fs::create_directory(temporary.path() / "old");
  fs::current_path(temporary.path() / "old");
  ProcessGuard guard;
  fs::current_path("/");
  fs::remove(temporary.path() / "old");
  const Changes told = guard.restore();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told.front(), "the current directory is \"/\"");
  struct stat here{};
  ASSERT_EQ(::stat(".", &here), 0);
  EXPECT_EQ(here.st_nlink, 0U);
  fs::current_path(before);
}

TEST(ProcessGuardTest, SignalHandlersArePutBackWithTheirFlags) {
  struct sigaction ours{};
  ours.sa_handler = SIG_IGN;
  ours.sa_flags = SA_RESTART;
  struct sigaction before{};
  ::sigaction(SIGUSR2, &ours, &before);
  {
    ProcessGuard guard;
    std::signal(SIGUSR2, SIG_DFL);
    std::signal(SIGHUP, SIG_IGN);
    EXPECT_EQ(guard.restore(),
              (Changes{"SIGHUP is handled differently", "SIGUSR2 is handled differently"}));
  }
  struct sigaction now{};
  ::sigaction(SIGUSR2, &before, &now);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
  EXPECT_NE(now.sa_flags & SA_RESTART, 0);
  EXPECT_EQ(handler_now(SIGHUP), SIG_DFL);
}

TEST(ProcessGuardTest, TheHandlersOfCxxArePutBack) {
  const auto on_terminate = std::get_terminate();
  const auto on_new = std::get_new_handler();
  ProcessGuard guard;
  std::set_terminate([] {});
  std::set_new_handler([] {});
  EXPECT_EQ(guard.restore(),
            (Changes{"std::set_terminate was called", "std::set_new_handler was called"}));
  EXPECT_EQ(std::get_terminate(), on_terminate);
  EXPECT_EQ(std::get_new_handler(), on_new);
}

TEST(ProcessGuardTest, TheEnvironmentIsPutBack) {
  ::setenv("HEARTH_GUARD_KEPT", "a=b", 1);
  ::setenv("HEARTH_GUARD_LOST", "here", 1);
  {
    ProcessGuard guard;
    ::setenv("HEARTH_GUARD_KEPT", "other", 1);
    ::unsetenv("HEARTH_GUARD_LOST");
    ::setenv("HEARTH_GUARD_NEW", "new", 1);
    EXPECT_EQ(guard.restore(), Changes{"the environment was changed"});
  }
  EXPECT_STREQ(std::getenv("HEARTH_GUARD_KEPT"), "a=b");
  EXPECT_STREQ(std::getenv("HEARTH_GUARD_LOST"), "here");
  EXPECT_EQ(std::getenv("HEARTH_GUARD_NEW"), nullptr);
  ::unsetenv("HEARTH_GUARD_KEPT");
  ::unsetenv("HEARTH_GUARD_LOST");
}

TEST(ProcessGuardTest, TheLocalesOfCAndOfCxxArePutBack) {
  ProcessGuard guard;
  ASSERT_NE(std::setlocale(LC_ALL, "C.UTF-8"), nullptr);
  EXPECT_EQ(guard.restore(), Changes{"the locale is \"C.UTF-8\""});
  EXPECT_STREQ(std::setlocale(LC_ALL, nullptr), "C");
  // A locale without a name leaves that of C as it is.
  std::locale::global(std::locale(std::locale::classic(), new std::numpunct<char>));
  EXPECT_EQ(guard.restore(), Changes{"std::locale::global was called"});
  EXPECT_EQ(std::locale(), std::locale::classic());
  EXPECT_STREQ(std::setlocale(LC_ALL, nullptr), "C");
}

// ---- timers, limits, the process group ----------------------------------------------------------

rlimit core_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_CORE, &limit);
  return limit;
}

itimerval time_left(int which) {
  itimerval timer{};
  ::getitimer(which, &timer);
  return timer;
}

TEST(ProcessGuardTest, AlarmsAndIntervalTimersAreStopped) {
  constexpr time_t kLong = 3600;
  for (const int which : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
    ProcessGuard guard;
    const itimerval timer{.it_interval = {}, .it_value = {.tv_sec = kLong, .tv_usec = 0}};
    ASSERT_EQ(::setitimer(which, &timer, nullptr), 0);
    EXPECT_EQ(guard.restore(), Changes{"an alarm or an interval timer runs or is stopped"});
    const itimerval now = time_left(which);
    EXPECT_FALSE(timerisset(&now.it_value)) << which;
  }
}

TEST(ProcessGuardTest, AnAlarmOfTheHostsOwnRunsOn) {
  ::alarm(3600);
  {
    ProcessGuard guard;
    EXPECT_EQ(guard.changes(), Changes{});
    ::alarm(0);
    EXPECT_EQ(guard.restore(), Changes{"an alarm or an interval timer runs or is stopped"});
  }
  EXPECT_GT(::alarm(0), 3000U);
}

TEST(ProcessGuardTest, ATimerOfTimerCreateIsNamedAndStays) {
  ProcessGuard guard;
  timer_t timer{};
  sigevent quiet{};
  quiet.sigev_notify = SIGEV_NONE;
  ASSERT_EQ(::timer_create(CLOCK_MONOTONIC, &quiet, &timer), 0);
  // Some systems do not list the timers of a process.
  const bool is_told = ::access("/proc/self/timers", R_OK) == 0;
  EXPECT_EQ(guard.restore(),
            is_told ? Changes{"a timer of timer_create() is left (it stays)"} : Changes{});
  ::timer_delete(timer);
  EXPECT_EQ(guard.changes(), Changes{});
}

TEST(ProcessGuardTest, ALimitIsPutBackUnlessThatNeedsARight) {
  const rlimit before = core_limit();
  ASSERT_GT(before.rlim_max, 0U);
  ProcessGuard guard;
  const rlimit soft{.rlim_cur = before.rlim_cur == 0 ? 1U : 0U, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_CORE, &soft), 0);
  EXPECT_EQ(guard.restore(), Changes{"a limit of the process's resources is another"});
  EXPECT_EQ(core_limit().rlim_cur, before.rlim_cur);
}

TEST(ProcessGuardTest, TheProcessGroupIsPutBackAndASessionStays) {
  // In a child, which leads no group: only such a process may begin a session.
  const pid_t child = ::fork();
  if (child == 0) {
    ProcessGuard guard;
    const pid_t group = ::getpgrp();
    ::setpgid(0, 0);
    const Changes moved{"the process is in another process group or session"};
    if (guard.changes() != moved || guard.restore() != moved || ::getpgrp() != group) ::_exit(1);
    if (::setsid() < 0 || guard.restore() != Changes{moved.front() + " (it stays)"}) ::_exit(2);
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ProcessGuardTest, WhenALibraryGoesItsAlarmIsStopped) {
  const ProcessSettings first = ProcessSettings::take();
  ::alarm(3600);  // by its agents
  ProcessGuard guard;
  EXPECT_EQ(guard.restore_without({}, first),
            Changes{"an alarm or an interval timer runs or is stopped"});
  EXPECT_EQ(::alarm(0), 0U);
}

// ---- at the end of a library --------------------------------------------------------------------

void of_the_library(int /*signal*/) {}
void of_another_one(int /*signal*/) {}

// The final handler of the signal, if an unloaded library has the handler `of_the_library`.
// `before` is the handler before its deinit(), `after` the handler after it.
std::string in_the_end(void (*before)(int), void (*after)(int)) {
  std::signal(SIGUSR2, SIG_DFL);
  const ProcessSettings first = ProcessSettings::take();
  std::signal(SIGUSR2, before);
  ProcessGuard guard;
  std::signal(SIGUSR2, after);
  const auto code = reinterpret_cast<std::uintptr_t>(&of_the_library);
  const Changes told = guard.restore_without({.from = code, .until = code + 1}, first);
  const auto now = handler_now(SIGUSR2);
  std::signal(SIGUSR2, SIG_DFL);
  EXPECT_EQ(told.empty(), now == after);
  if (now == of_the_library) return "the library's";
  if (now == of_another_one) return "another one's";
  if (now == SIG_IGN) return "ignored";
  return "as at first";
}

TEST(ProcessGuardTest, ALibrarysOwnHandlersAreNeverPutInAgain) {
  EXPECT_EQ(in_the_end(of_the_library, of_the_library), "as at first");
  EXPECT_EQ(in_the_end(of_the_library, SIG_DFL), "as at first");
  EXPECT_EQ(in_the_end(of_the_library, of_another_one), "another one's");
  EXPECT_EQ(in_the_end(SIG_DFL, of_the_library), "as at first");
}

TEST(ProcessGuardTest, HandlersOfOthersStayWhenALibraryGoes) {
  EXPECT_EQ(in_the_end(of_another_one, of_another_one), "another one's");
  EXPECT_EQ(in_the_end(of_another_one, of_the_library), "another one's");
  EXPECT_EQ(in_the_end(of_another_one, SIG_IGN), "another one's");
  EXPECT_EQ(in_the_end(of_another_one, SIG_DFL), "as at first");
}

TEST(ProcessGuardTest, WhatALibraryPutsBackAtItsEndStaysSo) {
  const mode_t mask = ::umask(022);
  const ProcessSettings first = ProcessSettings::take();
  ::umask(0);
  {
    ProcessGuard guard;
    ::umask(022);
    EXPECT_EQ(guard.restore_without({}, first), Changes{});
    EXPECT_EQ(mask_now(), 022U);
  }
  ProcessGuard guard;
  ::umask(0);
  EXPECT_EQ(guard.restore_without({}, first), Changes{"the umask is another"});
  EXPECT_EQ(mask_now(), 022U);
  ::umask(mask);
}

TEST(ProcessGuardTest, WhenALibraryGoesTheLocaleIsTheOneFromTheBeginning) {
  const ProcessSettings first = ProcessSettings::take();
  std::locale::global(std::locale(std::locale::classic(), new std::numpunct<char>));
  ProcessGuard guard;
  EXPECT_EQ(guard.restore_without({}, first), Changes{"std::locale::global was called"});
  EXPECT_EQ(std::locale(), first.global_locale);
}

TEST(ProcessGuardTest, WhatBelongsToTheThreadIsPutBackAndIsNoChangeOfTheProcess) {
  ProcessGuard guard;
  sigset_t some{};
  ::sigemptyset(&some);
  ::sigaddset(&some, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &some, nullptr);
  std::fesetround(FE_UPWARD);
  EXPECT_EQ(guard.changes(), Changes{});
  EXPECT_EQ(guard.restore().size(), 2U);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  sigset_t now{};
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  EXPECT_EQ(::sigismember(&now, SIGUSR1), 0);
}

}  // namespace
}  // namespace hearth::plugins

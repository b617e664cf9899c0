#include "plugins/admission/trial_process.hpp"

#include "base/files.hpp"

#include <sys/wait.h>

#include <gtest/gtest.h>

#include <string>

namespace hearth::plugins {
namespace {

using namespace std::chrono_literals;

TrialOutcome run_shell(const std::string& script, std::chrono::milliseconds limit = 30s) {
  return run_trial({.program = "/bin/sh", .arguments = {"-c", script}, .time_limit = limit});
}

TEST(TrialProcessTest, GivesWhatTheChildSaysAndHowItEnds) {
  const TrialOutcome trial = run_shell("echo to you; echo verdict >&3; echo oh >&2; exit 7");
  EXPECT_TRUE(trial.not_started.empty());
  EXPECT_TRUE(trial.in_time);
  ASSERT_TRUE(WIFEXITED(trial.status));
  EXPECT_EQ(WEXITSTATUS(trial.status), 7);
  EXPECT_EQ(trial.verdict, "verdict\n");
  EXPECT_EQ(trial.output, "to you\noh\n");
}

TEST(TrialProcessTest, TellsTheSignalOfACrash) {
  const TrialOutcome trial = run_shell("kill -BUS $$");
  ASSERT_TRUE(WIFSIGNALED(trial.status));
  EXPECT_EQ(signal_name(WTERMSIG(trial.status)), "SIGBUS");
}

TEST(TrialProcessTest, EndsWhatTakesTooLongWithAllThatItStarted) {
  const TrialOutcome trial = run_shell("echo begun >&3; sleep 100 & echo $! ; sleep 100", 300ms);
  EXPECT_FALSE(trial.in_time);
  EXPECT_EQ(trial.verdict, "begun\n");
  const pid_t grandchild = std::stoi(trial.output);
  // It has no parent that reaps it: it may stay a zombie, but it does not run any more.
  bool gone = false;
  for (int round = 0; round < 1000 && !gone; ++round) {
    const auto status = read_file("/proc/" + std::to_string(grandchild) + "/stat", 4096);
    gone = !status || status->find(") Z ") != std::string::npos;
    if (!gone) run_shell("true");
  }
  EXPECT_TRUE(gone);
}

TEST(TrialProcessTest, KeepsTheEndOfALongStory) {
  const TrialOutcome trial =
      run_shell("i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done");
  EXPECT_LE(trial.output.size(), std::size_t{16} << 10);
  EXPECT_TRUE(trial.output.ends_with("line 4999\n"));
}

TEST(TrialProcessTest, SaysWhyThereIsNoChild) {
  const TrialOutcome trial = run_trial({.program = "/nobody/is/here", .arguments = {}});
  EXPECT_NE(trial.not_started.find("/nobody/is/here"), std::string::npos) << trial.not_started;
}

TEST(TrialProcessTest, LastWordsAreQuotedAndShort) {
  EXPECT_EQ(last_words(""), "");
  EXPECT_EQ(last_words(" \n\n"), "");
  EXPECT_EQ(last_words("oh\n"), "; it said: \"oh\"");
  EXPECT_LT(last_words(std::string(10'000, 'x')).size(), 230U);
}

}  // namespace
}  // namespace hearth::plugins

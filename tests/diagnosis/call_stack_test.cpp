#include "diagnosis/call_stack.hpp"

#include "diagnosis/code_symbols.hpp"

#include <unistd.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <string>
#include <thread>

#include <pthread.h>
#include <signal.h>

namespace hearth::diagnosis {
namespace {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HEARTH_DEFERS_SIGNALS  // until the thread calls the system
#endif
#endif

std::atomic<bool> is_there{false};
std::atomic<bool> may_go_on{false};

void tell_that_it_is_there() {
  is_there = true;
}
__attribute__((noinline)) void spin_in_the_middle_of_nowhere() {
  tell_that_it_is_there();
  while (!may_go_on) asm volatile("");
}
__attribute__((noinline)) void sleep_in_the_middle_of_nowhere() {
  tell_that_it_is_there();
  while (!may_go_on) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}
[[maybe_unused]] __attribute__((noinline)) void recurse(int depth) {
  if (depth == 0) return spin_in_the_middle_of_nowhere();
  recurse(depth - 1);
  asm volatile("");
}

class CallStackTest : public ::testing::Test {
 protected:
  // The stack, as text, of a thread that runs `work` as a call.
  template <class Work>
  std::string stack_of(Work work) {
    may_go_on = false;
    is_there = false;
    std::thread thread([&] {
      const CallScope scope(owner_, "message", AgentLabel("a"));
      work();
    });
    while (!is_there) std::this_thread::yield();  // (a blocked thread cannot notify)
    for_each_call([this](const RunningCall& call) {
      if (call.owner == &owner_) frames_ = stacks_.capture(call);
    });
    may_go_on = true;
    thread.join();
    std::string text;
    for (const std::string& each : name_addresses(frames_)) text += each + "\n";
    return text;
  }

  const CallOwner owner_{"/plugins/a.so", "0123", 7, "Room"};
  const CallOwner other_owner_{"/plugins/b.so", "4567", 1, "Lobby"};
  CallStacks stacks_;
  std::vector<std::uintptr_t> frames_;
};

TEST_F(CallStackTest, AThreadThatComputesAndOneThatSleeps) {
#ifndef HEARTH_DEFERS_SIGNALS
  const std::string spinning = stack_of(spin_in_the_middle_of_nowhere);
  EXPECT_NE(spinning.find("spin_in_the_middle_of_nowhere"), std::string::npos) << spinning;
#endif
  const std::string sleeping = stack_of(sleep_in_the_middle_of_nowhere);
  EXPECT_NE(sleeping.find("sleep_in_the_middle_of_nowhere"), std::string::npos) << sleeping;
}

#ifndef HEARTH_DEFERS_SIGNALS
TEST_F(CallStackTest, TheInnermostComesFirstAndThereAreAtMostSoMany) {
  const std::string text = stack_of([] { recurse(100); });
  EXPECT_EQ(frames_.size(), CallStacks::kMaxFrames);
  // Functions that it calls may be above it.
  EXPECT_LT(text.find("spin_in_the_middle_of_nowhere"), text.find("recurse")) << text;
  EXPECT_NE(text.find("recurse"), std::string::npos) << text;
}
#endif

TEST_F(CallStackTest, OneThatHasReturnedHasNone) {
  std::latch begun(1);
  std::latch over(1);
  std::latch end(1);
  std::thread thread([&] {
    {
      const CallScope scope(owner_, "message", AgentLabel("a"));
      begun.count_down();
      over.wait();
    }
    end.wait();
  });
  begun.wait();
  RunningCall seen;
  for_each_call([&](const RunningCall& call) {
    if (call.owner == &owner_) seen = call;
  });
  over.count_down();
  bool still = true;
  while (still) {
    still = false;
    for_each_call([&](const RunningCall& call) { still = still || call.owner == &owner_; });
  }
  EXPECT_TRUE(stacks_.capture(seen).empty());
  end.count_down();
  thread.join();
  EXPECT_TRUE(stacks_.capture(seen).empty()) << "and the thread neither";
}

TEST_F(CallStackTest, AThreadThatBlocksSignalsIsNotWaitedForAndTheNextOneAnswers) {
  std::latch blocked(1);
  std::latch unblock(1);
  std::latch unblocked(1);
  std::latch end(1);
  std::thread thread([&] {
    sigset_t all{};
    sigset_t before{};
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    const CallScope scope(owner_, "message", AgentLabel("a"));
    blocked.count_down();
    unblock.wait();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);  // here the signal arrives
    unblocked.count_down();
    end.wait();
  });
  blocked.wait();
  RunningCall deaf;
  for_each_call([&](const RunningCall& call) {
    if (call.owner == &owner_) deaf = call;
  });
  ASSERT_NE(deaf.owner, nullptr);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(stacks_.capture(deaf).empty());
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(30));
  std::thread other([&] {
    const CallScope scope(other_owner_, "message", AgentLabel("b"));
    unblock.count_down();
    unblocked.wait();
    end.wait();
  });
  unblocked.wait();
#ifndef HEARTH_DEFERS_SIGNALS
  // The earlier request is over; it answers the next one.
  EXPECT_FALSE(stacks_.capture(deaf).empty());
  for_each_call([&](const RunningCall& call) {
    if (call.owner == &other_owner_) EXPECT_FALSE(stacks_.capture(call).empty());
  });
#endif
  end.count_down();
  thread.join();
  other.join();
}

TEST_F(CallStackTest, OfSeveralObjectsTheFirstOneAsks) {
  CallStacks second;
  std::latch begun(1);
  may_go_on = false;
  std::thread thread([&] {
    const CallScope scope(owner_, "message", AgentLabel("a"));
    begun.count_down();
    sleep_in_the_middle_of_nowhere();
  });
  begun.wait();
  for_each_call([&](const RunningCall& call) {
    if (call.owner == &owner_) EXPECT_TRUE(second.capture(call).empty());
  });
  may_go_on = true;
  thread.join();
}

volatile sig_atomic_t has_faulted = 0;

volatile sig_atomic_t has_stayed = 0;

void give_up(int /*signal*/, siginfo_t* info, void* /*context*/) {
  has_faulted = 1;
  // As if another process had sent it: with kill(), and with tgkill().
  siginfo_t sent{};
  sent.si_code = SI_USER;
  leave_stack_walk(sent);
  sent.si_code = SI_TKILL;
  sent.si_pid = ::getppid();
  leave_stack_walk(sent);
  has_stayed = 1;
  leave_stack_walk(*info);
  _exit(1);
}

// A stack that was overwritten: the caller's frame is said to be where no memory is.
__attribute__((noinline)) void spin_on_a_broken_stack() {
#if defined(__x86_64__) && !defined(HEARTH_DEFERS_SIGNALS)
  // The frame is found through this register, as at -O0. The thread sets its flag only after it has
  // broken the register: before that, there is nothing to fault on.
  asm volatile(
      "push %%rbp\n"
      "mov $0x10, %%rbp\n"
      "movb $1, %1\n"
      "1: cmpb $0, %0\n"
      "je 1b\n"
      "pop %%rbp\n"
      :
      : "m"(may_go_on), "m"(is_there)
      : "memory", "cc");
#else
  tell_that_it_is_there();
#endif
}

TEST_F(CallStackTest, AFaultWhileItWalksIsNoCrash) {
  struct sigaction ours{};
  ours.sa_sigaction = give_up;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  struct sigaction before{};
  ::sigaction(SIGSEGV, &ours, &before);
  stack_of(spin_on_a_broken_stack);
  ::sigaction(SIGSEGV, &before, nullptr);
#if defined(__x86_64__) && !defined(HEARTH_DEFERS_SIGNALS)
  EXPECT_FALSE(frames_.empty()) << "where it was interrupted is known all the same";
#ifndef __OPTIMIZE__  // else the frame may be found without the register
  EXPECT_EQ(has_faulted, 1) << "there was nothing to give up";
  EXPECT_EQ(has_stayed, 1) << "a signal that somebody sent has ended the walk";
#endif
#endif
  EXPECT_NE(stack_of(sleep_in_the_middle_of_nowhere), "");
}

}  // namespace
}  // namespace hearth::diagnosis

#include "plugins/admission/process_state.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string>

#include <pthread.h>

namespace hearth::plugins {
namespace {

// All differences in one text.
std::string changed_since(const ProcessState& before, bool allow_threads = false) {
  std::string text;
  for (const std::string& each : differences(before, ProcessState::take(), allow_threads))
    text += each + "\n";
  return text;
}

TEST(ProcessStateTest, NothingIsDifferentWhenNothingWasDone) {
  EXPECT_EQ(changed_since(ProcessState::take()), "");
}

TEST(ProcessStateTest, ASignalHandlerIsNoticed) {
  const ProcessState before = ProcessState::take();
  const auto old = std::signal(SIGUSR2, SIG_IGN);
  EXPECT_EQ(changed_since(before), "SIGUSR2 is handled differently\n");
  std::signal(SIGUSR2, old);
}

TEST(ProcessStateTest, TheDirectoryTheMaskAndTheEnvironmentAreNoticed) {
  const ProcessState before = ProcessState::take();
  const auto directory = std::filesystem::current_path();
  std::filesystem::current_path("/");
  const mode_t mask = ::umask(0123);
  ::setenv("HEARTH_PROCESS_STATE_TEST", "1", 1);
  const std::string text = changed_since(before);
  std::filesystem::current_path(directory);
  ::umask(mask);
  ::unsetenv("HEARTH_PROCESS_STATE_TEST");
  EXPECT_NE(text.find("current directory"), std::string::npos) << text;
  EXPECT_NE(text.find("umask"), std::string::npos) << text;
  EXPECT_NE(text.find("environment"), std::string::npos) << text;
  EXPECT_EQ(changed_since(before), "");
}

TEST(ProcessStateTest, ADescriptorIsNoticedWithItsName) {
  const ProcessState before = ProcessState::take();
  const int descriptor = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  EXPECT_NE(changed_since(before).find("/dev/zero"), std::string::npos);
  ::close(descriptor);
  EXPECT_EQ(changed_since(before), "");
}

TEST(ProcessStateTest, HandlersOfTheLanguageAreNoticed) {
  const ProcessState before = ProcessState::take();
  const auto terminate = std::set_terminate([] { std::_Exit(1); });
  const auto old_new = std::set_new_handler([] { std::_Exit(1); });
  const std::string text = changed_since(before);
  std::set_terminate(terminate);
  std::set_new_handler(old_new);
  EXPECT_NE(text.find("set_terminate"), std::string::npos) << text;
  EXPECT_NE(text.find("set_new_handler"), std::string::npos) << text;
}

TEST(ProcessStateTest, AThreadAndAKeyAreNoticed) {
  const ProcessState before = ProcessState::take();
  pthread_key_t key = 0;
  ASSERT_EQ(::pthread_key_create(&key, nullptr), 0);
  EXPECT_EQ(changed_since(before), "a key of pthread_key_create is left\n");
  ::pthread_key_delete(key);

  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  ::pthread_mutex_lock(&gate);
  pthread_t thread{};
  const auto wait = [](void* given) -> void* {
    ::pthread_mutex_lock(static_cast<pthread_mutex_t*>(given));
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, nullptr, wait, &gate), 0);
  EXPECT_NE(changed_since(before).find("1 more threads"), std::string::npos);
  EXPECT_EQ(changed_since(before, true), "");
  ::pthread_mutex_unlock(&gate);
  ::pthread_join(thread, nullptr);
  EXPECT_EQ(ProcessState::take(before.threads).threads, before.threads);
}

}  // namespace
}  // namespace hearth::plugins

#include "diagnosis/crash_stack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include <signal.h>

namespace hearth::diagnosis {
namespace {

constinit std::array<std::uintptr_t, kMaxCrashFrames> crash_stack_frames{};
constinit std::size_t crash_stack_count = 0;

__attribute__((noinline)) void crash_stack_inner() {
  crash_stack_count = walk_crashed_stack(nullptr, crash_stack_frames).size();
}

void on_crash_stack_signal(int /*signal*/, siginfo_t* /*info*/, void* context) {
  crash_stack_count =
      walk_crashed_stack(static_cast<const ucontext_t*>(context), crash_stack_frames).size();
}

__attribute__((noinline)) void crash_stack_interrupted() {
  ::raise(SIGUSR1);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

std::vector<std::string> named_frames() {
  std::vector<CodePlace> places;
  for (std::size_t i = 0; i < crash_stack_count; ++i) {
    const CodePlaceView place = find_place(crash_stack_frames[i]);
    const bool is_program = place.file == kProgramFile;
    places.push_back(
        {.file = is_program ? "/proc/self/exe" : std::string(place.file), .offset = place.offset});
  }
  return name_places(places);
}

bool names(const std::vector<std::string>& frames, const std::string& function) {
  return std::ranges::any_of(
      frames, [&](const auto& each) { return each.find(function) != std::string::npos; });
}

TEST(CrashStackTest, TheFunctionsOfThisThreadHaveNamesInTheirFiles) {
  prepare_stack_walk();
  crash_stack_inner();
  const std::vector<std::string> frames = named_frames();
  ASSERT_FALSE(frames.empty());
  EXPECT_TRUE(names(frames, "crash_stack_inner")) << join_stack(frames);
  EXPECT_TRUE(names(frames, "TheFunctionsOfThisThread")) << join_stack(frames);
}

TEST(CrashStackTest, AHandlerSeesWhatTheSignalHasInterruptedAndNotItself) {
  struct sigaction ours{};
  struct sigaction before{};
  ours.sa_sigaction = on_crash_stack_signal;
  ours.sa_flags = SA_SIGINFO;
  ::sigaction(SIGUSR1, &ours, &before);
  crash_stack_interrupted();
  ::sigaction(SIGUSR1, &before, nullptr);
  const std::vector<std::string> frames = named_frames();
  EXPECT_TRUE(names(frames, "crash_stack_interrupted")) << join_stack(frames);
  EXPECT_FALSE(names(frames, "on_crash_stack_signal")) << join_stack(frames);
}

TEST(CrashStackTest, AnAddressInNoFileStaysANumber) {
  const CodePlaceView place = find_place(0x10);
  EXPECT_EQ(place.file, "");
  const std::vector<CodePlace> places{{.file = "", .offset = 0x10},
                                      {.file = "gone.so", .offset = 0x20},
                                      {.file = "/nowhere/gone.so", .offset = 0x30}};
  EXPECT_EQ(join_stack(name_places(places)), "0x10 < gone.so+0x20 < gone.so+0x30");
}

}  // namespace
}  // namespace hearth::diagnosis

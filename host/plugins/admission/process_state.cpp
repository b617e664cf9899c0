#include "plugins/admission/process_state.hpp"

#include "base/escape.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <thread>

#include <dirent.h>
#include <pthread.h>

namespace hearth::plugins {
namespace {

namespace fs = std::filesystem;

std::map<int, std::string> open_descriptors() {
  std::map<int, std::string> found;
  DIR* const directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return found;
  const int own = ::dirfd(directory);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one stream, one thread
  while (const dirent* const entry = ::readdir(directory)) {
    int number = -1;
    const std::string_view name = entry->d_name;
    if (name.starts_with('.')) continue;
    number = std::stoi(std::string(name));
    if (number == own) continue;
    std::array<char, 256> target{};
    const ssize_t size = ::readlinkat(own, entry->d_name, target.data(), target.size());
    found[number] = size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : "?";
  }
  ::closedir(directory);
  return found;
}

std::size_t count_children() {
  std::ifstream file("/proc/thread-self/children");
  std::size_t count = 0;
  for (std::string child; file >> child;) ++count;
  return count;
}

unsigned next_thread_key() {
  pthread_key_t key = 0;
  if (::pthread_key_create(&key, nullptr) != 0) return 0;
  ::pthread_key_delete(key);
  return key;
}

}  // namespace

std::size_t count_threads() {
  std::error_code failure;
  std::size_t count = 0;
  for (fs::directory_iterator task("/proc/self/task", failure), end; !failure && task != end;
       task.increment(failure))
    ++count;
  return count;
}

ProcessState ProcessState::take(std::size_t threads) {
  ProcessState state;
  // The system counts a thread for a moment after pthread_join() has returned.
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds && count_threads() > threads; ++round)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  state.threads = count_threads();
  state.children = count_children();
  state.settings = ProcessSettings::take();
  state.descriptors = open_descriptors();
  state.next_key = next_thread_key();
  return state;
}

std::vector<std::string> differences(const ProcessState& before, const ProcessState& after,
                                     bool allow_threads) {
  std::vector<std::string> found;
  if (!allow_threads && after.threads > before.threads) {
    found.push_back(std::to_string(after.threads - before.threads) +
                    " more threads run: join them in deinit(), and set HEARTH_PLUGIN_THREADS");
  }
  if (after.children > before.children) found.emplace_back("a child process runs");
  std::ranges::move(differences(before.settings, after.settings), std::back_inserter(found));
  for (const auto& [number, target] : after.descriptors) {
    const auto old = before.descriptors.find(number);
    if (old != before.descriptors.end() && old->second == target) continue;
    found.push_back("descriptor " + std::to_string(number) + " is open (" + quote_text(target) +
                    ")");
  }
  if (after.descriptors.size() < before.descriptors.size())
    found.emplace_back("a descriptor of the host's was closed");
  if (after.next_key > before.next_key) found.emplace_back("a key of pthread_key_create is left");
  return found;
}

}  // namespace hearth::plugins

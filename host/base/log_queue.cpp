#include "base/log_queue.hpp"

#include "base/bounded_write.hpp"
#include "base/forgive_leak.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include <pthread.h>
#include <signal.h>

namespace hearth {
namespace {

// How long the writer waits for room before it looks whether it is to stop.
constexpr std::chrono::milliseconds kLook{100};

// Bytes that wait, of all queues of the process: what await_log_written() reads, which may run in a signal handler.
constinit std::atomic<std::size_t> waiting_bytes{0};
static_assert(std::atomic<std::size_t>::is_always_lock_free);

// While an object lives, threads that are made have all signals blocked.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all{};
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

struct LogQueue::State {
  State(int to, Report how) : descriptor(to), report(std::move(how)) {}

  void write_lines();
  [[nodiscard]] std::string take_batch();
  [[nodiscard]] bool write(std::string_view text);
  void drop(DroppedLines more);

  const int descriptor;
  const Report report;
  const pid_t process = ::getpid();

  std::mutex mutex;
  std::condition_variable line_came;
  std::condition_variable ended;
  // guarded by mutex
  std::deque<std::string> lines;
  std::size_t bytes = 0;  // of `lines`
  DroppedLines dropped;
  DroppedLines unreported;
  bool stopping = false;
  bool has_ended = false;

  std::atomic<bool> gives_up = false;  // the time for the last lines is over
  std::thread writer;
};

LogQueue::LogQueue(int descriptor, Report report)
    : state_(std::make_shared<State>(descriptor, std::move(report))) {
  const SignalsBlocked blocked;
  state_->writer = std::thread([state = state_] { state->write_lines(); });
}

LogQueue::~LogQueue() {
  if (::getpid() != state_->process) {
    // Only the parent has the writer: here it can be neither joined nor detached. So what holds it stays.
    const auto* const kept = std::make_unique<std::shared_ptr<State>>(std::move(state_)).release();
    HEARTH_FORGIVE_LEAK(kept);
    return;
  }
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->line_came.notify_one();
  const auto is_over = [this] { return state_->has_ended; };
  if (!state_->ended.wait_for(lock, kLastWait, is_over)) {
    state_->gives_up = true;
    state_->ended.wait_for(lock, 2 * kLook, is_over);
  }
  const bool has_ended = state_->has_ended;
  lock.unlock();
  // A writer that stands still in the system, for a device, may do so for ever. It ends with the process.
  if (has_ended) {
    state_->writer.join();
  } else {
    state_->writer.detach();
  }
}

void LogQueue::put(std::string line) {
  if (::getpid() != state_->process) {
    write_within(state_->descriptor, line, kLastWait);
    return;
  }
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->bytes + line.size() > kMaxBytes) {
      state_->drop({.lines = 1, .bytes = line.size()});
      return;
    }
    state_->bytes += line.size();
    waiting_bytes += line.size();
    state_->lines.push_back(std::move(line));
  }
  state_->line_came.notify_one();
}

DroppedLines LogQueue::dropped() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->dropped;
}

// ---- the writer -----------------------------------------------------------------------------------

void LogQueue::State::write_lines() {
  for (;;) {
    DroppedLines told;
    std::string batch;
    {
      std::unique_lock lock(mutex);
      line_came.wait(lock, [this] { return stopping || !lines.empty(); });
      if (lines.empty() || gives_up) break;
      told = std::exchange(unreported, {});
      batch = take_batch();
    }
    if (told.lines > 0 && !write(report(told))) {
      const std::scoped_lock lock(mutex);
      unreported.lines += told.lines;
      unreported.bytes += told.bytes;
    }
    if (!write(batch)) {
      const std::scoped_lock lock(mutex);
      drop({.lines = static_cast<std::uint64_t>(std::ranges::count(batch, '\n')),
            .bytes = batch.size()});
    }
    waiting_bytes -= batch.size();
  }
  const std::scoped_lock lock(mutex);
  waiting_bytes -= std::exchange(bytes, 0);
  lines.clear();
  has_ended = true;
  ended.notify_all();
}

// Under the mutex: the first lines, as many as are written in one piece, one at least.
std::string LogQueue::State::take_batch() {
  std::string batch;
  do {
    bytes -= lines.front().size();
    batch += lines.front();
    lines.pop_front();
  } while (!lines.empty() && batch.size() + lines.front().size() <= kAtomicWrite);
  return batch;
}

// False: some of it could not be written.
bool LogQueue::State::write(std::string_view text) {
  while (!gives_up) {
    const Written done = write_within(descriptor, text, kLook);
    text.remove_prefix(done.bytes);
    if (text.empty()) return true;
    if (done.refused) return false;
  }
  return false;
}

// Under the mutex.
void LogQueue::State::drop(DroppedLines more) {
  for (DroppedLines* const count : {&dropped, &unreported}) {
    count->lines += more.lines;
    count->bytes += more.bytes;
  }
}

void await_log_written(std::chrono::milliseconds patience) noexcept {
  constexpr long kStepMilliseconds = 2;
  for (long passed = 0; waiting_bytes > 0 && passed < patience.count();
       passed += kStepMilliseconds) {
    const timespec step{.tv_sec = 0, .tv_nsec = kStepMilliseconds * 1'000'000};
    ::nanosleep(&step, nullptr);
  }
}

}  // namespace hearth

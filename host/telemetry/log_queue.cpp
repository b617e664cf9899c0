#include "telemetry/log_queue.hpp"

#include "base/bounded_write.hpp"
#include "base/forgive_leak.hpp"
#include "base/mutex.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <deque>
#include <string_view>
#include <thread>
#include <utility>

#include <pthread.h>
#include <signal.h>

namespace hearth {
namespace {

// How long the writer waits for room before it checks whether it must stop.
constexpr std::chrono::milliseconds kLook{100};

// Bytes that wait in all queues of the process. await_log_written() reads them, maybe in a signal
// handler.
constinit std::atomic<std::size_t> waiting_bytes{0};
static_assert(std::atomic<std::size_t>::is_always_lock_free);

// Threads that are made while an object lives have all signals blocked.
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
  // Lets the writer write the lines that are left. False: the writer does not end.
  [[nodiscard]] bool stop();
  // The first lines: at least one, and as many as one atomic write takes.
  [[nodiscard]] std::string take_batch() REQUIRES(mutex);
  [[nodiscard]] bool write(std::string_view text);
  void drop(DroppedLines more) REQUIRES(mutex);
  // False: the time is over, and the writer has not ended.
  bool ends_within(std::chrono::milliseconds limit) REQUIRES(mutex);

  const int descriptor;
  const Report report;
  const pid_t process = ::getpid();

  Mutex mutex;
  Condition line_came;
  Condition ended;
  std::deque<std::string> lines GUARDED_BY(mutex);
  std::size_t bytes GUARDED_BY(mutex) = 0;  // of `lines`
  DroppedLines dropped GUARDED_BY(mutex);
  DroppedLines unreported GUARDED_BY(mutex);
  bool stopping GUARDED_BY(mutex) = false;
  bool has_ended GUARDED_BY(mutex) = false;

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
    // Only the parent has the writer thread: a child can neither join nor detach it. So the child
    // keeps the state for ever.
    const auto* const kept = std::make_unique<std::shared_ptr<State>>(std::move(state_)).release();
    HEARTH_FORGIVE_LEAK(kept);
    return;
  }
  // A writer that waits for a device in a system call may do so for ever. It ends with the process.
  if (state_->stop()) {
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
    const MutexLock lock(state_->mutex);
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
  const MutexLock lock(state_->mutex);
  return state_->dropped;
}

bool LogQueue::State::stop() {
  const MutexLock lock(mutex);
  stopping = true;
  line_came.notify_one();
  if (ends_within(kLastWait)) return true;
  gives_up = true;
  return ends_within(2 * kLook);
}

bool LogQueue::State::ends_within(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!has_ended) {
    if (!ended.wait_until(mutex, end)) break;
  }
  return has_ended;
}

// ---- the writer ---------------------------------------------------------------------------------

void LogQueue::State::write_lines() {
  for (;;) {
    DroppedLines told;
    std::string batch;
    {
      const MutexLock lock(mutex);
      while (!stopping && lines.empty()) line_came.wait(mutex);
      if (lines.empty() || gives_up) break;
      told = std::exchange(unreported, {});
      batch = take_batch();
    }
    if (told.lines > 0 && !write(report(told))) {
      const MutexLock lock(mutex);
      unreported.lines += told.lines;
      unreported.bytes += told.bytes;
    }
    if (!write(batch)) {
      const MutexLock lock(mutex);
      drop({.lines = static_cast<std::uint64_t>(std::ranges::count(batch, '\n')),
            .bytes = batch.size()});
    }
    waiting_bytes -= batch.size();
  }
  const MutexLock lock(mutex);
  waiting_bytes -= std::exchange(bytes, 0);
  lines.clear();
  has_ended = true;
  ended.notify_all();
}

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

// Call it under the mutex.
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

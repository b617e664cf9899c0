#include "runtime/asio_loop.hpp"

#include "base/assert.hpp"

#include <sys/timerfd.h>

#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

#include <cerrno>
#include <chrono>
#include <utility>

#include <pthread.h>

namespace hearth::runtime {
namespace {

int open_alarm() {
  const int alarm = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (alarm < 0)
    throw boost::system::system_error(errno, boost::system::system_category(), "timerfd_create");
  return alarm;
}

}  // namespace

AsioLoop::AsioLoop(const Clock& clock)
    : clock_(clock),
      work_(context_.get_executor()),
      turn_end_([this](std::function<void()> task) { post(std::move(task)); }),
      alarm_(context_, open_alarm()) {}

AsioLoop::~AsioLoop() {
  HEARTH_ASSERT(!thread_.joinable(), "loop destroyed while it runs");
}

void AsioLoop::start() {
  thread_ = std::thread([this] {
    thread_id_ = std::this_thread::get_id();
    ::pthread_setname_np(::pthread_self(), "hearth-shard");
    context_.run();
  });
}

void AsioLoop::stop() {
  if (!thread_.joinable()) return;
  context_.stop();
  thread_.join();
}

void AsioLoop::post(std::function<void()> task) {
  boost::asio::post(context_, std::move(task));
}

bool AsioLoop::on_this_thread() const {
  return thread_id_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

TimerId AsioLoop::call_at(SteadyTime due, std::function<void()> task) {
  const TimerId timer = timers_.add(due, std::move(task));
  if (!alarm_at_ || due < *alarm_at_) plan_turn();
  return timer;
}

void AsioLoop::cancel_timer(TimerId timer) {
  // The alarm stays set: when it rings, nothing is due, and the turn sets it again.
  if (timer != 0) timers_.cancel(timer);
}

// ---- turns --------------------------------------------------------------------------------------

// Not in call_at(): of the timers set before the turn only the earliest needs the alarm, and timers
// that are cancelled or due by then need none.
void AsioLoop::plan_turn() {
  if (std::exchange(turn_planned_, true)) return;
  boost::asio::post(context_, [this] { turn(); });
}

void AsioLoop::turn() {
  // Until the end of this turn: timers that are set in it plan no further turn.
  turn_planned_ = true;
  const SteadyTime begun = clock_.steady_now();
  const TimerId last = timers_.last();
  for (int ran = 0; ran < kMostPerTurn; ++ran) {
    const std::function<void()> task = timers_.take_due(begun, last);
    if (!task) break;
    task();
  }
  turn_planned_ = false;
  const std::optional<SteadyTime> next = timers_.next_due();
  if (!next) return;
  if (*next <= clock_.steady_now()) {
    plan_turn();
  } else if (!alarm_at_ || *next < *alarm_at_) {
    set_alarm(*next);
  }
}

void AsioLoop::set_alarm(SteadyTime at) {
  const auto since_boot = at.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
  const ::itimerspec moment{
      .it_interval = {},
      .it_value = {.tv_sec = seconds.count(), .tv_nsec = (since_boot - seconds).count()}};
  const int failed = ::timerfd_settime(alarm_.native_handle(), TFD_TIMER_ABSTIME, &moment, nullptr);
  HEARTH_ASSERT(failed == 0, "the alarm refuses a moment");
  alarm_at_ = at;
  // Setting the alarm has cleared its earlier expirations, so no read is needed.
  if (std::exchange(alarm_awaited_, true)) return;
  alarm_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [this](const boost::system::error_code& error) {
                      if (error) return;
                      alarm_awaited_ = false;
                      alarm_at_.reset();
                      turn();
                    });
}

}  // namespace hearth::runtime

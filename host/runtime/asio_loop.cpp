#include "runtime/asio_loop.hpp"

#include "base/assert.hpp"

#include <boost/asio/post.hpp>

#include <utility>

#include <pthread.h>

namespace hearth::runtime {

AsioLoop::AsioLoop(const Clock& clock)
    : clock_(clock), work_(context_.get_executor()), alarm_(context_) {}

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
  if (!armed_for_ || due < *armed_for_) arm();
  return timer;
}

void AsioLoop::cancel_timer(TimerId timer) {
  // The alarm stays as it is: an early wake-up finds nothing due and arms itself again.
  if (timer != 0) timers_.cancel(timer);
}

void AsioLoop::arm() {
  armed_for_ = timers_.next_due();
  if (!armed_for_) return;
  alarm_.expires_at(*armed_for_);  // cancels the wait before
  alarm_.async_wait([this](const boost::system::error_code& error) {
    if (!error) run_due();
  });
}

void AsioLoop::run_due() {
  armed_for_.reset();
  const SteadyTime now = clock_.steady_now();
  while (std::function<void()> task = timers_.take_due(now)) task();
  if (!armed_for_) arm();
}

}  // namespace hearth::runtime

#pragma once
// The loop of a shard in production: one io_context, one thread.

#include "runtime/shard_loop.hpp"
#include "runtime/timer_queue.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <optional>
#include <thread>

namespace hearth::runtime {

// Lifetime   start() once, then stop() before destruction. What was posted and not yet run at stop() is dropped
//            by the destructor, on the thread that destroys.
class AsioLoop final : public ShardLoop {
 public:
  explicit AsioLoop(const Clock& clock);
  ~AsioLoop() override;

  // Starts the thread.
  void start();
  // Ends the thread after the task that runs now. Any thread but the loop's own.
  void stop();

  // For sockets that live on this loop.
  boost::asio::io_context& context() { return context_; }

  void post(std::function<void()> task) override;
  [[nodiscard]] bool on_this_thread() const override;
  [[nodiscard]] const Clock& clock() const override { return clock_; }
  TimerId call_at(SteadyTime due, std::function<void()> task) override;
  void cancel_timer(TimerId timer) override;

 private:
  void arm();
  void run_due();

  const Clock& clock_;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  TimerQueue timers_;
  boost::asio::steady_timer alarm_;
  std::optional<SteadyTime> armed_for_;  // what alarm_ waits for
  std::atomic<std::thread::id> thread_id_;
  std::thread thread_;
};

}  // namespace hearth::runtime

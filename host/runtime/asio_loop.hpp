#pragma once
// The loop of a shard in production: one io_context, one thread.

#include "runtime/shard_loop.hpp"
#include "runtime/timer_queue.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <atomic>
#include <optional>
#include <thread>

namespace hearth::runtime {

// Its timers share one alarm. The alarm is set at most once per turn of the loop, and never for a
// timer that is already due. So a timer costs a system call only if it has to wake the kernel's
// wait earlier than planned.
//
// Promises
//  P1 Fair   A turn runs at most kMostPerTurn timers, none of them set in the same turn, and
//            between two turns the loop serves sockets and posted tasks.
//  P2 Real   Timers count the time in which the machine is suspended: timers that expired meanwhile
//            are due when it resumes.
//
// P1: A task that sets itself again without a delay delays no client.
//
// Lifetime   start() once, then stop() before destruction. The destructor drops tasks that were
//            posted and had not run at stop(), on the thread that destroys.
// Failure    The constructor throws boost::system::system_error: the process is out of descriptors.
class AsioLoop final : public ShardLoop {
 public:
  static constexpr int kMostPerTurn = 64;

  // The clock's steady time is CLOCK_BOOTTIME, as in SystemClock.
  explicit AsioLoop(const Clock& clock);
  ~AsioLoop() override;

  // Starts the thread.
  void start();
  // Ends the thread after the task that runs now. Any thread but the loop's own.
  void stop();

  // For sockets that live on this loop.
  boost::asio::io_context& context() { return context_; }

  void post(std::function<void()> task) override;
  [[nodiscard]] TurnEnd& turn_end() override { return turn_end_; }
  [[nodiscard]] bool on_this_thread() const override;
  [[nodiscard]] const Clock& clock() const override { return clock_; }
  TimerId call_at(SteadyTime due, std::function<void()> task) override;
  void cancel_timer(TimerId timer) override;

 private:
  void plan_turn();
  void turn();
  void set_alarm(SteadyTime at);

  const Clock& clock_;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  TurnEnd turn_end_;
  TimerQueue timers_;
  bool turn_planned_ = false;
  boost::asio::posix::stream_descriptor alarm_;  // a timerfd
  std::optional<SteadyTime> alarm_at_;           // when it rings; nothing: not set
  bool alarm_awaited_ = false;                   // a handler waits for it
  std::atomic<std::thread::id> thread_id_;
  std::thread thread_;
};

}  // namespace hearth::runtime

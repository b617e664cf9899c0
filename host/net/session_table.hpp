#pragma once
// The connections of one loop, and the one timer that serves them all.

#include "net/options.hpp"

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>

namespace hearth::net {

namespace asio = boost::asio;

// One connection as its table sees it: something that has deadlines and can be told to end.
class Session {
 public:
  Session() = default;
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Time has passed: look at your deadlines. May end the session, but not remove any from the
  // table.
  virtual void on_sweep(SocketTime now) = 0;
  // End in good order, soon: finish what is running, take nothing new.
  virtual void wind_down() = 0;
  // End now.
  virtual void cut() = 0;
  // Whether its client connects again as soon as it is ended, so that many must not end together.
  [[nodiscard]] virtual bool comes_back() const { return false; }

 private:
  friend class SessionTable;
  std::list<std::shared_ptr<Session>>::iterator place_;
};

// Owns the sessions of one loop until they remove themselves. A timer a connection would cost
// memory and a heap operation for each message; one sweep over the table costs a glance a
// connection.
//
// Order     Sweeps come `period` apart while there is a session (sooner while stop() has sessions
//           to tell), and not at all while there is none.
// Threads   The loop's thread only.
// Lifetime  stop() first, then destroy; a table with sessions must not be destroyed (asserted).
class SessionTable {
 public:
  SessionTable(asio::io_context& loop, std::chrono::milliseconds period);
  ~SessionTable();
  SessionTable(const SessionTable&) = delete;
  SessionTable& operator=(const SessionTable&) = delete;

  void add(std::shared_ptr<Session> session);
  // Must be in the table. Not from inside on_sweep(): post it.
  void remove(Session& session);
  [[nodiscard]] std::size_t size() const { return sessions_.size(); }

  // From now on each session is told to wind down, and those that are added later too. What is left
  // at `deadline` is cut. If there are more than `most_at_once` sessions that come back, those are
  // told in kSlices parts, spread evenly over the first half of the time; all others at once.
  void stop(SocketTime deadline, std::size_t most_at_once);
  static constexpr std::size_t kSlices = 20;
  [[nodiscard]] bool stopping() const { return stopping_; }

  // Calls `quiet` once, as soon as the table is empty and its timer has no handler left.
  void when_quiet(std::function<void()> quiet);

  // Calls `visit` for each session; it may end sessions, but not remove them.
  template <class Visit>
  void for_each(Visit visit) {
    for (const std::shared_ptr<Session>& session : sessions_) visit(*session);
  }

 private:
  void arm();
  void sweep();
  void wind_down_slices(SocketTime now);
  void report_quiet();

  asio::basic_waitable_timer<std::chrono::steady_clock,
                             asio::wait_traits<std::chrono::steady_clock>,
                             asio::io_context::executor_type>
      timer_;
  const std::chrono::milliseconds period_;
  std::list<std::shared_ptr<Session>> sessions_;
  std::function<void()> quiet_;
  SocketTime cut_at_ = SocketTime::max();
  // While stopping: from here to the end of the list nobody has been told yet.
  std::list<std::shared_ptr<Session>>::iterator untold_ = sessions_.end();
  SocketTime next_slice_at_ = SocketTime::max();
  SocketTime::duration between_slices_{};
  std::size_t slice_size_ = 0;
  bool armed_ = false;
  bool stopping_ = false;
};

}  // namespace hearth::net

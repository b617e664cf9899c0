#pragma once
// The connections of one loop, and one timer for all of them.

#include "net/net_loop.hpp"
#include "net/options.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>

namespace hearth::net {

// One connection of a table: it has deadlines and can be ended.
class Session {
 public:
  Session() = default;
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Checks the session's deadlines. May end the session, but must not remove any session from the
  // table.
  virtual void on_sweep(SocketTime now) = 0;
  // Ends soon and in order: finishes work in progress, and accepts no more.
  virtual void wind_down() = 0;
  // Ends now.
  virtual void cut() = 0;
  // Whether its client reconnects at once, so that many such sessions must not end together.
  [[nodiscard]] virtual bool comes_back() const { return false; }

 private:
  friend class SessionTable;
  std::list<std::shared_ptr<Session>>::iterator place_;
};

// Owns the sessions of one loop until they remove themselves. A timer for each connection would
// take memory, and a heap operation for each message. One sweep of the table only reads each
// session's deadlines.
//
// Order     While there is a session, a sweep runs every `period`, and sooner while stop() has
//           sessions to end. Without sessions no sweep runs.
// Threads   The loop's thread only.
// Lifetime  stop() first, then destroy; a table with sessions must not be destroyed (asserted).
class SessionTable {
 public:
  SessionTable(asio::io_context& loop, std::chrono::milliseconds period);
  ~SessionTable();
  SessionTable(const SessionTable&) = delete;
  SessionTable& operator=(const SessionTable&) = delete;

  void add(std::shared_ptr<Session> session);
  // The session must be in the table. Do not call it inside on_sweep(): post it.
  void remove(Session& session);
  [[nodiscard]] std::size_t size() const { return sessions_.size(); }

  // Calls wind_down() of each session, and of sessions that are added later. Sessions that are left
  // at `deadline` are cut. If more than `most_at_once` sessions have comes_back(), those wind down
  // in kSlices parts, spread evenly over the first half of the time; all others at once.
  void stop(SocketTime deadline, std::size_t most_at_once);
  static constexpr std::size_t kSlices = 20;
  [[nodiscard]] bool stopping() const { return stopping_; }

  // Calls `quiet` once, as soon as the table is empty and its timer has no pending handler.
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

  NetTimer timer_;
  const std::chrono::milliseconds period_;
  std::list<std::shared_ptr<Session>> sessions_;
  std::function<void()> quiet_;
  SocketTime cut_at_ = SocketTime::max();
  // While stopping: sessions from here to the end of the list were not told to wind down yet.
  std::list<std::shared_ptr<Session>>::iterator untold_ = sessions_.end();
  SocketTime next_slice_at_ = SocketTime::max();
  SocketTime::duration between_slices_{};
  std::size_t slice_size_ = 0;
  bool armed_ = false;
  bool stopping_ = false;
};

}  // namespace hearth::net

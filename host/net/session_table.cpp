#include "net/session_table.hpp"

#include "base/assert.hpp"

#include <boost/system/error_code.hpp>

#include <algorithm>
#include <utility>

namespace hearth::net {

SessionTable::SessionTable(asio::io_context& loop, std::chrono::milliseconds period)
    : timer_(loop.get_executor()), period_(period) {}

SessionTable::~SessionTable() {
  HEARTH_ASSERT(sessions_.empty(), "a session table was destroyed with sessions in it");
}

void SessionTable::add(std::shared_ptr<Session> session) {
  // At the front: the sessions that stop() has still to end are at the back.
  sessions_.push_front(std::move(session));
  sessions_.front()->place_ = sessions_.begin();
  if (stopping_) sessions_.front()->wind_down();
  arm();
}

void SessionTable::remove(Session& session) {
  if (untold_ == session.place_) ++untold_;
  sessions_.erase(session.place_);
  // Without sessions there is no pending wait, so the loop may end.
  if (!sessions_.empty()) return;
  if (armed_) {
    timer_.cancel();  // sweep() runs once more and reports
  } else {
    report_quiet();
  }
}

void SessionTable::stop(SocketTime deadline, std::size_t most_at_once) {
  stopping_ = true;
  cut_at_ = deadline;
  untold_ = sessions_.end();
  std::size_t count = 0;
  const std::size_t all = sessions_.size();
  auto next = sessions_.begin();
  for (std::size_t i = 0; i < all; ++i) {  // not until end(): the splice appends
    const auto each = next++;
    if (!(*each)->comes_back()) {
      (*each)->wind_down();
      continue;
    }
    sessions_.splice(sessions_.end(), sessions_, each);
    if (count++ == 0) untold_ = each;
  }
  const SocketTime now = std::chrono::steady_clock::now();
  const bool in_slices = count > most_at_once;
  slice_size_ = in_slices ? (count + kSlices - 1) / kSlices : count;
  between_slices_ =
      std::max(in_slices ? (deadline - now) / 2 / int{kSlices} : SocketTime::duration(0),
               SocketTime::duration(1));
  next_slice_at_ = now;
  wind_down_slices(now);
  // The pending sweep may be too late for the next slice: it runs now, and sets the timer for it.
  if (armed_ && untold_ != sessions_.end()) timer_.cancel();
}

// A late loop ends several slices at once, so that the last session is always told in time.
void SessionTable::wind_down_slices(SocketTime now) {
  while (untold_ != sessions_.end() && now >= next_slice_at_) {
    for (std::size_t i = 0; i < slice_size_ && untold_ != sessions_.end(); ++i) {
      (*untold_++)->wind_down();
    }
    next_slice_at_ += between_slices_;
  }
}

void SessionTable::arm() {
  if (armed_) return;
  armed_ = true;
  SocketTime next = std::chrono::steady_clock::now() + period_;
  if (untold_ != sessions_.end()) next = std::min(next, next_slice_at_);
  timer_.expires_at(next);
  timer_.async_wait([this](const boost::system::error_code&) { sweep(); });
}

void SessionTable::sweep() {
  armed_ = false;
  const SocketTime now = std::chrono::steady_clock::now();
  for_each([now](Session& session) { session.on_sweep(now); });
  wind_down_slices(now);
  if (now >= cut_at_) for_each([](Session& session) { session.cut(); });
  if (!sessions_.empty()) arm();
  report_quiet();
}

void SessionTable::when_quiet(std::function<void()> quiet) {
  quiet_ = std::move(quiet);
  report_quiet();
}

void SessionTable::report_quiet() {
  if (armed_ || !sessions_.empty() || !quiet_) return;
  std::exchange(quiet_, nullptr)();
}

}  // namespace hearth::net

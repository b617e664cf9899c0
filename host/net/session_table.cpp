#include "net/session_table.hpp"

#include "base/assert.hpp"

#include <boost/system/error_code.hpp>

#include <utility>

namespace hearth::net {

SessionTable::SessionTable(asio::io_context& loop, std::chrono::milliseconds period)
    : timer_(loop.get_executor()), period_(period) {}

SessionTable::~SessionTable() {
  HEARTH_ASSERT(sessions_.empty(), "a session table was destroyed with sessions in it");
}

void SessionTable::add(std::shared_ptr<Session> session) {
  sessions_.push_back(std::move(session));
  sessions_.back()->place_ = std::prev(sessions_.end());
  if (stopping_) sessions_.back()->wind_down();
  arm();
}

void SessionTable::remove(Session& session) {
  sessions_.erase(session.place_);
  // Without sessions nothing keeps the loop from ending.
  if (!sessions_.empty()) return;
  if (armed_) {
    timer_.cancel();  // sweep() runs once more and reports
  } else {
    report_quiet();
  }
}

void SessionTable::stop(SteadyTime deadline) {
  stopping_ = true;
  cut_at_ = deadline;
  for_each([](Session& session) { session.wind_down(); });
}

void SessionTable::arm() {
  if (armed_) return;
  armed_ = true;
  timer_.expires_after(period_);
  timer_.async_wait([this](const boost::system::error_code&) { sweep(); });
}

void SessionTable::sweep() {
  armed_ = false;
  const SteadyTime now = std::chrono::steady_clock::now();
  for_each([now](Session& session) { session.on_sweep(now); });
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

#pragma once
// GET /admin/events: the events of the log, as they happen.

#include "api/routes.hpp"
#include "base/clock.hpp"
#include "base/logger.hpp"
#include "base/mutex.hpp"
#include "server/event_ring.hpp"

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::server {

// Passes all lines to the server's logger, and keeps the last ones for readers:
//
//  GET /admin/events?class=&agent=&trace=&level=&since_ms=&after=
//
// Server-sent events: `data` is the event as a JSON line of the log, `id` its cursor. A reader that
// comes back with `Last-Event-ID` (or `?after=`, which it overrules) gets what it has missed; an
// event `gap` says so if that is not held any more. Without a cursor only what is new comes, or
// what has happened since `since_ms`. `level`: info by default. While a reader asks for a finer
// level than the log has, such events are made for readers, too.
//
// Promises
//  P1 No waiting   No caller of write() waits for a reader: a thread of the stream sends.
//  P2 Bounded      There are at most kMaxReaders, and for each waits one part of kPart beside what
//                  its connection may hold.
//
// P2: A reader that takes nothing for kPatience is cut. One whose session of the console has ended
// is cut within two seconds.
//
// Forks      A forked child only passes lines on.
// Threads    As Logger. stop() once, while the loops still run.
// Lifetime   The logger and the clock outlive it, and it outlives the loops.
class EventStream final : public Logger {
 public:
  static constexpr std::size_t kMaxReaders = 32;
  static constexpr std::size_t kPart = std::size_t{64} << 10;
  static constexpr std::chrono::seconds kPatience{30};
  // An idle reader gets its cursor that often, so that it sees that the server is there.
  static constexpr std::chrono::seconds kHeartbeat{15};

  EventStream(Logger& next, const Clock& clock, std::chrono::milliseconds patience = kPatience);
  // Whether a request of the console is still one of a session. Before the first reader; any
  // thread calls it.
  void use_sessions(std::function<bool(const net::HttpRequest&)> in_session) {
    in_session_ = std::move(in_session);
  }
  ~EventStream() override;

  void add_routes(std::vector<api::Route>& rows);
  // Ends the answers of all readers.
  void stop();

  using Logger::write;
  [[nodiscard]] bool enabled(LogLevel level) const override {
    return level >= asked_ || next_.enabled(level);
  }
  void write(LogLevel level, std::string_view event, std::span<const LogField> fields) override;
  [[nodiscard]] DroppedLines dropped() const override { return next_.dropped(); }

 private:
  struct Reader {
    std::shared_ptr<net::HttpExchange> exchange;
    EventFilter filter;
    EventRing::Cursor at;
    bool may_write = true;  // its connection has taken the last part
    bool has_left = false;
    bool needs_session = false;
    std::chrono::steady_clock::time_point wrote_at{};
  };
  struct Part {
    std::shared_ptr<Reader> to;
    std::string text;
  };

  void answer(const api::RouteCall& call);
  // Where the reader of a request begins, if there is room for it.
  [[nodiscard]] Result<EventRing::Cursor> begin(const api::RouteCall& call,
                                                const EventFilter& filter);
  void add(const std::shared_ptr<Reader>& reader);
  void send();
  // The next part of each reader that may get one. Moves readers that are to go to `gone`.
  [[nodiscard]] std::vector<Part> take_parts(std::vector<std::shared_ptr<Reader>>& gone)
      REQUIRES(mutex_);
  void find_finest() REQUIRES(mutex_);

  Logger& next_;
  const Clock& clock_;
  const std::chrono::milliseconds patience_;
  const pid_t process_;
  std::function<bool(const net::HttpRequest&)> in_session_;
  std::atomic<LogLevel> asked_ = LogLevel::kInfo;  // the finest level that a reader wants
  Mutex mutex_;
  Condition news_;
  EventRing ring_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Reader>> readers_ GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point looked_at_ GUARDED_BY(mutex_){};  // at the sessions
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread sender_ GUARDED_BY(mutex_);  // runs from the first reader on
};

}  // namespace hearth::server

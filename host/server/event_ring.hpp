#pragma once
// The last events of the log, in memory, as server-sent events.

#include "base/error.hpp"
#include "base/log_line.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::server {

// Which events a reader wants. An empty member does not restrict.
struct EventFilter {
  LogLevel level = LogLevel::kInfo;  // and more severe ones
  std::string segment;               // the class, as URLs spell it
  std::string agent;
  std::string trace;  // a part of the trace, such as its id
  std::optional<std::int64_t> since_ms;
};

// Each event has a number, which grows by one. An id names the number and the ring, so a cursor of
// an earlier server is recognized.
//
// Bounded    Holds kMaxBytes; the oldest events go first. A line is bounded by kMaxLogValueBytes a
//            field.
// Threads    One at a time.
class EventRing {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{4} << 20;

  // `name`: letters and digits; differs from that of the server before.
  explicit EventRing(std::string name, std::size_t max_bytes = kMaxBytes);

  void put(const LogEvent& event);

  // Where a reader stands: events with greater numbers come next.
  struct Cursor {
    std::uint64_t number = 0;
    std::string gap;  // not empty: why events may be missing before the next one
  };
  // Behind the newest event; with a `since_ms`, before the oldest.
  [[nodiscard]] Cursor begin(const EventFilter& filter) const;
  // kInvalidArgument: not an id.
  [[nodiscard]] Result<Cursor> behind(std::string_view id) const;
  [[nodiscard]] std::string id_of(std::uint64_t number) const;
  [[nodiscard]] bool is_at_end(const Cursor& cursor) const { return cursor.number == newest_; }

  // The next events that pass the filter, about `max_bytes` of them, and moves the cursor. An event
  // of the type `gap` comes first where events are missing: {"missed":N or null,"reason":"..."}.
  [[nodiscard]] std::string read(Cursor& cursor, const EventFilter& filter,
                                 std::size_t max_bytes) const;

 private:
  struct Entry {
    std::int64_t at_ms = 0;
    LogLevel level{};
    std::string segment;
    std::string agent;
    std::string trace;
    std::string line;  // JSON, as in the log

    [[nodiscard]] std::size_t bytes() const;
    [[nodiscard]] bool passes(const EventFilter& filter) const;
  };

  [[nodiscard]] std::uint64_t oldest() const { return newest_ - entries_.size() + 1; }

  const std::string name_;
  const std::size_t max_bytes_;
  std::deque<Entry> entries_;
  std::size_t bytes_ = 0;
  std::uint64_t newest_ = 0;  // 0: none yet
  std::optional<std::int64_t> dropped_until_ms_;
};

}  // namespace hearth::server

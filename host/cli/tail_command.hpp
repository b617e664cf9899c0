#pragma once
// hearth tail: the events of a running server, in a terminal.

#include "cli/command_line.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::cli {

// The path and query of the request.
[[nodiscard]] std::string tail_target(const TailCommand& command, std::int64_t now_ms);

// Server-sent events, from pieces of any size.
class EventLines {
 public:
  struct Event {
    std::string type;  // empty: a message
    std::string data;  // one line
  };
  // The events that this piece completes.
  [[nodiscard]] std::vector<Event> add(std::string_view piece);
  // Of the last event; empty: none yet.
  [[nodiscard]] const std::string& last_id() const { return last_id_; }
  // Forgets an event that was cut off.
  void cut();

 private:
  std::string line_;
  Event event_;
  std::string next_id_;  // of event_
  std::string last_id_;
};

// An event for people, without a line feed: a line of JSON of the log, whatever its values hold.
[[nodiscard]] std::string event_text(std::string_view json);

}  // namespace hearth::cli

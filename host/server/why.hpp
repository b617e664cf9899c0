#pragma once
// What an agent waits for, what ends the wait, and what an operator can do about it.

#include "extensions/wait.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::server {

enum class Urgency : std::uint8_t {
  kNone,    // as it should be
  kLong,    // older than a wait of its kind should be
  kPerson,  // ends only if a person does something
};

// Texts are sentences for an operator; of a subject and a detail they have the first 1000 bytes.
struct Explanation {
  std::string_view kind;  // a word, as in JSON
  Urgency urgency{};
  std::string what;     // "The fiber "f1" runs."
  std::string ends;     // "It ends at its timeout." Empty: until_ms says it
  std::string action;   // what to change; empty: nothing, or `command` says it
  std::string command;  // of a shell, complete but for --config or --data; empty: none
};

// `agent`: as commands take it, "Counter a". Both are pure.
[[nodiscard]] Explanation explain(const extensions::Wait& wait, std::string_view agent,
                                  std::int64_t now_ms);
[[nodiscard]] Urgency urgency_of(const extensions::Wait& wait, std::int64_t now_ms);

// The most urgent first; of these the oldest first, and those of unknown age last. What an agent
// does comes before what it has planned: a schedule, an alarm.
void sort_by_urgency(std::vector<extensions::Wait>& waits, std::int64_t now_ms);

}  // namespace hearth::server

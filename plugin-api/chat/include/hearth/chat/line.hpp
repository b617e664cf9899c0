#pragma once
// The line of a chat's turns: one runs, the others wait. What a new turn does to the line, as a
// pure function.

#include <hearth/time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hearth::chat {

inline constexpr std::size_t kMaxQueuedTurns = 100;
// A continuation waits for further answers of the client.
inline constexpr std::chrono::milliseconds kCoalesce{50};

enum class TurnKind : std::uint8_t {
  kSubmit,        // a client has sent a message
  kRegenerate,    // a client wants the last answer once more
  kContinuation,  // goes on in the last answer: a client has sent a tool's result or an approval
  kProgram,       // the agent's own code has begun it
};

// What a submitted message does while a turn runs or waits. Other kinds are queued.
enum class LinePolicy : std::uint8_t {
  kQueue,
  kLatest,    // takes the place of the submitted ones that wait
  kMerge,     // the same, at the end of the line, and their messages become one with its own
  kDrop,      // is not stored, and ends as skipped
  kDebounce,  // as kLatest, and waits until no further one has come for this time
};

struct LineConfig {
  LinePolicy policy = LinePolicy::kQueue;
  std::chrono::milliseconds debounce{750};  // not above 0: as by default
};

struct TurnInLine {
  std::string id;
  TurnKind kind = TurnKind::kSubmit;
  bool is_running = false;
  std::vector<std::string> origin_ids;  // the user messages at the end of its request
  std::string message_id = {};          // of a continuation: the answer in which it goes on
};

enum class Place : std::uint8_t {
  kQueued,   // at the end of the line
  kJoins,    // a continuation that waits does its work
  kDropped,  // not in the line, by the policy
  kFull,     // refused: kMaxQueuedTurns wait
  kKnown,    // its id or key is that of an earlier turn (turns.hpp)
};

struct Placement {
  Place place = Place::kQueued;
  std::vector<std::string> skipped;  // turns that wait, and end as skipped
  std::vector<std::string> joined;   // user messages that become one: Transcript::join()
  std::string continuation;          // of kJoins: its turn
  Time not_before = {};              // when the turn may begin
};

// `line`: in its order. Of `turn`, its kind and its origin ids count.
[[nodiscard]] Placement place_turn(std::span<const TurnInLine> line, const TurnInLine& turn,
                                   const LineConfig& config, Time now);

}  // namespace hearth::chat

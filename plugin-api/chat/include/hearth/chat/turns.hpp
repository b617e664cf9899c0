#pragma once
// The turns of a chat in the agent's database: the line, the turn that runs, and what the last ones
// came to. One row, chat_turns, holds all of a turn.
//
//     queued --begin()--> running --end()--> completed | error | aborted | skipped
//        +--cancel(), superseded--> skipped
//
// Promises  Written with the running turn of the agent, as all SQL. A turn ends once. Its counters
//           only grow. At most one runs, and turns begin in their order.
// Bounded   kMaxQueuedTurns wait. Of ended turns, the last kKeptTurns are kept: their outcomes, for
//           clients that ask late, and their keys.
// Threads, lifetime  A member of the agent, whose constructor makes the table.
// Failure   SqlError; Error(LIMIT) where it is said

#include <hearth/chat/line.hpp>
#include <hearth/chat/recovery.hpp>
#include <hearth/chat/spending.hpp>
#include <hearth/chat/usage.hpp>
#include <hearth/fields.hpp>
#include <hearth/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace hearth {
class Agent;
}

namespace hearth::chat {

inline constexpr std::uint64_t kKeptTurns = 1'000;
inline constexpr std::size_t kMaxTurnIdBytes = 250;  // it is a part of a fiber's key
inline constexpr std::size_t kMaxOriginIds = 100;    // of one turn; the last ones count
inline constexpr std::size_t kMaxStashBytes = std::size_t{256} << 10;

enum class TurnState : std::uint8_t { kQueued, kRunning, kCompleted, kError, kAborted, kSkipped };

// "completed" and so on, as in frames and in the table.
[[nodiscard]] std::string_view state_text(TurnState state) noexcept;

struct TurnRequest {
  std::string id;  // of the client's request, or a new one
  TurnKind kind = TurnKind::kSubmit;
  std::vector<std::string> origin_ids = {};  // the user messages at the end of the request
  // Null: none. A continuation and a turn of the agent's code get those of the last turn.
  Json body = nullptr;
  Json client_tools = nullptr;
  std::string key = {};         // a second turn with it is none; empty: there is none
  std::string owner = {};       // the id of the connection that has begun it; a continuation is
                                // offered to this one first
  std::string asked_by = {};    // the chats that wait for it, each with a line feed behind it
  std::string message_id = {};  // of a continuation: the answer in which it goes on
};

// What the calls of the model so far have left for the next one.
struct CallPlan {
  int whole_calls = 0;                     // answers that were whole
  bool is_cut = false;                     // the last one was not: the next call goes on in it ...
  std::string open_text;                   // ... in this part of text, which is open
  bool is_paused = false;                  // the model has only paused
  std::string finish_reason;               // of the last call; empty: its answer is not whole
  Usage usage;                             // of the last answer
  std::optional<Reservation> reservation;  // of a call that is not over ...
  std::string purpose;                     // ... as in ModelCall
  bool is_resumable = false;               // the same
  std::uint64_t earlier_calls = 0;         // calls of tools in the message before it
  int generated = 0;                       // Turn::generate() that are over
  std::uint64_t base_parts = 0;            // parts of the message before the turn
  bool is_handed_over = false;             // the agent has left memory between two calls, in order
  int compactions = 0;                     // before a call, see context.hpp ...
  int overflows = 0;                       // ... and after one that was refused as too long ...
  std::optional<std::string> too_long;     // ... in these words, until it is compacted
  HEARTH_FIELDS(whole_calls, is_cut, open_text, is_paused, finish_reason, usage, reservation,
                purpose, is_resumable, earlier_calls, generated, base_parts, is_handed_over,
                compactions, overflows, too_long)
};

// Failure   Error(INVALID): an id or a key over kMaxIdBytes, or no id. Error(LIMIT): a body over
//           kMaxCustomBodyBytes, or tools over kMaxClientToolsBytes
void check_request(const TurnRequest& request);

struct TurnRecord {
  std::string id;
  TurnKind kind = TurnKind::kSubmit;
  TurnState state = TurnState::kQueued;
  std::vector<std::string> origin_ids;
  Json body = nullptr;          // until the next turn begins
  Json client_tools = nullptr;  // the same
  std::string owner;
  std::string asked_by;
  Time not_before = {};
  bool is_stopping = false;   // it runs, and was cancelled
  std::int64_t work = 0;      // rows of its log ...
  std::int64_t progress = 0;  // ... and those of them that show that it gets on
  std::string error;          // of kError: a sentence for clients
  Time created = {};
  std::optional<Time> ended;

  // What save() writes.
  std::string message_id;  // of the answer; empty: it has none yet
  int step = 0;            // calls of the model that are over
  Spent spent;
  CallPlan plan;
  Incident incident;
  Json stash = nullptr;  // of the author

  // Whether `not_before` is to be waited for: not if the clock has gone back since it was set.
  [[nodiscard]] bool is_early(Time now) const noexcept;
};

struct Accepted {
  Place place = Place::kQueued;
  std::string id;                   // the turn that does it; empty: kDropped, kFull
  std::vector<TurnInLine> skipped;  // they have ended
  std::vector<std::string> joined;  // user messages to join
};

// The first turn of the line.
struct Head {
  std::string id;
  bool is_running = false;
};

enum class Cancelled : std::uint8_t {
  kNothing,   // no such turn, or it has ended
  kSkipped,   // it waited, and has ended
  kStopping,  // it runs, and is_stopping is set: it ends itself, also after a crash
};

class Turns {
 public:
  explicit Turns(Agent& agent);
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Gives a turn its place in the line, see place_turn().
  // Failure   As check_request()
  Accepted accept(const TurnRequest& request, const LineConfig& config, Time now);

  [[nodiscard]] std::optional<TurnRecord> find(std::string_view id) const;
  [[nodiscard]] std::optional<TurnRecord> find_key(std::string_view key) const;
  // Running or waiting, in their order.
  [[nodiscard]] std::vector<TurnInLine> line() const;
  // The messages of turns before this one whose answers are in the transcript: a request may
  // repeat them.
  [[nodiscard]] std::unordered_set<std::string> answered_before(const TurnRecord& turn) const;
  [[nodiscard]] std::optional<Head> head() const;
  // The last turn that waits or has begun, if it has failed: clients that connect are told.
  [[nodiscard]] std::optional<TurnRecord> failed() const;

  // True: it runs, since now or since before. False: another one runs, or it is not the first one,
  // or its time has not come, or it has ended.
  bool begin(std::string_view id, Time now);
  // False, as all functions below: the turn does not run any more.
  // Failure   Error(LIMIT): a stash over kMaxStashBytes
  bool save(const TurnRecord& turn);
  // Adds to the counters.
  bool count(std::string_view id, std::uint32_t work, std::uint32_t progress);
  // `outcome`: one of the last four states. `error`: a sentence for clients.
  bool end(std::string_view id, TurnState outcome, std::string_view error, Time now);

  Cancelled cancel(std::string_view id, Time now);
  // The author knows how it has ended.
  void told(std::string_view id);
  // When the first turn was made whose end the author may not know. Nothing: there is none.
  [[nodiscard]] std::optional<Time> oldest_untold() const;
  // Ends what runs as aborted and what waits as skipped, and forgets all but ids and outcomes: to
  // the line and to clients, no turn has begun yet. Gives those that ran or waited.
  std::vector<TurnInLine> clear(Time now);

 private:
  void add(const TurnRequest& request, Time not_before, Time now);
  void skip(std::string_view id, Time now);

  Agent& agent_;
};

}  // namespace hearth::chat

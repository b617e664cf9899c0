#pragma once
// The answers to calls that came with a key: a caller that has lost an answer sends the call again
// under the same key, and gets the answer instead of a second run.

#include "base/error.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/call_key.hpp"
#include "storage/statement.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::extensions {

// On disk   cf_agents_answers(key, fingerprint, code, body, bytes, expires_at), made by the first
//           call with a key. `code` is null while the call runs, 0 for a value, else an Errc.
// Durable   note_begun() and note_ended() are kept in memory until write(), which the agent calls
//           in the transaction of the call's own writes. So an answer is stored if and only if the
//           call's last turn is, and a call that has begun is known before anything of it leaves.
// Bounded   AnswerSettings. As new answers come, those that have expired are removed, a few at a
//           time, and past a limit the oldest ones: their keys are as good as new. A call that runs
//           or was cut off is not removed before it expires, since nobody knows its answer yet.
// Threads, Failure  As AgentContext.
class CallAnswers final : public AgentExtension {
 public:
  enum class Verdict {
    kNew,      // it may run
    kEnded,    // `outcome` is what it came to
    kCutOff,   // it has begun, and its end is not known: it may have had effects
    kAnother,  // the key belongs to a call of another method or with other arguments
    kFull,     // calls without an end leave no room for one more
  };
  struct Known {
    Verdict verdict = Verdict::kNew;
    Result<std::string> outcome = std::string();
  };

  explicit CallAnswers(AgentContext& agent) : agent_(agent) {}

  // What is known of a call with this key. Nothing runs under it now (the caller sees to that).
  Known look(const CallKey& call);

  void note_begun(const CallKey& call);
  // The end of a call that has begun. An error that is not kept leaves the key as good as new. A
  // value that is too large to be kept is noted as kConflict: a second try is told so, and does not
  // run.
  void note_ended(const CallKey& call, const Result<std::string_view>& outcome);
  [[nodiscard]] bool has_unwritten() const { return !unwritten_.empty(); }
  // Writes what was noted. True if an end was among it.
  bool write();

  // Whether an error is kept. One that says that the same call may work later is not: the caller is
  // told to try again (api/object_answer.hpp), and the call runs again then. kLimitExceeded is
  // kept: only a method that ran has ended so, and what it wrote before stays.
  [[nodiscard]] static bool keeps(Errc code);

  // The largest value that is kept, 1 MiB: a key promises a safe second try, not a store.
  static constexpr std::size_t kMaxBodyBytes = std::size_t{1} << 20;

 private:
  struct Note {
    CallKey call;
    std::optional<std::int64_t> code;  // none: it has begun
    std::string body;
  };

  // What the table has, expired answers too. Counted once, since each call asks: a transaction that
  // fails ends the agent, and this with it.
  struct Kept {
    std::int64_t answers = 0;
    std::int64_t bytes = 0;
  };

  [[nodiscard]] bool exists();
  void make_table();
  [[nodiscard]] Kept& kept();
  [[nodiscard]] bool is_over(std::int64_t more_answers);
  [[nodiscard]] bool is_full();
  void put(const Note& note);
  // Runs a DELETE that gives the bytes of what it removes. False: it has removed nothing.
  bool remove(const char* sql, std::span<const storage::Param> params);
  void make_room();
  [[nodiscard]] std::int64_t now_ms() const;

  AgentContext& agent_;
  std::vector<Note> unwritten_;
  std::optional<Kept> kept_;
};

}  // namespace hearth::extensions

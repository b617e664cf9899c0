#pragma once
// Stored answers to calls with a key. A caller that has lost an answer sends the call again under
// the same key, and gets the answer instead of a second run.

#include "base/error.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/types.hpp"
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
// Durable   note_begun() and note_ended() are kept in memory until write(). The agent calls write()
//           in the transaction of the call's own writes. So an answer is stored if and only if the
//           call's last turn is, and the begin of a call is stored before the call has effects
//           outside.
// Bounded   By AnswerSettings. Each write() removes a few expired answers, and past a limit the
//           oldest answers; their keys can then be used again. A call that runs or was cut off is
//           not removed before it expires, since its answer is not known yet.
// Threads, Failure  As AgentContext.
class CallAnswers final : public AgentExtension {
 public:
  enum class Verdict {
    kNew,      // it may run
    kEnded,    // it has ended with `outcome`
    kCutOff,   // it has begun, and its end is unknown: it may have had effects
    kAnother,  // the key belongs to a call with another method or other arguments
    kFull,     // the calls that have not ended leave no room for one more
  };
  struct Known {
    Verdict verdict = Verdict::kNew;
    Result<std::string> outcome = std::string();
  };

  explicit CallAnswers(AgentContext& agent) : agent_(agent) {}

  // Looks up a call. The caller ensures that no call with this key is in progress.
  Known look(const CallKey& call);

  void note_begun(const CallKey& call);
  // The end of a call that has begun. An error that keeps() excludes removes the key, so that it
  // can be used again. A value that is too large is noted as kConflict: a second try gets that
  // error, and does not run.
  void note_ended(const CallKey& call, const Result<std::string_view>& outcome);
  [[nodiscard]] bool has_unwritten() const { return !unwritten_.empty(); }
  // Writes the notes. True if one of them is a stored end.
  bool write();

  // Whether an error is stored. Errors that a retry may mend are not: the caller is told to retry
  // (api/object_answer.hpp), and the call runs again then. kLimitExceeded is stored: it can only
  // come from a method that ran, and the writes of that run are stored.
  [[nodiscard]] static bool keeps(Errc code);

  // The largest value that is stored, 1 MiB: a key makes a retry safe, and is not a store.
  static constexpr std::size_t kMaxBodyBytes = std::size_t{1} << 20;

 private:
  struct Note {
    CallKey call;
    std::optional<std::int64_t> code;  // absent: it has begun
    std::string body;
  };

  // The contents of the table, with expired answers. Counted once, because each call needs them: a
  // failed transaction ends the agent, and with it this object.
  struct Kept {
    std::int64_t answers = 0;
    std::int64_t bytes = 0;
  };

  [[nodiscard]] bool exists();
  void make_table();
  void shorten_waits();
  [[nodiscard]] Kept& kept();
  [[nodiscard]] bool is_over(std::int64_t more_answers);
  [[nodiscard]] bool is_full();
  void put(const Note& note);
  // Runs a DELETE that returns the bytes of each removed row. False: it removed none.
  bool remove(const char* sql, std::span<const storage::Param> params);
  void make_room();
  [[nodiscard]] std::int64_t now_ms() const;

  AgentContext& agent_;
  std::vector<Note> unwritten_;
  std::optional<Kept> kept_;
};

}  // namespace hearth::extensions

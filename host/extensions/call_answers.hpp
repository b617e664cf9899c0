#pragma once
// The answers to calls that came with a key: a caller that has lost an answer sends the call again
// under the same key, and gets the answer instead of a second run.

#include "base/error.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/call_key.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::extensions {

// On disk   cf_agents_answers(key, fingerprint, code, body, bytes, expires_at), made by the first
//           call with a key. `code` is null while the call runs, 0 for a value, else an Errc.
// Durable   note_begun() and note_ended() are kept in memory until write(), which the agent calls
//           in the transaction of the call's own writes. So an answer is stored if and only if the
//           call's last turn is, and a call that has begun is known before anything of it leaves.
// Bounded   AnswerSettings. Expired answers are removed as new ones come, a few at a time.
// Threads, Failure  As AgentContext.
class CallAnswers final : public AgentExtension {
 public:
  enum class Verdict {
    kNew,      // it may run
    kEnded,    // `outcome` is what it came to
    kCutOff,   // it has begun, and its end is not known: it may have had effects
    kAnother,  // the key belongs to a call of another method or with other arguments
    kFull,     // no more answers can be kept now
  };
  struct Known {
    Verdict verdict = Verdict::kNew;
    Result<std::string> outcome = std::string();
  };

  explicit CallAnswers(AgentContext& agent) : agent_(agent) {}

  // What is known of a call with this key. Nothing runs under it now (the caller sees to that).
  Known look(const CallKey& call);

  void note_begun(const CallKey& call);
  // The end of a call that has begun. An error that asks for another try (kUnavailable, kClosing,
  // kCancelled) is not kept: the call may run again. A value that is too large to be kept is noted
  // as kLimitExceeded: a second try is told so, and does not run.
  void note_ended(const CallKey& call, const Result<std::string_view>& outcome);
  [[nodiscard]] bool has_unwritten() const { return !unwritten_.empty(); }
  // Writes what was noted. True if an end was among it.
  bool write();

  // The largest value that is kept, 1 MiB: a key promises a safe second try, not a store.
  static constexpr std::size_t kMaxBodyBytes = std::size_t{1} << 20;

 private:
  struct Note {
    CallKey call;
    std::optional<std::int64_t> code;  // none: it has begun
    std::string body;
  };

  [[nodiscard]] bool exists();
  void make_table();
  [[nodiscard]] bool is_full();
  [[nodiscard]] std::int64_t now_ms() const;

  AgentContext& agent_;
  std::vector<Note> unwritten_;
};

}  // namespace hearth::extensions

#pragma once
// One call of a model, as an operation of the ledger (operations.hpp): a request, and its answer
// as chunks. What was paid is used: an answer that a crash has cut is decoded from the ledger, and
// fetched on where the provider can do that.
//
//     kind                    after a crash in the answer
//     chat.model              the stored part is decoded to its end, and the call is over as `cut`
//     chat.model.resumable    the stored part, then the rest, as FollowUp::kResume asks for it
//
// The same call is the same `turn` and `number`. Chunks that the log has are not made again.

#include <hearth/agent_base.hpp>
#include <hearth/chat/answer_reader.hpp>
#include <hearth/chat/message.hpp>
#include <hearth/chat/options.hpp>
#include <hearth/chat/usage.hpp>
#include <hearth/fields.hpp>
#include <hearth/method.hpp>
#include <hearth/task.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace hearth::chat {

inline constexpr const char* kModelKind = "chat.model";
inline constexpr const char* kResumableKind = "chat.model.resumable";

struct ModelCall {
  std::string turn;
  int number = 0;
  std::string purpose = {};  // with turn and number, it names the call; empty: the answer
  std::string base_url;
  std::string credential;
  HttpCall request;
  bool is_resumable = false;
  // Tokens, at most: the operation's cost, until the provider has reported what it has used.
  std::uint64_t cost = 0;
  std::string open_text = {};                         // of ModelAnswer ...
  std::set<std::string, std::less<>> taken_ids = {};  // ... the same
  std::uint64_t used_events = 0;        // of this call's answer, whose chunks are in the log
  std::size_t room = kMaxMessageBytes;  // of AnswerReader
  std::stop_token stop;
  std::chrono::milliseconds stall_timeout{};  // 0: off
};

// The provider has refused the request, or it has not reached the provider: no answer was made.
class NotCalled : public NotExecuted {
 public:
  explicit NotCalled(Failure failure) : NotExecuted(failure.text), failure_(std::move(failure)) {}
  [[nodiscard]] const Failure& failure() const noexcept { return failure_; }

 private:
  Failure failure_;
};

// In a fiber. The outcome, and the last chunks, are one commit with what the caller writes before
// it waits again.
// Failure   NotCalled; FetchError: of a resumable call, whose rest the same call asks for later;
//           HostError(LIMIT): operations.kinds of the class forbids the call.
[[nodiscard]] Task<CallOutcome> call_model(Agent& agent, const Provider& provider, ModelCall call,
                                           TakeChunks take);

// Settles a call whose fiber has ended without it, and ends its answer at the provider. What it has
// used, as far as that is known; nothing: no answer was made.
[[nodiscard]] Task<std::optional<Usage>> drop_call(Agent& agent, const Provider& provider,
                                                   ModelCall call, OperationRecord left);

// The names of a call in the ledger.
[[nodiscard]] Json call_args(const std::string& turn, int number, const std::string& purpose);

// The kinds of operations above.
[[nodiscard]] OperationKind model_kind();
[[nodiscard]] OperationKind resumable_model_kind();

}  // namespace hearth::chat

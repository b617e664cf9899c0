// Calls with a key, under which their answers are stored.
#include "extensions/call_answers.hpp"
#include "runtime/keyed_calls.hpp"
#include "runtime/live_agent.hpp"

#include <utility>

namespace hearth::runtime {
namespace {

using extensions::CallAnswers;

// The answer to a call that must not run, and its status.
struct Told {
  ResponseHead head;
  Result<std::string> outcome;
};

Told told(CallAnswers::Known known) {
  switch (known.verdict) {
    case CallAnswers::Verdict::kEnded:
      return {{200, {{std::string(kReplayedHeader), "true"}}}, std::move(known.outcome)};
    case CallAnswers::Verdict::kAnother: return {{422, {}}, key_of_another_call()};
    case CallAnswers::Verdict::kFull:
      return {{429, {}},
              Error{Errc::kLimitExceeded,
                    "too many calls with a key have begun and not ended; try later"}};
    default:
      return {{409, {}},
              Error{Errc::kConflict, "a call with this key was cut off, and may have had effects"}};
  }
}

}  // namespace

Error key_of_another_call() {
  return Error{Errc::kInvalidArgument, "this key belongs to a call with other contents"};
}

bool LiveAgent::answer_again(Event& incoming) {
  std::optional<extensions::CallKey>& key = incoming.retry_key;
  if (!key) return false;
  CallAnswers& answers = of<CallAnswers>();
  try {
    CallAnswers::Known known = answers.look(*key);
    // A second run does no harm. Nothing is stored, so reads fill no store.
    if (known.verdict != CallAnswers::Verdict::kAnother && class_->is_read_only(incoming.name)) {
      key.reset();
      return false;
    }
    const bool may_run =
        known.verdict == CallAnswers::Verdict::kNew ||
        (known.verdict == CallAnswers::Verdict::kCutOff && class_->is_idempotent(incoming.name));
    if (may_run) {
      answers.note_begun(*key);  // before any effect of its first turn can leave
      return false;
    }
    Told answer = told(std::move(known));
    if (incoming.sink)
      outbox_.push(FinishEffect{std::move(incoming.sink), incoming.connection,
                                std::move(answer.head), std::move(answer.outcome)});
  } catch (const StorageError& failure) {  // agent boundary
    storage_failed(failure.what());
    if (incoming.sink)
      incoming.sink->finish({}, Error{Errc::kInternal, "the agent's storage failed"});
  }
  leave();
  return true;
}

bool LiveAgent::has_unwritten_answers() const {
  const auto* const answers = extensions().find<CallAnswers>();
  return answers != nullptr && answers->has_unwritten();
}

void LiveAgent::write_answers() {
  if (has_unwritten_answers() && of<CallAnswers>().write())
    commits_.stops().add("call.answer.committed");
}

}  // namespace hearth::runtime

#pragma once
// A class's description of the effects that its operations have outside: see operations.hpp.

#include <hearth/ext/operations.h>

#include <chrono>
#include <cstdint>

namespace hearth {

struct FetchRequest;  // these three: see fetch.hpp
struct PartialAnswer;
struct ResumedFetch;

// The effect of a second run of the same operation, from the mildest to the strictest.
enum class Effect : std::uint32_t {
  kRead = HEARTH_EFFECT_READ,              // it has no effect: it is run again
  kIdempotent = HEARTH_EFFECT_IDEMPOTENT,  // twice is the same as once: it is run again
  // The other system does it once for each key that it is given: it is run again with the same key,
  // within the horizon of the kind.
  kKeyed = HEARTH_EFFECT_KEYED,
  // The other system can be asked first. If it finds nothing, that proves nothing while the request
  // may still be on its way or in progress there: see OperationCalls::operation().
  kProbe = HEARTH_EFFECT_PROBE,
  kUnsafe = HEARTH_EFFECT_UNSAFE,  // the SDK never runs it again on its own
};

// A sentence of the class's author: a literal that is not empty.
class Answer {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): an answer is given as it is
  consteval Answer(const char* text) : text_(text) {
    if (text == nullptr || *text == '\0') throw "an operation is not listed without its answers";
  }
  // Only so that the compiler says what is missing.
  template <bool kGiven = false>
  consteval Answer() : text_(nullptr) {
    static_assert(kGiven,
                  "an operation is listed with four answers: .same, .interrupted, .upstream and "
                  ".unknown");
  }
  [[nodiscard]] constexpr const char* text() const { return text_; }

 private:
  const char* text_;
};

// A kind of operation. The four answers are required: without one of them it does not compile.
struct OperationKind {
  Effect effect;
  Answer same;         // What makes two attempts the same operation?
  Answer interrupted;  // The server crashes between the call and its answer: what does recovery do?
  Answer upstream;     // What does the other system do if it gets the same operation twice?
  Answer unknown;      // What does the agent do if the answer is "we do not know"?
  // kKeyed: how long the other system knows a key.
  std::chrono::milliseconds horizon = std::chrono::hours(24);
  // The header with the operation's id, in a request with `.op`.
  const char* key_header = "Idempotency-Key";
  // Makes the request for the rest of an answer that was cut off, from the request that was to be
  // sent again and from the stored part. Null: the rest cannot be asked for.
  ResumedFetch (*resume)(const FetchRequest& request, const PartialAnswer& answer) = nullptr;
  // Its one request with `.op` is all that it does outside. Then an operation that was cut off
  // before that request left was not executed, whatever its effect and also after a crash. An
  // operation of the kind that completes without such a request is unknown.
  bool acts_by_request = false;
};

}  // namespace hearth

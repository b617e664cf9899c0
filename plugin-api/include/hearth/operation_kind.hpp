#pragma once
// What a class says of the effects that its operations have outside: see operations.hpp.

#include <hearth/ext/operations.h>

#include <chrono>
#include <cstdint>

namespace hearth {

struct FetchRequest;  // these three: see fetch.hpp
struct PartialAnswer;
struct ResumedFetch;

// What a second run of the same operation would do, from the mildest to the strictest.
enum class Effect : std::uint32_t {
  kRead = HEARTH_EFFECT_READ,              // it has no effect: it is run again
  kIdempotent = HEARTH_EFFECT_IDEMPOTENT,  // twice is the same as once: it is run again
  // The other side does it once for each key that it is given: it is run again with the same key,
  // within the horizon of the kind.
  kKeyed = HEARTH_EFFECT_KEYED,
  // The other side can be asked first. That it has found nothing proves nothing while the request
  // may still be on its way or in progress there: see OperationCalls::operation().
  kProbe = HEARTH_EFFECT_PROBE,
  kUnsafe = HEARTH_EFFECT_UNSAFE,  // never again by itself
};

// A sentence of the class's author: a literal that is not empty.
class Answer {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): an answer is given as it is
  consteval Answer(const char* text) : text_(text) {
    if (text == nullptr || *text == '\0') throw "an operation is not listed without its answers";
  }
  [[nodiscard]] constexpr const char* text() const { return text_; }

 private:
  const char* text_;
};

// A kind of operation. The four answers are required: without one of them it does not compile.
struct OperationKind {
  Effect effect;
  Answer same;         // What makes two attempts the same operation?
  Answer interrupted;  // The server ends between the call and its answer: what does recovery do?
  Answer upstream;     // The other side gets the same operation twice: what does it do?
  Answer unknown;      // What does the agent do if the answer is "we do not know"?
  // kKeyed: how long the other side knows a key.
  std::chrono::milliseconds horizon = std::chrono::hours(24);
  // The header with the operation's id, in a request with `.op`.
  const char* key_header = "Idempotency-Key";
  // How the rest of an answer is asked for that was cut off: gives the request for it, out of the
  // one that was to be sent (again) and of what the ledger has. Null: nobody can ask for it.
  ResumedFetch (*resume)(const FetchRequest& request, const PartialAnswer& answer) = nullptr;
};

}  // namespace hearth

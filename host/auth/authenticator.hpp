#pragma once
// Checks the proof of identity that a client sends.

#include "auth/bearer_tokens.hpp"
#include "auth/jwt.hpp"
#include "base/client_rules.hpp"
#include "base/clock.hpp"
#include "base/logger.hpp"
#include "base/mutex.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace hearth::auth {

// A client whose proof was accepted.
struct Visitor {
  std::string claims;  // a JSON object, from the token; empty: the proof has no claims
  Json values;         // `claims`, parsed; null if they are empty
  // Unix time in seconds. From this second on the proof is not accepted.
  std::optional<std::int64_t> ends_at;
};

enum class Refusal : std::uint8_t {
  kNoProof,   // the client sent nothing
  kBadProof,  // the proof is rejected, and a retry does not help
  kTryAgain,  // the keys, or newer ones, are being read
};

// Where tokens and keys come from.
struct ProofSources {
  // Gives the text of one source, in this call or later, on any thread. Empty: the source does not
  // exist.
  using Answer = std::function<void(Result<std::string>)>;
  using Read = std::function<void(Answer)>;

  Read tokens;
  Read keys;
  KeyOrigin key_origin = KeyOrigin::kFile;
  JwtRules jwt;
};

// Keeps the tokens and the keys, and checks proofs with them.
//
// Promises
//  P1 Closed   A source that is absent, or was not read yet, lets no client in.
//  P2 Kept     If a source cannot be read, what was read from it before stays in use.
//  P3 Paced    Keys of a URL are read again at an age of ten minutes; a token that names an unknown
//              key causes a read at most once a minute.
//  P4 Silent   Neither tokens nor claims are logged; the reason for a rejection is, at a limited
//              rate.
//  P5 Fresh    A key that was withdrawn more than eleven minutes ago lets no client in, unless the
//              URL has failed since.
//
// P2: each read is logged, as `auth.source_read` (for a URL at the level debug) or as
// `auth.source_failed`.
// P5: while keys of that age are being read again, clients get kTryAgain. If that read fails, P2
// holds.
//
// Threads   Any.
// Lifetime  The clock and the logger outlive it, and it outlives the answers of its sources.
class Authenticator {
 public:
  Authenticator(ProofSources sources, const Clock& clock, Logger& logger);

  // Reads both sources again. Returns why a source could not be read, if one could not. The result
  // of a read that ends after this call is only logged.
  std::optional<Error> refresh();

  // `proof`: what the client sent; absent: it sent none.
  [[nodiscard]] std::variant<Visitor, Refusal> check(ProofKind wanted,
                                                     std::optional<std::string_view> proof);

 private:
  [[nodiscard]] std::variant<Visitor, Refusal> check_jwt(std::string_view proof);
  // Reads the keys if the last read began at least `age` ago. True: keys are being read.
  bool renew_keys(std::chrono::milliseconds age);
  std::optional<Error> take_tokens(const Result<std::string>& text);
  std::optional<Error> take_keys(const Result<std::string>& text);
  std::optional<Error> failed(std::string_view source, const Error& error);
  void tell_read(std::string_view source);
  void tell_refused(std::string_view reason);

  const ProofSources sources_;
  const Clock& clock_;
  Logger& logger_;
  Mutex mutex_;
  std::shared_ptr<const BearerTokens> tokens_ GUARDED_BY(mutex_);
  std::shared_ptr<const SigningKeys> keys_ GUARDED_BY(mutex_);
  std::optional<SteadyTime> asked_at_ GUARDED_BY(mutex_);  // for the keys of a URL
  SteadyTime answered_at_ GUARDED_BY(mutex_);              // ... with keys or with a failure
  bool is_asking_ GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::auth

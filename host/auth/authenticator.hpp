#pragma once
// Whether a proof of identity that a client sends is good.

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

// Who a client has proved to be.
struct Visitor {
  std::string claims;  // of its token, a JSON object; empty: it has none
  Json values;         // the same as JSON; null without any
  // Unix time in seconds from which on the proof is not good any more.
  std::optional<std::int64_t> ends_at;
};

enum class Refusal : std::uint8_t {
  kNoProof,   // nothing was sent
  kBadProof,  // it is not accepted, now or ever
  kTryAgain,  // the keys, or newer ones, are on their way
};

// Where tokens and keys come from.
struct ProofSources {
  // Gives the text of one source, in this call or later, on any thread. Empty: there is no such
  // source.
  using Answer = std::function<void(Result<std::string>)>;
  using Read = std::function<void(Answer)>;

  Read tokens;
  Read keys;
  KeyOrigin key_origin = KeyOrigin::kFile;
  JwtRules jwt;
};

// Keeps the tokens and the keys.
//
// Promises
//  P1 Closed   Without a source, or before it was read, nobody is let in by it.
//  P2 Kept     A source that cannot be read leaves what was read before (`auth.source_failed`).
//              What was read is told too (`auth.source_read`; of a URL at the level debug).
//  P3 Paced    Keys of a URL are read again when they are ten minutes old, and when a token names a
//              key that is not among them, at most once a minute in all.
//  P4 Silent   Neither tokens nor claims are logged; why a token was refused is, at a limited rate.
//  P5 Fresh    A key that was withdrawn more than eleven minutes ago lets nobody in, unless the URL
//              has failed since (P2): while keys that old are read again, clients try again.
//
// Threads   Any.
// Lifetime  The clock and the logger outlive it, and it outlives the answers of its sources.
class Authenticator {
 public:
  Authenticator(ProofSources sources, const Clock& clock, Logger& logger);

  // Reads both sources again. Why one of them could not be read, or nothing; what is read later is
  // told to the log alone.
  std::optional<Error> refresh();

  // `proof`: what the client has sent; nothing: it has sent none.
  [[nodiscard]] std::variant<Visitor, Refusal> check(ProofKind wanted,
                                                     std::optional<std::string_view> proof);

 private:
  [[nodiscard]] std::variant<Visitor, Refusal> check_jwt(std::string_view proof);
  // True: keys are on their way.
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

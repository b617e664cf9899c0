#include "auth/authenticator.hpp"

#include <chrono>
#include <utility>

namespace hearth::auth {
namespace {

using std::chrono::minutes;

// A provider publishes a new key well before it signs with it.
constexpr std::chrono::milliseconds kKeysAge = minutes(10);
// Tokens that name unknown keys must not become requests to the provider.
constexpr std::chrono::milliseconds kKeysPace = minutes(1);
// On a busy server keys are read again while requests go on. Keys older than this were not asked
// for in a long time, and may have been withdrawn. A read takes less than the minute.
constexpr std::chrono::milliseconds kMostKeysAge = kKeysAge + minutes(1);

}  // namespace

Authenticator::Authenticator(ProofSources sources, const Clock& clock, Logger& logger)
    : sources_(std::move(sources)), clock_(clock), logger_(logger) {}

std::optional<Error> Authenticator::refresh() {
  std::optional<Error> failure;
  if (sources_.tokens) {
    sources_.tokens([&](const Result<std::string>& text) { failure = take_tokens(text); });
  }
  if (!sources_.keys) return failure;
  if (sources_.key_origin == KeyOrigin::kUrl) {
    renew_keys({});
  } else {
    sources_.keys([&](const Result<std::string>& text) {
      if (auto wrong = take_keys(text)) failure = std::move(wrong);
    });
  }
  return failure;
}

std::variant<Visitor, Refusal> Authenticator::check(ProofKind wanted,
                                                    std::optional<std::string_view> proof) {
  if (wanted == ProofKind::kNone) return Visitor{};
  if (!proof || proof->empty()) return Refusal::kNoProof;
  if (wanted == ProofKind::kJwt) return check_jwt(*proof);
  std::shared_ptr<const BearerTokens> tokens;
  {
    const MutexLock lock(mutex_);
    tokens = tokens_;
  }
  if (tokens != nullptr && tokens->has(*proof)) return Visitor{};
  tell_refused("token");
  return Refusal::kBadProof;
}

std::variant<Visitor, Refusal> Authenticator::check_jwt(std::string_view proof) {
  const bool is_remote = sources_.key_origin == KeyOrigin::kUrl;
  if (is_remote) renew_keys(kKeysAge);
  std::shared_ptr<const SigningKeys> keys;
  bool is_too_old = false;
  {
    const MutexLock lock(mutex_);
    keys = keys_;
    is_too_old = is_asking_ && clock_.steady_now() - answered_at_ >= kMostKeysAge;
  }
  if (keys != nullptr && is_too_old) return Refusal::kTryAgain;
  if (keys == nullptr) {
    if (is_remote && sources_.keys) {
      renew_keys(kKeysPace);
      return Refusal::kTryAgain;
    }
    tell_refused("no_keys");
    return Refusal::kBadProof;
  }
  auto verified = verify_jwt(proof, *keys, sources_.jwt, unix_millis(clock_.wall_now()) / 1000);
  if (const auto* fault = std::get_if<JwtFault>(&verified)) {
    if (*fault == JwtFault::kUnknownKey && is_remote && renew_keys(kKeysPace))
      return Refusal::kTryAgain;
    tell_refused(to_string(*fault));
    return Refusal::kBadProof;
  }
  auto& good = std::get<VerifiedJwt>(verified);
  Visitor visitor{.claims = dump_json(good.claims), .values = {}, .ends_at = good.ends_at};
  visitor.values = std::move(good.claims);
  return visitor;
}

bool Authenticator::renew_keys(std::chrono::milliseconds age) {
  {
    const MutexLock lock(mutex_);
    if (is_asking_) return true;
    const SteadyTime now = clock_.steady_now();
    if (asked_at_ && now - *asked_at_ < age) return false;
    asked_at_ = now;
    is_asking_ = true;
  }
  sources_.keys([this](const Result<std::string>& text) { take_keys(text); });
  return true;
}

std::optional<Error> Authenticator::take_tokens(const Result<std::string>& text) {
  if (!text) return failed("token_file", text.error());
  auto read = BearerTokens::parse(*text);
  if (!read) return failed("token_file", read.error());
  {
    const MutexLock lock(mutex_);
    tokens_ = std::make_shared<const BearerTokens>(*std::move(read));
  }
  tell_read("token_file");
  return std::nullopt;
}

std::optional<Error> Authenticator::take_keys(const Result<std::string>& text) {
  auto read =
      text ? SigningKeys::parse(*text, sources_.key_origin) : Result<SigningKeys>(text.error());
  const std::optional<Error> wrong = read ? std::nullopt : std::optional(read.error());
  {
    const MutexLock lock(mutex_);
    is_asking_ = false;
    answered_at_ = clock_.steady_now();
    if (read) keys_ = std::make_shared<const SigningKeys>(*std::move(read));
  }
  if (wrong) return failed("keys", *wrong);
  tell_read(sources_.key_origin == KeyOrigin::kUrl ? "keys_url" : "keys_file");
  return std::nullopt;
}

void Authenticator::tell_read(std::string_view source) {
  const LogLevel level = source == "keys_url" ? LogLevel::kDebug : LogLevel::kInfo;
  logger_.write(level, "auth.source_read", {{"source", source}});
}

std::optional<Error> Authenticator::failed(std::string_view source, const Error& error) {
  logger_.write(
      LogLevel::kWarn, "auth.source_failed",
      {{"source", source},
       {"reason", error.message},
       {"next", "what was read before stays in use; if nothing was read, no client gets in"}});
  return Error{error.code, "auth." + std::string(source) + ": " + error.message};
}

void Authenticator::tell_refused(std::string_view reason) {
  logger_.write_limited(LogLevel::kInfo, "auth.refused", {reason}, {{"reason", reason}});
}

}  // namespace hearth::auth

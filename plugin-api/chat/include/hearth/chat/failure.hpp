#pragma once
// Why a call to a model has failed, and whether it may succeed later.

#include <hearth/fetch.hpp>
#include <hearth/json.hpp>
#include <hearth/time.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::chat {

enum class FailureKind : std::uint8_t {
  kCut,              // the answer stopped before its last event
  kTransient,        // the provider is overloaded, starts, or has an inner error
  kRateLimit,        // too many requests or tokens in some time
  kContextOverflow,  // prompt and answer do not fit into the model's window
  kRefused,          // the provider's rules forbid the prompt
  kAuth,             // the key is missing, wrong, or may not do this
  kBilling,          // no money, or a limit of spending is reached
  kInvalid,          // any other request that fails each time
};

struct Failure {
  FailureKind kind = FailureKind::kTransient;
  std::string text = {};  // for the log: the provider's own words, at most kMaxFailureText bytes
  std::optional<std::chrono::milliseconds> retry_after = {};  // as the provider asks
};
inline constexpr std::size_t kMaxFailureText = 1000;

// What a log or the ledger gets of a provider's words: UTF-8 without control characters, at most
// kMaxFailureText bytes.
[[nodiscard]] std::string one_line(std::string_view words);

// Whether the same call may succeed later: kCut, kTransient, kRateLimit.
[[nodiscard]] bool may_pass(FailureKind kind) noexcept;

// "cut", "transient", "rate_limit", "context_overflow", "refused", "auth", "billing", "invalid".
[[nodiscard]] std::string_view failure_name(FailureKind kind) noexcept;

// A sentence for clients, without anything that the provider has said.
[[nodiscard]] std::string_view client_text(FailureKind kind) noexcept;

// An answer with an HTTP status other than 200 to 299. `body` is JSON in one of the usual forms, or
// any text. The headers x-should-retry, retry-after-ms and retry-after (seconds or a date) count.
[[nodiscard]] Failure classify(unsigned status, const HeaderList& headers, std::string_view body,
                               Time now);

// An error inside an answer of status 200: {message, type, code}, or a text. An unknown one is
// kTransient.
[[nodiscard]] Failure classify(const Json& error);

// Whether a provider's error text says that the prompt is too long. It knows the texts of OpenAI,
// Anthropic, Google, vLLM and llama.cpp.
[[nodiscard]] bool says_context_overflow(std::string_view text);

}  // namespace hearth::chat

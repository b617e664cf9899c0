#include "lenient.hpp"

#include <hearth/chat/failure.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace hearth::chat {
namespace {

constexpr char lower(char letter) noexcept {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

std::string lowered(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), lower);
  return small;
}

struct Word {
  std::string_view word;
  FailureKind kind;
};

// These say more than the status they come with.
constexpr std::array kTelling = {
    Word{"insufficient_quota", FailureKind::kBilling},
    Word{"billing_error", FailureKind::kBilling},
    Word{"billing_hard_limit_reached", FailureKind::kBilling},
    Word{"enforced_spend_limit_reached", FailureKind::kBilling},
    Word{"credit balance is too low", FailureKind::kBilling},
    Word{"invalid_prompt", FailureKind::kRefused},
    Word{"bio_policy", FailureKind::kRefused},
    Word{"cyber_policy", FailureKind::kRefused},
    Word{"content_policy_violation", FailureKind::kRefused},
    Word{"content_filter", FailureKind::kRefused},
};

// The `type` or `code` of an error that has no status of its own.
constexpr std::array kWords = {
    Word{"rate_limit_exceeded", FailureKind::kRateLimit},
    Word{"rate_limit_error", FailureKind::kRateLimit},
    Word{"authentication_error", FailureKind::kAuth},
    Word{"invalid_api_key", FailureKind::kAuth},
    Word{"permission_error", FailureKind::kAuth},
    Word{"overloaded_error", FailureKind::kTransient},
    Word{"server_error", FailureKind::kTransient},
    Word{"api_error", FailureKind::kTransient},
    Word{"timeout_error", FailureKind::kTransient},
    Word{"unavailable_error", FailureKind::kTransient},
    Word{"invalid_request_error", FailureKind::kInvalid},
    Word{"not_found_error", FailureKind::kInvalid},
    Word{"not_supported_error", FailureKind::kInvalid},
    Word{"request_too_large", FailureKind::kInvalid},
    Word{"data_residency_mismatch", FailureKind::kInvalid},
    Word{"badrequesterror", FailureKind::kInvalid},
};

constexpr std::array<std::string_view, 14> kOverflows = {
    "prompt is too long",
    "context length exceeded",
    "context_length_exceeded",
    "maximum context length",
    "exceeds the maximum number of tokens",
    "input token count",
    "reduce the length of",
    "input is too long",
    "too many tokens",
    "too many input tokens",
    "context window",
    "available context size",
    "exceed_context_size",
    "maximum model length",
};

// What an error says, wherever its form has it.
struct Said {
  std::string message;
  std::string words;  // type, code and details in small letters
  std::string type;
  std::string code;
  unsigned status = 0;  // a code that is a number
};

Said read_error(const Json& error) {
  Said said;
  if (!error.is_object()) {
    said.message = error.is_string() ? std::string(as_text(error)) : to_text(error);
    return said;
  }
  said.message = text_member(error, "message");
  said.type = lowered(text_member(error, "type"));
  said.code = lowered(text_member(error, "code"));
  const auto number = integer_member(error, "code");
  if (number && *number >= 400 && *number < 600) said.status = static_cast<unsigned>(*number);
  said.words = said.type + " " + said.code;
  const Json& details = member(error, "details");
  if (!details.is_null()) said.words += " " + lowered(to_text(details));
  if (said.message.empty()) said.message = to_text(error);
  return said;
}

// {error: {...}}, {error: "..."}, {detail: ...}, the error itself, or any text.
Said read_body(std::string_view body) {
  const auto json = parse_any(body);
  if (!json || !json->is_object()) {
    Said said;
    said.message = first_bytes(body, kMaxFailureText);
    return said;
  }
  for (const std::string_view name : {"error", "detail"}) {
    const Json& inner = member(*json, name);
    if (!inner.is_null()) return read_error(inner);
  }
  return read_error(*json);
}

FailureKind by_status(unsigned status) noexcept {
  switch (status) {
    case 401:
    case 403: return FailureKind::kAuth;
    case 402: return FailureKind::kBilling;
    case 408:
    case 409:
    case 425: return FailureKind::kTransient;
    case 429: return FailureKind::kRateLimit;
    case 501: return FailureKind::kInvalid;  // llama.cpp: not supported
    default: return status >= 500 ? FailureKind::kTransient : FailureKind::kInvalid;
  }
}

FailureKind kind_of(const Said& said, unsigned status) {
  const std::string text = said.words + " " + lowered(said.message);
  for (const auto& [word, kind] : kTelling)
    if (text.find(word) != std::string::npos) return kind;
  // "Too many tokens" in one minute is no overflow.
  const bool is_rate = status == 429 || said.words.find("rate_limit") != std::string::npos;
  const bool may_overflow = !is_rate && status != 401 && status != 403 && status != 404;
  if (may_overflow && says_context_overflow(text)) return FailureKind::kContextOverflow;
  if (status != 0) return by_status(status);
  for (const auto& [word, kind] : kWords)
    if (said.type == word || said.code == word) return kind;
  if (said.code.starts_with("image_") || said.code.starts_with("invalid_image"))
    return FailureKind::kInvalid;
  return FailureKind::kTransient;
}

std::string_view find_header(const HeaderList& headers, std::string_view name) {
  for (const auto& [key, value] : headers)
    if (lowered(key) == name) return value;
  return {};
}

std::optional<double> read_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(number >= 0 && number < 1e9)) return std::nullopt;
  return number;
}

std::optional<unsigned> read_digits(std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "Wed, 21 Oct 2026 07:28:00 GMT": RFC 9110, section 5.6.7. The two older forms are not read.
std::optional<Time> read_http_date(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() != 29 || !text.ends_with(" GMT")) return std::nullopt;
  const auto day = read_digits(text.substr(5, 2));
  const auto month = kMonths.find(text.substr(8, 3));
  const auto year = read_digits(text.substr(12, 4));
  const auto hour = read_digits(text.substr(17, 2));
  const auto minute = read_digits(text.substr(20, 2));
  const auto second = read_digits(text.substr(23, 2));
  if (!day || !year || !hour || !minute || !second) return std::nullopt;
  if (month == std::string_view::npos || month % 3 != 0) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(month) / 3 + 1),
                                         std::chrono::day(*day)};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return Time(std::chrono::sys_days(date)) + std::chrono::hours(*hour) +
         std::chrono::minutes(*minute) + std::chrono::seconds(*second);
}

std::optional<std::chrono::milliseconds> read_retry_after(const HeaderList& headers, Time now) {
  const auto milliseconds = [](double count) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(count));
  };
  if (const auto wait = read_number(find_header(headers, "retry-after-ms")))
    return milliseconds(*wait);
  const std::string_view value = find_header(headers, "retry-after");
  if (const auto wait = read_number(value)) return milliseconds(*wait * 1000);
  if (const auto date = read_http_date(value))
    return std::max(*date - now, std::chrono::milliseconds(0));
  return std::nullopt;
}

std::string log_text(const Said& said, unsigned status) {
  std::string text = status == 0 ? "" : "HTTP " + std::to_string(status) + ": ";
  const std::string& word = said.code.empty() ? said.type : said.code;
  if (!word.empty()) text += word + ": ";
  text += said.message;
  return one_line(text);
}

}  // namespace

std::string one_line(std::string_view words) {
  std::string text = as_utf8(std::string(first_bytes(words, kMaxFailureText)));
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are 0xC2 and one more byte.
    const bool is_wide = byte == 0xC2U && static_cast<unsigned char>(text[i + 1]) < 0xA0U;
    if (is_wide) text[i + 1] = ' ';
    if (is_wide || byte < 0x20U || byte == 0x7FU) text[i] = ' ';
  }
  return text;
}

bool may_pass(FailureKind kind) noexcept {
  return kind == FailureKind::kCut || kind == FailureKind::kTransient ||
         kind == FailureKind::kRateLimit;
}

std::string_view failure_name(FailureKind kind) noexcept {
  switch (kind) {
    case FailureKind::kCut: return "cut";
    case FailureKind::kTransient: return "transient";
    case FailureKind::kRateLimit: return "rate_limit";
    case FailureKind::kContextOverflow: return "context_overflow";
    case FailureKind::kRefused: return "refused";
    case FailureKind::kAuth: return "auth";
    case FailureKind::kBilling: return "billing";
    case FailureKind::kInvalid: break;
  }
  return "invalid";
}

std::string_view client_text(FailureKind kind) noexcept {
  switch (kind) {
    case FailureKind::kCut: return "The model's answer was interrupted.";
    case FailureKind::kTransient:
    case FailureKind::kRateLimit: return "The model is busy.";
    case FailureKind::kContextOverflow: return "The conversation is too long for the model.";
    case FailureKind::kRefused: return "The model's provider refused this request.";
    case FailureKind::kAuth: return "The model's provider did not accept the server's key.";
    case FailureKind::kBilling: return "The budget for the model is used up.";
    case FailureKind::kInvalid: break;
  }
  return "The model could not be asked.";
}

Failure classify(unsigned status, const HeaderList& headers, std::string_view body, Time now) {
  const Said said = read_body(body);
  Failure failure{kind_of(said, status), log_text(said, status), read_retry_after(headers, now)};
  const std::string_view should_retry = find_header(headers, "x-should-retry");
  if (should_retry == "false" && may_pass(failure.kind)) failure.kind = FailureKind::kInvalid;
  if (should_retry == "true" && failure.kind == FailureKind::kInvalid)
    failure.kind = FailureKind::kTransient;
  return failure;
}

Failure classify(const Json& error) {
  const Said said = read_error(error);
  return {kind_of(said, said.status), log_text(said, said.status), std::nullopt};
}

bool says_context_overflow(std::string_view text) {
  const std::string small = lowered(text);
  return std::any_of(kOverflows.begin(), kOverflows.end(), [&](std::string_view words) {
    return small.find(words) != std::string::npos;
  });
}

}  // namespace hearth::chat

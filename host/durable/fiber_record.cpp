#include "durable/fiber_record.hpp"

#include "json/json.hpp"
#include "json/json_object_text.hpp"
#include "json/json_scanner.hpp"

#include <array>
#include <utility>

namespace hearth::durable {
namespace {

constexpr std::array kWords{
    std::pair{FiberStatus::kPending, std::string_view("pending")},
    std::pair{FiberStatus::kRunning, std::string_view("running")},
    std::pair{FiberStatus::kRecovering, std::string_view("recovering")},
    std::pair{FiberStatus::kInterrupted, std::string_view("interrupted")},
    std::pair{FiberStatus::kCompleted, std::string_view("completed")},
    std::pair{FiberStatus::kError, std::string_view("error")},
    std::pair{FiberStatus::kAborted, std::string_view("aborted")},
};

constexpr std::size_t kMaxReasonBytes = 256;

std::optional<std::string> present(std::string_view json) {
  if (json.empty()) return std::nullopt;
  return std::string(json);
}

bool is_text(std::string_view json) {
  return json.starts_with('"');
}

Error no_outcome(const char* why) {
  return Error{Errc::kInvalidArgument, std::string("this is no outcome of a fiber: ") + why};
}

}  // namespace

std::string_view to_string(FiberStatus status) noexcept {
  for (const auto& [each, word] : kWords) {
    if (each == status) return word;
  }
  return "";
}

std::optional<FiberStatus> fiber_status(std::string_view word) noexcept {
  for (const auto& [status, each] : kWords) {
    if (each == word) return status;
  }
  return std::nullopt;
}

std::string record_json(const FiberRecord& record) {
  const Job& job = record.job;
  JsonObjectText json;
  json.text("id", job.id).text("name", job.name).text("status", to_string(record.status));
  json.text_or_null("key", job.key)
      .json_or_null("input", record.input)
      .json_or_null("metadata", record.metadata)
      .json_or_null("snapshot", record.snapshot)
      .json_or_null("result", record.result)
      .text_or_null("error", record.error)
      .flag("dead", job.dead)
      .number("created_at", job.created_at_ms)
      .number_or_null("started_at", job.started_at_ms)
      .number_or_null("completed_at", job.ended_at_ms)
      .number("attempts", job.attempts)
      .number("failures", job.failures)
      .number("max_retries", job.retry.max_attempts)
      .number_or_null("next_at",
                      record.next_at_ms == 0 ? std::nullopt : std::optional(record.next_at_ms));
  if (record.waits_for_code) json.flag("waits_for_code", true);
  if (job.is_brief()) json.flag("brief", true);
  if (job.is_turn()) json.flag("turn", true);
  if (record.reason) json.text("reason", *record.reason);
  if (job.lane) json.text("lane", *job.lane);
  return json.take();
}

Result<FiberOutcome> parse_outcome(std::string_view json, std::size_t max_json_bytes) {
  FiberOutcome outcome;
  outcome.status = FiberStatus::kInterrupted;
  if (json.empty()) return outcome;
  enum { kStatus, kResult, kError, kSnapshot, kMetadata, kReason };
  std::array<WantedMember, 6> wanted{{{"status", {}},
                                      {"result", {}},
                                      {"error", {}},
                                      {"snapshot", {}},
                                      {"metadata", {}},
                                      {"reason", {}}}};
  if (!scan_unbounded_json_object(json, wanted)) return no_outcome("not a JSON object");

  if (!is_text(wanted[kStatus].json)) return no_outcome("it has no status");
  const auto status = fiber_status(decode_json_string(wanted[kStatus].json));
  if (!status || !is_settled(*status)) {
    return no_outcome("its status is none of completed, error, aborted, interrupted");
  }
  outcome.status = *status;
  const std::string_view error = wanted[kError].json;
  if (is_text(error)) {
    outcome.error = decode_json_string(error);
  } else if (!error.empty() && error != "null") {
    return no_outcome("its error is no text");
  }
  const std::string_view reason = wanted[kReason].json;
  if (!reason.empty() && reason != "null") {
    outcome.reason = is_text(reason) ? decode_json_string(reason) : std::string();
    if (outcome.reason->empty() || outcome.reason->size() > kMaxReasonBytes)
      return no_outcome("its reason is no text of 1 to 256 bytes");
  }
  for (const auto member : {kResult, kSnapshot, kMetadata}) {
    if (wanted[member].json.size() > max_json_bytes) {
      return Error{Errc::kLimitExceeded, std::string("the outcome's ") +
                                             std::string(wanted[member].name) + " is larger than " +
                                             std::to_string(max_json_bytes) + " bytes"};
    }
    if (!wanted[member].json.empty() && !is_json(wanted[member].json))
      return no_outcome("a value in it is nested too deeply");
  }
  outcome.result = present(wanted[kResult].json);
  outcome.snapshot = present(wanted[kSnapshot].json);
  outcome.metadata = present(wanted[kMetadata].json);
  return outcome;
}

bool same_json(std::string_view a, std::string_view b) {
  if (a == b) return is_json(a);
  const auto left = parse_json(a);
  if (left.has_error()) return false;
  const auto right = parse_json(b);
  return right.has_value() && *left == *right;
}

}  // namespace hearth::durable

#include "lenient.hpp"
#include "unix_time.hpp"

#include <hearth/chat/recovery.hpp>

#include <algorithm>

namespace hearth::chat {
namespace {

// 1, 2, 4, 8, 16, 30, 30, ... seconds.
std::chrono::milliseconds backoff(int failed_calls) {
  const int shift = std::clamp(failed_calls - 1, 0, 5);
  return std::min<std::chrono::milliseconds>(std::chrono::seconds(1 << shift), kMaxBackoff);
}

std::chrono::milliseconds delay(const Incident& incident, const Interruption& interruption) {
  const std::chrono::milliseconds asked = std::clamp<std::chrono::milliseconds>(
      interruption.retry_after.value_or(std::chrono::milliseconds(0)), std::chrono::milliseconds(0),
      kMaxRetryAfter);
  switch (interruption.trigger) {
    case Trigger::kRestart: return std::chrono::milliseconds(0);
    case Trigger::kUnstable: return kUnstableDelay;
    case Trigger::kStall:
    case Trigger::kFailure: break;
  }
  return std::max(backoff(incident.failed_calls), asked);
}

void count(Incident& incident, const Interruption& interruption, Time now) {
  // The clock may have gone back.
  incident.last_counted_ms = std::min(incident.last_counted_ms, unix_ms(now));
  incident.last_progress_ms = std::min(incident.last_progress_ms, unix_ms(now));
  const bool is_first = incident.attempt == 0;
  if (is_first) {
    incident.first_seen_ms = unix_ms(now);
    incident.first_work = interruption.work;
  }
  if (is_first || interruption.progress > incident.progress) {
    incident.attempt = 1;
    incident.failed_calls = 0;
    incident.last_progress_ms = unix_ms(now);
    incident.last_counted_ms = unix_ms(now);
  } else if (interruption.trigger == Trigger::kUnstable ||
             now - unix_time(incident.last_counted_ms) >= kDebounce) {
    ++incident.attempt;
    incident.last_counted_ms = unix_ms(now);
  }
  incident.progress = std::max(incident.progress, interruption.progress);
  if (interruption.trigger == Trigger::kStall || interruption.trigger == Trigger::kFailure)
    incident.failed_calls = std::min(incident.failed_calls + 1, 100);
}

std::optional<GiveUp> exceeded(const Verdict& verdict, const Interruption& interruption,
                               const RecoveryConfig& config, Time now) {
  const Incident& incident = verdict.incident;
  if (config.max_recovery_work && verdict.work > *config.max_recovery_work)
    return GiveUp::kWorkBudgetExceeded;
  if (unix_ms(now) - incident.last_progress_ms > config.no_progress_timeout_ms)
    return GiveUp::kNoProgressTimeout;
  if (incident.attempt < config.max_attempts) return std::nullopt;
  return interruption.trigger == Trigger::kUnstable ? GiveUp::kStableTimeout
                                                    : GiveUp::kMaxAttemptsExceeded;
}

}  // namespace

std::string_view reason_text(GiveUp reason) noexcept {
  switch (reason) {
    case GiveUp::kWorkBudgetExceeded: return "work_budget_exceeded";
    case GiveUp::kNoProgressTimeout: return "no_progress_timeout";
    case GiveUp::kRecoveryAborted: return "recovery_aborted";
    case GiveUp::kMaxAttemptsExceeded: return "max_attempts_exceeded";
    case GiveUp::kStableTimeout: break;
  }
  return "stable_timeout";
}

Verdict judge(const Incident& incident, const Interruption& interruption,
              const RecoveryConfig& config, Time now) {
  Verdict verdict{.incident = incident, .give_up = std::nullopt, .at = now};
  Incident& next = verdict.incident;
  if (interruption.awaits_client) {
    next.last_progress_ms = unix_ms(now);
    return verdict;
  }
  count(next, interruption, now);
  verdict.work = interruption.work - next.first_work;
  verdict.give_up = exceeded(verdict, interruption, config, now);
  // A restart does not shorten the wait that a provider has asked for.
  const std::int64_t promised =
      std::min(next.not_before_ms, unix_ms(now + kMaxRetryAfter));  // the clock may have gone back
  verdict.at = std::max(now + delay(next, interruption), unix_time(promised));
  next.not_before_ms = unix_ms(verdict.at);
  verdict.asks_hook = !verdict.give_up && next.attempt >= 2;
  return verdict;
}

bool is_progress(const Json& chunk, bool keeps_all) {
  const std::string_view type = text_member(chunk, "type");
  if (type == "text-delta") return !text_member(chunk, "delta").empty();
  if (type == "reasoning-delta") return keeps_all && !text_member(chunk, "delta").empty();
  if (type == "tool-input-delta") return keeps_all && !text_member(chunk, "inputTextDelta").empty();
  return type == "tool-input-available" || type == "tool-output-available" ||
         type == "tool-output-error";
}

}  // namespace hearth::chat

#include "durable/operation_rules.hpp"

#include "base/http_token.hpp"
#include "base/utf8.hpp"
#include "json/json_scanner.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace hearth::durable {
namespace {

constexpr std::size_t kMaxKindBytes = 64;
constexpr std::size_t kMaxOperationKeyBytes = 256;
constexpr std::size_t kMaxActorBytes = 256;

Error bad_operation(std::string why) {
  return Error{Errc::kInvalidArgument, std::move(why)};
}

Error conflict(std::string why) {
  return Error{Errc::kConflict, std::move(why)};
}

bool is_label(std::string_view text, std::size_t max_bytes) {
  return text.size() <= max_bytes && is_valid_utf8(text) &&
         text.find('\0') == std::string_view::npos;
}

// A hundred years are for ever: the moment stays one of the calendar.
std::int64_t horizon_of(const OperationRequest& request) {
  constexpr std::uint64_t kLongestMs = std::chrono::milliseconds(std::chrono::years(100)).count();
  return static_cast<std::int64_t>(std::min(request.horizon_ms, kLongestMs));
}

bool has_horizon(const OperationRow& row) {
  return row.effect == Effect::kKeyed && row.horizon_at_ms;
}

// How far the clock may be set back while an operation with a horizon is interrupted.
std::int64_t skew_ms(const OperationRow& row) {
  if (!row.horizon_at_ms) return 0;
  return std::min((*row.horizon_at_ms - row.started_at_ms) / 10,
                  std::int64_t{kMostClockSkew.count()});
}

}  // namespace

Result<void> check_operation(const OperationRequest& request) {
  if (request.kind.empty() || !is_label(request.kind, kMaxKindBytes))
    return bad_operation("an operation's kind is 1 to 64 bytes of UTF-8");
  if (!is_label(request.key, kMaxOperationKeyBytes))
    return bad_operation("an operation's key is at most 256 bytes of UTF-8");
  if (request.effect < Effect::kRead || request.effect > Effect::kUnsafe)
    return bad_operation("an operation's effect is read, idempotent, keyed, probe or unsafe");
  if ((request.effect == Effect::kKeyed) != (request.horizon_ms > 0))
    return bad_operation("an operation has a horizon if its effect is keyed, and only then");
  if (!request.key_header.empty() && !is_http_token(request.key_header))
    return bad_operation("the header for an operation's key is a name such as Idempotency-Key");
  if (request.arguments.size() > kMaxOperationArgumentBytes)
    return Error{Errc::kLimitExceeded, "the arguments of an operation have at most 65536 bytes"};
  if (request.cost > kMostOperationCost)
    return bad_operation("the cost of an operation is at most 1,000,000,000,000,000");
  return {};
}

Result<void> check_resolution(OperationOutcome outcome, std::string_view result,
                              std::string_view note, std::string_view actor,
                              std::size_t max_result_bytes) {
  const bool has_result = outcome == OperationOutcome::kCompleted;
  if (!has_result && outcome != OperationOutcome::kNotExecuted)
    return bad_operation("an operation is resolved as completed or as not executed");
  if (!is_label(note, kMaxOperationNoteBytes) || actor.empty() || !is_label(actor, kMaxActorBytes))
    return bad_operation("a note has at most 1024 bytes of UTF-8, an actor 1 to 256");
  if (result.size() > max_result_bytes)
    return Error{Errc::kLimitExceeded, "the result of an operation has at most " +
                                           std::to_string(max_result_bytes) + " bytes"};
  if (has_result && !result.empty() && !is_json(result))
    return bad_operation("the result of an operation must be JSON");
  return {};
}

// ---- beginning ----------------------------------------------------------------------------------

bool is_key_known(const OperationRow& row, std::int64_t now_ms) {
  return row.horizon_at_ms && now_ms >= row.started_at_ms - skew_ms(row) &&
         now_ms < *row.horizon_at_ms;
}

DecidedOperation decide(OperationRow row, OperationState state, const OperationRequest& request,
                        bool was_given_up, bool goes_on, std::int64_t now_ms) {
  const auto decided = [&](OperationDecision decision) {
    return DecidedOperation{decision, std::move(row)};
  };
  if (state == OperationState::kRunning) return decided(OperationDecision::kJoin);
  if (state == OperationState::kCompleted) return decided(OperationDecision::kCompleted);
  const std::int64_t horizon = horizon_of(request);
  if (state == OperationState::kNotExecuted) {
    row.effect = request.effect;
    row.cost = static_cast<std::int64_t>(request.cost);
    row.acts_by_request = request.acts_by_request;
    row.started_at_ms = now_ms;
    row.horizon_at_ms.reset();
    if (horizon > 0) row.horizon_at_ms = now_ms + horizon;
    return decided(OperationDecision::kRun);
  }
  if (state == OperationState::kUnknown && !was_given_up)
    return decided(OperationDecision::kUnknown);
  // What an earlier run may have done besides its request stays possible.
  const bool acts_by_request = row.acts_by_request && request.acts_by_request;
  const auto run = [&] {
    row.acts_by_request = acts_by_request;
    return decided(OperationDecision::kRun);
  };
  row.effect = std::max(row.effect, request.effect);
  if (goes_on) return run();
  if (row.effect == Effect::kKeyed && !row.horizon_at_ms)
    row.horizon_at_ms = row.started_at_ms + horizon;
  const bool is_known = is_key_known(row, now_ms);
  if (row.effect <= Effect::kIdempotent || (row.effect == Effect::kKeyed && is_known)) return run();
  const bool is_probe = row.effect == Effect::kProbe && request.can_probe;
  return decided(is_probe ? OperationDecision::kProbe : OperationDecision::kUnknown);
}

// ---- its request --------------------------------------------------------------------------------

Result<void> check_sending(const RunningOperation& running, const OperationSending& sending,
                           const std::optional<DispatchedRequest>& before, std::int64_t now_ms) {
  if (running.is_probe)
    return bad_operation(
        "a probe asks about an operation, and cannot send the operation's request");
  if (!running.in_flight.expired())
    return conflict(
        "a request of the operation is in flight: read its answer to the end, or drop it, before "
        "you send the next one");
  const bool may_have_sent = before || !running.is_anew;
  const bool is_keyed = running.effect == Effect::kKeyed;
  if (sending.resumes) {
    if (!running.can_resume || !before || !before->is_resumable() || before->whole ||
        sending.from > before->bytes)
      return conflict("the operation has no answer whose rest could be asked for");
    return {};
  }
  if (before && is_keyed && before->fingerprint != sending.fingerprint)
    return conflict("the operation has sent another request under the same key");
  if (before && running.effect > Effect::kIdempotent && !is_keyed)
    return conflict("the operation has sent its request");
  if (may_have_sent && is_keyed && !is_key_known(running, now_ms))
    return conflict(
        "the horizon of the operation's key is over, and the request may have had its effect: let "
        "the function fail, and the operation is unknown");
  return {};
}

// ---- ending -------------------------------------------------------------------------------------

OperationOutcome outcome_of_cut(const RunningOperation& running, bool has_request, bool goes_on) {
  if (running.unsent && running.is_anew) return OperationOutcome::kNotExecuted;
  if (running.acts_by_request && !has_request) return OperationOutcome::kNotExecuted;
  if (running.effect != Effect::kUnsafe) return OperationOutcome::kCutOff;
  return running.can_resume && goes_on ? OperationOutcome::kCutOff : OperationOutcome::kUnknown;
}

// ---- giving up ----------------------------------------------------------------------------------

std::optional<std::int64_t> loss_without_answer_ms(const OperationRow& row) {
  if (has_horizon(row)) return row.horizon_at_ms;
  if (row.root) return std::nullopt;
  return row.started_at_ms + kLongestInterruption.count();
}

std::optional<std::int64_t> loss_ms(const OperationRow& row, bool goes_on) {
  const auto loss = loss_without_answer_ms(row);
  if (!has_horizon(row) || !goes_on) return loss;
  // It goes on with its answer, and does not need its key.
  if (row.root) return std::nullopt;
  return std::max(loss.value_or(0), row.started_at_ms + kLongestInterruption.count());
}

bool is_lost(const OperationRow& row, bool goes_on, std::int64_t now_ms) {
  const std::int64_t ahead = row.started_at_ms - now_ms;  // the clock was set back
  if (const auto loss = loss_ms(row, goes_on);
      loss && (*loss <= now_ms || (!row.root && ahead > kLongestInterruption.count())))
    return true;
  const std::int64_t skew = skew_ms(row);
  const bool is_strict =
      row.effect == Effect::kUnsafe || (row.effect == Effect::kKeyed && ahead > skew);
  return is_strict && !goes_on;
}

}  // namespace hearth::durable

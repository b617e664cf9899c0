#include "extensions/call_rules.hpp"

#include "base/escape.hpp"
#include "json/json_scanner.hpp"

#include <hearth/ext/drain.h>
#include <hearth/ext/offload.h>
#include <hearth/ext/sleep.h>

#include <cstring>
#include <string>

namespace hearth::extensions {
namespace {

constexpr std::uint64_t kMaxSleepMs = std::uint64_t{366} * 24 * 60 * 60 * 1000;

static_assert(static_cast<std::uint32_t>(OperationKind::kSleep) == HEARTH_OP_SLEEP);
static_assert(static_cast<std::uint32_t>(OperationKind::kOffload) == HEARTH_OP_OFFLOAD);
static_assert(static_cast<std::uint32_t>(OperationKind::kDrain) == HEARTH_OP_DRAIN);
static_assert(static_cast<std::uint32_t>(OperationKind::kDrainClient) == HEARTH_OP_DRAIN_CLIENT);
static_assert(sizeof(hearth_sleep_request) == sizeof(std::uint64_t));
static_assert(sizeof(hearth_offload_request) == sizeof(std::uint64_t));
static_assert(sizeof(hearth_drain_request) == sizeof(std::uint64_t));
static_assert(sizeof(hearth_drain_client_request) == sizeof(std::uint64_t));

}  // namespace

Answer judge_answer(EventKind kind, const Result<std::string_view>& outcome,
                    std::size_t max_bytes) {
  if (outcome.has_error()) {
    Error error = outcome.error();
    // kUnsupported must mean that the class does not handle the event. If its handler tried and
    // failed, the event is sent again.
    const bool tried = kind == EventKind::kFiberRecovered || kind == EventKind::kMigrate;
    if (tried && error.code == Errc::kUnsupported) error.code = Errc::kPlugin;
    error.message.resize(cut_text(error.message, kMaxErrorBytes).size());
    return {std::move(error), {}};
  }
  if (outcome->size() > max_bytes) {
    constexpr std::string_view kWhy = "the agent's answer is too large";
    // kPlugin for the caller, because a retry would give the same answer.
    return {Error{Errc::kPlugin, std::string(kWhy)},
            Error{Errc::kLimitExceeded, std::string(kWhy)}};
  }
  if (rule_of(kind).answers_json && !outcome->empty() && !is_json(*outcome)) {
    return {Error{Errc::kPlugin, "the agent's answer is not JSON"},
            Error{Errc::kInvalidArgument, "the answer to a call must be JSON"}};
  }
  return {outcome, {}};
}

Result<void> check_part(EventKind kind, std::string_view part, std::size_t max_bytes) {
  if (!rule_of(kind).runs_method)
    return Error{Errc::kUnsupported, "only calls and requests have parts"};
  if (part.size() > max_bytes) return Error{Errc::kLimitExceeded, "the part is too large"};
  if (rule_of(kind).answers_json && !is_json(part))
    return Error{Errc::kInvalidArgument, "a part of a call's answer must be JSON"};
  return {};
}

Result<OperationRequest> read_operation(std::uint32_t operation, std::string_view request,
                                        bool runs_jobs) {
  const auto kind = static_cast<OperationKind>(operation);
  switch (kind) {
    case OperationKind::kSleep:
    case OperationKind::kDrain:
    case OperationKind::kDrainClient: break;
    case OperationKind::kOffload:
      if (!runs_jobs) return Error{Errc::kUnsupported, "the class has no hearth.offload/1"};
      break;
    default: return Error{Errc::kUnsupported, "unknown operation " + std::to_string(operation)};
  }
  OperationRequest read{.kind = kind};
  if (request.size() != sizeof read.number)
    return Error{Errc::kInvalidArgument, "the request of the operation has a wrong size"};
  std::memcpy(&read.number, request.data(), sizeof read.number);
  if (kind == OperationKind::kSleep && read.number > kMaxSleepMs)
    return Error{Errc::kInvalidArgument, "a sleep is at most 366 days long"};
  return read;
}

Result<void> count_own_change(StateCause& cause) {
  if (cause.changed_after_wait) return {};
  if (++*cause.changes <= kMaxOwnStateChanges) {
    cause.changed_after_wait = cause.has_waited;
    return {};
  }
  return Error{Errc::kLimitExceeded, "on_state_changed has changed the state " +
                                         std::to_string(kMaxOwnStateChanges) +
                                         " times after one change: does it ever end?"};
}

}  // namespace hearth::extensions

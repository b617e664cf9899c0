#include "extensions/fibers.hpp"

#include "base/escape.hpp"
#include "base/stop_point.hpp"
#include "base/utf8.hpp"
#include "extensions/abi_request.hpp"
#include "extensions/durable_work.hpp"
#include "json/json_object_text.hpp"
#include "json/json_scanner.hpp"
#include "json/json_text.hpp"

#include <utility>
#include <vector>

namespace hearth::extensions {

// ---- what it does -------------------------------------------------------------------------------

using durable::FiberKeeping;
using durable::FiberStatus;

Result<durable::Fibers::Started> FiberExtension::start(const durable::FiberRequest& request) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  auto started = agent_.work().fibers().start(request);
  if (started.has_error() || (started->fiber == 0 && !started->is_parked)) return started;
  agent_.work().keep_trace(durable::JobKind::kFiber, started->id, agent_.calls().trace());
  const std::string name(request.name);  // may lie in a row that the commit ends
  stop_point("managed.start.written");
  agent_.commit_now();  // the record is on disk before the work's first instruction
  stop_point("managed.start.committed");
  if (started->is_parked) return started;
  agent_.work().report(DurableEvent::kFiberRunStarted, started->id, name);
  if (started->was_offered) agent_.fiber_continued(started->id);
  tell_clients_of_turns(agent_.clients(), agent_.work());
  return started;
}

namespace {

JsonObjectText turn_frame(std::string_view type, const durable::TurnNews& news) {
  JsonObjectText frame;
  frame.text("type", type).text("turn", news.id);
  return frame;
}

std::vector<std::string> frames_of_turns(const std::vector<durable::TurnNews>& all,
                                         int max_recoveries) {
  std::vector<std::string> frames;
  for (const durable::TurnNews& news : all) {
    if (news.recovery > 0) {
      const std::string reason =
          "recovery " + std::to_string(news.recovery) + " of " + std::to_string(max_recoveries);
      frames.push_back(
          turn_frame("session.status_rescheduled", news).text("reason", reason).take());
      continue;
    }
    JsonObjectText error;
    error.text("type", "turn_interrupted")
        .text("retry_status", "exhausted")
        .text("message", news.why);
    frames.push_back(turn_frame("session.error", news).json("error", error.take()).take());
    frames.push_back(turn_frame("session.status_idle", news)
                         .json("stop_reason", R"({"type":"retries_exhausted"})")
                         .take());
  }
  return frames;
}

}  // namespace

void tell_clients_of_turns(Clients& clients, DurableWork& work) {
  for (const std::string& frame :
       frames_of_turns(work.take_turn_news(), work.fibers().max_turn_recoveries()))
    tell_protocol_clients(clients, frame);
}

std::vector<std::string> frames_of_standing_turns(DurableWork& work) {
  return frames_of_turns(work.standing_turns(), work.fibers().max_turn_recoveries());
}

Result<std::uint64_t> FiberExtension::resume(std::string_view id) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  const auto fiber = agent_.work().fibers().resume(id);
  if (fiber.has_error()) return fiber.error();
  const std::string its_id(id);  // may lie in a row that the commit ends
  stop_point("managed.resume.written");
  agent_.commit_now();
  stop_point("managed.resume.committed");
  agent_.fiber_continued(its_id);
  return *fiber;
}

Result<void> FiberExtension::stash(std::uint64_t fiber, std::string_view json) {
  if (!is_json(json)) return Error{Errc::kInvalidArgument, "a checkpoint must be JSON"};
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  const auto id = agent_.work().fibers().stash(fiber, json);
  if (id.has_error()) return id.error();
  agent_.work().checkpointed(*id);
  stop_point("fiber.stash.written");
  agent_.commit_now();  // a stash that has returned is never lost
  stop_point("fiber.stash.committed");
  agent_.work().report(DurableEvent::kFiberStash, *id);
  return {};
}

Result<std::string> FiberExtension::settle(std::uint64_t fiber, FiberStatus status,
                                           std::string_view body, bool is_final) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  return settled(agent_.work().fibers().settle(fiber, status, body, is_final), body);
}

Result<std::string> FiberExtension::settle(std::uint64_t fiber, std::string_view outcome_json) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  return settled(agent_.work().fibers().settle(fiber, outcome_json), outcome_json);
}

Result<std::string> FiberExtension::settled(Result<durable::FiberChange> change,
                                            std::string_view why) {
  if (change.has_error()) return change.error();
  stop_point("managed.settle.written");
  agent_.work().stop_at_commit("managed.settle.committed");
  const FiberStatus status = change->status;
  agent_.work().report(status == FiberStatus::kCompleted ? DurableEvent::kFiberRunCompleted
                       : status == FiberStatus::kAborted ? DurableEvent::kFiberCancelled
                       : status == FiberStatus::kPending ? DurableEvent::kFiberRunRetry
                                                         : DurableEvent::kFiberRunFailed,
                       change->id, status == FiberStatus::kCompleted ? std::string_view() : why);
  report_inner(*change, why);
  return std::move(change->record);
}

Result<std::string> FiberExtension::cancel(std::string_view id, std::string_view key,
                                           std::string_view reason) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  auto change = agent_.work().fibers().cancel(id, key, reason);
  if (change.has_error()) return change.error();
  stop_point("managed.cancel.written");
  agent_.work().stop_at_commit("managed.cancel.committed");
  agent_.work().report(DurableEvent::kFiberCancelled, change->id, reason);
  report_inner(*change, reason);
  return std::move(change->record);
}

void FiberExtension::report_inner(const durable::FiberChange& outer, std::string_view reason) {
  for (const std::string& id : outer.inner)
    agent_.work().report(DurableEvent::kFiberCancelled, id, reason);
}

Result<void> FiberExtension::resolve(std::string_view id, std::string_view outcome,
                                     durable::Decides who) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  const auto change = agent_.work().fibers().resolve(id, outcome, who);
  if (change.has_error()) return change.error();
  report_inner(*change, "its outer fiber was aborted");
  return {};
}

// ---- its C functions ----------------------------------------------------------------------------

std::string readable_reason(std::string_view text) {
  constexpr std::size_t kMaxReasonBytes = 4096;
  text = cut_text(text, kMaxReasonBytes);
  if (is_valid_utf8(text)) return std::string(text);
  std::string json;
  append_json_string(json, text);
  return decode_json_string(json);
}

namespace {

constexpr std::size_t kRecordsListedByDefault = 50;
constexpr std::size_t kMostRecordsListed = 100;
constexpr std::size_t kRemovedByDefault = 100;
constexpr std::size_t kMostRemoved = 500;
constexpr std::uint32_t kAllStatuses = 127;
constexpr std::uint32_t kStartFlags =
    HEARTH_FIBER_KEEP_RECORD | HEARTH_FIBER_TAKE_UP | HEARTH_FIBER_TURN | HEARTH_FIBER_RESET;

hearth_status start_fiber(AgentContext& it, const hearth_fiber_start* request, hearth_fiber* fiber,
                          hearth_bytes* record) {
  const auto given = read_struct(request);
  if (!given) return bad_struct(it);
  const auto texts = texts_of({given->name, given->id, given->key, given->parent, given->input,
                               given->metadata, given->lane});
  if (!texts) return bad_slice(it);
  const auto& [name, id, key, parent, input, metadata, lane] = *texts;
  if (fiber == nullptr) return fail(it, HEARTH_E_INVALID, "start() needs a place for the fiber");
  if (given->policy > HEARTH_FIBER_REPLACE_FAILED || (given->flags & ~kStartFlags) != 0)
    return fail(it, HEARTH_E_INVALID, "start() has an unknown policy or flag");
  durable::FiberRequest wanted;
  wanted.policy = static_cast<durable::SettledKey>(given->policy);
  wanted.name = name;
  wanted.id = id;
  wanted.key = key;
  wanted.parent = parent;
  wanted.input = input;
  wanted.metadata = metadata;
  wanted.lane = lane;
  wanted.max_retries = given->max_retries;
  wanted.retry_base_ms = given->retry_base_ms;
  wanted.retry_max_ms = given->retry_max_ms;
  wanted.keeping =
      (given->flags & HEARTH_FIBER_KEEP_RECORD) != 0 ? FiberKeeping::kKept : FiberKeeping::kBrief;
  wanted.take_up = (given->flags & HEARTH_FIBER_TAKE_UP) != 0;
  wanted.is_turn = (given->flags & HEARTH_FIBER_TURN) != 0;
  wanted.resets_by_progress = (given->flags & HEARTH_FIBER_RESET) != 0;
  auto started = FiberExtension(it).start(wanted);
  if (!started) return fail(it, started.error(), HEARTH_E_GONE);
  *fiber = started->fiber;
  lend(it, std::move(started->record), record);
  return HEARTH_OK;
}

hearth_status resume_fiber(AgentContext& it, std::string_view id, hearth_fiber* fiber) {
  if (fiber == nullptr) return fail(it, HEARTH_E_INVALID, "resume() needs a place for the fiber");
  const auto resumed = FiberExtension(it).resume(id);
  if (!resumed) return fail(it, resumed.error());
  *fiber = *resumed;
  return HEARTH_OK;
}

hearth_status stash_fiber(AgentContext& it, hearth_fiber fiber, std::string_view json) {
  return status_of(it, FiberExtension(it).stash(fiber, json), HEARTH_E_GONE);
}

hearth_status settle_fiber(AgentContext& it, hearth_fiber fiber, std::uint32_t status,
                           hearth_bytes body, hearth_bytes* record) {
  const auto bytes = bytes_of(body);
  if (!bytes) return bad_slice(it);
  if (status == HEARTH_FIBER_OUTCOME) {
    if (!is_valid_utf8(*bytes)) return bad_slice(it);
    auto ended = FiberExtension(it).settle(fiber, *bytes);
    if (!ended) return fail(it, ended.error(), HEARTH_E_GONE);
    lend(it, std::move(ended.value()), record);
    return HEARTH_OK;
  }
  const bool is_final = status == HEARTH_FIBER_FINAL_ERROR;
  const bool waits = status == HEARTH_FIBER_NEEDS_CODE;
  const auto end = is_final ? FiberStatus::kError : static_cast<FiberStatus>(status);
  const bool failed = end == FiberStatus::kError || end == FiberStatus::kAborted;
  if (!failed && !waits && end != FiberStatus::kCompleted)
    return fail(it, HEARTH_E_INVALID,
                "work ends as COMPLETED, ERROR, FINAL_ERROR, ABORTED or OUTCOME, or waits: "
                "NEEDS_CODE");
  if (end == FiberStatus::kCompleted && !is_valid_utf8(*bytes)) return bad_slice(it);
  if (const auto refusal = it.work_refusal()) return fail(it, *refusal);
  const std::string reason = failed || waits ? readable_reason(*bytes) : std::string();
  auto settled = waits ? it.work().wait_for_code(fiber, reason)
                       : FiberExtension(it).settle(
                             fiber, end, failed ? std::string_view(reason) : *bytes, is_final);
  if (!settled) return fail(it, settled.error(), HEARTH_E_GONE);
  lend(it, std::move(settled.value()), record);
  return HEARTH_OK;
}

hearth_status inspect_fiber(AgentContext& it, std::string_view id, std::string_view key,
                            hearth_bytes* record) {
  return lend_result(it, it.work().fibers().inspect(id, key), record);
}

// Reads the filter of list() and remove(); its views point into the plugin's memory. HEARTH_OK if
// it is valid.
hearth_status read_fiber_filter(AgentContext& it, const hearth_fiber_filter* filter,
                                std::size_t by_default, std::size_t most,
                                durable::FiberFilter& wanted) {
  const auto given = read_struct(filter);
  if (!given) return bad_struct(it);
  const auto name = text_of(given->name);
  const auto after = text_of(given->after);
  if (!name || !after) return bad_slice(it);
  const auto limit = read_limit(given->limit, by_default, most);
  if (!limit || given->statuses > kAllStatuses || given->dead > 1)
    return fail(it, HEARTH_E_INVALID, "a filter of fibers has an impossible number");
  wanted = {given->statuses, *name, given->before_ms, *after, *limit, given->dead == 1};
  return HEARTH_OK;
}

hearth_status list_fibers(AgentContext& it, const hearth_fiber_filter* filter,
                          hearth_bytes* records) {
  durable::FiberFilter wanted;
  const auto status =
      read_fiber_filter(it, filter, kRecordsListedByDefault, kMostRecordsListed, wanted);
  if (status != HEARTH_OK) return status;
  return lend_result(it, it.work().fibers().list(wanted), records);
}

hearth_status cancel_fiber(AgentContext& it, std::string_view id, std::string_view key,
                           hearth_bytes reason, hearth_bytes* record) {
  const auto why = bytes_of(reason);
  if (!why) return bad_slice(it);
  return lend_result(it, FiberExtension(it).cancel(id, key, readable_reason(*why)), record);
}

hearth_status resolve_fiber(AgentContext& it, std::string_view id, std::string_view outcome) {
  return status_of(it, FiberExtension(it).resolve(id, outcome));
}

hearth_status revive_fiber(AgentContext& it, std::string_view id) {
  return status_of(it, it.work().fibers().retry(id));
}

hearth_status remove_fibers(AgentContext& it, const hearth_fiber_filter* filter,
                            std::uint64_t* removed) {
  durable::FiberFilter wanted;
  const auto status = read_fiber_filter(it, filter, kRemovedByDefault, kMostRemoved, wanted);
  if (status != HEARTH_OK) return status;
  if (const auto refusal = it.work_refusal()) return fail(it, *refusal);
  const auto count = it.work().fibers().remove(wanted);
  if (!count) return fail(it, count.error());
  if (removed != nullptr) *removed = *count;
  return HEARTH_OK;
}

hearth_status once_fiber(AgentContext& it, hearth_fiber fiber, std::string_view mark,
                         uint32_t* is_first) {
  if (is_first == nullptr) return no_place(it);
  const auto first = it.work().fibers().once(fiber, mark);
  if (!first) return fail(it, first.error(), HEARTH_E_GONE);
  *is_first = *first ? 1 : 0;
  return HEARTH_OK;
}

hearth_status works_for_fiber(AgentContext& it, hearth_fiber fiber, std::uint64_t call) {
  it.works_for(fiber, call);
  return HEARTH_OK;
}

constexpr hearth_fibers_v1 kFibers{.start = kDoor<start_fiber>,
                                   .resume = kDoor<resume_fiber>,
                                   .stash = kDoor<stash_fiber>,
                                   .settle = kDoor<settle_fiber>,
                                   .inspect = kDoor<inspect_fiber>,
                                   .list = kDoor<list_fibers>,
                                   .cancel = kDoor<cancel_fiber>,
                                   .resolve = kDoor<resolve_fiber>,
                                   .revive = kDoor<revive_fiber, DoorKind::kWork>,
                                   .remove = kDoor<remove_fibers>,
                                   .once = kDoor<once_fiber, DoorKind::kWork>,
                                   .works_for = kDoor<works_for_fiber>};

}  // namespace

const hearth_fibers_v1& fibers_extension() noexcept {
  return kFibers;
}

}  // namespace hearth::extensions

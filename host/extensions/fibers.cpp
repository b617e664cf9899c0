#include "extensions/fibers.hpp"

#include "base/stop_point.hpp"
#include "base/utf8.hpp"
#include "extensions/abi_call.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/work_spans.hpp"
#include "json/json_object_text.hpp"
#include "json/json_scanner.hpp"

#include <utility>
#include <vector>

namespace hearth::extensions {

// ---- what it does -------------------------------------------------------------------------------

using durable::FiberChange;
using durable::FiberKeeping;
using durable::FiberStatus;

namespace {

void begin_span(AgentContext& agent, durable::FiberHandle fiber) {
  if (!agent.ports().record_spans()) return;
  if (const durable::Job* const job = agent.work().fibers().runs().find_running(fiber))
    agent.of<WorkSpans>().begin(SpannedWork::kFiber, job->id, job->name);
}

void end_span(const AgentContext& agent, const FiberChange& change) {
  auto* const spans = agent.extensions().find<WorkSpans>();
  if (spans == nullptr) return;
  const bool has_failed = change.status != FiberStatus::kCompleted;
  spans->end(SpannedWork::kFiber, change.id, to_string(change.status), has_failed);
  for (const std::string& id : change.inner)
    spans->end(SpannedWork::kFiber, id, to_string(FiberStatus::kAborted), true);
}

}  // namespace

Result<durable::Fibers::Started> FiberExtension::start(const durable::FiberRequest& request) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  auto started = agent_.work().fibers().start(request);
  if (started.has_error() || (started->fiber == 0 && !started->is_parked)) return started;
  agent_.work().reports().keep_trace(durable::JobKind::kFiber, started->id, agent_.calls().trace());
  const std::string name(request.name);  // may lie in a row that the commit ends
  stop_point("managed.start.written");
  agent_.commit_now();  // the record is on disk before the work's first instruction
  stop_point("managed.start.committed");
  if (started->is_parked) return started;
  begin_span(agent_, started->fiber);
  agent_.work().reports().add(DurableEvent::kFiberRunStarted, started->id, name);
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
       frames_of_turns(work.fibers().turns().take(), work.fibers().settings().max_turn_recoveries))
    tell_protocol_clients(clients, frame);
}

std::vector<std::string> frames_of_standing_turns(DurableWork& work) {
  return frames_of_turns(work.fibers().turns().standing(),
                         work.fibers().settings().max_turn_recoveries);
}

Result<std::uint64_t> FiberExtension::resume(std::string_view id) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  const auto fiber = agent_.work().fibers().resume(id);
  if (fiber.has_error()) return fiber.error();
  const std::string its_id(id);  // may lie in a row that the commit ends
  stop_point("managed.resume.written");
  agent_.commit_now();
  stop_point("managed.resume.committed");
  begin_span(agent_, *fiber);
  agent_.fiber_continued(its_id);
  return *fiber;
}

Result<void> FiberExtension::stash(std::uint64_t fiber, std::string_view json) {
  if (!is_json(json)) return Error{Errc::kInvalidArgument, "a checkpoint must be JSON"};
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  const auto id = agent_.work().fibers().stash(fiber, json);
  if (id.has_error()) return id.error();
  if (auto* const operations = agent_.work().find_operations()) operations->checkpointed(*id);
  stop_point("fiber.stash.written");
  agent_.commit_now();  // a stash that has returned is never lost
  stop_point("fiber.stash.committed");
  agent_.work().reports().add(DurableEvent::kFiberStash, *id);
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
  end_span(agent_, *change);
  stop_point("managed.settle.written");
  agent_.work().stop_at_commit("managed.settle.committed");
  const FiberStatus status = change->status;
  agent_.work().reports().add(status == FiberStatus::kCompleted ? DurableEvent::kFiberRunCompleted
                              : status == FiberStatus::kAborted ? DurableEvent::kFiberCancelled
                              : status == FiberStatus::kPending ? DurableEvent::kFiberRunRetry
                                                                : DurableEvent::kFiberRunFailed,
                              change->id,
                              status == FiberStatus::kCompleted ? std::string_view() : why);
  report_inner(*change, why);
  return std::move(change->record);
}

Result<std::string> FiberExtension::wait_for_code(std::uint64_t fiber, std::string_view what) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  auto change = agent_.work().recovery().wait_for_code(fiber, what);
  if (change.has_error()) return change.error();
  end_span(agent_, *change);
  return std::move(change->record);
}

Result<std::string> FiberExtension::cancel(std::string_view id, std::string_view key,
                                           std::string_view reason) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  auto change = agent_.work().fibers().records().cancel(id, key, reason);
  if (change.has_error()) return change.error();
  end_span(agent_, *change);
  stop_point("managed.cancel.written");
  agent_.work().stop_at_commit("managed.cancel.committed");
  agent_.work().reports().add(DurableEvent::kFiberCancelled, change->id, reason);
  report_inner(*change, reason);
  return std::move(change->record);
}

void FiberExtension::report_inner(const durable::FiberChange& outer, std::string_view reason) {
  for (const std::string& id : outer.inner)
    agent_.work().reports().add(DurableEvent::kFiberCancelled, id, reason);
}

Result<void> FiberExtension::resolve(std::string_view id, std::string_view outcome,
                                     durable::Decides who) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  const auto change = agent_.work().fibers().records().resolve(id, outcome, who);
  if (change.has_error()) return change.error();
  end_span(agent_, *change);
  report_inner(*change, "its outer fiber was aborted");
  return {};
}

// ---- its C functions ----------------------------------------------------------------------------

namespace {

constexpr std::size_t kMostReasonBytes = 4096;
constexpr std::uint32_t kAllStatuses = 127;
constexpr std::uint32_t kStartFlags =
    HEARTH_FIBER_KEEP_RECORD | HEARTH_FIBER_TAKE_UP | HEARTH_FIBER_TURN | HEARTH_FIBER_RESET;

Result<void> start_fiber(AgentContext& it, const hearth_fiber_start& given, hearth_fiber& fiber,
                         hearth_bytes* record) {
  const auto texts = texts_of(
      {given.name, given.id, given.key, given.parent, given.input, given.metadata, given.lane});
  if (!texts) return bad_slice();
  const auto& [name, id, key, parent, input, metadata, lane] = *texts;
  if ((given.flags & ~kStartFlags) != 0)
    return Error{Errc::kInvalidArgument, "start() has an unknown flag"};
  durable::FiberRequest wanted;
  wanted.policy = static_cast<durable::SettledKey>(given.policy);
  wanted.name = name;
  wanted.id = id;
  wanted.key = key;
  wanted.parent = parent;
  wanted.input = input;
  wanted.metadata = metadata;
  wanted.lane = lane;
  wanted.max_retries = given.max_retries;
  wanted.retry_base_ms = given.retry_base_ms;
  wanted.retry_max_ms = given.retry_max_ms;
  wanted.keeping =
      (given.flags & HEARTH_FIBER_KEEP_RECORD) != 0 ? FiberKeeping::kKept : FiberKeeping::kBrief;
  wanted.take_up = (given.flags & HEARTH_FIBER_TAKE_UP) != 0;
  wanted.is_turn = (given.flags & HEARTH_FIBER_TURN) != 0;
  wanted.resets_by_progress = (given.flags & HEARTH_FIBER_RESET) != 0;
  auto started = FiberExtension(it).start(wanted);
  if (!started) return started.error();
  fiber = started->fiber;
  lend(it, std::move(started->record), record);
  return {};
}

Result<std::string> settle_fiber(AgentContext& it, hearth_fiber fiber, std::uint32_t status,
                                 AnyBytes body) {
  if (status == HEARTH_FIBER_OUTCOME) {
    if (!is_valid_utf8(body.bytes)) return bad_slice();
    return FiberExtension(it).settle(fiber, body.bytes);
  }
  const bool is_final = status == HEARTH_FIBER_FINAL_ERROR;
  const bool waits = status == HEARTH_FIBER_NEEDS_CODE;
  const auto end = is_final ? FiberStatus::kError : static_cast<FiberStatus>(status);
  const bool failed = end == FiberStatus::kError || end == FiberStatus::kAborted;
  if (!failed && !waits && end != FiberStatus::kCompleted)
    return Error{Errc::kInvalidArgument,
                 "work ends as COMPLETED, ERROR, FINAL_ERROR, ABORTED or OUTCOME, or waits: "
                 "NEEDS_CODE"};
  if (end == FiberStatus::kCompleted && !is_valid_utf8(body.bytes)) return bad_slice();
  const std::string reason =
      failed || waits ? readable_text(body.bytes, kMostReasonBytes) : std::string();
  if (waits) return FiberExtension(it).wait_for_code(fiber, reason);
  return FiberExtension(it).settle(fiber, end, failed ? std::string_view(reason) : body.bytes,
                                   is_final);
}

Result<std::string> inspect_fiber(AgentContext& it, std::string_view id, std::string_view key) {
  return it.work().fibers().records().inspect(id, key);
}

// The views of the result point into the plugin's memory.
Result<durable::FiberFilter> read_fiber_filter(const hearth_fiber_filter& filter) {
  const auto texts = texts_of({filter.name, filter.after});
  if (!texts) return bad_slice();
  if (filter.statuses > kAllStatuses || filter.dead > 1)
    return Error{Errc::kInvalidArgument, "a filter of fibers has an impossible number"};
  const auto& [name, after] = *texts;
  return durable::FiberFilter{filter.statuses, name,         filter.before_ms,
                              after,           filter.limit, filter.dead == 1};
}

Result<std::string> list_fibers(AgentContext& it, const hearth_fiber_filter& filter) {
  const auto wanted = read_fiber_filter(filter);
  if (!wanted) return wanted.error();
  return it.work().fibers().records().list(*wanted);
}

Result<std::string> cancel_fiber(AgentContext& it, std::string_view id, std::string_view key,
                                 AnyBytes reason) {
  return FiberExtension(it).cancel(id, key, readable_text(reason.bytes, kMostReasonBytes));
}

Result<void> resolve_fiber(AgentContext& it, std::string_view id, std::string_view outcome) {
  return FiberExtension(it).resolve(id, outcome);
}

Result<void> revive_fiber(AgentContext& it, std::string_view id) {
  return it.work().fibers().records().retry(id);
}

Result<void> remove_fibers(AgentContext& it, const hearth_fiber_filter& filter,
                           std::uint64_t* removed) {
  const auto wanted = read_fiber_filter(filter);
  if (!wanted) return wanted.error();
  if (auto refusal = it.work_refusal()) return *std::move(refusal);
  const auto count = it.work().fibers().records().remove(*wanted);
  if (!count) return count.error();
  if (removed != nullptr) *removed = *count;
  return {};
}

Result<void> once_fiber(AgentContext& it, hearth_fiber fiber, std::string_view mark,
                        std::uint32_t& is_first) {
  const auto first = it.work().fibers().once(fiber, mark);
  if (!first) return first.error();
  is_first = *first ? 1 : 0;
  return {};
}

}  // namespace

constexpr hearth_fibers_v1 kFibersTable{.start = kGoneDoor<start_fiber>,
                                        .resume = kDoor<&FiberExtension::resume>,
                                        .stash = kGoneDoor<&FiberExtension::stash>,
                                        .settle = kGoneDoor<settle_fiber>,
                                        .inspect = kDoor<inspect_fiber>,
                                        .list = kDoor<list_fibers>,
                                        .cancel = kDoor<cancel_fiber>,
                                        .resolve = kDoor<resolve_fiber>,
                                        .revive = kDoor<revive_fiber, DoorKind::kWork>,
                                        .remove = kDoor<remove_fibers>,
                                        .once = kGoneDoor<once_fiber, DoorKind::kWork>,
                                        .works_for = kDoor<&AgentContext::works_for>};

}  // namespace hearth::extensions

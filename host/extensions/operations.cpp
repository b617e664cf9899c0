#include "extensions/operations.hpp"

#include "base/escape.hpp"
#include "base/stop_point.hpp"
#include "extensions/abi_call.hpp"
#include "extensions/fibers.hpp"
#include "extensions/work_spans.hpp"
#include "json/json_object_text.hpp"

#include <hearth/ext/drain.h>

#include <set>
#include <span>
#include <utility>
#include <vector>

namespace hearth::extensions {

using durable::OperationDecision;
using durable::OperationOutcome;
using durable::OperationState;

namespace {

constexpr std::size_t kMaxAuditedNoteBytes = 256;

}  // namespace

// ---- what it does -------------------------------------------------------------------------------

namespace {

// Operators read the class's list of kinds, and set limits for them. So the list must be right.
Result<void> check_listed(const AgentContext& agent, const durable::OperationRequest& request) {
  const auto effect = agent.listed_effect(request.kind);
  if (!effect) {
    return Error{Errc::kInvalidArgument,
                 "the class lists no operation " + quote_text(request.kind) +
                     ": list it with m.operation(), in C with hearth.operation_kinds/1"};
  }
  if (*effect == request.effect) return {};
  return Error{Errc::kInvalidArgument, "the class lists the operation " + quote_text(request.kind) +
                                           " with another effect"};
}

void end_span(const AgentContext& agent, std::string_view id, std::string_view state,
              bool has_failed) {
  if (auto* const spans = agent.extensions().find<WorkSpans>())
    spans->end(SpannedWork::kOperation, id, state, has_failed);
}

}  // namespace

Result<OperationsExtension::Begun> OperationsExtension::begin(
    const durable::OperationRequest& request, std::uint64_t token) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  if (auto listed = check_listed(agent_, request); listed.has_error()) return listed.error();
  auto begun = agent_.work().operations().begin(request);
  agent_.work().reports().add_operations();
  if (begun.has_error()) return begun.error();
  if (begun->operation != 0 && agent_.ports().record_spans())
    agent_.of<WorkSpans>().begin(SpannedWork::kOperation, begun->id, request.kind);
  if (begun->decision != OperationDecision::kRun) return Begun{*std::move(begun), 0};
  stop_point("operation.started.written");
  agent_.work().stop_at_commit("operation.started.committed");
  // A drain waits in the outbox: its result comes when the row is as durable as the class asks.
  const hearth_drain_request drain = {.call = 0};
  const auto wait = agent_.calls().submit(
      HEARTH_OP_DRAIN, {reinterpret_cast<const char*>(&drain), sizeof drain}, token);
  durable::Operations& ledger = agent_.work().operations();
  if (wait.has_error()) {
    ledger.running().never_begins(begun->operation);
    (void)ledger.settle(begun->operation, OperationOutcome::kCutOff, wait.error().message);
    end_span(agent_, begun->id, to_string(wait.error().code), true);
    agent_.work().reports().add_operations();
    return wait.error();
  }
  ledger.running().waits_for(begun->operation, *wait);
  return Begun{*std::move(begun), *wait};
}

Result<OperationState> OperationsExtension::settle(std::uint64_t operation,
                                                   OperationOutcome outcome,
                                                   std::string_view body) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  auto& ledger = agent_.work().operations();
  const std::string id = ledger.running().id_of(operation);
  const auto state = ledger.settle(operation, outcome, body);
  agent_.work().reports().add_operations();
  if (!state && state.error().code != Errc::kLimitExceeded) return state;
  const OperationState reached = state ? *state : OperationState::kCompleted;
  end_span(agent_, id, to_string(reached), reached != OperationState::kCompleted);
  stop_point("operation.settled.written");
  agent_.work().stop_at_commit("operation.settled.committed");
  return state;
}

Result<void> OperationsExtension::resolve(std::string_view id, OperationOutcome outcome,
                                          std::string_view result, std::string_view note,
                                          std::string_view actor) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  const std::string its_id(id);
  const std::string its_actor(actor);
  auto resolved = agent_.work().operations().resolve(id, outcome, result, note, actor);
  agent_.work().reports().add_operations();
  if (!resolved.has_error()) {
    agent_.work().reports().add(
        DurableEvent::kOperationResolved, its_id,
        (outcome == OperationOutcome::kCompleted ? "completed, says " : "not executed, says ") +
            its_actor);
  }
  return resolved;
}

Result<void> OperationsExtension::resolve_and_record(std::string_view id, OperationOutcome outcome,
                                                     std::string_view result, std::string_view note,
                                                     std::string_view actor) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  // Copies for resolve().
  const std::string its_id(id);
  const std::string its_note(note);
  const std::string its_actor(actor);
  if (its_actor == kAdministrator) {
    return Error{Errc::kInvalidArgument, "the actor \"administrator\" is kept for administrators"};
  }
  auto& ledger = agent_.work().operations();
  if (auto may = ledger.may_resolve(its_id, outcome, result, its_note, its_actor); may.has_error())
    return may;
  JsonObjectText detail;
  detail.text("operation", its_id)
      .text("outcome", outcome == OperationOutcome::kCompleted ? "completed" : "not_executed")
      .text("actor", its_actor)
      .text("note", cut_text(its_note, kMaxAuditedNoteBytes));
  if (auto recorded = agent_.audit("operation.resolved", detail.take()); recorded.has_error())
    return recorded;
  return resolve(its_id, outcome, result, its_note, its_actor);
}

namespace {

std::string frame_of_unknown(std::string_view id, std::string_view kind) {
  return JsonObjectText()
      .text("type", "cf_agent_operation_unknown")
      .text("operation", id)
      .text("kind", kind)
      .text("text", durable::UnknownOperation::warning(id))
      .take();
}

}  // namespace

void tell_clients_of_unknown(Clients& clients, const DueWork& work) {
  tell_protocol_clients(clients, frame_of_unknown(work.id, work.name));
}

std::vector<std::string> missed_frames(DurableWork& work) {
  std::vector<std::string> frames = frames_of_standing_turns(work);
  auto* const operations = work.find_operations();
  if (operations == nullptr) return frames;
  for (const durable::UnknownOperation& each : operations->unknown().standing())
    frames.push_back(frame_of_unknown(each.id, each.kind));
  return frames;
}

// ---- what a class says of its kinds -------------------------------------------------------------

namespace {

bool is_answer(hearth_bytes answer) {
  const auto text = text_of(answer);
  return text && !text->empty() && text->size() <= HEARTH_OPERATION_ANSWER_MAX;
}

std::string problem_with_kind(const hearth_operation_kind& kind, std::set<std::string>& names) {
  constexpr std::size_t kMaxNameBytes = 64;
  const auto name = text_of(kind.name);
  if (!name || name->empty() || name->size() > kMaxNameBytes)
    return " has an operation whose name is not 1 to 64 bytes of UTF-8";
  const std::string which = " has the operation \"" + std::string(*name) + "\" ";
  if (!names.emplace(*name).second) return which + "twice";
  if (kind.effect < HEARTH_EFFECT_READ || kind.effect > HEARTH_EFFECT_UNSAFE)
    return which + "without a class of effect: HEARTH_EFFECT_READ to HEARTH_EFFECT_UNSAFE";
  const std::string without = which + "without the answer to: ";
  if (!is_answer(kind.same)) return without + "what makes two attempts the same operation?";
  if (!is_answer(kind.interrupted))
    return without + "what does recovery do if the server ends between the call and its answer?";
  if (!is_answer(kind.upstream))
    return without + "what does the other side do with the same operation twice?";
  if (!is_answer(kind.unknown))
    return without + "what does the agent do if the answer is \"we do not know\"?";
  return {};
}

}  // namespace

std::string problem_with_operations(const hearth_operation_kinds_v1* kinds) {
  if (kinds == nullptr) return {};
  if (kinds->struct_size < kOperationKindsSize10)
    return " has a struct_size of " + std::to_string(kinds->struct_size) +
           ": set it to sizeof(hearth_operation_kinds_v1)";
  if (kinds->count > HEARTH_OPERATION_KINDS_MAX)
    return " has " + std::to_string(kinds->count) + " operations, more than " +
           std::to_string(HEARTH_OPERATION_KINDS_MAX);
  if (kinds->count > 0 && kinds->kinds == nullptr) return " has no list of its operations";
  std::set<std::string> names;
  for (const hearth_operation_kind& each : std::span(kinds->kinds, kinds->count)) {
    if (std::string problem = problem_with_kind(each, names); !problem.empty()) return problem;
  }
  return {};
}

OperationKinds operation_kinds(const hearth_operation_kinds_v1* kinds) {
  OperationKinds listed;
  if (kinds == nullptr || !problem_with_operations(kinds).empty()) return listed;
  for (const hearth_operation_kind& each : std::span(kinds->kinds, kinds->count))
    listed.emplace(text_of(each.name).value_or(""), static_cast<durable::Effect>(each.effect));
  return listed;
}

std::optional<durable::Effect> effect_in(const OperationKinds& kinds, std::string_view kind) {
  const auto found = kinds.find(kind);
  if (found == kinds.end()) return std::nullopt;
  return found->second;
}

// ---- its C functions ----------------------------------------------------------------------------

namespace {

constexpr std::size_t kOperationsListedByDefault = 50;
constexpr std::size_t kMostOperationsListed = 100;
constexpr std::uint32_t kAllOperationStates = 31;

static_assert(static_cast<std::uint32_t>(durable::Effect::kUnsafe) == HEARTH_EFFECT_UNSAFE);
static_assert(static_cast<std::uint32_t>(OperationState::kUnknown) == HEARTH_OPERATION_IS_UNKNOWN);
static_assert(static_cast<std::uint32_t>(OperationOutcome::kFailed) == HEARTH_OUTCOME_FAILED);
static_assert(static_cast<std::uint32_t>(OperationDecision::kUnknown) == HEARTH_OPERATION_UNKNOWN);
static_assert(HEARTH_EVENT_OPERATION_UNKNOWN ==
              static_cast<std::uint32_t>(EventKind::kOperationUnknown));

void lend_both(AgentContext& it, std::string first, std::string_view second,
               hearth_bytes& first_place, hearth_bytes& second_place) {
  const std::size_t end = first.size();
  lend(it, std::move(first.append(second)), nullptr);
  const std::string_view lent = it.lent_text;
  first_place = slice_of(lent.substr(0, end));
  second_place = slice_of(lent.substr(end));
}

hearth_status begin_operation(AgentContext& it, const hearth_operation_start& given,
                              std::uint64_t token, hearth_operation_begun& begun) {
  const auto texts = texts_of({given.kind, given.arguments, given.key, given.id, given.key_header});
  if (!texts) return fail(it, bad_slice());
  const auto& [kind, arguments, key, id, key_header] = *texts;
  if (given.can_probe > 1 || given.can_resume > 1 || given.acts_by_request > 1 ||
      given.reserved != 0)
    return fail(it, HEARTH_E_INVALID, "begin() has an unknown flag");
  if (given.fiber != 0 && it.work().fibers().runs().find_running(given.fiber) == nullptr)
    return fail(it, HEARTH_E_GONE, "the fiber has ended");
  durable::OperationRequest wanted;
  wanted.effect = static_cast<durable::Effect>(given.effect);
  wanted.fiber = given.fiber;
  wanted.horizon_ms = given.horizon_ms;
  wanted.can_probe = given.can_probe != 0;
  wanted.can_resume = given.can_resume != 0;
  wanted.acts_by_request = given.acts_by_request != 0;
  wanted.key_header = key_header;
  wanted.cost = given.cost;
  wanted.kind = kind;
  wanted.arguments = arguments;
  wanted.key = key;
  wanted.id = id;
  auto answer = OperationsExtension(it).begin(wanted, token);
  if (!answer) return fail(it, answer.error());
  durable::OperationBegun& operation = answer->operation;
  begun = {};
  begun.decision = static_cast<std::uint32_t>(operation.decision);
  begun.attempt = static_cast<std::uint32_t>(operation.attempt);
  begun.operation = operation.operation;
  begun.wait = answer->wait;
  lend_both(it, std::move(operation.id), operation.result, begun.id, begun.result);
  return HEARTH_OK;
}

Result<void> settle_operation(AgentContext& it, std::uint64_t operation, std::uint32_t outcome,
                              AnyBytes body, std::uint32_t* state) {
  if (outcome < HEARTH_OUTCOME_COMPLETED || outcome > HEARTH_OUTCOME_FAILED)
    return Error{Errc::kInvalidArgument, "settle() takes one of HEARTH_OUTCOME_*"};
  const auto settled =
      OperationsExtension(it).settle(operation, static_cast<OperationOutcome>(outcome), body.bytes);
  if (!settled) return settled.error();
  if (state != nullptr) *state = static_cast<std::uint32_t>(*settled);
  return {};
}

Result<std::string> inspect_operation(AgentContext& it, std::string_view id) {
  return it.work().operations().records().inspect(id);
}

Result<std::string> list_operations(AgentContext& it, const hearth_operation_filter& filter) {
  const auto texts = texts_of({filter.kind, filter.fiber, filter.after});
  if (!texts) return bad_slice();
  const auto& [kind, fiber, after] = *texts;
  if ((filter.states & ~kAllOperationStates) != 0 || filter.reserved != 0)
    return Error{Errc::kInvalidArgument, "there is no such state of an operation"};
  const auto limit = read_limit(filter.limit, kOperationsListedByDefault, kMostOperationsListed);
  if (!limit) return Error{Errc::kInvalidArgument, "at most 100 operations are listed at once"};
  durable::OperationFilter wanted;
  wanted.states = filter.states;
  wanted.kind = kind;
  wanted.fiber = fiber;
  wanted.after = after;
  wanted.limit = *limit;
  return it.work().operations().records().list(wanted);
}

Result<void> resolve_operation(AgentContext& it, std::string_view id, std::uint32_t outcome,
                               std::string_view result, std::string_view note,
                               std::string_view actor) {
  return OperationsExtension(it).resolve_and_record(id, static_cast<OperationOutcome>(outcome),
                                                    result, note, actor);
}

Result<void> operation_answer(AgentContext& it, std::string_view id, hearth_bytes& head,
                              hearth_bytes& body) {
  auto answer = it.work().operations().requests().answer(id);
  if (!answer) return answer.error();
  std::string json = JsonObjectText()
                         .flag("can_resume", answer->request.is_resumable())
                         .flag("whole", answer->request.whole)
                         .json("head", answer->head.empty() ? "null" : answer->head)
                         .take();
  lend_both(it, std::move(json), answer->body, head, body);
  return {};
}

Result<void> drop_operation_answer(AgentContext& it, std::string_view id) {
  return it.work().operations().requests().drop_answer(id);
}

}  // namespace

constexpr hearth_operations_v1 kOperationsTable = {
    .begin = kDoor<begin_operation>,
    .settle = kGoneDoor<settle_operation>,
    .inspect = kDoor<inspect_operation>,
    .list = kDoor<list_operations>,
    .resolve = kDoor<resolve_operation>,
    .answer = kDoor<operation_answer>,
    .path = kDoor<&durable::Operations::path_of>,
    .drop_answer = kDoor<drop_operation_answer, DoorKind::kWork>,
    .set_cost = kDoor<&durable::Operations::set_cost, DoorKind::kWork>,
    .describe = kDoor<&WorkSpans::describe>};

}  // namespace hearth::extensions

#include "extensions/schedule.hpp"

#include "extensions/abi_request.hpp"
#include "extensions/durable_work.hpp"

#include <utility>

namespace hearth::extensions {

Result<durable::Schedules::Created> create_schedule(AgentContext& agent,
                                                    const durable::ScheduleRequest& request) {
  if (auto refusal = agent.work_refusal()) return *std::move(refusal);
  DurableWork& work = agent.work();
  auto made = work.schedules().create(request);
  if (made.has_error()) return made;
  using Type = durable::ScheduleType;
  const bool once = request.type == Type::kDelay || request.type == Type::kAt;
  if (made->created) {
    work.keep_trace(durable::JobKind::kSchedule, made->id, agent.calls().trace());
    work.report(DurableEvent::kScheduleCreate, made->id, request.callback);
  }
  if (once && request.idempotent == durable::Idempotent::kByType &&
      agent.phase() == AgentPhase::kStarting)
    work.warn_of_duplicates(request.callback);
  return made;
}

Result<void> cancel_schedule(AgentContext& agent, std::string_view id) {
  if (auto refusal = agent.work_refusal()) return *std::move(refusal);
  auto outcome = agent.work().schedules().cancel(id);
  if (outcome) agent.work().report(DurableEvent::kScheduleCancel, id);
  return outcome;
}

// ---- its C functions ----------------------------------------------------------------------------

namespace {

constexpr std::size_t kSchedulesListedByDefault = 100;
constexpr std::size_t kMostSchedulesListed = 1000;

// Checks the numbers of a request that name one of a few choices; empty if all of them are valid.
std::string_view wrong_choice(const hearth_schedule_request& request) {
  if (request.type < HEARTH_SCHEDULE_DELAY || request.type > HEARTH_SCHEDULE_INTERVAL)
    return "a schedule's type is one of HEARTH_SCHEDULE_*";
  if (request.idempotent > HEARTH_IDEMPOTENT_NO) return "idempotent is one of HEARTH_IDEMPOTENT_*";
  if (request.misfire > HEARTH_MISFIRE_ALL) return "misfire is one of HEARTH_MISFIRE_*";
  if (request.overlap > HEARTH_OVERLAP_ALLOW) return "overlap is one of HEARTH_OVERLAP_*";
  if ((request.flags & ~static_cast<std::uint32_t>(HEARTH_SCHEDULE_FIXED_RATE)) != 0)
    return "a schedule has an unknown flag";
  return {};
}

hearth_status create_agents_schedule(AgentContext& it, const hearth_schedule_request* request,
                                     hearth_bytes* record, std::uint32_t* created) {
  const auto given = read_struct(request);
  if (!given) return bad_struct(it);
  const auto texts = texts_of({given->callback, given->payload, given->cron, given->time_zone});
  if (!texts) return bad_slice(it);
  const auto& [callback, payload, cron, time_zone] = *texts;
  if (const auto wrong = wrong_choice(*given); !wrong.empty())
    return fail(it, HEARTH_E_INVALID, wrong);
  durable::ScheduleRequest wanted;
  wanted.type = static_cast<durable::ScheduleType>(given->type);
  wanted.callback = callback;
  wanted.payload = payload;
  wanted.when_ms = given->when_ms;
  wanted.cron = cron;
  wanted.time_zone = time_zone;
  wanted.idempotent = static_cast<durable::Idempotent>(given->idempotent);
  wanted.misfire = static_cast<durable::Misfire>(given->misfire);
  wanted.misfire_limit = given->misfire_limit;
  wanted.overlap = static_cast<durable::Overlap>(given->overlap);
  wanted.fixed_rate = (given->flags & HEARTH_SCHEDULE_FIXED_RATE) != 0;
  wanted.max_attempts = given->max_attempts;
  wanted.retry_base_ms = given->retry_base_ms;
  wanted.retry_max_ms = given->retry_max_ms;
  auto made = create_schedule(it, wanted);
  if (!made) return fail(it, made.error());
  if (created != nullptr) *created = made->created ? 1 : 0;
  lend(it, std::move(made->record), record);
  return HEARTH_OK;
}

hearth_status get_schedule(AgentContext& it, std::string_view id, hearth_bytes* record) {
  return lend_result(it, it.work().schedules().get(id), record);
}

hearth_status list_schedules(AgentContext& it, const hearth_schedule_filter* filter,
                             hearth_bytes* records) {
  const auto given = read_struct(filter);
  if (!given) return bad_struct(it);
  const auto texts = texts_of({given->callback, given->state, given->after});
  if (!texts) return bad_slice(it);
  const auto& [callback, state, after] = *texts;
  const auto limit = read_limit(given->limit, kSchedulesListedByDefault, kMostSchedulesListed);
  if (!limit || given->type > HEARTH_SCHEDULE_INTERVAL || given->reserved != 0)
    return fail(it, HEARTH_E_INVALID, "a filter of schedules has an impossible number");
  durable::ScheduleFilter wanted;
  if (given->type != 0) wanted.type = static_cast<durable::ScheduleType>(given->type);
  wanted.callback = callback;
  wanted.state = state;
  wanted.from_ms = given->from_ms;
  wanted.until_ms = given->until_ms;
  wanted.after = after;
  wanted.limit = *limit;
  return lend_result(it, it.work().schedules().list(wanted), records);
}

hearth_status cancel_agents_schedule(AgentContext& it, std::string_view id) {
  return status_of(it, cancel_schedule(it, id));
}

hearth_status pause_schedule(AgentContext& it, std::string_view id, std::uint32_t paused) {
  if (paused > 1) return fail(it, HEARTH_E_INVALID, "a schedule is paused (1) or not (0)");
  if (const auto refusal = it.work_refusal()) return fail(it, *refusal);
  return status_of(it, it.work().schedules().pause(id, paused == 1));
}

hearth_status retry_schedule(AgentContext& it, std::string_view id) {
  return status_of(it, it.work().schedules().retry(id));
}

constexpr hearth_schedule_v1 kSchedule{
    kDoor<create_agents_schedule>, kDoor<get_schedule>,   kDoor<list_schedules>,
    kDoor<cancel_agents_schedule>, kDoor<pause_schedule>, kDoor<retry_schedule, DoorKind::kWork>};

}  // namespace

const hearth_schedule_v1& schedule_extension() noexcept {
  return kSchedule;
}

}  // namespace hearth::extensions

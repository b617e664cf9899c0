#include "extensions/schedule.hpp"

#include "extensions/abi_call.hpp"
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
    work.reports().keep_trace(durable::JobKind::kSchedule, made->id, agent.calls().trace());
    work.reports().add(DurableEvent::kScheduleCreate, made->id, request.callback);
  }
  if (once && request.idempotent == durable::Idempotent::kByType &&
      agent.phase() == AgentPhase::kStarting)
    work.reports().warn_of_duplicates(request.callback);
  return made;
}

Result<void> cancel_schedule(AgentContext& agent, std::string_view id) {
  if (auto refusal = agent.work_refusal()) return *std::move(refusal);
  auto outcome = agent.work().schedules().cancel(id);
  if (outcome) agent.work().reports().add(DurableEvent::kScheduleCancel, id);
  return outcome;
}

// ---- its C functions ----------------------------------------------------------------------------

namespace {

constexpr std::size_t kSchedulesListedByDefault = 100;
constexpr std::size_t kMostSchedulesListed = 1000;

Result<void> create_agents_schedule(AgentContext& it, const hearth_schedule_request& request,
                                    hearth_bytes* record, std::uint32_t* created) {
  const auto texts = texts_of({request.callback, request.payload, request.cron, request.time_zone});
  if (!texts) return bad_slice();
  const auto& [callback, payload, cron, time_zone] = *texts;
  if ((request.flags & ~std::uint32_t{HEARTH_SCHEDULE_FIXED_RATE}) != 0)
    return Error{Errc::kInvalidArgument, "a schedule has an unknown flag"};
  durable::ScheduleRequest wanted;
  wanted.type = static_cast<durable::ScheduleType>(request.type);
  wanted.callback = callback;
  wanted.payload = payload;
  wanted.when_ms = request.when_ms;
  wanted.cron = cron;
  wanted.time_zone = time_zone;
  wanted.idempotent = static_cast<durable::Idempotent>(request.idempotent);
  wanted.misfire = static_cast<durable::Misfire>(request.misfire);
  wanted.misfire_limit = request.misfire_limit;
  wanted.overlap = static_cast<durable::Overlap>(request.overlap);
  wanted.fixed_rate = (request.flags & HEARTH_SCHEDULE_FIXED_RATE) != 0;
  wanted.max_attempts = request.max_attempts;
  wanted.retry_base_ms = request.retry_base_ms;
  wanted.retry_max_ms = request.retry_max_ms;
  auto made = create_schedule(it, wanted);
  if (!made) return made.error();
  if (created != nullptr) *created = made->created ? 1 : 0;
  lend(it, std::move(made->record), record);
  return {};
}

Result<std::string> list_schedules(AgentContext& it, const hearth_schedule_filter& filter) {
  const auto texts = texts_of({filter.callback, filter.state, filter.after});
  if (!texts) return bad_slice();
  const auto& [callback, state, after] = *texts;
  const auto limit = read_limit(filter.limit, kSchedulesListedByDefault, kMostSchedulesListed);
  if (!limit || filter.type > HEARTH_SCHEDULE_INTERVAL || filter.reserved != 0)
    return Error{Errc::kInvalidArgument, "a filter of schedules has an impossible number"};
  durable::ScheduleFilter wanted;
  if (filter.type != 0) wanted.type = static_cast<durable::ScheduleType>(filter.type);
  wanted.callback = callback;
  wanted.state = state;
  wanted.from_ms = filter.from_ms;
  wanted.until_ms = filter.until_ms;
  wanted.after = after;
  wanted.limit = *limit;
  return it.work().schedules().list(wanted);
}

Result<void> pause_schedule(AgentContext& it, std::string_view id, std::uint32_t paused) {
  if (paused > 1) return Error{Errc::kInvalidArgument, "a schedule is paused (1) or not (0)"};
  return it.work().schedules().pause(id, paused == 1);
}

}  // namespace

constexpr hearth_schedule_v1 kScheduleTable{kDoor<create_agents_schedule>,
                                            kDoor<&durable::Schedules::get>,
                                            kDoor<list_schedules>,
                                            kDoor<cancel_schedule>,
                                            kDoor<pause_schedule, DoorKind::kWork>,
                                            kDoor<&durable::Schedules::retry, DoorKind::kWork>};

}  // namespace hearth::extensions

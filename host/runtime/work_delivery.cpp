#include "runtime/work_delivery.hpp"

#include "base/stop_point.hpp"
#include "extensions/call.hpp"
#include "extensions/fibers.hpp"
#include "extensions/operations.hpp"
#include "extensions/work_spans.hpp"
#include "runtime/agent_store.hpp"
#include "runtime/shard_services.hpp"

#include <utility>

namespace hearth::runtime {
namespace {

using extensions::DueWork;
using UnderSpan = CodeOnStack::UnderSpan;

void pass_stop_point_of(EventKind claimed) {
  if (claimed == EventKind::kFiberRecovered) stop_point("fiber.attempt.committed");
  if (claimed == EventKind::kSchedule) stop_point("schedule.claim.committed");
  if (claimed == EventKind::kQueueItem) stop_point("queue.claim.committed");
  if (claimed == EventKind::kFiberSettled) stop_point("managed.tell.committed");
}

// What is due now. Its claim is committed: it counts as begun even if it crashes the process.
template <class Next>
auto claim(AgentStore& store, const Next& next) {
  decltype(next()) due;
  if (store.broken()) return due;
  store.guard([&] {
    due = next();
    if (due) store.commit();
  });
  if (store.broken()) due.reset();
  return due;
}

}  // namespace

WorkDelivery::WorkDelivery(const Parts& parts) : parts_(parts), work_(parts.store.work()) {}

AgentEvent WorkDelivery::Begun::event() const {
  AgentEvent event;
  event.kind = kind;
  event.call = call;
  event.name = name;
  event.body = body;
  event.deadline_ms = static_cast<std::uint64_t>(timeout.count());
  return event;
}

WorkDelivery::Next WorkDelivery::begin(bool may_recover, bool may_notify) {
  notice_comes_first_ = !notice_comes_first_;
  if (notice_comes_first_ && send_notice(may_notify)) return {true};
  if (std::optional<Begun> event = begin_event(may_recover)) return {true, std::move(event)};
  return {!notice_comes_first_ && send_notice(may_notify)};
}

bool WorkDelivery::send_notice(bool may_notify) {
  extensions::AgentRouter* const agents = parts_.agent.ports().agents;
  if (agents == nullptr) return false;
  auto due = claim(parts_.store, [&] { return work_.dispatch().next_notice(may_notify); });
  if (!due) return false;
  stop_point("notice.claim.committed");
  const std::string notice = due->id;
  parts_.operations.send_notice(
      notice, agents->call(extensions::call_of(parts_.agent.key(), std::move(*due))));
  return true;
}

std::optional<WorkDelivery::Begun> WorkDelivery::begin_event(bool may_recover) {
  std::optional<DueWork> due =
      claim(parts_.store, [&] { return work_.dispatch().next(may_recover); });
  if (parts_.store.broken()) return std::nullopt;
  extensions::tell_clients_of_turns(parts_.clients, work_);
  if (!due) return std::nullopt;
  pass_stop_point_of(due->kind);
  if (due->kind == EventKind::kOperationUnknown)
    extensions::tell_clients_of_unknown(parts_.clients, *due);
  const extensions::Span span = parts_.services.spans.below(extensions::read_span(due->trace));
  if (due->step) {
    const UnderSpan under(parts_.code, span);
    work_.reports().add(*due->step, due->id, due->name);
  }
  const auto [id, call] = parts_.calls.begin(due->kind, span);
  Begun begun{due->kind, id, due->name, std::exchange(due->body, {}), due->timeout};
  call.timeout = due->timeout;
  call.due = parts_.services.loop.clock().steady_now() + due->timeout;
  parts_.calls.begin_work(call, std::move(*due));
  return begun;
}

void WorkDelivery::ended(const CallInProgress& call, const Result<std::string_view>& outcome) {
  if (!call.work) return;
  const UnderSpan under(parts_.code, call.span);
  parts_.store.guard([&] {
    work_.dispatch().ended(*call.work, outcome);
    auto* const spans = parts_.agent.extensions().find<extensions::WorkSpans>();
    if (spans != nullptr && call.kind == EventKind::kFiberRecovered) spans->end_aborted();
    extensions::tell_clients_of_turns(parts_.clients, work_);
  });
}

void WorkDelivery::notice_ended(const OperationNews& news) {
  parts_.store.guard([&] {
    work_.dispatch().notice_ended(news.notice,
                                  extensions::notice_outcome(news.outcome, news.flags));
  });
}

void WorkDelivery::report_left_over() {
  using extensions::DurableEvent;
  for (const durable::LeftOver& fiber : work_.fibers().recovery().take_left_over()) {
    const UnderSpan under(parts_.code, span_of_left_over(fiber.id));
    if (fiber.was_running)
      work_.reports().add(DurableEvent::kFiberRunInterrupted, fiber.id, fiber.name);
    work_.reports().add(DurableEvent::kFiberRecoveryDetected, fiber.id, fiber.name);
  }
}

// The span under which the fiber was begun, not the one of the start that finds it.
extensions::Span WorkDelivery::span_of_left_over(std::string_view fiber) {
  extensions::Span span;
  parts_.store.guard([&] { span = extensions::read_span(work_.reports().trace_of_fiber(fiber)); });
  return span;
}

void WorkDelivery::continued(std::string_view fiber) {
  work_.recovery().continued(fiber);
  parts_.calls.for_each([&](CallId /*id*/, CallInProgress& call) {
    if (!call.work || call.work->kind != EventKind::kFiberRecovered || call.work->id != fiber)
      return;
    parts_.calls.disarm_deadline(call);
    call.work->timeout = {};
  });
}

extensions::Span WorkDelivery::span_of_run(durable::FiberHandle fiber) {
  auto* const spans = parts_.agent.extensions().find<extensions::WorkSpans>();
  const durable::Job* const job =
      spans != nullptr ? work_.fibers().runs().find_running(fiber) : nullptr;
  return job != nullptr ? spans->span_of(extensions::SpannedWork::kFiber, job->id)
                        : extensions::Span();
}

}  // namespace hearth::runtime

#include "extensions/work_reports.hpp"

#include "extensions/agent_context.hpp"

#include <algorithm>

namespace hearth::extensions {
namespace {

constexpr std::size_t kMaxWarned = 100;

}  // namespace

void WorkReports::add(DurableEvent event, std::string_view id, std::string_view detail) {
  std::string trace;
  LineOrigin whose;
  if (calls_ != nullptr && events_.is_logged(event)) {
    whose = calls_->current();
    trace = calls_->trace();
    try {
      if (trace.empty()) trace = trace_of(event, id);
    } catch (const StorageError&) {
      trace.clear();  // the line matters more; the next read or write will throw too
    }
  }
  whose.agent_class = agent_.agent_class;
  whose.agent = agent_.name;
  whose.trace = trace;
  events_.report(event, whose, id, detail);
}

void WorkReports::add(DurableEvent event, const std::vector<durable::GivenUp>& given_up) {
  for (const durable::GivenUp& job : given_up) add(event, job.id, job.why);
}

void WorkReports::add_notes() {
  using What = durable::ScheduleNote::What;
  if (auto* const schedules = kinds_.find<durable::Schedules>()) {
    for (const auto& note : schedules->runs().take_notes()) {
      const std::string detail =
          "\"" + note.callback + "\", " + std::to_string(note.count) + " times";
      switch (note.what) {
        case What::kMissed: add(DurableEvent::kScheduleMissed, note.id, detail); break;
        case What::kOverlapped:
          add(DurableEvent::kScheduleMissed, note.id, detail + ": the last run was not over");
          break;
        case What::kDead: add(DurableEvent::kScheduleDead, note.id, note.reason); break;
        case What::kPutOff:
          add(DurableEvent::kScheduleError, note.id,
              note.reason + ": it is kept and looked at again");
          break;
        case What::kManyDue:
          add(DurableEvent::kScheduleDuplicateWarning, note.id, detail + " due at once");
          break;
      }
    }
  }
  if (auto* const kind = kinds_.find<durable::Notices>())
    add(DurableEvent::kNotifyDead, kind->take_given_up());
  if (auto* const kind = kinds_.find<durable::Alarms>())
    add(DurableEvent::kAlarmDead, kind->take_given_up());
  if (auto* const kind = kinds_.find<durable::Queue>())
    add(DurableEvent::kQueueDead, kind->take_given_up());
}

void WorkReports::add_operations() {
  auto* const operations = kinds_.find<durable::Operations>();
  if (operations == nullptr) return;
  for (const durable::OperationChange& each : operations->take_changes()) {
    events_.operation_changed(agent_.agent_class, each.kind, each.state);
    if (each.state != durable::OperationState::kUnknown) continue;
    add(DurableEvent::kOperationUnknown, each.id,
        each.kind + ": " + durable::UnknownOperation::warning(each.id));
  }
}

void WorkReports::warn_of_duplicates(std::string_view callback) {
  if (warned_.size() >= kMaxWarned || std::ranges::find(warned_, callback) != warned_.end()) return;
  warned_.emplace_back(callback);
  add(DurableEvent::kScheduleDuplicateWarning, "",
      "\"" + std::string(callback) +
          "\" is scheduled anew at each start of the agent; set whether it is idempotent");
}

// ---- traces -------------------------------------------------------------------------------------

void WorkReports::keep_trace(durable::JobKind kind, std::string_view id, std::string_view trace) {
  if (!trace.empty()) kinds_.jobs().keep_trace(kind, id, trace);
}

void WorkReports::trace_notice(const std::string& id, const std::string& trace) {
  if (trace.empty()) {
    notice_traces_.erase(id);
  } else {
    notice_traces_[id] = trace;
  }
}

std::string WorkReports::trace_of(DurableEvent event, std::string_view id) {
  using durable::JobKind;
  const auto sent = notice_traces_.find(id);
  if (sent != notice_traces_.end()) return sent->second;
  const std::string_view subject = traits_of(event).subject;
  if (subject == "fiber") return trace_of_fiber(id);
  if (subject == "schedule") return kinds_.jobs().trace_of(JobKind::kSchedule, id);
  if (subject == "item") return kinds_.jobs().trace_of(JobKind::kItem, id);
  return {};
}

}  // namespace hearth::extensions

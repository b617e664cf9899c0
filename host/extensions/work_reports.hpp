#pragma once
// What an agent's durable work reports: the lines of its steps, with their traces, and whether code
// could not read it.

#include "extensions/durable_events.hpp"
#include "extensions/work_kinds.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::extensions {

class CallPort;

// Threads, Failure   As WorkKinds. A line that has no trace because storage fails is written.
class WorkReports {
 public:
  // The references outlive this object. `agent`: the agent of this work, named in the reports.
  WorkReports(const storage::AgentKey& agent, WorkKinds& kinds, DurableEvents& events)
      : agent_(agent), kinds_(kinds), events_(events) {}
  // Log lines name the event in progress from `calls`, which outlives the last report. Without it
  // they name none.
  void use(const CallPort& calls) { calls_ = &calls; }

  // Writes a log line and counts the event. The line has the trace of the agent's code, or else the
  // trace of the work.
  void add(DurableEvent event, std::string_view id, std::string_view detail = {});
  void add(DurableEvent event, const std::vector<durable::GivenUp>& given_up);
  // What the kinds have noted since the last call, but for fibers and operations.
  void add_notes();
  // The operations with a new state since the last call.
  void add_operations();
  // Warns, once for each callback: while the agent started, it made a schedule that does not say
  // whether it is idempotent.
  void warn_of_duplicates(std::string_view callback);

  // Sets the trace (a traceparent) of a piece of work, for the DueWork of WorkDispatch::next(). A
  // trace that it has already stays. Empty: writes nothing.
  void keep_trace(durable::JobKind kind, std::string_view id, std::string_view trace);
  // The trace of a fiber, by its id; empty: it has none.
  [[nodiscard]] std::string trace_of_fiber(std::string_view id) {
    return kinds_.jobs().trace_of(durable::JobKind::kFiber, id);
  }
  // The trace of a notification in progress; empty: it has ended.
  void trace_notice(const std::string& id, const std::string& trace);

  // Since the last call of take_unreadable(), code could not read what an earlier version has
  // stored for durable work.
  void note_unreadable() { is_unreadable_ = true; }
  bool take_unreadable() { return std::exchange(is_unreadable_, false); }

 private:
  [[nodiscard]] std::string trace_of(DurableEvent event, std::string_view id);

  const storage::AgentKey& agent_;
  WorkKinds& kinds_;
  DurableEvents& events_;
  const CallPort* calls_ = nullptr;
  bool is_unreadable_ = false;
  std::map<std::string, std::string, std::less<>> notice_traces_;  // of those in progress, by id
  std::vector<std::string> warned_;  // callbacks, see warn_of_duplicates()
};

}  // namespace hearth::extensions

#include "extensions/work_kinds.hpp"

#include <type_traits>

namespace hearth::extensions {

using durable::JobKind;

WorkKinds::WorkKinds(storage::AgentDatabase& database, const Clock& clock, Random& random,
                     const ClassSettings& settings)
    : database_(database),
      clock_(clock),
      random_(random),
      settings_(settings),
      jobs_(database),
      fibers_(database, clock, random, settings.fibers),
      parts_{&fibers_, &fibers_.ends().tellings()} {}

void WorkKinds::load(const std::optional<durable::EndedProcess>& ended, bool has_code) {
  has_code_ = has_code;
  if (!database_.exists() || !jobs_.exists()) return;
  if (ended) jobs_.count_crash(*ended);
  fibers_.load(has_code);
  if (jobs_.has_any(JobKind::kSchedule)) (void)get<durable::Schedules>();
  if (jobs_.has_any(JobKind::kItem)) (void)get<durable::Queue>();
  if (jobs_.has_any(JobKind::kNotice)) (void)get<durable::Notices>();
  if (jobs_.has_any(JobKind::kAlarm)) (void)get<durable::Alarms>();
  durable::OperationTable ledger(database_);
  if (!ledger.exists()) return;
  if (ended) count_crash(ledger, *ended);
  (void)get<durable::Operations>();
}

template <class Kind>
Kind& WorkKinds::get() {
  std::unique_ptr<Kind>& kind = std::get<std::unique_ptr<Kind>>(kinds_);
  if (kind) return *kind;
  const auto make = [&](auto&&... its) { kind = std::make_unique<Kind>(database_, its...); };
  const int max_crashes = settings_.fibers.max_crashes;
  if constexpr (std::is_same_v<Kind, durable::Operations>) {
    make(fibers_, clock_, random_, settings_.operations);
  } else if constexpr (std::is_same_v<Kind, durable::Notices>) {
    make(clock_, random_, max_crashes);
  } else if constexpr (std::is_same_v<Kind, durable::Schedules>) {
    make(clock_, random_, settings_.schedules, max_crashes);
  } else if constexpr (std::is_same_v<Kind, durable::Queue>) {
    make(clock_, random_, settings_.queue, max_crashes);
  } else {
    make(clock_, random_, settings_.alarms, max_crashes);
  }
  parts_.push_back(kind.get());
  if constexpr (requires { kind->load(has_code_); }) {
    kind->load(has_code_);
  } else {
    kind->load();
  }
  return *kind;
}

template durable::Schedules& WorkKinds::get();
template durable::Queue& WorkKinds::get();
template durable::Notices& WorkKinds::get();
template durable::Alarms& WorkKinds::get();
template durable::Operations& WorkKinds::get();

}  // namespace hearth::extensions

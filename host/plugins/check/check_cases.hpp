#pragma once
// The cases that `hearth check` tries with a loaded library. Each case runs in a child process.

#include "plugins/check/check_script.hpp"
#include "plugins/check/check_subject.hpp"
#include "plugins/check/check_voice.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace hearth::plugins {

struct CheckCase {
  std::string_view id;        // "T301"; never reused, like the ids of file_rules.hpp
  std::string_view sentence;  // the rule
  std::string_view advice;    // what to do if a library breaks it
  CaseOutcome (*run)(CheckRun& run);
};

// In the order in which they are tried. T1: loading, init(), the end. T2: making and destroying
// agents. T3: events. T4: a host that fails. T5: lent memory.
[[nodiscard]] std::span<const CheckCase> check_cases();

// The case called `id`, or null.
[[nodiscard]] const CheckCase* find_check_case(std::string_view id);

// ---- T1, check_cases_load.cpp ----
CaseOutcome check_load_time(CheckRun& run);
CaseOutcome check_traces_of_init(CheckRun& run);
CaseOutcome check_other_hosts(CheckRun& run);
CaseOutcome check_missing_extensions(CheckRun& run);
CaseOutcome check_traces_of_a_life(CheckRun& run);
CaseOutcome check_unmapping(CheckRun& run);
CaseOutcome check_two_copies(CheckRun& run);
CaseOutcome check_many_cycles(CheckRun& run);

// ---- T2, check_cases_agents.cpp ----
CaseOutcome check_class_indexes(CheckRun& run);
CaseOutcome check_growth(CheckRun& run);
CaseOutcome check_odd_names(CheckRun& run);
CaseOutcome check_two_agents(CheckRun& run);
CaseOutcome check_second_life(CheckRun& run);
CaseOutcome check_sudden_end(CheckRun& run);
CaseOutcome check_migration(CheckRun& run);
CaseOutcome check_creation(CheckRun& run);

// ---- T2, check_cases_state.cpp ----
CaseOutcome check_schema_migration(CheckRun& run);
CaseOutcome check_memory_of_lives(CheckRun& run);

// ---- T3, check_cases_events.cpp ----
CaseOutcome check_every_kind(CheckRun& run);
CaseOutcome check_longer_events(CheckRun& run);
CaseOutcome check_completion(CheckRun& run);
CaseOutcome check_deadlines(CheckRun& run);
CaseOutcome check_cancelling(CheckRun& run);
CaseOutcome check_results(CheckRun& run);
CaseOutcome check_methods(CheckRun& run);
CaseOutcome check_malformed_bodies(CheckRun& run);
CaseOutcome check_call_times(CheckRun& run);
CaseOutcome check_jobs(CheckRun& run);

// ---- T4 and T5, check_cases_host.cpp ----
CaseOutcome check_failing_submit(CheckRun& run);
CaseOutcome check_failing_host(CheckRun& run);
CaseOutcome check_lent_memory(CheckRun& run);

// The usual outcome of a case: failed with the first blame of the library, or passed. `made`: the
// status of create(); after an error it is no verdict (T210 reports that).
[[nodiscard]] CaseOutcome outcome_of(const CheckSubject& subject, hearth_status made = HEARTH_OK);
// Starts the library and runs `body` for each class, which returns the status of create(). The
// usual outcome.
using ForClass = std::function<hearth_status(CheckSubject&, const hearth_class&)>;
CaseOutcome try_each_class(CheckRun& run, SubjectOptions options, const ForClass& body);
// The same with an agent that has started.
using ForAgent = std::function<void(CheckInstance&)>;
CaseOutcome try_each_agent(CheckRun& run, SubjectOptions options, const ForAgent& body);
// Plays a life of each class, without methods.
void play_all(CheckSubject& subject, const std::string& name, const AfterEach& after_each = {});
// For play(): blames an agent that has accepted an event, waits for nothing, and does not complete
// the event.
[[nodiscard]] AfterEach blame_unfinished(CheckSubject& subject);
// The library could be loaded before, and cannot be here.
[[nodiscard]] CaseOutcome not_started();
// No verdict: the time of the case is over.
[[nodiscard]] CaseOutcome out_of_time();

}  // namespace hearth::plugins

// T4: a host whose functions fail. T5: a host that takes back the memory that it lends.

#include "extensions/abi_status.hpp"
#include "plugins/check/check_cases.hpp"
#include "plugins/check/check_script.hpp"

#include <hearth/abi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hearth::plugins {
namespace {

constexpr std::array<hearth_status, 15> kFailures = {
    HEARTH_E_GONE,      HEARTH_E_LIMIT,        HEARTH_E_IO,      HEARTH_E_CLOSING,
    HEARTH_E_INVALID,   HEARTH_E_NOMEM,        HEARTH_E_BUSY,    HEARTH_E_UNSUPPORTED,
    HEARTH_E_NOT_FOUND, HEARTH_E_FORBIDDEN,    HEARTH_E_TIMEOUT, HEARTH_E_CONFLICT,
    HEARTH_E_CANCELLED, HEARTH_E_WRONG_THREAD, HEARTH_E_PLUGIN};

constexpr std::uint64_t kMaxCalls = 400;  // of one life

struct Injection {
  std::uint64_t at;
  hearth_status status;
};

// Every (call, status) in an order from the seed: many runs together try all.
std::vector<Injection> injections(std::uint64_t calls, std::mt19937_64& random) {
  std::vector<Injection> all;
  for (std::uint64_t at = 1; at <= std::min(calls, kMaxCalls); ++at) {
    for (const hearth_status status : kFailures) all.push_back({at, status});
  }
  std::ranges::shuffle(all, random);
  return all;
}

CaseOutcome check_faults(CheckRun& run, bool submit_only) {
  CheckSubject subject(run);
  if (!subject.start()) return not_started();
  hearth_status made = HEARTH_OK;
  bool any = false;
  for (const hearth_class* const table : subject.classes()) {
    const Script script{.methods = find_methods(subject, *table)};
    subject.host().inject({.submit_only = submit_only});
    made = play(subject, *table, "counted", script);
    if (made != HEARTH_OK) continue;
    const std::uint64_t calls = subject.host().calls();
    any = any || calls > 0;
    for (const Injection& each : injections(calls, run.random)) {
      if (run.is_late()) break;
      subject.host().inject({.at = each.at, .status = each.status, .submit_only = submit_only});
      play(subject, *table, "fault", script);
      const auto blamed = subject.host().blamed();
      if (blamed.empty()) continue;
      return CaseOutcome::failed(blamed.front() + "; call " + std::to_string(each.at) +
                                 " to the host (" + subject.host().faulted() +
                                 ") had been answered with " +
                                 extensions::status_name(each.status));
    }
    subject.host().inject({});
  }
  if (made == HEARTH_OK && !any && submit_only)
    return CaseOutcome::skipped("it submits nothing in what is tried");
  return outcome_of(subject, made);
}

}  // namespace

CaseOutcome check_failing_submit(CheckRun& run) {
  return check_faults(run, true);
}

CaseOutcome check_failing_host(CheckRun& run) {
  return check_faults(run, false);
}

CaseOutcome check_lent_memory(CheckRun& run) {
  const SubjectOptions options{.guarded = true};
  return try_each_class(run, options, [](CheckSubject& subject, const hearth_class& table) {
    const Script script{.methods = find_methods(subject, table)};
    const hearth_status made = play(subject, table, "lent", script);
    if (made != HEARTH_OK) return made;
    // Once more with all of it in progress at the same time.
    const AfterEach let_end = [&](CheckInstance& instance, const CheckEvent& event,
                                  const Delivered&) {
      if (event.kind == HEARTH_EVENT_EVICT) instance.pump();
      return true;
    };
    return play(subject, table, "lent", {.methods = script.methods, .pumps = false}, let_end);
  });
}

}  // namespace hearth::plugins

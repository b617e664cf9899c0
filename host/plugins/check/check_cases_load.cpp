// T1: loading, init() and the end of a library.

#include "base/allocator.hpp"
#include "extensions/registry.hpp"
#include "plugins/admission/process_state.hpp"
#include "plugins/check/check_cases.hpp"
#include "plugins/check/check_script.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace hearth::plugins {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

CaseOutcome outcome_of_traces(const std::vector<std::string>& traces) {
  if (traces.empty()) return CaseOutcome::passed();
  std::string text;
  for (const std::string& each : traces) text += (text.empty() ? "afterwards " : ", and ") + each;
  return CaseOutcome::failed(std::move(text));
}

std::size_t count_mappings() {
  std::ifstream file("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(file, line);) ++count;
  return count;
}

CaseOutcome busy() {
  return CaseOutcome::warned("its deinit() says that it is busy, so that it cannot be unloaded");
}

// Events of a life that a single copy of the library does not complete.
std::size_t unfinished(CheckInstance& instance) {
  for (const CheckEvent& event : life_events(instance.table(), {})) {
    if (event.kind == HEARTH_EVENT_CONNECTING)
      instance.agent().add_connection(event.connection).deciding = true;
    instance.go_through(event);
  }
  return instance.agent().operations().empty() ? instance.pending().size() : 0;
}

// Whether the library is blamed for something in an ordinary life.
bool misbehaves_alone(CheckRun& run) {
  CheckSubject subject(run);
  if (!subject.start()) return false;
  play_all(subject, "alone");
  subject.deinit();
  return !subject.host().blamed().empty();
}

// init() with another host. What is wrong, or empty. The library may refuse the host, but must not
// crash.
CaseOutcome try_host(CheckRun& run, HostVariant variant) {
  CheckSubject subject(run, {.host = std::move(variant)});
  if (!subject.load()) return not_started();
  const bool works = subject.init() == HEARTH_OK;
  if (works) subject.deinit();
  subject.unload();
  return outcome_of(subject);
}

}  // namespace

CaseOutcome check_load_time(CheckRun& run) {
  constexpr milliseconds kLimit{100};
  constexpr int kTries = 5;  // the fastest counts: another program may have used the processor
  auto best = milliseconds::max();
  for (int attempt = 0; attempt < kTries; ++attempt) {
    CheckSubject subject(run);
    const auto before = steady_clock::now();
    if (!subject.load()) return not_started();
    const auto took = duration_cast<milliseconds>(steady_clock::now() - before);
    best = std::min(best, took);
    subject.unload();
    if (best < kLimit) return CaseOutcome::passed();
  }
  return CaseOutcome::failed("its constructors took " + std::to_string(best.count()) + " ms");
}

CaseOutcome check_traces_of_init(CheckRun& run) {
  CheckSubject subject(run);
  const ProcessState before = ProcessState::take();
  if (!subject.start()) return not_started();
  const std::size_t expected = subject.has_threads() ? SIZE_MAX : before.threads;
  const ProcessState after = ProcessState::take(expected);
  return outcome_of_traces(differences(before, after, subject.has_threads()));
}

CaseOutcome check_other_hosts(CheckRun& run) {
  // The table ends after get_extension, in the middle, or one function short. The table of a later
  // version is longer.
  for (const std::uint32_t size : {24U, 32U, 40U, 48U, 56U, 64U, 72U, 80U, 136U}) {
    const bool later = size > sizeof(hearth_host);
    const auto minor = static_cast<std::uint16_t>(later ? HEARTH_ABI_MINOR + 7 : HEARTH_ABI_MINOR);
    HostVariant variant;
    variant.struct_size = size;
    variant.abi_minor = minor;
    CaseOutcome outcome = try_host(run, std::move(variant));
    if (outcome.verdict == CheckVerdict::kPassed) continue;
    outcome.reason += "; the host's table had " + std::to_string(size) + " bytes";
    return outcome;
  }
  return CaseOutcome::passed();
}

CaseOutcome check_missing_extensions(CheckRun& run) {
  if (misbehaves_alone(run)) return CaseOutcome::skipped("it misbehaves with all of them, too");
  HostVariant bare;
  bare.has_extensions = false;
  CaseOutcome outcome = try_host(run, std::move(bare));
  for (const extensions::Registered& hidden : extensions::registered_extensions()) {
    if (outcome.verdict != CheckVerdict::kPassed) break;
    HostVariant variant;
    variant.hidden.emplace(hidden.id);
    CheckSubject subject(run, {.host = std::move(variant)});
    // Also a life: agents must work too if init() has succeeded.
    if (subject.start()) {
      play_all(subject, "without");
      subject.deinit();
    }
    outcome = outcome_of(subject);
    if (outcome.verdict != CheckVerdict::kPassed)
      outcome.reason += "; the host had no " + std::string(hidden.id);
  }
  return outcome;
}

CaseOutcome check_traces_of_a_life(CheckRun& run) {
  CheckSubject subject(run);
  const ProcessState before = ProcessState::take();
  if (!subject.start()) return not_started();
  play_all(subject, "traces");
  if (subject.deinit() != HEARTH_OK)
    return CaseOutcome::warned("its deinit() says that it is busy");
  const ProcessState after = ProcessState::take(before.threads);
  return outcome_of_traces(differences(before, after, false));
}

CaseOutcome check_unmapping(CheckRun& run) {
  CheckSubject subject(run);
  if (!subject.start()) return not_started();
  play_all(subject, "unmap");
  if (subject.deinit() != HEARTH_OK) return busy();
  if (subject.unload()) return CaseOutcome::passed();
  return CaseOutcome::failed(
      "it stays mapped: a unique symbol, a thread-local destructor, -z nodelete, or a library that "
      "it needs "
      "keeps it");
}

CaseOutcome check_two_copies(CheckRun& run) {
  CheckSubject first(run);
  if (!first.start()) return not_started();
  // Another case reports events that one copy does not complete.
  std::vector<std::size_t> alone;
  for (const hearth_class* const table : first.classes()) {
    CheckInstance instance(first, *table, "alone");
    alone.push_back(instance.create() == HEARTH_OK ? unfinished(instance) : 0);
  }
  if (!first.host().blamed().empty()) return CaseOutcome::skipped("it misbehaves alone, too");
  CheckSubject second(run);
  if (!second.start()) return not_started();
  for (std::size_t index = 0; index < first.classes().size(); ++index) {
    if (first.classes()[index] == second.classes()[index])
      return CaseOutcome::failed("the second copy gave the first one's class");
    // Each copy has its own host, which notices calls for agents of the other copy.
    CheckInstance one(first, *first.classes()[index], "one");
    CheckInstance two(second, *second.classes()[index], "two");
    if (one.create() != HEARTH_OK || two.create() != HEARTH_OK) continue;
    for (CheckInstance* const each : {&one, &two}) {
      if (unfinished(*each) > alone[index])
        return CaseOutcome::failed(
            "with two copies loaded, events are not completed that one copy completes: they share "
            "variables");
    }
  }
  CaseOutcome outcome = outcome_of(first);
  if (outcome.verdict == CheckVerdict::kPassed) outcome = outcome_of(second);
  return outcome;
}

CaseOutcome check_many_cycles(CheckRun& run) {
  if (allocated_bytes() == 0)  // the mappings of a sanitizer's allocator cannot be predicted
    return CaseOutcome::skipped("this program's allocator does not say what is allocated");
  constexpr int kCycles = 200;
  constexpr int kSettled =
      10;  // then caches of the dynamic loader and of malloc do not grow any more
  int cycle = 0;
  std::size_t mappings = 0;
  std::size_t bytes = 0;
  for (; cycle < kCycles && !run.is_late(); ++cycle) {
    if (cycle == kSettled) {
      mappings = count_mappings();
      bytes = allocated_bytes();
    }
    CheckSubject subject(run);
    if (!subject.start()) return not_started();
    if (subject.deinit() != HEARTH_OK) return busy();
    if (!subject.unload()) return CaseOutcome::skipped("it stays mapped (T106)");
  }
  const std::string times = "after " + std::to_string(cycle) + " times ";
  if (cycle <= kSettled) return out_of_time();
  // The host's own table takes two mappings a cycle, which are never freed.
  const std::size_t expected =
      mappings + std::size_t{2} * static_cast<std::size_t>(cycle - kSettled);
  constexpr std::size_t kSlack = 8;
  if (count_mappings() > expected + kSlack) {
    return CaseOutcome::failed(times + "there are " + std::to_string(count_mappings() - expected) +
                               " more mappings");
  }
  constexpr std::size_t kSlackBytes = std::size_t{64} << 10;
  const std::size_t now = allocated_bytes();
  if (now > bytes + kSlackBytes) {
    return CaseOutcome::failed(times + std::to_string((now - bytes) >> 10) +
                               " KiB more are allocated");
  }
  return CaseOutcome::passed();
}

}  // namespace hearth::plugins

// T2: making and destroying agents.

#include "base/allocator.hpp"
#include "base/escape.hpp"
#include "extensions/abi_status.hpp"
#include "plugins/check/check_cases.hpp"
#include "plugins/check/check_script.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace hearth::plugins {
namespace {

constexpr std::size_t kMaxShownOptions = 60;

// Makes, starts and destroys an agent. Returns the status of create().
hearth_status short_life(CheckSubject& subject, const hearth_class& table) {
  CheckInstance instance(subject, table, "short");
  const hearth_status made = instance.create();
  if (made == HEARTH_OK) instance.go_through({.kind = HEARTH_EVENT_START});
  return made;
}

}  // namespace

CaseOutcome check_class_indexes(CheckRun& run) {
  CheckSubject subject(run);
  if (!subject.start()) return not_started();
  const std::uint32_t count = subject.plugin().class_count;
  for (const std::uint32_t index : {count, count + 1, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
    if (subject.class_at(index) != nullptr)
      return CaseOutcome::failed("it gives a class for the index " + std::to_string(index));
  }
  for (std::uint32_t index = 0; index < count; ++index) {
    if (subject.class_at(index) != subject.classes()[index])
      return CaseOutcome::failed("it gives another table each time for the index " +
                                 std::to_string(index));
  }
  return outcome_of(subject);
}

CaseOutcome check_growth(CheckRun& run) {
  if (allocated_bytes() == 0)
    return CaseOutcome::skipped("this program's allocator does not say what is allocated");
  constexpr int kWarmUp = 100;
  constexpr int kRound = 200;
  constexpr std::size_t kPerAgent = 4;  // the smallest allocation takes 8 bytes
  CheckSubject subject(run);
  if (!subject.start()) return not_started();
  hearth_status made = HEARTH_OK;
  for (const hearth_class* const table : subject.classes()) {
    for (int life = 0; life < kWarmUp; ++life) made = short_life(subject, *table);
    if (run.is_late()) return out_of_time();
    if (made != HEARTH_OK) continue;
    std::size_t least = SIZE_MAX;
    // Two rounds: a cache grows once, a leak grows each time.
    for (int round = 0; round < 2; ++round) {
      const std::size_t before = allocated_bytes();
      for (int life = 0; life < kRound; ++life) short_life(subject, *table);
      const std::size_t after = allocated_bytes();
      least = std::min(least, after > before ? after - before : 0);
    }
    if (least > kPerAgent * kRound) {
      return CaseOutcome::failed("each agent of " + std::string(table->name) +
                                 " that is made and destroyed leaves " +
                                 std::to_string(least / kRound) + " bytes");
    }
  }
  return outcome_of(subject, made);
}

CaseOutcome check_odd_names(CheckRun& run) {
  CheckSubject subject(run, {.guarded = true});
  if (!subject.start()) return not_started();
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  const std::vector<std::string> names = {"x",
                                          std::string(1, '\0'),
                                          std::string(256, 'n'),
                                          std::string(kLarge, 'n'),
                                          "\xff\xfe\x80",
                                          "'; DROP TABLE x; --",
                                          "../../etc/passwd",
                                          "%s%n%s",
                                          "\xf0\x9f\x94\xa5",
                                          ""};
  const std::vector<std::string> options = {
      "",
      "{}",
      "{",
      "null",
      "[]",
      "\"x\"",
      "{\"a\":" + std::string(200, '[') + std::string(200, ']') + "}",
      "{\"a\":\"" + std::string(kLarge, 'o') + "\"}",
      "\xff\xfe",
      R"({"rounds":-1,"limit":1e999,"name":null})"};
  for (const hearth_class* const table : subject.classes()) {
    const auto try_with = [&](const std::string& name, const std::string& text) {
      CheckInstance instance(subject, *table, name);
      if (instance.create(text) != HEARTH_OK) return;
      instance.go_through({.kind = HEARTH_EVENT_START});
    };
    for (const std::string& name : names) try_with(name, run.setting.options);
    for (const std::string& text : options) try_with("odd", text);
  }
  return outcome_of(subject);
}

CaseOutcome check_two_agents(CheckRun& run) {
  return try_each_class(run, {}, [](CheckSubject& subject, const hearth_class& table) {
    CheckInstance one(subject, table, "one");
    CheckInstance two(subject, table, "two");
    const hearth_status made = one.create();
    if (made != HEARTH_OK || two.create() != HEARTH_OK) return made;
    for (const CheckEvent& event : life_events(table, {})) {
      // Operations of one agent end while operations of the other are in progress.
      for (CheckInstance* const each : {&one, &two}) {
        if (event.kind == HEARTH_EVENT_CONNECTING)
          each->agent().add_connection(event.connection).deciding = true;
        each->deliver(event);
      }
      two.pump();
      one.pump();
    }
    one.destroy();
    two.go_through({.kind = HEARTH_EVENT_MESSAGE, .body = "still here?"});
    return made;
  });
}

CaseOutcome check_second_life(CheckRun& run) {
  CheckSubject subject(run);
  if (!subject.start()) return not_started();
  hearth_status made = HEARTH_OK;
  for (const hearth_class* const table : subject.classes()) {
    const Script whole{.methods = find_methods(subject, *table)};
    made = play(subject, *table, "twice", {.methods = whole.methods, .pumps = false});
    if (made != HEARTH_OK) continue;
    if (const hearth_status again = play(subject, *table, "twice", whole); again != HEARTH_OK) {
      return CaseOutcome::failed("its create() fails with status " + std::to_string(again) +
                                 " for an agent that has lived before");
    }
  }
  return outcome_of(subject, made);
}

CaseOutcome check_migration(CheckRun& run) {
  // Another case reports what it does wrong on one thread.
  CheckSubject still(run);
  if (!still.start()) return not_started();
  play_all(still, "settled", blame_unfinished(still));
  if (!still.host().blamed().empty())
    return CaseOutcome::skipped("it misbehaves on one thread, too (T303)");
  return try_each_class(
      run, {.migrates = true}, [](CheckSubject& subject, const hearth_class& table) {
        const hearth_status made =
            play(subject, table, "nomad", {.methods = {}}, blame_unfinished(subject));
        if (made == HEARTH_OK)
          play(subject, table, "nomad", {.methods = find_methods(subject, table)});
        return made;
      });
}

CaseOutcome check_creation(CheckRun& run) {
  CheckSubject subject(run);
  if (!subject.start()) return not_started();
  for (const hearth_class* const table : subject.classes()) {
    CheckInstance instance(subject, *table, "made");
    const hearth_status made = instance.create();
    if (made == HEARTH_OK) continue;
    return CaseOutcome::failed("create() of " + std::string(table->name) + " answers " +
                               extensions::status_name(made) + " to the options " +
                               quote_text(run.setting.options, kMaxShownOptions));
  }
  return outcome_of(subject);
}

CaseOutcome check_sudden_end(CheckRun& run) {
  return try_each_class(run, {}, [&run](CheckSubject& subject, const hearth_class& table) {
    const std::vector<std::string> methods = find_methods(subject, table);
    const std::size_t length = life_events(table, methods).size();
    hearth_status made = HEARTH_OK;
    // After each event of a life, while all operations and calls are still in progress.
    for (std::size_t end = 0; end <= length && !run.is_late() && made == HEARTH_OK; ++end) {
      std::size_t played = 0;
      const AfterEach until = [&](CheckInstance&, const CheckEvent&, const Delivered&) {
        return ++played < end;
      };
      made = play(subject, table, "sudden", {.methods = methods, .pumps = false}, until);
    }
    // An agent that gets no START.
    CheckInstance unborn(subject, table, "unborn");
    unborn.create();
    return made;
  });
}

}  // namespace hearth::plugins

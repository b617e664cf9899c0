// T3: events and results.

#include "extensions/abi_status.hpp"
#include "plugins/check/check_cases.hpp"
#include "plugins/check/check_script.hpp"

#include <hearth/abi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace hearth::plugins {
namespace {

constexpr std::array kUnknownKinds = {0U, 1000U, 0x7fff0000U, 0xffffffffU};

// The asynchronous events of a life except START, with a connected client.
std::vector<CheckEvent> later_events(CheckInstance& instance,
                                     const std::vector<std::string>& methods) {
  std::vector<CheckEvent> events = life_events(instance.table(), methods);
  std::erase_if(events, [](const CheckEvent& event) {
    return event.kind == HEARTH_EVENT_START || event.kind == HEARTH_EVENT_CONNECTING ||
           event.kind == HEARTH_EVENT_STATE_CHECK;
  });
  instance.agent().add_connection(1).state = extensions::ConnectionState::kOpen;
  return events;
}

// One byte changed, removed or doubled, or the end cut off.
std::string damage(std::string text, std::mt19937_64& random) {
  if (text.empty()) return std::string(1, static_cast<char>(random()));
  const std::size_t at = random() % text.size();
  switch (random() % 4) {
    case 0: text[at] = static_cast<char>(random()); break;
    case 1: text.erase(at, 1); break;
    case 2: text.insert(at, text.substr(at, 1 + random() % 8)); break;
    default: text.resize(at); break;
  }
  return text;
}

}  // namespace

CaseOutcome check_every_kind(CheckRun& run) {
  return try_each_agent(run, {}, [&](CheckInstance& instance) {
    instance.agent().add_connection(1).deciding = true;
    for (const CheckEvent& event : life_events(instance.table(), {})) {
      if (event.kind != HEARTH_EVENT_START) instance.go_through(event);
      // A client and a call that do not exist any more.
      CheckEvent stale = event;
      stale.connection = 987654;
      if (event.kind != HEARTH_EVENT_START) instance.go_through(stale);
    }
    for (const std::uint32_t kind : kUnknownKinds) {
      const Delivered delivered =
          instance.go_through({.kind = kind, .name = "future", .body = "{}"});
      if (delivered.status == HEARTH_E_UNSUPPORTED) continue;
      instance.subject().host().blame("it answers an event of " + event_name(kind) + " with " +
                                      extensions::status_name(delivered.status));
    }
  });
}

CaseOutcome check_longer_events(CheckRun& run) {
  constexpr std::uint32_t kLonger = sizeof(hearth_event) + 64;
  return try_each_agent(run, {.guarded = true}, [&](CheckInstance& instance) {
    for (CheckEvent event : later_events(instance, {})) {
      event.struct_size = kLonger;
      instance.go_through(event);
    }
    // Flags that do not exist yet.
    instance.give_result(7, HEARTH_OP_POST, HEARTH_OK, "x", 0xfffffffeU | HEARTH_RESULT_FINAL);
    instance.give_result(7, 4711, HEARTH_OK, "x", 0);
  });
}

CaseOutcome check_completion(CheckRun& run) {
  return try_each_class(run, {}, [](CheckSubject& subject, const hearth_class& table) {
    return play(subject, table, "complete", {.methods = {}}, blame_unfinished(subject));
  });
}

CaseOutcome check_deadlines(CheckRun& run) {
  return try_each_agent(run, {}, [&](CheckInstance& instance) {
    const auto methods = find_methods(instance.subject(), instance.table());
    for (CheckEvent event : later_events(instance, methods)) {
      event.deadline_ms = 1;
      const Delivered delivered = instance.deliver(event);
      // The host does not wait until the plugin knows it.
      if (instance.is_pending(delivered.call)) instance.cancel(delivered.call);
      instance.pump();
    }
  });
}

CaseOutcome check_cancelling(CheckRun& run) {
  constexpr int kSteps = 4;
  return try_each_agent(run, {}, [&](CheckInstance& instance) {
    const auto methods = find_methods(instance.subject(), instance.table());
    for (const std::uint64_t unknown : {0ULL, 4711ULL, 0xffffffffffffffffULL})
      instance.cancel(unknown);
    for (int steps = 0; steps < kSteps && !run.is_late(); ++steps) {
      for (const CheckEvent& event : later_events(instance, methods)) {
        const Delivered delivered = instance.deliver(event);
        instance.pump(steps);
        if (instance.is_pending(delivered.call)) {
          instance.cancel(delivered.call);
          instance.cancel(delivered.call);  // a second time: must have no effect
        }
        instance.pump();
      }
    }
  });
}

CaseOutcome check_results(CheckRun& run) {
  const std::string large(std::size_t{16} << 20, 'r');
  return try_each_agent(run, {.guarded = true}, [&](CheckInstance& instance) {
    const auto methods = find_methods(instance.subject(), instance.table());
    for (const std::uint64_t token : {0ULL, 1ULL, 4711ULL, 0xffffffffffffffffULL}) {
      for (const std::uint32_t operation : {0U, 1U, 2U, 4711U})
        instance.give_result(token, operation, HEARTH_OK, {});
    }
    instance.give_result(4711, HEARTH_OP_SLEEP, HEARTH_OK, large);
    for (hearth_status status = HEARTH_OK; status >= HEARTH_E_UNREADABLE - 1; --status) {
      if (run.is_late()) return;
      for (const CheckEvent& event : later_events(instance, methods)) {
        instance.deliver(event);
        // The operations that it waits for now end with this result, twice, in reverse order.
        auto operations = std::exchange(instance.agent().operations(), {});
        std::ranges::reverse(operations);
        for (const CheckOperation& each : operations) {
          if (each.operation == HEARTH_OP_OFFLOAD) {
            instance.agent().operations().push_back(each);  // jobs are always freed
            continue;
          }
          instance.give_result(each.token, each.operation, status, "why it failed");
          instance.give_result(each.token, each.operation, status, "why it failed");
        }
        instance.pump();
      }
    }
  });
}

CaseOutcome check_methods(CheckRun& run) {
  const std::vector<std::string> arguments = {
      "",
      "[",
      "null",
      "{}",
      "[null]",
      "[[],{}]",
      "[1]",
      "[-1]",
      "[1.5]",
      "[\"\"]",
      "[\"x\",\"y\"]",
      "[true,false]",
      "[1e308,9223372036854775807,-9223372036854775808]",
      "[18446744073709551615]",
      "[" + std::string(300, '[') + std::string(300, ']') + "]",
      "[\"" + std::string(std::size_t{1} << 20, 'a') + "\"]",
      "[{\"a\":{\"b\":[1,2,3]}}]",
      "[\"\\u0000\\ud83d\\ude00\"]"};
  bool any = false;
  CaseOutcome outcome = try_each_agent(run, {.guarded = true}, [&](CheckInstance& instance) {
    const auto methods = find_methods(instance.subject(), instance.table());
    any = any || !methods.empty();
    for (const std::string& method : methods) {
      for (const std::string& each : arguments) {
        if (run.is_late()) return;
        instance.go_through({.kind = HEARTH_EVENT_CALL, .name = method, .body = each});
      }
    }
    for (const std::string& name : {std::string(), std::string(std::size_t{64} << 10, 'm'),
                                    std::string("\xff\xfe"), std::string("a\0b", 3)})
      instance.go_through({.kind = HEARTH_EVENT_CALL, .name = name, .body = "[]"});
  });
  if (outcome.verdict == CheckVerdict::kPassed && !any)
    return CaseOutcome::skipped("no method was found: name them with --call");
  return outcome;
}

CaseOutcome check_malformed_bodies(CheckRun& run) {
  constexpr int kRounds = 200;
  return try_each_agent(run, {.guarded = true}, [&](CheckInstance& instance) {
    const auto methods = find_methods(instance.subject(), instance.table());
    std::vector<CheckEvent> events = later_events(instance, methods);
    // Only the bodies that clients write: the host makes the others, which are well-formed.
    std::erase_if(events, [](const CheckEvent& event) {
      return event.kind != HEARTH_EVENT_MESSAGE && event.kind != HEARTH_EVENT_CALL &&
             event.kind != HEARTH_EVENT_REQUEST && event.kind != HEARTH_EVENT_STATE_CHANGED;
    });
    for (int round = 0; round < kRounds && !run.is_late(); ++round) {
      CheckEvent event = events[run.random() % events.size()];
      for (unsigned times = 1 + static_cast<unsigned>(run.random() % 4); times > 0; --times)
        event.body = damage(event.body, run.random);
      if (run.random() % 8 == 0) event.name = damage(event.name, run.random);
      instance.go_through(event);
    }
  });
}

CaseOutcome check_call_times(CheckRun& run) {
  using std::chrono::milliseconds;
  constexpr milliseconds kLimit{250};
  constexpr int kLives = 3;  // the fastest counts: another program may have used the processor
  CheckSubject subject(run);
  if (!subject.start()) return not_started();
  hearth_status made = HEARTH_OK;
  for (const hearth_class* const table : subject.classes()) {
    const Script whole{.methods = find_methods(subject, *table)};
    CheckSubject::Longest best;
    for (int life = 0; life < kLives; ++life) {
      static_cast<void>(subject.take_longest());
      made = play(subject, *table, "timed", whole);
      const CheckSubject::Longest longest = subject.take_longest();
      if (life == 0 || longest.took < best.took) best = longest;
      if (best.took <= kLimit || run.is_late()) break;
    }
    if (best.took > kLimit)
      return CaseOutcome::warned("it took " + std::to_string(best.took.count()) + " ms " +
                                 best.what);
  }
  return outcome_of(subject, made);
}

CaseOutcome check_jobs(CheckRun& run) {
  std::size_t jobs = 0;
  CaseOutcome outcome = try_each_agent(run, {}, [&](CheckInstance& instance) {
    const auto methods = find_methods(instance.subject(), instance.table());
    // Its jobs wait until the agent is destroyed. Then they are cancelled.
    CheckInstance leaving(instance.subject(), instance.table(), "leaving");
    if (leaving.create() != HEARTH_OK) return;
    leaving.go_through({.kind = HEARTH_EVENT_START});
    for (const CheckEvent& event : later_events(instance, methods)) {
      if (run.is_late()) return;
      instance.deliver(event);
      jobs += static_cast<std::size_t>(std::ranges::count(
          instance.agent().operations(), HEARTH_OP_OFFLOAD, &CheckOperation::operation));
      instance.pump();
      leaving.deliver(event);
    }
  });
  if (outcome.verdict == CheckVerdict::kPassed && jobs == 0)
    return CaseOutcome::skipped("it submits no job in what is tried");
  return outcome;
}

}  // namespace hearth::plugins

#pragma once
// An agent with managed fibers on the mock host, and what its instances leave behind. A test
// scripts the work and the hooks.

#include "fields.hpp"
#include "one_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace managed_fiber_tests {

using std::chrono::milliseconds;

using hearth::FiberContext;
using hearth::FiberFilter;
using hearth::FiberOptions;
using hearth::FiberOutcome;
using hearth::FiberPolicy;
using hearth::FiberRecord;
using hearth::FiberStatus;
using hearth::InterruptedFiber;
using hearth::Json;
using hearth::RecoveredFiber;
using hearth::RecoveryPlan;
using hearth::StartedFiber;
using hearth::Task;

using Lines = std::vector<std::string>;

// These outlive an instance.
inline Lines done;                           // NOLINT
inline Lines told;                           // NOLINT
inline std::vector<RecoveredFiber> offered;  // NOLINT
inline std::string how;                      // NOLINT: what on_fiber_recovered does
inline int failures_left = 0;                // NOLINT: of the work
inline int hook_failures = 0;                // NOLINT
inline RecoveryPlan plan;                    // NOLINT

// A result that cannot be turned into JSON after all.
struct Unwritable {};
inline void to_json(Json&, const Unwritable&) {
  throw std::runtime_error("cannot be written");
}

class Manager : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Manager>& m) {
    m.add("wait", &Manager::wait);
    m.add("wait_state", &Manager::wait_state);
    m.add("result", &Manager::result);
    m.add("cancel", &Manager::cancel);
    m.add("cancel_and_see", &Manager::cancel_and_see);
    m.add("records", &Manager::records);
    m.add("clear", &Manager::clear);
    m.add("replace", &Manager::replace);
    m.add("clear_behind_the_back", &Manager::clear_behind_the_back);
  }

  // Begins work that takes 3 steps of 10 ms and gives {"steps": 3}.
  StartedFiber begin(FiberOptions options = {}, const std::string& name = "work") {
    options.keep_record = true;
    return start_fiber(name, [this](FiberContext& fiber) { return work(fiber, 0); }, options);
  }
  // Fails `failures_left` times.
  StartedFiber begin_flaky(int max_retries) {
    auto flaky = [](FiberContext&) {
      done.emplace_back("tried");
      if (failures_left-- > 0) throw std::runtime_error("broken");
      return "worked";
    };
    return start_fiber("flaky", flaky, {.keep_record = true, .max_retries = max_retries});
  }

  Task<Json> wait(std::string id) {
    const FiberRecord record = co_await wait_fiber(id);
    co_return Json(record);
  }
  Task<std::string> wait_state(std::string id) {
    const FiberRecord record = co_await wait_fiber(id);
    set_state("waited");  // the caller's context is back
    co_return caller() ? caller()->id() : "nobody";
  }
  Task<int> result(std::string id) {
    const FiberRecord record = co_await wait_fiber(id);
    co_return record.result_as<int>();
  }
  bool cancel(const std::string& id, const std::string& reason) { return cancel_fiber(id, reason); }
  // A waiting call goes on after this event, not in the middle of it.
  std::size_t cancel_and_see(const std::string& id) {
    cancel_fiber(id);
    return done.size();
  }
  std::vector<FiberRecord> records() { return list_fibers(); }
  // At the moment at which a slow hook ends: before the event that tells of the end.
  Task<std::uint64_t> clear() {
    co_await sleep(milliseconds(50));
    co_return delete_fibers(interrupted_too());
  }
  Task<std::string> replace(std::string id) {
    co_await sleep(milliseconds(50));
    const FiberOptions options = {.id = id, .policy = FiberPolicy::kReplace};
    co_return begin(options).record.id;
  }
  // As code without this SDK does.
  Task<std::uint64_t> clear_behind_the_back() {
    co_await sleep(milliseconds(50));
    std::uint64_t removed = 0;
    const auto filter = hearth::detail::to_fiber_filter(interrupted_too());
    const auto& live = activation();
    live.check(hearth::detail::fiber_table(live).remove(live.host(), live.id(), &filter, &removed),
               "remove");
    co_return removed + delete_fibers();
  }

  Task<void> on_fiber_recovered(const RecoveredFiber& fiber) override {
    offered.push_back(fiber);
    if (hook_failures-- > 0) throw std::runtime_error("not now");
    if (how.starts_with("slow")) co_await sleep(milliseconds(50));
    if (how == "slow outcome") settle_fiber(fiber, FiberOutcome::completed({{"by", "the hook"}}));
    if (how.ends_with("let go")) settle_fiber(fiber, FiberOutcome::interrupted());
    if (how == "completed") settle_fiber(fiber, FiberOutcome::completed({{"by", "the hook"}}));
    if (how == "failed") {
      FiberOutcome outcome = FiberOutcome::failed("lost");
      outcome.snapshot = "last words";
      outcome.metadata = "changed";
      settle_fiber(fiber, outcome);
    }
    if (how == "spawn") start_fiber(fiber.name, [](FiberContext&) {});
    if (how == "continue" || how == "slow")
      continue_fiber(fiber, [this](FiberContext& next) { return go_on(next); });
  }
  Task<RecoveryPlan> on_fibers_recovered(const std::vector<InterruptedFiber>& fibers) override {
    Lines names;
    for (const InterruptedFiber& fiber : fibers) names.push_back(fiber.name);
    done.push_back("asked for " + std::to_string(names.size()));
    RecoveryPlan answer = plan;
    for (std::string& name : answer.order) {
      for (const InterruptedFiber& fiber : fibers) {
        if (fiber.name == name) name = fiber.id;
      }
    }
    return answer;
  }
  Task<void> on_fiber_complete(const FiberRecord& fiber) override {
    told.push_back(fiber.name + " " + Json(fiber).at("status").get<std::string>());
    if (tell_failures-- > 0) throw std::runtime_error("deaf");
    co_await sleep(milliseconds(1));
  }

  int tell_failures = 0;

 private:
  static FiberFilter interrupted_too() {
    return {.statuses = {FiberStatus::kInterrupted, FiberStatus::kCompleted, FiberStatus::kError}};
  }
  Task<Json> work(FiberContext& fiber, int from) {
    for (int i = from + 1; i <= 3; ++i) {
      co_await sleep(milliseconds(10));
      done.push_back("step " + std::to_string(i));
      stash(i);
    }
    co_return Json{{"steps", 3}, {"id", fiber.id()}};
  }
  Task<Json> go_on(FiberContext& fiber) {
    return work(fiber, fiber.snapshot().is_null() ? 0 : fiber.snapshot().get<int>());
  }
};

class ManagedFiberFixture : public OneAgent<Manager> {
 protected:
  ManagedFiberFixture() {
    done.clear();
    told.clear();
    offered.clear();
    how = "continue";
    failures_left = hook_failures = 0;
    plan = RecoveryPlan();
  }
  Manager& manager() { return agent_.as<Manager>(); }
  std::optional<FiberRecord> inspect(const std::string& id) { return manager().inspect_fiber(id); }
  // Of the record of this fiber.
  Json record(const std::string& id, const std::vector<std::string>& names) {
    return fields(Json(inspect(id).value()), names);
  }
  // The names of the fibers that the hook was asked about.
  static Lines offered_names() {
    Lines names;
    for (const RecoveredFiber& fiber : offered) names.push_back(fiber.name);
    return names;
  }
  // Begun, with a checkpoint of step 1, and interrupted.
  std::string interrupt(const FiberOptions& options = {}) {
    std::string id = manager().begin(options).record.id;
    host_.advance(milliseconds(10));
    agent_.kill();
    return id;
  }
  std::string interrupt_and_wake(const FiberOptions& options = {}) {
    std::string id = interrupt(options);
    agent_.wake();
    return id;
  }
  hearth_status status_of(const FiberOptions& options, const std::string& name = "work") {
    return refusal_of([&] { return manager().begin(options, name); }).code;
  }
};

}  // namespace managed_fiber_tests

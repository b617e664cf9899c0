// Failures that no retry mends, for each kind of work; and values that this version of the code
// cannot read, which wait for another one.
#include "fields.hpp"
#include "operation_kind.hpp"

#include <hearth/agent.hpp>
#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace final_failure_tests {
namespace {

using hearth::FiberContext;
using hearth::Json;
using hearth::RetryOptions;
using hearth::Task;
using hearth::testing::AgentHandle;
using hearth::testing::Host;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Lines = std::vector<std::string>;

int attempts = 0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): of the work
std::string how;   // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): it fails
Lines done;        // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
Lines ends;        // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): on_fiber_complete

class Worker : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Worker>& m) {
    const auto unless_told = [](const std::exception& failure, int next_attempt) {
      done.push_back(std::string(failure.what()) + ", next " + std::to_string(next_attempt));
      return std::string(failure.what()) != "odd";
    };
    m.callback("work", &Worker::work);
    m.add("work", &Worker::work);
    m.fiber("work", &Worker::fiber_work);
    m.fiber("asked", &Worker::fiber_work, unless_told);
    m.fiber("steps", &Worker::steps);
    m.add("begin_steps", &Worker::begin_steps);
    m.add("begin", &Worker::begin);
    m.add("try_all", &Worker::try_all);
    m.add("asks", &Worker::asks);
    m.operation("charge", operation_kind(hearth::Effect::kKeyed));
    m.operation("wire", operation_kind(hearth::Effect::kUnsafe));
  }

  void work() {
    ++attempts;
    if (how == "odd") throw std::runtime_error("odd");
    if (how == "author's") throw hearth::Error(HEARTH_E_NOT_FOUND, "no such row");
    if (how == "conflict") throw hearth::HostError(HEARTH_E_CONFLICT, "taken");
    if (how == "busy") throw hearth::CallError(HEARTH_E_BUSY, "not now");
    if (how == "timeout") throw hearth::HostError(HEARTH_E_TIMEOUT, "too late");
    if (how == "final") throw hearth::Final("refused");
    if (how == "budget") throw hearth::Final("no tokens are left today", "budget");
    if (how == "wordy") throw hearth::Final("refused", std::string(257, 'x'));
    if (how == "invalid") throw hearth::HostError(HEARTH_E_INVALID, "wrong");
    if (how == "no such agent") throw hearth::CallError(HEARTH_E_NOT_FOUND, "nobody");
    if (how == "forbidden") throw hearth::CallError(HEARTH_E_FORBIDDEN, "not you");
    if (how == "answered so") throw hearth::CallError(HEARTH_E_FINAL, "refused there");
    if (how == "unlisted") schedule(seconds(1), "no such callback");
  }
  Task<void> fiber_work(FiberContext& /*fiber*/) {
    if (how == "unknown") {
      ++attempts;
      const auto cut = [](hearth::OperationAttempt) -> int { throw std::runtime_error("cut"); };
      const hearth::OperationCall wire{.kind = "wire"};
      co_await operation(wire, cut);
    }
    if (how.starts_with("operation")) {
      hearth::OperationCall call{.kind = how == "operation" ? "charge" : "none"};
      const auto charge = [](hearth::OperationAttempt) -> int {
        ++attempts;
        throw hearth::Final("the card was refused");
      };
      if (how != "operation") ++attempts;
      co_await operation(std::move(call), charge);
    }
    work();
  }
  // Fails once in each of its five steps.
  Task<int> steps(FiberContext& fiber) {
    int step = fiber.snapshot<int>().value_or(0);
    while (step < 5) {
      fiber.stash(++step);
      throw std::runtime_error("odd");
    }
    co_return step;
  }
  std::string begin_steps(bool reset) {
    return start_fiber("steps", nullptr,
                       {.keep_record = true, .max_retries = 1, .reset_by_progress = reset})
        .id();
  }
  Task<void> on_fiber_complete(const hearth::FiberRecord& fiber) override {
    ends.push_back(fiber.reason.value_or("no reason") + ": " + fiber.error.value_or(""));
    co_return;
  }
  std::string begin(const std::string& name) {
    return start_fiber(name, nullptr, {.keep_record = true, .max_retries = 3}).id();
  }
  void begin_all(const std::string& kind) {
    if (kind == "fiber") begin("work");
    if (kind == "queue") queue("work", nullptr, {.max_attempts = 4});
    if (kind == "schedule")
      schedule(seconds(0), "work", nullptr, {.retry = RetryOptions{.max_attempts = 4}});
    if (kind == "alarm") set_alarm(now(), "work");
  }
  Task<void> try_all() {
    const RetryOptions options = {.max_attempts = 4};
    const auto once = [this] { work(); };
    co_await retry(once, options);
  }
  // should_retry decides about all but a Final.
  Task<void> asks() {
    RetryOptions options = {.max_attempts = 4};
    options.should_retry = [](const std::exception&, int) { return true; };
    const auto once = [this] { work(); };
    co_await retry(once, options);
  }
};

class FinalFailureTest : public ::testing::Test {
 protected:
  FinalFailureTest() {
    attempts = 0;
    how.clear();
    done.clear();
    ends.clear();
  }
  // How often the work is tried.
  int tries(const std::string& kind, const std::string& failure) {
    attempts = 0;
    how = failure;
    auto agent = host_.create<Worker>(kind + " " + failure);
    if (kind == "retry" || kind == "asks") {
      const auto call = agent.start(kind == "retry" ? "try_all" : "asks");
      host_.advance(minutes(1));
      EXPECT_TRUE(call.done());
    } else {
      agent.as<Worker>().begin_all(kind);
      host_.advance(minutes(1));
    }
    return attempts;
  }

  Host host_;
};

TEST_F(FinalFailureTest, WhatNoRetryMendsIsTriedOnce) {
  for (const std::string kind : {"fiber", "queue", "schedule", "retry"}) {
    for (const char* const failure :
         {"final", "invalid", "no such agent", "forbidden", "answered so", "unlisted"})
      EXPECT_EQ(tries(kind, failure), 1) << kind << ": " << failure;
    for (const char* const failure : {"odd", "conflict", "busy", "timeout"})
      EXPECT_EQ(tries(kind, failure), 4) << kind << ": " << failure;
  }
  for (const char* const failure : {"final", "unlisted"})
    EXPECT_EQ(tries("alarm", failure), 1) << failure;
  EXPECT_EQ(tries("alarm", "odd"), 3);
  EXPECT_EQ(tries("queue", "author's"), 4) << "an Error of its own is no Final, whatever its code";
}

TEST_F(FinalFailureTest, AnOperationThatIsRefusedForGoodWasNotExecuted) {
  how = "operation";
  auto agent = host_.create<Worker>("shop");
  agent.call("begin", "work");
  host_.advance(minutes(1));
  EXPECT_EQ(attempts, 1) << "the provider is asked once";
  const auto ledger = agent.as<Worker>().list_operations();
  ASSERT_EQ(ledger.size(), 1U);
  EXPECT_EQ(ledger[0].state, hearth::OperationState::kNotExecuted);
  EXPECT_EQ(ledger[0].note, "the card was refused");
  EXPECT_EQ(tries("fiber", "operation that is not listed"), 1);
  EXPECT_EQ(tries("fiber", "unknown"), 1) << "a person has to find out";
}

TEST_F(FinalFailureTest, ShouldRetryDecidesAboutAllOthers) {
  EXPECT_EQ(tries("asks", "invalid"), 4);
  EXPECT_EQ(tries("asks", "final"), 1);
  auto agent = host_.create<Worker>("asked");
  how = "busy";
  const Json id = agent.call("begin", "asked");
  agent.evict();  // the function is the class's, so any instance asks it
  host_.advance(minutes(1));
  EXPECT_EQ(done,
            Lines({"not now, next 2", "not now, next 3", "not now, next 4", "not now, next 5"}));
  done.clear();
  how = "odd";
  attempts = 0;
  agent.call("begin", "asked");
  host_.advance(minutes(1));
  EXPECT_EQ(attempts, 1);
  EXPECT_EQ(done, Lines({"odd, next 2"}));
}

TEST_F(FinalFailureTest, TheRecordOfAFiberKeepsTheReasonOfItsEnd) {
  auto agent = host_.create<Worker>("a");
  for (const char* const failure : {"budget", "final", "wordy"}) {
    how = failure;
    agent.call("begin", "work");
    host_.advance(minutes(1));
  }
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(ends, Lines({"budget: no tokens are left today", "no reason: refused",
                         "no reason: refused"}));
}

TEST_F(FinalFailureTest, RetriesCountFromTheLastProgressIfAskedTo) {
  auto agent = host_.create<Worker>("a");
  for (const bool reset : {true, false}) {
    const std::string id = agent.call("begin_steps", reset);
    host_.advance(minutes(10));
    EXPECT_EQ(agent.as<Worker>().inspect_fiber(id)->status,
              reset ? hearth::FiberStatus::kCompleted : hearth::FiberStatus::kError);
  }
}

TEST_F(FinalFailureTest, TheCallerOfAMethodReadsTheText) {
  auto agent = host_.create<Worker>("a");
  how = "final";
  const auto call = agent.start("work");
  EXPECT_EQ(call.status(), HEARTH_E_FINAL);
  EXPECT_EQ(call.error(), "refused");
}

// ---- values of another version ------------------------------------------------------------------

struct Place {
  int step = 0;
  HEARTH_FIELDS(step)
};
struct LaterPlace {
  int step = 0;
  std::string shop;
  HEARTH_FIELDS(step, shop)
  HEARTH_REQUIRED(shop)
};

template <class Its>
class Importer : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Importer>& m) {
    m.fiber("import", &Importer::import);
    m.fiber("by input", &Importer::by_input);
    m.fiber("outer", &Importer::outer);
    m.fiber("part", &Importer::part);
    m.callback("take", &Importer::take);
    m.callback("note", &Importer::note);
  }
  Task<void> import(Json /*input*/, FiberContext& fiber) {
    Its place = fiber.snapshot<Its>().value_or(Its{});
    for (; place.step < 3; fiber.stash(place)) {
      co_await sleep(milliseconds(10));
      done.push_back("step " + std::to_string(++place.step));
    }
  }
  Task<void> by_input(Its place, FiberContext& /*fiber*/) {
    co_await sleep(milliseconds(10));
    done.push_back("input " + std::to_string(place.step));
  }
  // Waits for the value of another fiber, and is interrupted behind it.
  Task<void> outer(FiberContext& /*fiber*/) {
    const Its place = co_await run_fiber<Its>("part");
    co_await sleep(milliseconds(10));
    done.push_back("value " + std::to_string(place.step));
  }
  Its part(FiberContext& /*fiber*/) {
    Its place;
    place.step = 7;
    return place;
  }
  void take(const Its& place) { done.push_back("took " + std::to_string(place.step)); }
  void note() { done.emplace_back("noted"); }
};

class UnreadableTest : public ::testing::Test {
 protected:
  using Earlier = Importer<Place>;
  using Later = Importer<LaterPlace>;
  const std::string kWaits =
      "fiber:unknown this version of the class cannot go on with it: it waits for another "
      "version: ";

  UnreadableTest() { done.clear(); }
  Earlier& earlier() { return agent_.as<Earlier>(); }
  // The version that cannot read what the one before has stored; each instance tries.
  void be_later() {
    agent_.become<Later>();
    for (int life = 0; life < 12; ++life) {
      agent_.evict();
      agent_.wake();
      host_.advance(minutes(1));
    }
  }
  void be_earlier() {
    agent_.become<Earlier>();
    agent_.wake();
    host_.advance(std::chrono::hours(2));
  }
  [[nodiscard]] bool has_step(const std::string& step) const {
    for (const std::string& each : agent_.steps()) {
      if (each == step) return true;
    }
    return false;
  }

  Host host_;
  AgentHandle agent_ = host_.create<Earlier>("a");
};

TEST_F(UnreadableTest, AFiberWaitsForCodeThatReadsItsCheckpoint) {
  earlier().start_fiber("import", nullptr);
  host_.advance(milliseconds(15));
  be_later();
  EXPECT_EQ(done, Lines({"step 1"}));
  EXPECT_EQ(fields(agent_.fiber_records().at(0), {"waits_for_code", "attempts"}), Json({true, 0}));
  EXPECT_TRUE(has_step(kWaits + "checkpoint.shop: missing, expected string"));
  be_earlier();
  EXPECT_EQ(done, Lines({"step 1", "step 2", "step 3"}));
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(UnreadableTest, AnInputAndAValueOfAnInnerFiberAreWaitedForToo) {
  earlier().start_fiber("by input", Place{5});
  earlier().start_fiber("outer");
  host_.advance(milliseconds(5));
  be_later();
  EXPECT_EQ(done, Lines());
  EXPECT_EQ(agent_.fibers().size(), 2U);
  EXPECT_TRUE(has_step(kWaits + "input.shop: missing, expected string"));
  EXPECT_TRUE(has_step(kWaits + "result.shop: missing, expected string"));
  be_earlier();
  EXPECT_EQ(done, Lines({"input 5", "value 7"}));
}

TEST_F(UnreadableTest, APayloadIsWaitedForAndHoldsBackNoOtherItem) {
  agent_.become<Later>();
  agent_.as<Later>().queue("take", Place{5});
  agent_.as<Later>().queue("note");
  agent_.as<Later>().schedule(seconds(1), "take", Place{6});
  host_.advance(seconds(1));
  be_later();
  EXPECT_EQ(done, Lines({"noted"}));
  EXPECT_EQ(agent_.queue().at(0).at("last_error"), "payload.shop: missing, expected string");
  EXPECT_EQ(agent_.schedules().at(0).at("last_error"), "payload.shop: missing, expected string");
  EXPECT_TRUE(has_step("queue:missing_callback take: payload.shop: missing, expected string"));
  be_earlier();
  std::ranges::sort(done);
  EXPECT_EQ(done, Lines({"noted", "took 5", "took 6"}));
}

}  // namespace
}  // namespace final_failure_tests

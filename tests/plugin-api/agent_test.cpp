// An agent's life on the mock host: hooks, methods, waiting, cancelling, eviction.

#include "one_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

using hearth::Json;
using hearth::Task;
using hearth::testing::Host;

// Written by the destructors of suspended coroutines. They outlive the agent, so this is no member
// of it.
std::vector<std::string> unwound;  // NOLINT

class Trace {
 public:
  explicit Trace(std::string name) : name_(std::move(name)) {}
  ~Trace() { unwound.push_back(name_); }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

 private:
  std::string name_;
};

class Worker : public hearth::Agent {
 public:
  ~Worker() override { unwound.emplace_back("agent"); }

  static void methods(hearth::Methods<Worker>& m) {
    m.add("nap", &Worker::nap);
    m.add("nested", &Worker::nested);
    m.add("forever", &Worker::forever);
    m.add("on_pool", &Worker::on_pool);
    m.add("pool_fails", &Worker::pool_fails);
    m.add("wrong_thread", &Worker::wrong_thread);
    m.add("after_eviction", &Worker::after_eviction);
    m.add("sum", &Worker::sum);
    m.add("join", &Worker::join);
    m.add("maybe", &Worker::maybe);
    m.add("maybe_later", &Worker::maybe_later);
    m.stream("maybe_at_the_end", &Worker::maybe_at_the_end);
    m.add("who", &Worker::who);
    m.add("ids", &Worker::ids);
    m.add("set_state_later", &Worker::set_state_later);
    m.add("set_state_afterwards", &Worker::set_state_afterwards);
    m.add("invalid_result", &Worker::invalid_result);
    m.stream("parts", &Worker::parts);
    m.stream("plain_parts", &Worker::plain_parts);
  }

  Task<int> nap(int ms) {
    const Trace trace("nap " + std::to_string(ms));
    co_await sleep(milliseconds(ms));
    co_return ms;
  }
  Task<int> nested(int ms) {
    const Trace trace("nested");
    co_return 1 + co_await nap(ms);
  }
  Task<void> forever() {
    const Trace trace("forever");
    co_await std::suspend_always();
  }
  Task<std::string> on_pool(std::string text) {
    const auto here = std::this_thread::get_id();
    auto work = [text, here] {
      return std::this_thread::get_id() == here ? "same thread" : text + "!";
    };
    co_return co_await offload(work);
  }
  Task<void> pool_fails() {
    auto work = [] { throw std::runtime_error("from the pool"); };
    co_await offload(work);
  }
  Task<bool> wrong_thread() {
    auto work = [this] {
      try {
        static_cast<void>(state());
        return false;
      } catch (const hearth::HostError& error) {
        return error.code() == HEARTH_E_WRONG_THREAD;
      }
    };
    co_return co_await offload(work);
  }
  // Tries to go on when its frame is being destroyed.
  Task<void> after_eviction() {
    struct Stubborn {
      Worker& agent;
      explicit Stubborn(Worker& a) : agent(a) {}
      ~Stubborn() {
        try {
          agent.set_state(1);
          unwound.emplace_back("set");
        } catch (const hearth::HostError& error) {
          unwound.push_back("refused " + std::string(hearth::status_name(error.code())));
        }
      }
    };
    const Stubborn stubborn(*this);
    co_await std::suspend_always();
  }
  double sum(const std::vector<double>& numbers) {
    double total = 0;
    for (const double number : numbers) total += number;
    return total;
  }
  std::string join(const std::string& a, const std::string& b) const { return a + b; }
  std::optional<int> maybe(std::optional<int> value, bool twice) {
    if (value && twice) *value *= 2;
    return value;
  }
  Task<std::optional<Json>> maybe_later(bool has_value) {
    co_await sleep(milliseconds(1));
    if (!has_value) co_return std::nullopt;
    co_return Json();
  }
  void maybe_at_the_end(hearth::Stream& out, std::optional<int> value) {
    out.send(value);
    out.end(value);
  }
  std::string who() { return caller() ? caller()->id() : "nobody"; }
  std::vector<std::string> ids() { return {uuid(), uuid()}; }
  void set_state_afterwards(const Json& next) {
    after_turn([this, next]() -> Task<void> {
      co_await sleep(milliseconds(1));
      set_state(next);
    });
  }
  Task<void> set_state_later(Json next) {
    co_await sleep(milliseconds(1));
    set_state(next);
  }
  std::string invalid_result() { return "\xff"; }
  Task<std::string> parts(hearth::Stream& out, int n) {
    for (int i = 0; i < n; ++i) {
      if (!out.send(i)) co_return "left";
      co_await sleep(milliseconds(1));
    }
    co_return "end";
  }
  void plain_parts(hearth::Stream& out, std::string text) {
    out.send(text);
    out.send(Json({{"text", text}}));
  }
};

class AgentTest : public OneAgent<Worker> {
 protected:
  AgentTest() { unwound.clear(); }
};

// ---- methods

TEST_F(AgentTest, ArgumentsAreConvertedAndResultsToo) {
  EXPECT_EQ(agent_.call("sum", std::vector<double>{1, 2.5}), 3.5);
  EXPECT_EQ(agent_.call("join", "a", "b"), "ab");
  EXPECT_EQ(agent_.call("maybe", 4, true), 8);
  EXPECT_EQ(agent_.call("join", "a", "b", "more is ignored"), "ab");
}

TEST_F(AgentTest, AnEmptyOptionalAnswersWithoutAValue) {
  EXPECT_FALSE(agent_.start("maybe", nullptr, true).has_value());
  EXPECT_TRUE(agent_.start("maybe", nullptr, true).done());

  const auto nothing = agent_.start("maybe_later", false);
  const auto null = agent_.start("maybe_later", true);
  host_.advance(milliseconds(1));
  ASSERT_TRUE(nothing.done() && !nothing.failed());
  EXPECT_FALSE(nothing.has_value());
  EXPECT_TRUE(null.has_value()) << "a value that is null";
  EXPECT_EQ(null.value(), nullptr);

  const auto stream = agent_.start("maybe_at_the_end", nullptr);
  EXPECT_EQ(stream.parts(), std::vector<Json>{nullptr}) << "a part is a value";
  EXPECT_FALSE(stream.has_value());
  EXPECT_EQ(agent_.call("maybe_at_the_end", 7), 7);
}

TEST_F(AgentTest, BadArgumentsAreNamedByTheirNumber) {
  EXPECT_EQ(agent_.start("join", "a").error(), "argument 2: missing, expected string");
  EXPECT_EQ(agent_.start("join", 1, "b").error(), "argument 1: expected string");
  EXPECT_EQ(agent_.start("sum", Json({1, "x"})).error(), "argument 1[1]: expected number");
  EXPECT_EQ(agent_.start("join", 1, "b").status(), HEARTH_E_INVALID);
}

TEST_F(AgentTest, ArgumentsThatAreNoListAreRefused) {
  EXPECT_EQ(agent_.start_raw("who", "{}").error(), "the arguments are no array");
  EXPECT_EQ(agent_.start_raw("who", "[").status(), HEARTH_E_INVALID);
  EXPECT_EQ(agent_.start_raw("nap", "[007]").status(), HEARTH_E_INVALID);
  EXPECT_EQ(agent_.start_raw("nap", "[-]").status(), HEARTH_E_INVALID);
  EXPECT_EQ(agent_.start_raw("nap", "[99999999999]").error(), "argument 1: integer out of range");
  EXPECT_EQ(agent_.start_raw("who", std::string(10'000, '[')).error(), "JSON is nested too deeply");
}

TEST_F(AgentTest, AnUnknownMethodIsNotFound) {
  const auto call = agent_.start("on_start");
  EXPECT_EQ(call.status(), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(call.error(), "Method on_start does not exist");
}

TEST_F(AgentTest, AResultThatIsNotUtf8IsAnErrorForItsCallerOnly) {
  EXPECT_TRUE(agent_.start("invalid_result").failed());
  EXPECT_EQ(agent_.call("who"), "nobody");
}

TEST_F(AgentTest, TheCallerIsTheClientWhoseEventRuns) {
  auto client = agent_.connect({}, "ann");
  EXPECT_EQ(client.call("who"), "ann");
  EXPECT_EQ(agent_.call("who"), "nobody");
}

TEST_F(AgentTest, AMethodThatNeedNotWaitEndsInsideTheEvent) {
  EXPECT_TRUE(agent_.start("join", "a", "b").done());
  EXPECT_TRUE(agent_.start("plain_parts", "x").done());
  EXPECT_EQ(agent_.as<Worker>().activation().unfinished(), 0U);
}

TEST_F(AgentTest, AStreamEndsWithItsMethodAndItsValue) {
  auto call = agent_.start("parts", 2);
  host_.advance(seconds(1));
  EXPECT_EQ(call.parts(), (std::vector<Json>{0, 1}));
  EXPECT_EQ(call.value(), "end");
  auto plain = agent_.start("plain_parts", "x");
  EXPECT_EQ(plain.parts(), (std::vector<Json>{"x", {{"text", "x"}}}));
  EXPECT_FALSE(plain.has_value());
}

TEST_F(AgentTest, AStreamLearnsThatItsClientHasLeft) {
  auto client = agent_.connect();
  auto call = client.start("parts", 100);
  client.close();
  host_.advance(milliseconds(5));
  EXPECT_FALSE(call.done()) << "a client that has left gets no answer";
  EXPECT_EQ(agent_.as<Worker>().activation().unfinished(), 0U);
}

// ---- waiting

TEST_F(AgentTest, OtherEventsRunWhileOneWaits) {
  auto nap = agent_.start("nap", 100);
  EXPECT_EQ(agent_.call("who"), "nobody");
  EXPECT_FALSE(nap.done());
  host_.advance(milliseconds(99));
  EXPECT_FALSE(nap.done());
  host_.advance(milliseconds(1));
  EXPECT_EQ(nap.value(), 100);
}

TEST_F(AgentTest, SleepsEndInTheOrderOfTheirTimes) {
  auto slow = agent_.start("nap", 20);
  auto fast = agent_.start("nap", 10);
  host_.advance(milliseconds(50));
  EXPECT_EQ(unwound, (std::vector<std::string>{"nap 10", "nap 20"}));
}

TEST_F(AgentTest, ANestedWaitResumesTheWholeChain) {
  auto call = agent_.start("nested", 10);
  host_.advance(milliseconds(10));
  EXPECT_EQ(call.value(), 11);
  EXPECT_EQ(unwound, (std::vector<std::string>{"nap 10", "nested"}));
}

TEST_F(AgentTest, ANegativeSleepEndsSoon) {
  EXPECT_EQ(agent_.start("nap", -5).value(), -5);
}

TEST_F(AgentTest, OffloadedWorkRunsOnAnotherThread) {
  EXPECT_EQ(agent_.call("on_pool", "hello"), "hello!");
}

TEST_F(AgentTest, WhatOffloadedWorkThrowsComesOutOfTheAwait) {
  EXPECT_EQ(agent_.start("pool_fails").error(), "from the pool");
}

TEST_F(AgentTest, TheAgentCannotBeTouchedFromThePool) {
  EXPECT_EQ(agent_.call("wrong_thread"), true);
}

TEST_F(AgentTest, AnOperationThatIsRefusedIsAnErrorWithTheHostsWords) {
  host_.fail_submit(HEARTH_E_LIMIT);
  const auto call = agent_.start("nap", 5);
  EXPECT_EQ(call.error(), "submit fails in this test");
  EXPECT_TRUE(agent_.start("on_pool", "x").failed());
  host_.fail_submit(HEARTH_OK);
  EXPECT_FALSE(agent_.start("nap", 5).done());
}

TEST_F(AgentTest, AfterAWaitAReadonlyCallersChangeIsStillRefused) {
  class Readonly : public Worker {
   public:
    void on_connecting(hearth::Connecting& client) override { client.set_readonly(); }
  };
  auto agent = host_.create<Readonly>("r");
  auto client = agent.connect();
  auto call = client.start("set_state_later", 1);
  host_.advance(milliseconds(1));
  EXPECT_EQ(call.error(), "Connection is readonly");
  // Nor is it made for a client that has left meanwhile, during its call or after it.
  for (const char* method : {"set_state_later", "set_state_afterwards"}) {
    for (const bool is_readonly : {true, false}) {
      auto one = is_readonly ? agent : host_.create<Worker>(method);
      auto leaving = one.connect();
      static_cast<void>(leaving.start(method, 2));
      leaving.close();
      host_.advance(milliseconds(1));
      EXPECT_EQ(one.state(), is_readonly ? Json() : Json(2)) << method;
    }
  }
}

TEST_F(AgentTest, ReadonlyClientsThatOnlyLookTakeNothingFromOthers) {
  class Board : public Worker {
   public:
    void on_connecting(hearth::Connecting& client) override {
      if (client.query("looks")) client.set_readonly();
    }
  };
  auto agent = host_.create<Board>("b");
  static_cast<void>(agent.start("nap", 1'000'000));  // it is never idle
  for (int i = 0; i < 5'000; ++i) agent.connect("looks=1").close();
  auto writer = agent.connect();
  static_cast<void>(writer.start("set_state_afterwards", 5));
  writer.close();
  host_.advance(milliseconds(1));
  EXPECT_EQ(agent.state(), 5);
}

// ---- cancelling and eviction

TEST_F(AgentTest, ACancelledCallIsUnwoundAndTheOthersGoOn) {
  auto one = agent_.start("nested", 10);
  auto two = agent_.start("nap", 20);
  one.cancel();
  EXPECT_EQ(unwound, (std::vector<std::string>{"nap 10", "nested"}));
  host_.advance(seconds(1));
  EXPECT_EQ(one.status(), HEARTH_E_CANCELLED);
  EXPECT_EQ(two.value(), 20);
}

TEST_F(AgentTest, AnEvictionUnwindsInnermostAndNewestFirstAndTheAgentLast) {
  static_cast<void>(agent_.start("nested", 10));
  static_cast<void>(agent_.start("forever"));
  agent_.evict();
  EXPECT_EQ(unwound, (std::vector<std::string>{"forever", "nap 10", "nested", "agent"}));
  host_.advance(seconds(1));  // the cancelled sleep resumes no coroutine
}

TEST_F(AgentTest, AThousandSuspendedCallsAreFreed) {
  for (int i = 0; i < 500; ++i) {
    static_cast<void>(agent_.start("nested", 1000 + i));
    static_cast<void>(agent_.start("forever"));
  }
  EXPECT_EQ(agent_.unfinished(), 1000U);
  EXPECT_EQ(agent_.as<Worker>().activation().unfinished(), 1000U);
  agent_.evict();
  EXPECT_EQ(unwound.size(), 500U * 2 + 500U + 1);
  EXPECT_EQ(unwound.back(), "agent");
  host_.advance(seconds(10));
}

TEST_F(AgentTest, DestructorsOfSuspendedFramesGetClosingFromTheHost) {
  static_cast<void>(agent_.start("after_eviction"));
  agent_.evict();
  EXPECT_EQ(unwound, (std::vector<std::string>{"refused CLOSING", "agent"}));
}

TEST_F(AgentTest, AnAgentMayGoWhileItsOffloadedWorkIsStillToBeDone) {
  host_.hold_offload(true);
  auto call = agent_.start("on_pool", "late");
  agent_.evict();
  host_.hold_offload(false);
  EXPECT_TRUE(call.failed());
  EXPECT_EQ(agent_.call("on_pool", "again"), "again!");
}

TEST_F(AgentTest, TheNextEventMakesTheAgentAnew) {
  agent_.evict();
  EXPECT_FALSE(agent_.is_live());
  EXPECT_EQ(agent_.call("who"), "nobody");
  EXPECT_EQ(agent_.activations(), 2);
}

// ---- itself

TEST_F(AgentTest, RandomIdsAreWellFormedAndRepeatWithTheSeed) {
  host_.seed(7);
  const Json ids = agent_.call("ids");
  EXPECT_NE(ids[0], ids[1]);
  const std::string id = ids[0];
  EXPECT_EQ(id.size(), 36U);
  EXPECT_EQ(id[14], '4');
  EXPECT_NE(std::string("89ab").find(id[19]), std::string::npos);
  host_.seed(7);
  EXPECT_EQ(agent_.call("ids"), ids);
}

TEST_F(AgentTest, AnAgentOutsideOfAHostSaysSo) {
  Worker stray;
  EXPECT_THROW(static_cast<void>(stray.name()), std::logic_error);
  EXPECT_THROW(stray.set_state(1), std::logic_error);
}

// ---- hooks

class Hooks : public hearth::Agent {
 public:
  Hooks() { seen.push_back("made " + name()); }
  Json initial_state() override { return {{"from", "initial"}}; }
  Task<void> on_start() override {
    co_await sleep(milliseconds(10));
    log.info("started ", 1, ' ', true, " ", 0.5, " ", Json({{"a", 1}}));
    seen.emplace_back("start");
  }
  Task<void> on_evict(hearth::EvictReason reason) override {
    seen.push_back("evict " + std::to_string(static_cast<int>(reason)));
    co_await sleep(seconds(1));
    seen.emplace_back("evicted");
  }
  static std::vector<std::string> seen;  // NOLINT: read after the agent is gone
};
std::vector<std::string> Hooks::seen;

TEST_F(AgentTest, EventsWaitUntilTheStartHasEnded) {
  Hooks::seen.clear();
  auto agent = host_.create<Hooks>("h");
  auto call = agent.start("nothing");
  EXPECT_FALSE(call.done());
  host_.advance(milliseconds(10));
  EXPECT_EQ(call.status(), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(Hooks::seen, (std::vector<std::string>{"made h", "start"}));
  EXPECT_EQ(host_.log().back(), "info started 1 true 0.5 {\"a\":1}");
  EXPECT_EQ(agent.state(), Json({{"from", "initial"}}));
}

TEST_F(AgentTest, AGraceLetsOnEvictFinishButNotForLonger) {
  Hooks::seen.clear();
  auto agent = host_.create<Hooks>("h");
  host_.advance(milliseconds(10));
  agent.evict(hearth::EvictReason::kShutdown, seconds(2));
  EXPECT_EQ(Hooks::seen.back(), "evicted");
  static_cast<void>(agent.start("nothing"));
  host_.advance(milliseconds(10));
  agent.evict(hearth::EvictReason::kCodeUpdate, milliseconds(500));
  EXPECT_EQ(Hooks::seen.back(), "evict 2");
}

class Counting : public hearth::Agent {
 public:
  int count() { return ++count_; }

 protected:
  template <class T>
  static void count_methods(hearth::Methods<T>& m) {
    m.add("count", &T::count);
  }

 private:
  int count_ = 0;
};

class Turnstile : public Counting {
 public:
  static void methods(hearth::Methods<Turnstile>& m) {
    count_methods(m);
    m.add("open", &Turnstile::open);
  }
  std::string open() { return "open " + std::to_string(count()); }
};

class FailsToStart : public hearth::Agent {
 public:
  Task<void> on_start() override {
    if (failures-- > 0) throw std::runtime_error("not yet");
    return {};
  }
  static int failures;
};
int FailsToStart::failures = 1;

TEST_F(AgentTest, AFailedStartIsToldAndTriedAgain) {
  FailsToStart::failures = 1;
  EXPECT_THROW(host_.create<FailsToStart>("f"), std::runtime_error);
  EXPECT_NO_THROW(host_.create<FailsToStart>("f"));
}

TEST_F(AgentTest, HooksThatAreNotOverriddenAreKnown) {
  static_assert(hearth::detail::hooks_of<Worker>() == 0);
  static_assert(
      hearth::detail::hooks_of<Hooks>() ==
      (hearth::detail::kInitialState | hearth::detail::kOnStart | hearth::detail::kOnEvict));
  static_assert(hearth::detail::class_table<Worker>("W", "1").flags == 0);
  auto client = agent_.connect();
  client.send("into the void");
  EXPECT_TRUE(client.take_received().empty());
  EXPECT_EQ(agent_.request("GET").status, 404U);
  client.close();
  EXPECT_EQ(agent_.clients(), 0U);
}

TEST_F(AgentTest, AnEventKindOfALaterVersionIsUnsupported) {
  hearth_event event = {};
  event.struct_size = sizeof event;
  event.kind = 4711;
  event.call = 1;
  auto& activation = agent_.as<Worker>().activation();
  EXPECT_EQ(activation.definition().on_event(&activation, &event), HEARTH_E_UNSUPPORTED);
}

TEST_F(AgentTest, AResultForAnUnknownTokenIsIgnored) {
  hearth_result result = {};
  result.struct_size = sizeof result;
  result.flags = HEARTH_RESULT_FINAL;
  result.token = 4711;
  auto& activation = agent_.as<Worker>().activation();
  activation.definition().on_result(&activation, &result);
  EXPECT_EQ(agent_.call("who"), "nobody");
}

TEST(InheritedMethodsTest, ABaseListsItsOwnForEachClass) {
  hearth::testing::Host host;
  auto agent = host.create<Turnstile>("a");
  EXPECT_EQ(agent.call("count"), 1);
  EXPECT_EQ(agent.call("open"), "open 2");
}

}  // namespace

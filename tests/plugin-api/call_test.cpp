// Agents that call agents, on the mock host.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;

namespace {

using hearth::AgentCaller;
using hearth::CallError;
using hearth::Json;
using hearth::Task;
using hearth::testing::AgentHandle;
using hearth::testing::Host;

// What outlives an instance.
std::vector<std::string> seen_notifications;  // NOLINT: "id n"
int busy_answers_left = 0;                    // NOLINT

class WordCounter : public hearth::Agent {
 public:
  static void methods(hearth::Methods<WordCounter>& m) {
    m.add("add", &WordCounter::add);
    m.add("who", &WordCounter::who);
    m.add("fail", &WordCounter::fail);
    m.add("full", &WordCounter::full);
    m.add("wait", &WordCounter::wait);
    m.add("note", &WordCounter::note);
    m.stream("words", &WordCounter::words);
    m.stream("pages", &WordCounter::pages);
  }
  int add(int by) {
    const int sum = (state().is_null() ? 0 : state().get<int>()) + by;
    set_state(sum);
    return sum;
  }
  Json who() {
    const std::optional<AgentCaller> caller = caller_agent();
    if (!caller) return nullptr;
    return {caller->class_name, caller->name, caller->notification.has_value()};
  }
  void fail() { throw hearth::Error(HEARTH_E_CONFLICT, "taken"); }
  void full() { throw hearth::Error(HEARTH_E_LIMIT, "the drawer is full"); }
  Task<int> wait() {
    co_await sleep(minutes(1));
    co_return 1;
  }
  void note(int number) {
    if (busy_answers_left-- > 0) throw hearth::Error(HEARTH_E_BUSY, "later");
    seen_notifications.push_back(*caller_agent()->notification + " " + std::to_string(number));
  }
  Task<int> words(hearth::Stream& out, int count) {
    for (int word = 0; word < count; ++word) {
      out.send("word " + std::to_string(word));
      const bool reads = co_await out.drained();
      if (!reads) break;
    }
    co_return count;
  }
  // More than a window.
  void pages(hearth::Stream& out) {
    for (int page = 0; page < 20; ++page) out.send(std::string(65'536, 'x'));
    out.end(20);
  }
};

class ReadingDesk : public hearth::Agent {
 public:
  static void methods(hearth::Methods<ReadingDesk>& m) {
    m.add("sum", &ReadingDesk::sum);
    m.add("who", &ReadingDesk::who);
    m.add("fail", &ReadingDesk::fail);
    m.add("full", &ReadingDesk::full);
    m.add("missing", &ReadingDesk::missing);
    m.add("wait", &ReadingDesk::wait);
    m.add("wait_shortly", &ReadingDesk::wait_shortly);
    m.add("words", &ReadingDesk::words);
    m.add("page_sizes", &ReadingDesk::page_sizes);
    m.add("some_words", &ReadingDesk::some_words);
    m.add("unread_words", &ReadingDesk::unread_words);
    m.add("notes", &ReadingDesk::notes);
    m.add("note_and_fail", &ReadingDesk::note_and_fail);
    m.add("undelivered", &ReadingDesk::undelivered);
    m.add("forget", &ReadingDesk::forget);
    m.add("down", &ReadingDesk::down);
    m.add("wait_in_fiber", &ReadingDesk::wait_in_fiber);
    m.add("wait_in_listed_fiber", &ReadingDesk::wait_in_listed_fiber);
    m.fiber("patient", &ReadingDesk::patient);
  }
  void wait_in_fiber() {
    const auto waiting = [this](hearth::FiberContext&) -> Task<int> { return wait(); };
    start_fiber("wait", waiting, {.max_retries = 1, .retry_delay = milliseconds(1)});
  }
  Task<int> sum(std::string name) {
    co_await agent("word-counter", name).call<int>("add", 2);
    co_return co_await agent("WordCounter", name).call<int>("add", 3);
  }
  Task<Json> who() { co_return co_await agent("word-counter", "a").call("who"); }
  Task<std::string> fail() {
    try {
      co_await agent("word-counter", "a").call<void>("fail");
    } catch (const CallError& error) {
      co_return std::to_string(error.code()) + " " + error.what() +
          (error.began() ? " (began)" : "");
    }
    co_return "no error";
  }
  Task<void> full() { co_await agent("word-counter", "a").call<void>("full"); }
  Task<void> missing(std::string agent_class) {
    hearth::AgentRef nobody = agent(agent_class, "nobody", {.must_exist = true});
    co_await nobody.call<void>("add", 1);
  }
  Task<int> wait() { co_return co_await agent("word-counter", "a").call<int>("wait"); }
  Task<int> patient(hearth::FiberContext& /*fiber*/) { return wait(); }
  void wait_in_listed_fiber() { start_fiber("patient"); }
  Task<int> wait_shortly() {
    hearth::AgentRef counter = agent("word-counter", "a", {.timeout = milliseconds(500)});
    co_return co_await counter.call<int>("wait");
  }
  Task<Json> words(int count) {
    Json all = Json::array();
    hearth::CallStream words = agent("word-counter", "a").stream("words", count);
    while (std::optional<std::string> word = co_await words.next<std::string>())
      all.push_back(*word);
    all.push_back(words.result<int>());
    co_return all;
  }
  Task<int> page_sizes() {
    int sizes = 0;
    hearth::CallStream pages = agent("word-counter", "a").stream("pages");
    while (std::optional<std::string> page = co_await pages.next<std::string>())
      sizes += static_cast<int>(page->size());
    co_return sizes;
  }
  Task<std::string> some_words() {
    hearth::CallStream words = agent("word-counter", "a").stream("words", 1'000'000);
    const std::optional<std::string> word = co_await words.next<std::string>();
    co_return word.value_or("none");
  }
  // The result alone: the parts go by.
  Task<int> unread_words() { co_return co_await agent("word-counter", "a").call<int>("pages"); }
  void notes(int count) {
    for (int note = 0; note < count; ++note) agent("word-counter", "a").notify("note", note);
  }
  void note_and_fail() {
    agent("word-counter", "a").notify("note", 1);
    const auto undone = transaction();
    agent("word-counter", "a").notify("note", 2);
  }
  Json undelivered() {
    Json all = Json::array();
    for (const hearth::Notification& each : notifications())
      all.push_back({each.class_name, each.name, each.method, each.arguments, each.dead,
                     each.last_error.value_or("")});
    return all;
  }
  bool forget() { return remove_notification(notifications().at(0).id); }
  Task<int> down(int depth) {
    co_return co_await agent("reading-desk", "d" + std::to_string(depth))
        .call<int>("down", depth + 1);
  }
};

class CallTest : public ::testing::Test {
 protected:
  CallTest() {
    seen_notifications.clear();
    busy_answers_left = 0;
  }
  Host host_;
  AgentHandle counter_ = host_.create<WordCounter>("a");
  AgentHandle desk_ = host_.create<ReadingDesk>("desk");
};

TEST_F(CallTest, ACallGivesItsResultAndMakesTheAgentIfNeedBe) {
  EXPECT_EQ(desk_.call("sum", "a"), 5);
  EXPECT_EQ(counter_.state(), 5);
  EXPECT_EQ(desk_.call("sum", "b"), 5);
  EXPECT_EQ(host_.create<WordCounter>("b").state(), 5) << "the one that the call has made";
}

TEST_F(CallTest, TheCalleeKnowsTheCaller) {
  EXPECT_EQ(desk_.call("who"), (Json{"ReadingDesk", "desk", false}));
  EXPECT_EQ(counter_.call("who"), nullptr) << "a test is no agent";
}

TEST_F(CallTest, AFailureHasItsCodeItsTextAndWhetherItBegan) {
  EXPECT_EQ(desk_.call("fail"), std::to_string(HEARTH_E_CONFLICT) + " taken (began)");
  EXPECT_EQ(desk_.start("missing", "word-counter").error(), "there is no such agent");
  EXPECT_EQ(desk_.start("missing", "nothing").status(), HEARTH_E_PLUGIN)
      << "the code was the host's word to the caller";
  EXPECT_EQ(desk_.start("full").error(), "the drawer is full");
  EXPECT_EQ(desk_.start("full").status(), HEARTH_E_PLUGIN) << "nor is the limit its own";
}

TEST_F(CallTest, ACallWaitsAndEndsWithTheCallee) {
  auto waiting = desk_.start("wait");
  EXPECT_FALSE(waiting.done());
  host_.advance(minutes(1));
  EXPECT_EQ(waiting.value(), 1);
  auto cut = desk_.start("wait");
  counter_.evict();
  EXPECT_EQ(cut.error(), "the agent was evicted (admin); try again");
  auto dropped = desk_.start("wait");
  desk_.evict();
  host_.advance(minutes(2));
  EXPECT_TRUE(dropped.failed());
}

TEST_F(CallTest, AFiberWhoseCalleeIsEvictedIsTriedAgain) {
  desk_.call("wait_in_fiber");
  for (int tries = 0; tries < 2; ++tries) {
    ASSERT_EQ(desk_.fibers().size(), 1U);
    counter_.evict();
    host_.advance(milliseconds(10));
  }
  EXPECT_TRUE(desk_.fibers().empty()) << "it has failed twice";
}

TEST_F(CallTest, AFiberWhoseCallTheStoppingServerRefusesIsNotOver) {
  host_.fail_submit(HEARTH_E_CLOSING);
  desk_.call("wait_in_fiber");
  host_.fail_submit(HEARTH_OK);
  EXPECT_EQ(desk_.fibers().size(), 1U);
}

TEST_F(CallTest, AListedFiberWhoseCalleeIsEvictedGoesOnAsAfterAnEvictionOfItsOwn) {
  desk_.call("wait_in_listed_fiber");
  counter_.evict();
  host_.advance(milliseconds(10));
  ASSERT_EQ(desk_.fibers().size(), 1U);
  EXPECT_EQ(desk_.fibers()[0].recoveries, 1);
  EXPECT_TRUE(desk_.fibers()[0].running);
  host_.advance(minutes(1));
  EXPECT_TRUE(desk_.fibers().empty());
  EXPECT_TRUE(host_.log().empty()) << host_.log().front();
}

TEST_F(CallTest, ACallEndsWhenItsTimeIsOverAndItsEventWithIt) {
  auto waiting = desk_.start("wait_shortly");
  host_.advance(milliseconds(499));
  EXPECT_FALSE(waiting.done());
  EXPECT_EQ(counter_.unfinished(), 1U);
  host_.advance(milliseconds(1));
  EXPECT_EQ(waiting.error(), "the agent did not answer in time");
  EXPECT_EQ(counter_.unfinished(), 0U);
}

TEST_F(CallTest, ASerialAgentHandlesOneCallAfterTheOther) {
  counter_.set_serial(true);
  auto waiting = desk_.start("wait");
  auto next = counter_.start("add", 1);
  auto last = counter_.start("add", 2);
  EXPECT_FALSE(next.done());
  host_.advance(minutes(1));
  EXPECT_EQ(waiting.value(), 1);
  EXPECT_EQ(next.value(), 1);
  EXPECT_EQ(last.value(), 3);
  auto cut = counter_.start("wait");
  next = counter_.start("add", 4);
  counter_.evict();
  EXPECT_EQ(next.value(), 7) << "by the next instance";
}

TEST_F(CallTest, ACircleThroughASerialAgentIsAnErrorAtOnce) {
  AgentHandle first = host_.create<ReadingDesk>("d0");
  EXPECT_EQ(first.start("down", 0).error(),
            "more than 16 calls between agents wait for each other");
  first.set_serial(true);
  EXPECT_EQ(first.start("down", 0).error(), "agent ReadingDesk \"d0\" waits for this call");
}

TEST_F(CallTest, AStreamGivesItsPartsAndThenItsResult) {
  EXPECT_EQ(desk_.call("words", 2), (Json{"word 0", "word 1", 2}));
  EXPECT_EQ(desk_.call("unread_words"), 20) << "parts that nobody wants hold nothing up";
  EXPECT_EQ(desk_.call("page_sizes"), 20 * 65'536);
}

TEST_F(CallTest, AStreamThatIsLetGoEndsItsCallee) {
  EXPECT_EQ(desk_.call("some_words"), "word 0");
  EXPECT_EQ(counter_.unfinished(), 0U);
}

TEST_F(CallTest, NotificationsComeInOrderAndEachHasItsId) {
  desk_.call("notes", 3);
  ASSERT_EQ(seen_notifications.size(), 3U);
  for (std::size_t each = 0; each < 3; ++each)
    EXPECT_TRUE(seen_notifications[each].ends_with(" " + std::to_string(each)));
  EXPECT_NE(seen_notifications[0].substr(0, 36), seen_notifications[1].substr(0, 36));
  EXPECT_EQ(desk_.call("undelivered"), Json::array());
}

TEST_F(CallTest, ANotificationIsRetriedWhileTheCalleeIsBusyAlsoByALaterInstance) {
  busy_answers_left = 2;
  desk_.call("notes", 1);
  EXPECT_EQ(desk_.call("undelivered"),
            (Json{{"word-counter", "a", "note", Json{0}, false, "later"}}));
  desk_.kill();
  host_.advance(minutes(1));
  EXPECT_EQ(seen_notifications.size(), 1U);
  EXPECT_EQ(desk_.call("undelivered"), Json::array());
}

TEST_F(CallTest, ANotificationIsGivenUpAfterADayAndListedUntilItIsForgotten) {
  busy_answers_left = 1'000'000;
  desk_.call("notes", 1);
  host_.advance(hours(25));
  EXPECT_EQ(desk_.call("undelivered"),
            (Json{{"word-counter", "a", "note", Json{0}, true, "later"}}));
  EXPECT_EQ(desk_.call("forget"), true);
  EXPECT_EQ(desk_.call("undelivered"), Json::array());
}

TEST_F(CallTest, InATransactionNothingIsNotified) {
  EXPECT_EQ(desk_.start("note_and_fail").error(),
            "not while a transaction of the agent's own is open");
}

}  // namespace

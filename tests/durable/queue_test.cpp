// The items of a queue through every state, with restarts in between.
//
// The behaviours that users of such platforms rely on, by number in the list of acceptance
// behaviours (sections 4.7, 4.12), and the test of each.
//
//   121       AFailingItemIsTriedAgainUntilItIsDone
//   122       RetryOptionsAreKeptAndReadable
//   124       RequestsThatCannotBeKeptAreRefused (and retry_policy_test.cpp)
//   126       ADoneItemIsGone
//   127, 128  ours: a dead letter, which does not block other items:
//             P4_AnItemThatFailsTooOftenIsADeadLetterAndTheOthersGoOn
//   G7        ACrashLosesNothingAndTheRestIsDeliveredWithoutAsking
//   G15       P4_AMissingCallbackIsADeadLetter
#include "durable/queue.hpp"

#include "durable/database_fixture.hpp"
#include "durable/json_members.hpp"
#include "json/json.hpp"

#include <gtest/gtest.h>

#include <optional>

#include <malloc.h>

namespace hearth::durable {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class QueueTest : public DatabaseFixture {
 protected:
  QueueTest() : DatabaseFixture(11) { open(); }

  // As after a kill of the process: only committed data is left.
  void crash() { open(); }
  void open() {
    queue_.reset();
    open_database();
    queue_.emplace(*database_, clock_, random_, settings_, max_crashes_);
    queue_->load();
  }
  // As crash(), and the item that was delivered is to blame.
  void crash_in_its_work() {
    queue_.reset();
    open_database();
    Jobs(*database_).count_crash({});
    database_->commit();
    open();
  }
  std::string push(const QueueRequest& request) {
    const auto pushed = queue_->push(request);
    EXPECT_TRUE(pushed.has_value());
    database_->commit();
    return pushed->id;
  }
  std::string push(std::string_view callback, std::string_view payload = "") {
    return push(QueueRequest{.callback = callback, .payload = payload});
  }
  std::string push_once(std::string_view callback) {
    return push(QueueRequest{.callback = callback, .max_attempts = 1});
  }
  // Pushes "bad", which dies.
  std::string push_dead() {
    const std::string id = push_once("bad");
    EXPECT_TRUE(begin());
    fails();
    return id;
  }
  std::optional<Begun> begin() {
    auto delivery = queue_->begin_next();
    if (delivery) id_ = delivery->id;
    database_->commit();
    return delivery;
  }
  TryEnded done() {
    const TryEnded end = queue_->ended(id_, TryOutcome::kDone);
    database_->commit();
    return end;
  }
  TryEnded fails(std::string_view error = "no") {
    const TryEnded end = queue_->ended(id_, TryOutcome::kFailed, error);
    database_->commit();
    return end;
  }
  // What is delivered now, to the end of the queue; each is done.
  std::string drain() {
    std::string callbacks;
    while (const auto delivery = begin()) {
      callbacks += delivery->name + " ";
      done();
    }
    return callbacks;
  }
  Json get(std::string_view id) {
    const auto record = queue_->get(id);
    return record ? *parse_json(*record) : Json();
  }
  std::string listed(const QueueFilter& filter) {
    std::string callbacks;
    for (const Json& record : *parse_json(*queue_->list(filter)))
      callbacks += record["callback"].get<std::string>() + " ";
    return callbacks;
  }

  QueueSettings settings_;
  int max_crashes_ = kMostCrashes;
  std::optional<Queue> queue_;
  std::string id_;  // of the item that began last
};

TEST_F(QueueTest, AnItemIsDeliveredWithWhatWasPushed) {
  const auto pushed = queue_->push({.callback = "mail", .payload = R"({"to":"Ada"})"}).value();
  database_->commit();
  EXPECT_EQ(pushed.id.size(), 36U);
  EXPECT_EQ(*parse_json(pushed.record), get(pushed.id));
  EXPECT_TRUE(has(get(pushed.id), {{"state", "waiting"}, {"next_at", nullptr}}));
  EXPECT_TRUE(queue_->due());
  EXPECT_TRUE(queue_->wake().working);
  const Begun delivery = begin().value();
  EXPECT_EQ(delivery.id, pushed.id);
  EXPECT_EQ(delivery.name, "mail");
  EXPECT_EQ(delivery.claims, 1);
  const Json body = *parse_json(Queue::body_of(delivery));
  EXPECT_TRUE(has(body, {{"id", pushed.id},
                         {"payload", Json::parse(R"({"to":"Ada"})")},
                         {"created_at", now()},
                         {"attempt", 1}}));
  EXPECT_EQ(get(pushed.id)["state"], "running");
}

TEST_F(QueueTest, ADoneItemIsGone) {
  const std::string id = push("a");
  ASSERT_TRUE(begin());
  EXPECT_EQ(done().next, TryEnd::kDone);
  EXPECT_EQ(queue_->get(id).error().code, Errc::kNotFound);
  EXPECT_TRUE(queue_->wake().none());
  crash();
  EXPECT_FALSE(begin());
  EXPECT_TRUE(queue_->wake().none());
}

TEST_F(QueueTest, P1_ItemsComeOneAfterTheOtherInTheOrderOfTheirPush) {
  for (const char* callback : {"a", "b", "c"}) push(callback);
  EXPECT_EQ(begin()->name, "a");
  EXPECT_FALSE(begin()) << "one at a time";
  EXPECT_FALSE(queue_->due());
  push("d");
  EXPECT_FALSE(begin());
  done();
  EXPECT_EQ(drain(), "b c d ");
}

TEST_F(QueueTest, P1_TheOrderHoldsOverRestarts) {
  std::string expected;
  for (int i = 0; i < 30; ++i) {
    push("item" + std::to_string(i));
    expected += "item" + std::to_string(i) + " ";
    if (i % 7 == 0) crash();
  }
  std::string seen;
  while (const auto delivery = begin()) {
    seen += delivery->name + " ";
    done();
    crash();
  }
  EXPECT_EQ(seen, expected) << "all within one millisecond of the clock";
}

TEST_F(QueueTest, P1_AnItemThatWaitsToBeTriedAgainHoldsBackThoseBehindIt) {
  push("a");
  push("b");
  ASSERT_TRUE(begin());
  const TryEnded end = fails();
  ASSERT_EQ(end.next, TryEnd::kRetry);
  if (end.next_ms > now()) {
    EXPECT_FALSE(begin());
    EXPECT_EQ(queue_->wake().at_ms, end.next_ms);
  }
  clock_.advance(seconds(3));
  EXPECT_EQ(begin()->name, "a");
  done();
  EXPECT_EQ(begin()->name, "b");
}

TEST_F(QueueTest, AFailingItemIsTriedAgainUntilItIsDone) {
  const std::string id = push("a");
  for (int attempt = 1; attempt <= 2; ++attempt) {
    EXPECT_EQ(begin()->claims, attempt);
    EXPECT_EQ(fails("busy").next, TryEnd::kRetry);
    EXPECT_TRUE(
        has(get(id), {{"last_error", "busy"}, {"attempts", attempt}, {"state", "waiting"}}));
    crash();
    clock_.advance(seconds(3));
  }
  EXPECT_EQ(begin()->claims, 3);
  EXPECT_EQ(done().next, TryEnd::kDone);
}

TEST_F(QueueTest, RetryOptionsAreKeptAndReadable) {
  const std::string id =
      push({.callback = "a", .max_attempts = 5, .retry_base_ms = 1'000, .retry_max_ms = 60'000});
  const std::string plain = push("b");
  crash();
  EXPECT_EQ(get(id)["retry"],
            Json::parse(R"({"max_attempts":5,"base_delay_ms":1000,"max_delay_ms":60000})"));
  EXPECT_EQ(get(plain)["retry"],
            Json::parse(R"({"max_attempts":3,"base_delay_ms":100,"max_delay_ms":3000})"));
  for (int attempt = 1; attempt <= 5; ++attempt) {
    ASSERT_TRUE(begin()) << attempt;
    const TryEnded end = fails();
    EXPECT_LT(end.next_ms, now() + 60'000);
    EXPECT_EQ(end.next, attempt < 5 ? TryEnd::kRetry : TryEnd::kDead);
    clock_.advance(seconds(60));
  }
}

TEST_F(QueueTest, RequestsThatCannotBeKeptAreRefused) {
  const auto code = [&](const QueueRequest& request) { return queue_->push(request).error().code; };
  EXPECT_EQ(code({.callback = ""}), Errc::kInvalidArgument);
  EXPECT_EQ(code({.callback = "\xff"}), Errc::kInvalidArgument);
  const std::string long_name(257, 'c');
  EXPECT_EQ(code({.callback = long_name}), Errc::kInvalidArgument);
  EXPECT_EQ(code({.callback = "a", .payload = "{"}), Errc::kInvalidArgument);
  const std::string large(settings_.max_payload_bytes + 1, '1');
  EXPECT_EQ(code({.callback = "a", .payload = large}), Errc::kLimitExceeded);
  EXPECT_EQ(code({.callback = "a", .max_attempts = 1'001}), Errc::kInvalidArgument);
  EXPECT_EQ(code({.callback = "a", .retry_base_ms = 3'001}), Errc::kInvalidArgument)
      << "above the longest wait that is meant when none is given";
  EXPECT_FALSE(database_->exists()) << "nothing of it was written";
}

TEST_F(QueueTest, P4_AnItemThatFailsTooOftenIsADeadLetterAndTheOthersGoOn) {
  const std::string id = push_once("bad");
  push("good");
  ASSERT_TRUE(begin());
  EXPECT_EQ(fails("no \"way\"").next, TryEnd::kDead);
  EXPECT_EQ(drain(), "good ");
  crash();
  const Json letter = get(id);
  EXPECT_TRUE(has(letter, {{"state", "dead"}, {"last_error", "no \"way\""}, {"next_at", nullptr}}));
  EXPECT_FALSE(begin());
  EXPECT_TRUE(queue_->wake().none()) << "a dead letter wakes nobody";
}

TEST_F(QueueTest, WhatThisVersionCannotDoWaitsForAnotherOneAndHoldsBackNone) {
  const std::string id = push("not yet written");
  push("b");
  for (int life = 0; life < 3; ++life) {
    ASSERT_TRUE(begin());
    EXPECT_EQ(queue_->ended(id_, TryOutcome::kNeedsCode, "no such callback").next,
              TryEnd::kWaitsForCode);
    push("c");
    EXPECT_EQ(drain(), life == 0 ? "b c " : "c ");
    clock_.advance(std::chrono::hours(1'000));
    EXPECT_FALSE(begin()) << "no time brings it";
    EXPECT_TRUE(is_next_version(*queue_->wake().at_ms));
    EXPECT_TRUE(has(get(id), {{"state", "waiting"}, {"last_error", "no such callback"}}));
    EXPECT_EQ(get(id)["attempts"], 0) << "it was no attempt";
    crash();
  }
  push("d");
  EXPECT_EQ(drain(), "not yet written d ") << "the next instance begins with the oldest";
}

TEST_F(QueueTest, P4_AFinalFailureIsADeadLetterAtOnce) {
  const std::string id = push("charge");
  ASSERT_TRUE(begin());
  EXPECT_EQ(queue_->ended(id_, TryOutcome::kHopeless, "refused").next, TryEnd::kDead);
  EXPECT_TRUE(has(get(id), {{"state", "dead"}, {"last_error", "refused"}}));
}

TEST_F(QueueTest, ADeadLetterThatIsRetriedComesLastAndItsAttemptsAreForgotten) {
  const std::string id = push_once("bad");
  EXPECT_EQ(queue_->retry(id).error().code, Errc::kNotFound) << "not a dead one";
  ASSERT_TRUE(begin());
  fails();
  push("b");
  push("c");
  ASSERT_TRUE(queue_->retry(id));
  database_->commit();
  crash();
  EXPECT_EQ(listed({}), "b c bad ");
  EXPECT_EQ(get(id)["attempts"], 0);
  EXPECT_EQ(get(id)["last_error"], "no") << "why it had died";
  EXPECT_EQ(drain(), "b c bad ");
  EXPECT_EQ(queue_->retry("absent").error().code, Errc::kNotFound);
}

TEST_F(QueueTest, ADeadLetterThatIsRetriedInAnEmptyQueueIsDueAtOnce) {
  const std::string id = push_dead();
  EXPECT_FALSE(queue_->due());
  ASSERT_TRUE(queue_->retry(id));
  EXPECT_TRUE(queue_->due());
}

TEST_F(QueueTest, ACrashLosesNothingAndTheRestIsDeliveredWithoutAsking) {
  for (const char* callback : {"a", "b", "c"}) push(callback);
  ASSERT_TRUE(begin());
  crash();  // in the middle of a
  EXPECT_TRUE(queue_->due());
  EXPECT_TRUE(queue_->wake().working);
  EXPECT_EQ(begin()->claims, 2);
  done();
  EXPECT_EQ(drain(), "b c ");
}

TEST_F(QueueTest, P2_AnEndThatWasNotCommittedIsNoEnd) {
  push("a");
  ASSERT_TRUE(begin());
  EXPECT_EQ(queue_->ended(id_, TryOutcome::kDone).next, TryEnd::kDone);
  crash();
  EXPECT_EQ(begin()->name, "a");
}

TEST_F(QueueTest, P3_AnItemThatCrashesTheProcessWaitsLongerEachTimeAndDiesInTheEnd) {
  max_crashes_ = 4;
  const std::string id = push("poison");
  push("good");
  ASSERT_TRUE(begin());
  crash_in_its_work();
  std::int64_t last_wait = 0;
  for (int again = 2; again < max_crashes_; ++again) {
    ASSERT_TRUE(begin()) << again;
    crash_in_its_work();
    EXPECT_FALSE(queue_->due());
    const std::int64_t wait = *queue_->wake().at_ms - now();
    EXPECT_GT(wait, last_wait * 3 / 2);
    last_wait = wait;
    clock_.advance(milliseconds(wait));
  }
  ASSERT_TRUE(begin());
  crash_in_its_work();
  EXPECT_TRUE(queue_->take_given_up().empty());
  EXPECT_EQ(begin()->name, "good");
  EXPECT_EQ(queue_->take_given_up().at(0).id, id);
  EXPECT_TRUE(queue_->take_given_up().empty()) << "it is told once";
  crash();
  EXPECT_EQ(get(id)["state"], "dead");
  EXPECT_NE(get(id)["last_error"], nullptr);
}

TEST_F(QueueTest, AnInterruptionIsNoFailureOfTheCallback) {
  push_once("a");
  for (int crashes = 0; crashes < 3; ++crashes) {
    ASSERT_TRUE(begin());
    crash();
    clock_.advance(seconds(400));
  }
  ASSERT_TRUE(begin());
  EXPECT_EQ(done().next, TryEnd::kDone);
}

TEST_F(QueueTest, AnEndOfWhateverKindForgetsTheInterruptions) {
  push({.callback = "a", .max_attempts = 1'000});
  for (int round = 0; round < kMostInterruptions; ++round) {
    ASSERT_TRUE(begin()) << round;
    crash();
    clock_.advance(seconds(400));
    ASSERT_TRUE(begin()) << round;
    fails();
    clock_.advance(seconds(4));
  }
}

TEST_F(QueueTest, InterruptionsOnPurposeDoNotCount) {
  const std::string id = push("a");
  for (int restart = 0; restart < 20; ++restart) {
    const auto delivery = begin();
    ASSERT_TRUE(delivery) << restart << ": at once, and alive";
    EXPECT_EQ(delivery->claims, 1);
    queue_->interrupt_on_purpose();
    database_->commit();
    EXPECT_TRUE(queue_->wake().working) << "it goes on with the next instance";
    crash();
  }
  EXPECT_EQ(get(id)["attempts"], 0);
}

TEST_F(QueueTest, WhatRunsAndIsRemovedIsNotTriedAgain) {
  const std::string id = push("a");
  push("b");
  ASSERT_TRUE(begin());
  ASSERT_TRUE(queue_->remove(id));
  database_->commit();
  EXPECT_FALSE(begin()) << "its work goes on";
  queue_->interrupt_on_purpose();  // there is no run to interrupt
  EXPECT_TRUE(queue_->wake().working) << "what stood behind it is due";
  EXPECT_EQ(fails().next, TryEnd::kRemoved);
  EXPECT_EQ(drain(), "b ");
  ASSERT_TRUE(queue_->push({.callback = "c"}));
  ASSERT_TRUE(begin());
  EXPECT_EQ(*queue_->remove_all({}), 1U);
  EXPECT_EQ(done().next, TryEnd::kRemoved);
  EXPECT_TRUE(queue_->wake().none());
}

TEST_F(QueueTest, WhatIsRemovedBeforeItsTurnIsNotDelivered) {
  const std::string first = push("a");
  const std::string second = push("b");
  push("c");
  ASSERT_TRUE(queue_->remove(second));
  ASSERT_TRUE(queue_->remove(first));
  EXPECT_EQ(queue_->remove(first).error().code, Errc::kNotFound);
  database_->commit();
  EXPECT_EQ(drain(), "c ");
}

TEST_F(QueueTest, ItemsAreListedByWhatTheyAre) {
  const std::string bad = push_dead();
  push("run", R"({"user":{"id":7,"name":"Ada"},"n":1})");
  ASSERT_TRUE(begin());
  const std::string mail = push("mail", R"({"user":{"name":"Ada","id":7.0}})");
  push("mail", R"(["user"])");
  push("last");
  EXPECT_EQ(listed({}), "bad run mail mail last ");
  EXPECT_EQ(listed({.state = "dead"}), "bad ");
  EXPECT_EQ(listed({.state = "running"}), "run ");
  EXPECT_EQ(listed({.state = "waiting"}), "mail mail last ");
  EXPECT_EQ(listed({.callback = "mail"}), "mail mail ");
  EXPECT_EQ(listed({.member = "user", .value = R"({"id":7,"name":"Ada"})"}), "run mail ");
  EXPECT_EQ(listed({.callback = "run", .member = "n", .value = "1"}), "run ");
  EXPECT_EQ(listed({.member = "n", .value = "2"}), "");
  EXPECT_EQ(listed({.limit = 2}), "bad run ");
  EXPECT_EQ(listed({.after = mail, .limit = 1}), "mail ");
  EXPECT_EQ(listed({.after = bad, .limit = 0}), "run mail mail last ");

  EXPECT_EQ(queue_->list({.after = "gone"}).error().code, Errc::kNotFound);
  EXPECT_EQ(queue_->list({.state = "done"}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(queue_->list({.member = "n"}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(queue_->list({.value = "1"}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(queue_->list({.member = "n", .value = "{"}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(queue_->list({.limit = 1'001}).error().code, Errc::kInvalidArgument);
}

TEST_F(QueueTest, AllThatAFilterNamesIsRemoved) {
  push_dead();
  for (int i = 0; i < 2'500; ++i)
    ASSERT_TRUE(
        queue_->push({.callback = "mail", .payload = i % 2 == 0 ? R"({"to":"Ada"})" : "{}"}));
  push("other", R"({"to":"Ada"})");
  EXPECT_EQ(*queue_->remove_all({.callback = "mail", .member = "to", .value = R"("Ada")"}), 1'250U);
  EXPECT_EQ(*queue_->remove_all({.callback = "mail", .state = "waiting", .limit = 1}), 1'250U)
      << "the limit does not count";
  EXPECT_EQ(listed({}), "bad other ");
  EXPECT_EQ(*queue_->remove_all({.state = "dead"}), 1U);
  EXPECT_EQ(*queue_->remove_all({.state = "running"}), 0U);
  database_->commit();
  EXPECT_EQ(drain(), "other ");
}

TEST_F(QueueTest, APageEndsAtItsBoundOfBytes) {
  const std::string large = "\"" + std::string(1'000'000, 'x') + "\"";
  std::string last;
  for (int i = 0; i < 6; ++i) last = push("a", large);
  const Json page = *parse_json(*queue_->list({}));
  EXPECT_EQ(page.size(), 5U);
  EXPECT_EQ(listed({.after = page.back()["id"].get_ref<const std::string&>()}), "a ");
}

TEST_F(QueueTest, ItemsAreBoundedInNumber) {
  settings_.max_items = 3;
  crash();
  push_dead();
  push("a");
  push("b");
  EXPECT_EQ(queue_->push({.callback = "c"}).error().code, Errc::kLimitExceeded);
  crash();
  EXPECT_EQ(queue_->push({.callback = "c"}).error().code, Errc::kLimitExceeded);
  ASSERT_TRUE(begin());
  done();
  push("c");
  EXPECT_EQ(queue_->push({.callback = "d"}).error().code, Errc::kLimitExceeded);
  crash();
  EXPECT_EQ(*queue_->remove_all({.state = "dead"}), 1U);
  push("d");
  EXPECT_EQ(listed({}), "b c d ");
}

TEST_F(QueueTest, ADeadLetterFromLongAgoDoesNotFillTheQueue) {
  settings_.max_items = 10;
  crash();
  push_dead();
  for (int i = 0; i < 50; ++i) {
    push("a");
    EXPECT_EQ(drain(), "a ");
    if (i % 10 == 0) crash();
  }
}

TEST_F(QueueTest, AWaitKeepsItsLengthWhenTheClockIsSetBack) {
  push({.callback = "a", .retry_base_ms = 60'000, .retry_max_ms = 60'000});
  ASSERT_TRUE(begin());
  const TryEnded end = fails();
  const std::int64_t wait = end.next_ms - now();
  ASSERT_GT(wait, 1'000) << "with this seed";
  clock_.set_wall(clock_.wall_now() - std::chrono::hours(1));
  EXPECT_FALSE(queue_->due());
  EXPECT_LE(*queue_->wake().at_ms, now() + wait + 2'000);
  clock_.advance(milliseconds(wait));
  EXPECT_TRUE(queue_->due());
  crash();  // the time on disk is an hour ahead
  EXPECT_EQ(queue_->wake().at_ms, now() + wait);
}

TEST_F(QueueTest, AHundredThousandItemsCostNoMemory) {
  for (int i = 0; i < 100'000; ++i)
    ASSERT_TRUE(queue_->push({.callback = "a", .payload = R"({"to":"somebody@example.org"})"}));
  database_->commit();
  EXPECT_EQ(queue_->push({.callback = "a"}).error().code, Errc::kLimitExceeded);
  queue_.reset();
  const std::size_t before = ::mallinfo2().uordblks;
  queue_.emplace(*database_, clock_, random_, settings_);
  queue_->load();
  for (int i = 0; i < 100; ++i) {
    const auto item = queue_->begin_next().value();
    ASSERT_EQ(queue_->ended(item.id, TryOutcome::kDone).next, TryEnd::kDone);
    ASSERT_TRUE(queue_->push({.callback = "b"}));
  }
  const std::size_t after = ::mallinfo2().uordblks;
  // Prepared statements, and SQLite's page cache as it was bounded when the database was opened.
  EXPECT_LT(after, before + 200'000);
}

TEST_F(QueueTest, AnAgentWithoutAQueueHasNoTableAndNoFile) {
  EXPECT_FALSE(begin());
  EXPECT_TRUE(queue_->wake().none());
  EXPECT_EQ(*queue_->list({}), "[]");
  EXPECT_EQ(*queue_->remove_all({}), 0U);
  queue_->interrupt_on_purpose();
  EXPECT_FALSE(database_->exists());
}

TEST_F(QueueTest, AfterCloseTheDatabaseCanBeClosedAndTheWakeIsStillKnown) {
  push("a");
  queue_->close();
  database_->close();
  EXPECT_TRUE(queue_->wake().working);
}

}  // namespace
}  // namespace hearth::durable

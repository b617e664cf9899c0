// The queue on the mock host.

#include "fields.hpp"
#include "one_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

using hearth::Json;
using hearth::QueueItem;
using hearth::QueueState;
using hearth::RetryOptions;
using hearth::Task;

// What outlives an instance.
std::vector<std::string> sent_mails;  // NOLINT
int delivery_failures_left = 0;       // NOLINT

struct Mail {
  std::string to;
  HEARTH_FIELDS(to)
};

class Mailer : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Mailer>& m) {
    m.add("push_two", &Mailer::push_two);
    m.callback("send", &Mailer::send);
    m.callback("slow", &Mailer::slow);
    m.callback("flaky", &Mailer::flaky);
    m.callback("for_schedules", &Mailer::for_schedules);
  }
  void push_two() {
    queue("send", Mail{"one"});
    queue("send", Mail{"two"});
  }
  void send(const Mail& mail) { sent_mails.push_back(mail.to); }
  Task<void> slow(Mail mail, const QueueItem& item) {
    co_await sleep(milliseconds(100));
    sent_mails.push_back(mail.to + " " + std::to_string(item.attempts));
  }
  void flaky(const Mail& mail) {
    sent_mails.push_back("tries " + mail.to);
    if (delivery_failures_left-- > 0) throw std::runtime_error("no route");
  }
  void for_schedules(const hearth::ScheduleRun&) {}
};

class QueueTest : public OneAgent<Mailer> {
 protected:
  QueueTest() {
    sent_mails.clear();
    delivery_failures_left = 0;
  }
  Mailer& mailer() { return agent_.as<Mailer>(); }
  using Lines = std::vector<std::string>;
};

TEST_F(QueueTest, ItemsAreDeliveredInOrderWithoutBeingAsked) {
  agent_.call("push_two");
  EXPECT_EQ(sent_mails, Lines({"one", "two"}));
  EXPECT_EQ(agent_.queue(), Json::array());
}

TEST_F(QueueTest, OneAtATimeAndTheOthersWait) {
  const QueueItem first = mailer().queue("slow", Mail{"a"});
  const QueueItem second = mailer().queue("slow", Mail{"b"});
  EXPECT_EQ(first.state, QueueState::kWaiting);
  host_.advance(milliseconds(50));
  EXPECT_EQ(mailer().get_queue(first.id)->state, QueueState::kRunning);
  EXPECT_EQ(mailer().get_queue(second.id)->state, QueueState::kWaiting);
  host_.advance(milliseconds(150));
  EXPECT_EQ(sent_mails, Lines({"a 1", "b 1"}));
}

TEST_F(QueueTest, AFailingItemIsTriedAgainWhileThoseBehindItWait) {
  delivery_failures_left = 2;
  mailer().queue("flaky", Mail{"a"});
  mailer().queue("send", Mail{"b"});
  host_.advance(seconds(5));
  EXPECT_EQ(sent_mails, Lines({"tries a", "tries a", "tries a", "b"}));
}

TEST_F(QueueTest, WhatFailsTooOftenIsADeadLetterOutOfTheOthersWay) {
  delivery_failures_left = 99;
  const QueueItem item = mailer().queue("flaky", Mail{"a"});
  mailer().queue("send", Mail{"b"});
  host_.advance(seconds(10));
  EXPECT_EQ(sent_mails, Lines({"tries a", "tries a", "tries a", "b"}));
  const auto dead = mailer().list_queue({.state = QueueState::kDead});
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(fields(Json(dead[0]), {"id", "attempts", "last_error"}),
            Json({item.id, 3, "no route"}));

  delivery_failures_left = 0;
  EXPECT_TRUE(mailer().revive_queue_item(item.id));
  EXPECT_FALSE(mailer().revive_queue_item(item.id));
  host_.advance(seconds(0));
  EXPECT_EQ(sent_mails.back(), "tries a");
  EXPECT_EQ(agent_.queue(), Json::array());
}

TEST_F(QueueTest, ACallbackThatIsNotListedForTheQueueIsRefused) {
  for (const char* const name : {"send_telegram", "for_schedules"}) {
    const Refusal refusal = refusal_of([&] { return mailer().queue(name, Mail{"a"}); });
    EXPECT_EQ(refusal.code, HEARTH_E_INVALID) << name;
    EXPECT_TRUE(refusal.text.starts_with(std::string("Callback ") + name)) << refusal.text;
  }
  EXPECT_EQ(agent_.queue(), Json::array());
}

TEST_F(QueueTest, ItemsAreFoundByIdByMemberAndByFilter) {
  delivery_failures_left = 1;
  const QueueItem a = mailer().queue("flaky", {{"to", "a"}, {"urgent", true}});
  const QueueItem b = mailer().queue("send", {{"to", "b"}, {"urgent", true}});
  const QueueItem c = mailer().queue("send", {{"to", "c"}});
  const auto ids = [](const std::vector<QueueItem>& items) {
    Lines all;
    for (const QueueItem& item : items) all.push_back(item.id);
    return all;
  };
  EXPECT_EQ(ids(mailer().list_queue()), Lines({a.id, b.id, c.id}));
  EXPECT_EQ(ids(mailer().get_queues("urgent", true)), Lines({a.id, b.id}));
  EXPECT_EQ(ids(mailer().get_queues("to", "c")), Lines({c.id}));
  EXPECT_EQ(ids(mailer().list_queue({.callback = "send", .limit = 1})), Lines({b.id}));
  EXPECT_EQ(ids(mailer().list_queue({.after = b.id})), Lines({c.id}));
  EXPECT_EQ(mailer().get_queue(c.id)->payload, Json({{"to", "c"}}));
  EXPECT_EQ(mailer().get_queue("no such id"), std::nullopt);
}

TEST_F(QueueTest, DequeuedItemsAreNotDelivered) {
  const QueueItem a = mailer().queue("slow", Mail{"a"});
  const QueueItem b = mailer().queue("send", Mail{"b"});
  mailer().queue("send", Mail{"c"});
  mailer().queue("flaky", Mail{"d"});
  EXPECT_TRUE(mailer().dequeue(b.id));
  EXPECT_FALSE(mailer().dequeue(b.id));
  EXPECT_EQ(mailer().dequeue_all_by_callback("send"), 1U);
  host_.advance(milliseconds(50));
  EXPECT_EQ(mailer().dequeue_all(), 2U);  // also the one that runs
  host_.advance(seconds(1));
  EXPECT_EQ(sent_mails, Lines({"a 1"}));  // it went on to its end
  EXPECT_EQ(mailer().get_queue(a.id), std::nullopt);
}

TEST_F(QueueTest, RetryOptionsAreStoredAndChecked) {
  const QueueItem item =
      mailer().queue("slow", Mail{"a"}, RetryOptions{.max_attempts = 5, .base_delay = seconds(1)});
  EXPECT_EQ(item.retry.max_attempts, 5);
  EXPECT_EQ(item.retry.base_delay, seconds(1));
  EXPECT_THROW(mailer().queue("slow", Mail{"a"}, {.max_attempts = -1}), hearth::Error);
  EXPECT_EQ(mailer().queue("slow", Mail{"a"}, {.max_attempts = 4}).retry.max_attempts, 4);
  EXPECT_THROW(mailer().queue("slow", Mail{"a"}, {.max_attempts = 1'001}), hearth::HostError);
}

TEST_F(QueueTest, AfterAKillTheQueueIsDrainedWithoutATouch) {
  mailer().queue("slow", Mail{"a"});
  mailer().queue("slow", Mail{"b"});
  host_.advance(milliseconds(50));
  agent_.kill();
  host_.advance(seconds(1));
  EXPECT_EQ(sent_mails, Lines({"a 2", "b 1"}));  // the first delivery was cut off
  EXPECT_EQ(agent_.activations(), 2);
}

TEST_F(QueueTest, ARecordIsAsTheHeaderSays) {
  const QueueItem item = mailer().queue("slow", Mail{"a"});
  const auto now = mailer().now().time_since_epoch().count();
  const Json expected = {
      {"id", item.id},
      {"callback", "slow"},
      {"payload", {{"to", "a"}}},
      {"state", "waiting"},
      {"created_at", now},
      {"attempts", 0},
      {"next_at", nullptr},
      {"retry", {{"max_attempts", 3}, {"base_delay_ms", 100}, {"max_delay_ms", 3'000}}},
      {"last_error", nullptr}};
  EXPECT_EQ(Json(item), expected);
  EXPECT_EQ(agent_.queue(), Json::array({expected}));
}

}  // namespace

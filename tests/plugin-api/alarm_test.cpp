// Alarms and entries of the audit log, on the mock host.

#include "fields.hpp"
#include "one_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using hearth::Json;
using std::chrono::milliseconds;
using std::chrono::seconds;

class Biller : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Biller>& m) {
    m.add("bill", &Biller::bill);
    m.add("fail", &Biller::fail);
    m.add("bill_in", &Biller::bill_in);
    m.add("fail_now", &Biller::fail_now);
    m.add("alarms", &Biller::all);
    m.add("cancel", &Biller::cancel);
    m.add("note", &Biller::note);
    m.add("guarded", &Biller::guarded);
    m.add("guarded_in", &Biller::guarded_in);
    m.add("alarm_for", &Biller::alarm_for);
    m.add("tell_own_class", &Biller::tell_own_class);
  }
  void bill(const std::string& plan, int count) {
    set_state({{"plan", plan}, {"count", count}});
    audit("billed", {{"plan", plan}});
  }
  void fail() { throw std::runtime_error("no"); }
  hearth::Alarm bill_in(int wait_seconds, const std::string& plan) {
    return set_alarm(seconds(wait_seconds), "bill", plan, 12);
  }
  void fail_now() { set_alarm(now(), "fail"); }
  std::vector<hearth::Alarm> all() { return alarms(); }
  bool cancel(const std::string& id) { return cancel_alarm(id); }
  void note(const std::string& what) { audit(what); }
  void guarded() {
    const auto caller = caller_agent();
    if (!caller || !caller->notification) throw hearth::Error(HEARTH_E_FORBIDDEN, "notify me");
    set_state("reached");
  }
  void alarm_for(const std::string& method) { set_alarm(seconds(1), method); }
  void tell_own_class(const std::string& method) {
    agent(class_name(), "other").notify(method, "yearly", 1);
  }
  void guarded_in(int wait_seconds) { set_alarm(seconds(wait_seconds), "guarded"); }
};

class AlarmTest : public OneAgent<Biller> {};

TEST_F(AlarmTest, A1_A2_TheMethodIsCalledAtItsTimeAndWakesTheAgent) {
  const Json set = agent_.call("bill_in", 60, "monthly");
  EXPECT_EQ(set["args"], Json({"monthly", 12}));
  agent_.evict();
  host_.advance(seconds(59));
  EXPECT_EQ(agent_.state(), nullptr);
  host_.advance(seconds(1));
  EXPECT_EQ(agent_.state(), Json({{"plan", "monthly"}, {"count", 12}}));
  EXPECT_EQ(agent_.call("alarms"), Json::array());
}

TEST_F(AlarmTest, A3_A10_OneWaitsForAMethodUntilItIsCancelled) {
  agent_.call("bill_in", 60, "monthly");
  const Json second = agent_.call("bill_in", 90, "yearly");
  EXPECT_EQ(second["replaced"], true);
  const Json all = agent_.call("alarms");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0]["id"], second["id"]);
  EXPECT_EQ(agent_.call("cancel", second["id"]), true);
  EXPECT_EQ(agent_.call("cancel", second["id"]), false);
}

TEST_F(AlarmTest, A4_ThreeAttemptsFailAndItIsDead) {
  agent_.call("fail_now");
  host_.advance(seconds(0));
  EXPECT_EQ(agent_.call("alarms")[0]["attempts"], 1);
  host_.advance(milliseconds(1'000));
  EXPECT_EQ(fields(agent_.call("alarms").at(0), {"attempts", "is_dead"}), Json({2, false}));
  host_.advance(milliseconds(2'000));
  const Json all = agent_.call("alarms");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(fields(all[0], {"attempts", "is_dead"}), Json({3, true}));
  host_.advance(std::chrono::hours(1));
  EXPECT_EQ(agent_.call("alarms")[0]["attempts"], 3);
}

TEST_F(AlarmTest, AMethodThatTheClassDoesNotListIsRefused) {
  const auto call = agent_.start("alarm_for", "no_such");
  EXPECT_EQ(call.status(), HEARTH_E_INVALID);
  EXPECT_EQ(call.error(),
            "the class AgentUnderTest lists no method no_such: m.add(\"...\", &Class::function)");
  EXPECT_EQ(agent_.call("alarms"), Json::array());
}

TEST_F(AlarmTest, ANotificationToItsOwnClassNamesAListedMethodToo) {
  const auto call = agent_.start("tell_own_class", "no_such");
  EXPECT_EQ(call.status(), HEARTH_E_INVALID);
  EXPECT_EQ(agent_.start("tell_own_class", "bill").status(), HEARTH_OK);
}

TEST_F(AlarmTest, TheMethodSeesNoAgentThatCallsIt) {
  agent_.call("guarded_in", 1);
  host_.advance(seconds(1));
  EXPECT_EQ(agent_.state(), nullptr);
  EXPECT_EQ(agent_.call("alarms")[0]["last_error"], "notify me");
}

TEST_F(AlarmTest, AnEntryOfTheAuditLogIsALineOfTheHostsLog) {
  agent_.call("bill", "yearly", 1);
  EXPECT_EQ(host_.log().back(), R"(info audit billed {"plan":"yearly"})");
  agent_.call("note", "seen");
  EXPECT_EQ(host_.log().back(), "info audit seen");
  EXPECT_ANY_THROW(agent_.call("note", "two words"));
}

}  // namespace

// Notifications: rows of the caller, delivered at least once, in order for each callee.
#include "durable/notices.hpp"
#include "runtime/agent_call_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace hearth::runtime::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

class NotifyTest : public AgentCallTest {
 protected:
  // An agent of Asking on shard 0 writes these notifications ("method") to `callee` in one turn.
  void notify(const std::string& callee, const std::vector<std::string>& methods) {
    asking.methods["go"] = [this, callee, methods](HostCalls& host, const AgentEvent& event) {
      for (const std::string& method : methods) {
        const auto id = host.notify({.agent_class = "ToldRoom", .name = callee, .method = method});
        ASSERT_TRUE(id) << id.error().message;
        ids.push_back(*id);
      }
      EXPECT_TRUE(room.begun.empty()) << "nothing leaves before the turn is committed";
      EXPECT_TRUE(host.complete(event.call, std::string_view()));
    };
    call({"Asking", name_on(0, "Asking")}, "go");
  }
  // What waits, or is dead, in an agent of Asking.
  std::string listed() {
    std::string records;
    asking.methods["list"] = [&](HostCalls& host, const AgentEvent& event) {
      records = *host.notices();
      EXPECT_TRUE(host.complete(event.call, std::string_view()));
    };
    call({"Asking", name_on(0, "Asking")}, "list");
    return records;
  }
  void answer_all() {
    room.methods["add"] = room.methods["end"] = [](HostCalls& host, const AgentEvent& event) {
      EXPECT_TRUE(host.complete(event.call, std::string_view()));
    };
  }
  std::vector<std::string> ids;
};

TEST_F(NotifyTest, ItIsDeliveredAfterTheTurnInOrderAndItsRowGoes) {
  start();
  answer_all();
  const std::string callee = name_on(1, "ToldRoom");
  notify(callee, {"add", "add", "end"});
  EXPECT_EQ(room.begun,
            (std::vector<std::string>{callee + " add", callee + " add", callee + " end"}));
  const std::string caller = name_on(0, "Asking");
  for (std::size_t each = 0; each < 3; ++each)
    EXPECT_EQ(room.callers[each], R"({"class":"Asking","name":")" + caller +
                                      R"(","notification":")" + ids[each] + R"("})");
  EXPECT_EQ(listed(), "[]");
}

TEST_F(NotifyTest, ACalleeThatDoesNotAnswerHoldsUpItsOwnAlone) {
  start();
  answer_all();
  room.methods["wait"] = [](HostCalls&, const AgentEvent&) {};
  const std::string slow = name_on(1, "ToldRoom", "slow");
  const std::string quick = name_on(1, "ToldRoom", "quick");
  notify(slow, {"wait", "end"});
  room.begun.clear();
  notify(quick, {"add"});
  EXPECT_EQ(room.begun, std::vector<std::string>{quick + " add"});
}

TEST_F(NotifyTest, AnErrorOfTheCalleesCodeIsADeliveryButBusyAsksForARetry) {
  start();
  const std::string callee = name_on(1, "ToldRoom");
  for (const Errc code : {Errc::kPlugin, Errc::kInvalidArgument, Errc::kNotFound}) {
    room.begun.clear();
    logger.clear();
    room.methods["add"] = [code](HostCalls& host, const AgentEvent& event) {
      EXPECT_TRUE(host.complete(event.call, Error{code, "no"}));
    };
    notify(callee, {"add"});
    advance(minutes(1));
    EXPECT_EQ(room.begun.size(), 1U);
    EXPECT_EQ(listed(), "[]");
    EXPECT_TRUE(logger.contains("notify:refused"));
  }
  room.begun.clear();
  room.methods["add"] = [&](HostCalls& host, const AgentEvent& event) {
    if (room.begun.size() < 3)
      return void(host.complete(event.call, Error{Errc::kUnavailable, "later"}));
    EXPECT_TRUE(host.complete(event.call, std::string_view()));
  };
  notify(callee, {"add"});
  EXPECT_EQ(room.begun.size(), 1U);
  EXPECT_NE(listed().find(R"("last_error":"later")"), std::string::npos);
  for (int retry = 0; retry < 2; ++retry) advance(minutes(1));
  EXPECT_EQ(room.begun.size(), 3U);
  EXPECT_EQ(listed(), "[]");
  EXPECT_EQ(room.callers[room.callers.size() - 1], room.callers[room.callers.size() - 3])
      << "the same id";
}

TEST_F(NotifyTest, ItWaitsForAClassThatIsAwayAlsoWhileItsCallerIsNotInMemory) {
  start();
  answer_all();
  const auto away = runtime_->classes().remove("told-room");
  const std::string callee = name_on(1, "ToldRoom");
  notify(callee, {"add"});
  advance(minutes(3));
  EXPECT_NE(listed().find(R"("last_error":"the class is not loaded")"), std::string::npos);
  runtime_->classes().put(away);
  advance(minutes(10));
  EXPECT_EQ(room.begun, std::vector<std::string>{callee + " add"});
}

TEST_F(NotifyTest, AnotherProcessDeliversWhatWasCommittedAndWhatWasOnItsWay) {
  start();
  room.methods["add"] = [](HostCalls&, const AgentEvent&) {};
  const std::string callee = name_on(1, "ToldRoom");
  notify(callee, {"add", "end"});
  stop();
  room.begun.clear();
  answer_all();
  start();
  advance(minutes(1));
  EXPECT_EQ(room.begun, (std::vector<std::string>{callee + " add", callee + " end"}));
  const std::size_t count = room.callers.size();
  EXPECT_NE(room.callers[count - 2].find(ids[0]), std::string::npos) << "the same id";
}

TEST_F(NotifyTest, AfterADayItIsDeadAndThoseBehindItGoOn) {
  start();
  const std::string callee = name_on(1, "ToldRoom");
  room.methods["add"] = [](HostCalls& host, const AgentEvent& event) {
    EXPECT_TRUE(host.complete(event.call, Error{Errc::kUnavailable, "never"}));
  };
  room.methods["end"] = [](HostCalls& host, const AgentEvent& event) {
    EXPECT_TRUE(host.complete(event.call, std::string_view()));
  };
  notify(callee, {"add", "end"});
  for (int half_hour = 0; half_hour < 47; ++half_hour) advance(minutes(30));
  EXPECT_EQ(listed().find(R"("state":"dead")"), std::string::npos);
  for (int half_hour = 0; half_hour < 3; ++half_hour) advance(minutes(30));
  EXPECT_TRUE(logger.contains("notify:dead"));
  EXPECT_EQ(room.begun.back(), callee + " end");
  const std::string dead = listed();
  EXPECT_NE(dead.find(R"("state":"dead")"), std::string::npos);
  EXPECT_EQ(dead.find(R"("method":"end")"), std::string::npos);
}

}  // namespace
}  // namespace hearth::runtime::testing

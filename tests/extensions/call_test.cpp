#include "extensions/call.hpp"

#include "extensions/abi_fixture.hpp"
#include "extensions/agent_router.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/sql.hpp"
#include "extensions/trace.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::extensions {
namespace {

using namespace testing;
using std::chrono::milliseconds;

// Writes down what it is asked for.
class FakeRouter final : public AgentRouter {
 public:
  [[nodiscard]] Result<std::string> class_name(std::string_view named) const override {
    return std::string(named);
  }
  std::unique_ptr<RemoteOperation> call(AgentCall call) override {
    last = std::move(call);
    return std::make_unique<NoRemote>();
  }
  std::optional<AgentCall> last;
};

class AbiCallTest : public AbiHostTest {
 protected:
  static hearth_call_request request_to(std::string_view agent_class, std::string_view name,
                                        std::string_view method, std::string_view arguments = "") {
    hearth_call_request request{};
    request.struct_size = sizeof request;
    request.agent_class = slice(agent_class);
    request.name = slice(name);
    request.method = slice(method);
    request.arguments = slice(arguments);
    return request;
  }
  hearth_status start(const hearth_call_request& request) {
    std::uint64_t id = 0;
    return call_.start(host_, kAgent, &request, 5, &id);
  }
  hearth_status notify(const hearth_call_request& request) {
    return call_.notify(host_, kAgent, &request, nullptr);
  }
  const hearth_call_v1& call_ = extension<hearth_call_v1>(HEARTH_EXT_CALL);
};

TEST_F(AbiCallTest, WantsALiveAgentOnItsThreadAndAHost) {
  const auto request = request_to("Counter", "a", "add");
  std::uint64_t id = 0;
  hearth_bytes out{};
  for (const auto& [host, agent, status] : refused_callers()) {
    EXPECT_EQ(call_.start(host, agent, &request, 1, &id), status);
    EXPECT_EQ(call_.notify(host, agent, &request, &out), status);
    EXPECT_EQ(call_.caller(host, agent, 1, &out), status);
    EXPECT_EQ(call_.list(host, agent, kNothing, 0, &out), status);
    EXPECT_EQ(call_.remove(host, agent, slice("x")), status);
  }
  EXPECT_FALSE(agent_.has_stored());
}

TEST_F(AbiCallTest, ACallIsSubmittedAndWhatNoAgentCanBeIsRefused) {
  EXPECT_EQ(start(request_to("Counter", "a", "add", "[1]")), HEARTH_OK);
  EXPECT_EQ(agent_.told, Lines{"submit remote 5 5"});
  const std::string long_name(513, 'x');
  for (const auto& bad :
       {request_to("", "a", "m"), request_to("no class!", "a", "m"), request_to("C", "", "m"),
        request_to("C", long_name, "m"), request_to("C", "a\n", "m"), request_to("C", "a", ""),
        request_to("C", "a", "m", "{}"), request_to("C", "a", "m", "[1"),
        request_to("C", kNotUtf8, "m")}) {
    EXPECT_EQ(start(bad), HEARTH_E_INVALID);
    EXPECT_EQ(notify(bad), HEARTH_E_INVALID);
  }
  auto strange = request_to("C", "a", "m");
  strange.flags = 8;
  EXPECT_EQ(start(strange), HEARTH_E_UNSUPPORTED);
  strange.flags = HEARTH_CALL_NO_CREATE;
  EXPECT_EQ(start(strange), HEARTH_OK);
  EXPECT_EQ(notify(strange), HEARTH_E_UNSUPPORTED);
  EXPECT_EQ(call_.start(host_, kAgent, &strange, 1, nullptr), HEARTH_E_INVALID);
  EXPECT_EQ(call_.start(host_, kAgent, nullptr, 1, nullptr), HEARTH_E_INVALID);
}

TEST_F(AbiCallTest, AFailureOfTheHostIsPassedOn) {
  agent_.answer = Error{Errc::kLimitExceeded, "too many operations in flight"};
  EXPECT_EQ(start(request_to("C", "a", "m")), HEARTH_E_LIMIT);
}

// The ledger cannot know whose call it is.
TEST_F(AbiCallTest, WhatIsSentToOthersMayBeOfAnOperationThatRuns) {
  durable::Operations& ledger = agent_.work().operations();
  for (const bool is_call : {true, false}) {
    const std::string key = is_call ? "call" : "notification";
    const auto begun = ledger.begin({.kind = "charge", .key = key}).value();
    const durable::OperationSending sending{.id = begun.id, .fingerprint = "f"};
    ASSERT_TRUE(ledger.requests().may_send(sending));
    EXPECT_TRUE(ledger.requests().dispatched(sending));
    ledger.requests().not_sent(begun.id);
    const auto request = request_to("Counter", "a", "add");
    EXPECT_EQ(is_call ? start(request) : notify(request), HEARTH_OK);
    EXPECT_EQ(*ledger.settle(begun.operation, durable::OperationOutcome::kCutOff, ""),
              durable::OperationState::kUnknown)
        << key;
  }
}

TEST_F(AbiCallTest, CallerIsTheAgentTheEventComesFrom) {
  hearth_bytes caller{};
  EXPECT_EQ(call_.caller(host_, kAgent, 9, &caller), HEARTH_E_NOT_FOUND);
  auto origin = std::make_shared<Origin>();
  agent_.origin_call = 9;
  agent_.its_origin.origin = origin;
  EXPECT_EQ(call_.caller(host_, kAgent, 9, &caller), HEARTH_E_NOT_FOUND) << "a client";
  origin->agent = {"ChatRoom", "a \"b\""};
  EXPECT_EQ(lent(call_.caller, 9U), R"({"class":"ChatRoom","name":"a \"b\""})");
  origin->notification = "n1";
  EXPECT_EQ(lent(call_.caller, 9U), R"({"class":"ChatRoom","name":"a \"b\"","notification":"n1"})");
}

TEST_F(AbiCallTest, NotificationsAreListedAndRemoved) {
  hearth_bytes id{};
  const auto request = request_to("Counter", "a", "add", "[1]");
  ASSERT_EQ(call_.notify(host_, kAgent, &request, &id), HEARTH_OK);
  const std::string first(view(id));
  EXPECT_EQ(first.size(), 36U);
  EXPECT_EQ(notify(request_to("Counter", "b", "add")), HEARTH_OK);
  hearth_bytes records{};
  EXPECT_EQ(call_.list(host_, kAgent, kNothing, 0, &records), HEARTH_OK);
  EXPECT_EQ(count_in(records, R"("state":"waiting")"), 2U);
  EXPECT_TRUE(has(records, R"("class":"Counter","name":"a","method":"add","arguments":[1])"));
  EXPECT_EQ(call_.list(host_, kAgent, slice(first), 0, &records), HEARTH_OK);
  EXPECT_EQ(count_in(records, R"("state":"waiting")"), 1U);
  EXPECT_EQ(call_.list(host_, kAgent, slice("x"), 0, &records), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(call_.list(host_, kAgent, kNothing, 1001, &records), HEARTH_E_INVALID);
  EXPECT_EQ(call_.remove(host_, kAgent, slice(first)), HEARTH_OK);
  EXPECT_EQ(call_.remove(host_, kAgent, slice(first)), HEARTH_E_NOT_FOUND);
  EXPECT_TRUE(agent_.work_log().contains("notify:create"));
}

TEST_F(AbiCallTest, NothingIsNotifiedInATransactionOrWhileDataAreMigrated) {
  const auto request = request_to("Counter", "a", "add");
  const auto& sql = extension<hearth_sql_v1>(HEARTH_EXT_SQL);
  std::uint32_t depth = 0;
  ASSERT_EQ(sql.begin_savepoint(host_, kAgent, &depth), HEARTH_OK);
  EXPECT_EQ(notify(request), HEARTH_E_CONFLICT);
  EXPECT_EQ(call_.remove(host_, kAgent, slice("x")), HEARTH_E_CONFLICT);
  ASSERT_EQ(sql.release_savepoint(host_, kAgent, depth), HEARTH_OK);
  agent_.its_phase = AgentPhase::kMigrating;
  EXPECT_EQ(notify(request), HEARTH_E_FORBIDDEN);
}

class CallExtensionTest : public ::testing::Test {
 protected:
  // The call that an agent makes for an event of this origin.
  AgentCall call_for(const CallRequest& request, const CallOrigin& event = {}) {
    hearth::testing::TestAgent agent(1, {}, {.http = nullptr, .agents = &router_});
    agent.origin_call = 9;
    agent.its_origin = event;
    if (event.due) agent.its_origin.due = agent.clock.steady_now() + milliseconds(70);
    EXPECT_TRUE(CallExtension(agent).start(request, 1));
    EXPECT_TRUE(router_.last);
    return *std::exchange(router_.last, std::nullopt);
  }
  static constexpr CallRequest kAsked{
      .agent_class = "Counter", .name = "a", .method = "add", .call = 9};
  FakeRouter router_;
};

TEST_F(CallExtensionTest, ACallOfNoEventBeginsAnew) {
  const AgentCall call = call_for({.agent_class = "Counter", .name = "a", .method = "add"});
  EXPECT_EQ(call.arguments, "[]");
  EXPECT_EQ(call.origin->agent, (storage::AgentKey{"Plain", "a"}));
  EXPECT_EQ(call.origin->depth, 1U);
  EXPECT_TRUE(call.origin->waiting.empty());
  EXPECT_EQ(valid_trace(call.origin->trace), call.origin->trace);
  EXPECT_EQ(call.timeout.count(), 0);
  EXPECT_EQ(call.window, 256U << 10U);
}

TEST_F(CallExtensionTest, DepthWaitingDeadlineAndTraceGoOn) {
  auto origin = std::make_shared<Origin>();
  origin->depth = 3;
  origin->waiting = {{{"Other", "x"}, true}};
  origin->trace = "of the caller";
  CallOrigin event{
      .origin = origin, .due = SteadyTime(), .holds_calls = true, .trace = "of this event"};
  AgentCall call = call_for(kAsked, event);
  EXPECT_EQ(call.origin->depth, 4U);
  const WaitingAgent before{{"Other", "x"}, true};
  const std::vector<WaitingAgent> both{before, {{"Plain", "a"}, false}};
  EXPECT_EQ(call.origin->waiting, both);
  EXPECT_EQ(call.origin->trace, "of this event");
  EXPECT_EQ(call.timeout, milliseconds(70));
  event.runs_alone = true;
  EXPECT_TRUE(call_for(kAsked, event).origin->waiting.back().alone);
  event.holds_calls = false;
  EXPECT_EQ(call_for(kAsked, event).origin->waiting, std::vector<WaitingAgent>{before})
      << "no call of such a class waits for another, and none for a message";
}

TEST_F(CallExtensionTest, OneBelowIsNamedByTheWayToItAndMayBeCalledByThatToo) {
  CallRequest below{
      .flags = HEARTH_CALL_BELOW, .agent_class = "chat", .name = "a/b", .method = "m"};
  AgentCall call = call_for(below);
  EXPECT_EQ(call.agent_class, "chat");
  EXPECT_EQ(call.name, "Plain/a/a%2Fb");
  below = {.agent_class = "Chat", .name = "Plain/a/a%2Fb", .method = "m"};
  EXPECT_EQ(call_for(below).name, "Plain/a/a%2Fb");
  hearth::testing::TestAgent agent(1, {}, {.http = nullptr, .agents = &router_});
  const auto refused = [&agent](const CallRequest& request) {
    return CallExtension(agent).start(request, 1).error().code;
  };
  EXPECT_EQ(refused({.agent_class = "Chat", .name = "a/b", .method = "m"}), Errc::kInvalidArgument);
  EXPECT_EQ(
      refused({.flags = HEARTH_CALL_BELOW, .agent_class = "Chat", .name = "\n", .method = "m"}),
      Errc::kInvalidArgument);
  EXPECT_EQ(refused({.flags = HEARTH_CALL_ABOVE, .method = "m"}), Errc::kNotFound)
      << "nothing is above a root";
}

TEST_F(CallExtensionTest, AWayOutOfTheTreeLeadsToTheAgentThatHasCalledAlone) {
  auto origin = std::make_shared<Origin>();
  origin->agent = {"Chat", "Inbox/bob/c"};
  CallRequest request{
      .agent_class = "Chat", .name = "Inbox/bob/c", .method = "m", .arguments = {}, .call = 9};
  CallOrigin event;
  event.origin = origin;
  const AgentCall call = call_for(request, event);
  EXPECT_EQ(call.name, "Inbox/bob/c");
  EXPECT_TRUE(call.must_exist);
  hearth::testing::TestAgent agent(1, {}, {.http = nullptr, .agents = &router_});
  agent.origin_call = 9;
  agent.its_origin.origin = origin;
  EXPECT_TRUE(CallExtension(agent).notify(request));
  request.call = 0;
  EXPECT_EQ(CallExtension(agent).start(request, 1).error().code, Errc::kForbidden);
  EXPECT_EQ(CallExtension(agent).notify(request).error().code, Errc::kForbidden);
  EXPECT_FALSE(router_.last) << "nothing was made";
}

TEST_F(CallExtensionTest, OfThoseBelowOthersOnlyItsOwnAreMade) {
  const auto must_exist = [this](std::string_view name) {
    return call_for({.agent_class = "Chat", .name = name, .method = "m"}).must_exist;
  };
  EXPECT_FALSE(must_exist("b"));
  EXPECT_FALSE(must_exist("Plain/a/b"));
  EXPECT_TRUE(must_exist("Plain/a/Chat/b/c"));
  for (const bool is_child : {true, false}) {
    durable::NoticeDelivery delivery;
    delivery.notice.agent_class = "Chat";
    delivery.notice.name = is_child ? "Plain/a/b" : "Plain/a/Chat/b/c";
    EXPECT_EQ(call_of({"Plain", "a"}, std::move(delivery)).must_exist, !is_child);
  }
}

TEST_F(CallExtensionTest, WhatCountsAsDelivered) {
  const auto delivered = [](const Result<std::string>& outcome, std::uint32_t flags) {
    return notice_outcome(outcome, flags).delivered;
  };
  EXPECT_TRUE(delivered(std::string("1"), 0));
  for (const Errc code : {Errc::kPlugin, Errc::kInvalidArgument, Errc::kNotFound, Errc::kConflict})
    EXPECT_TRUE(delivered(Error{code, ""}, HEARTH_CALL_BEGAN));
  for (const Errc code :
       {Errc::kUnavailable, Errc::kTimeout, Errc::kClosing, Errc::kInternal, Errc::kUnreadable})
    EXPECT_FALSE(delivered(Error{code, ""}, HEARTH_CALL_BEGAN));
  EXPECT_FALSE(delivered(Error{Errc::kNotFound, "no class"}, 0)) << "nothing has run";
}

TEST(CallOfTest, ANotificationComesFromItsAgentAndAnAlarmFromNone) {
  const storage::AgentKey sender{"Shop", "a"};
  for (const bool is_alarm : {false, true}) {
    durable::NoticeDelivery delivery;
    delivery.id = "n1";
    delivery.notice = {.agent_class = "Shop",
                       .name = "a",
                       .method = "sold",
                       .arguments = "[1]",
                       .trace = "00-trace"};
    delivery.is_alarm = is_alarm;
    const AgentCall call = call_of(sender, std::move(delivery));
    EXPECT_EQ(call.method, "sold");
    EXPECT_EQ(call.origin->is_agent(), !is_alarm);
    EXPECT_EQ(call.origin->notification, is_alarm ? "" : "n1");
    EXPECT_EQ(call.origin->trace, "00-trace");
    EXPECT_EQ(call.origin->depth, 1U);
  }
}

}  // namespace
}  // namespace hearth::extensions

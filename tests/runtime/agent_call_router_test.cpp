// Agents that call agents, across shards and on the same one. Notifications: rows of the caller,
// delivered at least once, in order for each callee.
#include "runtime/agent_call_router.hpp"

#include "durable/notices.hpp"
#include "runtime/agent_call_fixture.hpp"

#include <hearth/ext/drain.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace hearth::runtime::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

const std::string kTraceHeader = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const std::string kTraceId = "trace=" + kTraceHeader.substr(0, 36);

// Does `action`, and answers with its arguments.
CallingScript::Method and_echo(std::function<void(HostCalls&)> action) {
  return [action = std::move(action)](HostCalls& host, const AgentEvent& event) {
    action(host);
    echo(host, event);
  };
}

class AgentCallsTest : public AgentCallTest {
 protected:
  // "go" of an agent of Asking calls `to`, and answers at once.
  void ask(extensions::CallRequest request) {
    asking.methods["go"] = [request](HostCalls& host, const AgentEvent& event) {
      extensions::CallRequest made = request;
      made.call = event.call;
      EXPECT_TRUE(host.start_call(made, 7));
      EXPECT_TRUE(host.complete(event.call, std::string_view()));
    };
  }
  // What an agent of Asking on shard 0 hears of a call to an agent of ToldRoom on `shard`.
  Told told_of(extensions::CallRequest request, unsigned shard = 1) {
    const std::string caller = name_on(0, "Asking");
    const std::string callee = name_on(shard, "ToldRoom");
    if (request.agent_class.empty()) request.agent_class = "ToldRoom";
    if (request.name.empty()) request.name = callee;
    ask(request);
    call({"Asking", caller}, "go");
    return asking.told[caller];
  }

  // The callee's "say" logs `line`.
  void start_traced(const char* line) {
    start();
    room.methods["say"] = [line](HostCalls& host, const AgentEvent& event) {
      host.log(line);
      echo(host, event);
    };
  }
  void log_and_say(HostCalls& host, std::string_view line, CallId call) {
    host.log(line);
    EXPECT_TRUE(host.start_call(
        {.agent_class = "ToldRoom", .name = callee(), .method = "say", .call = call}, 1));
  }
  // A request for "go" of the caller with this header.
  void go_with(const std::string& header, const std::string& value) {
    auto head = std::make_unique<RequestHead>();
    head->headers = {{header, value}};
    runtime_->shard(0).request(asking_agent(), "asking", "go", "[]", std::move(head),
                               std::make_unique<FakeSink>(std::make_shared<Answer>()));
    settle();
  }
};

TEST_F(AgentCallsTest, AnAnswerComesFromAnotherShardAndFromTheSame) {
  start();
  room.methods["echo"] = echo;
  for (const unsigned shard : {0U, 1U}) {
    asking.told.clear();
    EXPECT_EQ(told_of({.method = "echo", .arguments = R"([1,"two"])"}, shard),
              Told{R"(end ok [1,"two"])"});
  }
}

TEST_F(AgentCallsTest, P4_OfAnObjectAllSpellingsAreOneAgent) {
  const ClassSettings object = settings_with(&ClassSettings::is_object, true);
  for (const bool is_object : {true, false}) {
    start({}, is_object ? object : ClassSettings());
    room.methods["echo"] = echo;
    room.begun.clear();
    for (const char* name : {"X1", "x1"}) {
      asking.told.clear();
      EXPECT_EQ(told_of({.name = name, .method = "echo"}), Told{"end ok []"});
    }
    EXPECT_EQ(room.begun, is_object ? Told({"x1 echo", "x1 echo"}) : Told({"X1 echo", "x1 echo"}));
    if (is_object) stop();
  }
}

TEST_F(AgentCallsTest, P4_AnObjectThatNoClientCouldReachIsNotMade) {
  const ClassSettings object = settings_with(&ClassSettings::is_object, true);
  start({}, object);
  room.methods["echo"] = echo;
  EXPECT_EQ(told_of({.name = "?", .method = "echo"}),
            Told{"end invalid_argument: that is no name"});
  EXPECT_EQ(room.begun, Told{});
}

TEST_F(AgentCallsTest, NeitherRunsInsideTheOther) {
  start();
  const std::string callee = name_on(0, "ToldRoom");
  std::vector<std::string> order;
  room.methods["echo"] = [&](HostCalls& host, const AgentEvent& event) {
    order.emplace_back("callee");
    echo(host, event);
    order.emplace_back("callee is done");
  };
  asking.methods["go"] = [&](HostCalls& host, const AgentEvent& event) {
    EXPECT_TRUE(host.start_call(
        {.agent_class = "told-room", .name = callee, .method = "echo", .call = event.call}, 1));
    order.emplace_back("asked");
    echo(host, event);
  };
  asking.on_result = [&](HostCalls&, const OperationResult&) { order.emplace_back("told"); };
  go();
  EXPECT_EQ(order, (std::vector<std::string>{"asked", "callee", "callee is done", "told"}));
}

TEST_F(AgentCallsTest, TheClassMayBeNamedAsCodeOrUrlsDoAndTheCalleeKnowsTheCaller) {
  start();
  room.methods["echo"] = echo;
  EXPECT_EQ(told_of({.agent_class = "told-room", .method = "echo"}), Told{"end ok []"});
  EXPECT_EQ(told_of({.agent_class = "ToldRoom", .method = "echo"}).size(), 2U);
  const std::string known = R"({"class":"Asking","name":")" + caller() + R"("})";
  EXPECT_EQ(room.callers, (std::vector<std::string>{known, known}));
  EXPECT_EQ(asking.callers, (std::vector<std::string>{"none", "none"})) << "HTTP is no agent";
}

TEST_F(AgentCallsTest, AnAliasIsForClientsAlone) {
  start();
  runtime_->classes().set_aliases({{"lounge", "told-room"}});
  EXPECT_EQ(told_of({.agent_class = "lounge", .method = "echo"}),
            Told{"end not_found: there is no class lounge"});
}

TEST_F(AgentCallsTest, AnUnknownClassIsNotFoundAndOneThatIsAwayIsBusy) {
  start();
  EXPECT_EQ(told_of({.agent_class = "Nobody", .method = "x"}),
            Told{"end not_found: there is no class Nobody"});
  runtime_->classes().remove("told-room");
  for (const std::string_view name : {"told-room", "ToldRoom"}) {
    asking.told.clear();
    EXPECT_EQ(told_of({.agent_class = name, .method = "x"}),
              Told{"end unavailable: the class is not loaded"});
  }
}

TEST_F(AgentCallsTest, WhatTheCalleeAnswersIsToldAndSoIsThatItHasBegun) {
  start();
  EXPECT_EQ(told_of({.method = "nothing"}), Told{"end not_found: no such method (began)"});
  room.methods["fail"] = answer_with(Errc::kConflict, "taken");
  asking.told.clear();
  EXPECT_EQ(told_of({.method = "fail"}), Told{"end conflict: taken (began)"});
}

TEST_F(AgentCallsTest, NoCreateWantsAnAgentThatIsThere) {
  start();
  room.methods["echo"] = echo;
  room.methods["keep"] = and_echo([](HostCalls& host) { EXPECT_TRUE(host.set_state(0, "1")); });
  const extensions::CallRequest careful{.flags = HEARTH_CALL_NO_CREATE, .method = "echo"};
  EXPECT_EQ(told_of(careful), Told{"end not_found: there is no such agent"});
  EXPECT_TRUE(room.begun.empty());
  const storage::AgentKey callee{"ToldRoom", name_on(1, "ToldRoom")};
  call(callee, "keep");
  asking.told.clear();
  EXPECT_EQ(told_of(careful), Told{"end ok []"}) << "in memory";
  advance(std::chrono::minutes(10));
  ASSERT_TRUE(room.hosts.empty());
  asking.told.clear();
  EXPECT_EQ(told_of(careful), Told{"end ok []"}) << "stored";
}

TEST_F(AgentCallsTest, ACallEndsWhenItsTimeIsOver) {
  start();
  room.methods["wait"] = keep_waiting;
  EXPECT_TRUE(told_of({.method = "wait", .timeout_ms = 200}).empty());
  advance(milliseconds(300));
  EXPECT_EQ(asking.told.begin()->second,
            Told{"end timeout: the agent did not answer in time (began)"});
}

TEST_F(AgentCallsTest, WithoutATimeItHasWhatIsLeftOfItsEvents) {
  start({}, {}, {.call_timeout = milliseconds(1000)});
  std::vector<std::uint64_t> times;
  room.methods["wait"] = [&](HostCalls& host, const AgentEvent& event) {
    times.push_back(event.deadline_ms);
    echo(host, event);
  };
  CallId open = 0;
  asking.methods["go"] = [&](HostCalls&, const AgentEvent& event) { open = event.call; };
  go();
  advance(milliseconds(600));
  asking.methods["now"] = and_echo([&](HostCalls& host) {
    const std::string name = callee();
    extensions::CallRequest request{.agent_class = "ToldRoom", .name = name, .method = "wait"};
    request.call = open;
    EXPECT_TRUE(host.start_call(request, 1));
    request.call = 0;
    EXPECT_TRUE(host.start_call(request, 2));
  });
  go("now");
  EXPECT_EQ(times, (std::vector<std::uint64_t>{400, 1000}));
}

TEST_F(AgentCallsTest, PartsComeAsCreditAllows) {
  start();
  room.methods["stream"] = [](HostCalls& host, const AgentEvent& event) {
    for (int part = 1; part <= 4; ++part)
      EXPECT_TRUE(host.emit(event.call, std::to_string(100 + part)));
    EXPECT_TRUE(host.complete(event.call, std::string_view("5")));
  };
  OperationId id = 0;
  asking.methods["go"] = and_echo([&](HostCalls& host) {
    const auto started = host.start_call(
        {.agent_class = "ToldRoom", .name = callee(), .method = "stream", .window = 4}, 1);
    ASSERT_TRUE(started);
    id = *started;
  });
  asking.methods["more"] = and_echo([&](HostCalls& host) { EXPECT_TRUE(host.credit(id, 3)); });
  go();
  EXPECT_EQ(told(), (Told{"part 101", "part 102"})) << "4 bytes allow two of three";
  go("more");
  EXPECT_EQ(told().size(), 3U);
  go("more");
  EXPECT_EQ(told(), (Told{"part 101", "part 102", "part 103", "part 104", "end ok 5"}));
}

TEST_F(AgentCallsTest, ACalleeThatWaitsForItsReaderGoesOnWhenItHasRead) {
  start();
  const std::string part = '"' + std::string(AgentCallRouter::kFewUnread, 'x') + '"';
  int drained = 0;
  room.methods["stream"] = [&](HostCalls& host, const AgentEvent& event) {
    EXPECT_TRUE(host.emit(event.call, part));
    EXPECT_TRUE(host.emit(event.call, part));
    for (const std::uint64_t wait : {1ULL, 2ULL}) {  // two parts of the callee wait at once
      EXPECT_TRUE(host.submit(
          HEARTH_OP_DRAIN, {reinterpret_cast<const char*>(&event.call), sizeof event.call}, wait));
    }
  };
  room.on_result = [&](HostCalls&, const OperationResult& result) {
    EXPECT_TRUE(result.outcome);
    ++drained;
  };
  OperationId id = 0;
  asking.methods["go"] = and_echo([&](HostCalls& host) {
    id = *host.start_call(
        {.agent_class = "ToldRoom", .name = callee(), .method = "stream", .window = 1}, 1);
  });
  asking.methods["more"] =
      and_echo([&](HostCalls& host) { EXPECT_TRUE(host.credit(id, part.size())); });
  go();
  EXPECT_EQ(told().size(), 1U);
  EXPECT_EQ(drained, 0) << "the second part waits";
  go("more");
  EXPECT_EQ(told().size(), 2U);
  EXPECT_EQ(drained, 2);
}

TEST_F(AgentCallsTest, ACalleeThatDoesNotWaitForItsReaderIsCutOff) {
  start();
  const std::string part = '"' + std::string(std::size_t{1} << 20, 'x') + '"';
  int taken = 0;
  room.methods["stream"] = [&](HostCalls& host, const AgentEvent& event) {
    while (taken < 1000 && host.emit(event.call, part)) ++taken;
  };
  const Told told = told_of({.method = "stream", .window = 1});
  EXPECT_LE(taken, 17);
  ASSERT_EQ(told.size(), 1U) << "one part uses up the credit";
  EXPECT_TRUE(told[0].starts_with("part"));
}

TEST_F(AgentCallsTest, ACallerThatCancelsOrLeavesIsToldNothingAndTheCalleeSeesNobody) {
  start();
  CallId open = 0;
  room.methods["wait"] = [&](HostCalls&, const AgentEvent& event) { open = event.call; };
  OperationId id = 0;
  asking.methods["go"] = and_echo([&](HostCalls& host) {
    id = *host.start_call({.agent_class = "ToldRoom", .name = callee(), .method = "wait"}, 1);
  });
  asking.methods["cancel"] = and_echo([&](HostCalls& host) { EXPECT_TRUE(host.cancel(id)); });
  asking.methods["leave"] = and_echo([&](HostCalls& host) { EXPECT_TRUE(host.evict()); });
  for (const std::string how : {"cancel", "leave"}) {
    open = 0;
    go();
    ASSERT_NE(open, 0U);
    go(how);
    HostCalls& host = *room.hosts.at(callee());
    EXPECT_FALSE(host.emit(open, "1")) << how;
    EXPECT_TRUE(host.complete(open, std::string_view("1"))) << how;
    settle();
    EXPECT_TRUE(told().empty()) << how;
  }
}

TEST_F(AgentCallsTest, ACalleeThatIsEvictedEndsTheCallOrTheHostRepeatsIt) {
  start();
  room.methods["wait"] = keep_waiting;
  const storage::AgentKey key{"ToldRoom", callee()};
  EXPECT_TRUE(told_of({.method = "wait"}).empty());
  runtime_->shard(1).admin().evict(key);
  settle();
  ASSERT_EQ(asking.told.begin()->second.size(), 1U);
  EXPECT_TRUE(asking.told.begin()->second[0].starts_with("end closing: "));
  EXPECT_TRUE(asking.told.begin()->second[0].ends_with("(began)"));

  room.idempotent = true;
  asking.told.clear();
  EXPECT_TRUE(told_of({.method = "wait"}).empty());
  room.methods["wait"] = echo;
  runtime_->shard(1).admin().evict(key);
  settle();
  EXPECT_EQ(asking.told.begin()->second, Told{"end ok []"});
}

TEST_F(AgentCallsTest, ACalleeThatIsDestroyedMeanwhileLetsTheNextOneAnswer) {
  start();
  room.methods["destroy"] = and_echo([](HostCalls& host) { EXPECT_TRUE(host.destroy()); });
  room.methods["echo"] = echo;
  asking.methods["go"] = and_echo([&](HostCalls& host) {
    for (const std::string_view method : {"destroy", "echo"})
      EXPECT_TRUE(
          host.start_call({.agent_class = "ToldRoom", .name = callee(), .method = method}, 1));
  });
  go();
  advance(milliseconds(10));
  EXPECT_EQ(told(), (Told{"end ok []", "end ok []"}));
}

TEST_F(AgentCallsTest, MoreThanSixteenCallsThatWaitForEachOtherAreTooMany) {
  start();
  int begun = 0;
  std::string failure;
  // Each calls an agent of the next name.
  room.methods["down"] = [&](HostCalls& host, const AgentEvent& event) {
    ++begun;
    const std::string next = "deep" + std::to_string(begun);
    EXPECT_TRUE(host.start_call(
        {.agent_class = "ToldRoom", .name = next, .method = "down", .call = event.call}, 1));
  };
  room.on_result = [&](HostCalls&, const OperationResult& result) {
    if (!result.outcome) failure = result.outcome.error().message;
  };
  call({"ToldRoom", "deep0"}, "down");
  EXPECT_EQ(begun, 17) << "the request, and 16 calls";
  EXPECT_EQ(failure, "more than 16 calls between agents wait for each other");
}

TEST_F(AgentCallsTest, CallsEndWithTheServer) {
  start();
  room.methods["wait"] = keep_waiting;
  asking.methods["wait"] = keep_waiting;
  EXPECT_TRUE(told_of({.method = "wait"}).empty());
  stop();  // within its grace
}

// Work that an event has begun keeps the event's trace after the event: results of operations,
// schedules, and recovered fibers.
TEST_F(AgentCallsTest, ATraceGoesOnInWhatAnEventHasBegun) {
  start_traced("asked");
  CallId begun_by = 0;
  asking.methods["go"] = [&](HostCalls& host, const AgentEvent& event) {
    begun_by = event.call;
    durable::ScheduleRequest soon;
    soon.type = durable::ScheduleType::kDelay;
    soon.when_ms = 1000;
    soon.callback = "tick";
    EXPECT_TRUE(host.create_schedule(soon));
    EXPECT_TRUE(host.submit(HEARTH_OP_SLEEP, std::string("\x0A\0\0\0\0\0\0\0", 8), 7));
    echo(host, event);
  };
  asking.on_result = [&](HostCalls& host, const OperationResult& result) {
    if (result.token == 7) log_and_say(host, "slept", begun_by);
  };
  asking.on_schedule = [&](HostCalls& host, const AgentEvent& event) {
    log_and_say(host, "ticked", event.call);
    echo(host, event);
  };
  go_with("traceparent", kTraceHeader);
  advance(milliseconds(2000));
  for (const char* line : {"text=slept", "text=ticked", "schedule:create", "schedule:execute"}) {
    const auto of_line = [&](const std::string& each) {
      return each.find(line) != std::string::npos && each.find(kTraceId) != std::string::npos;
    };
    EXPECT_EQ(std::ranges::count_if(logger.events(), of_line), 1) << line;
  }
  EXPECT_EQ(logger.count(kTraceId), 6U) << "and it is asked twice";
}

TEST_F(AgentCallsTest, ATraceGoesOnAndIsMadeWhereThereIsNone) {
  start_traced("here");
  asking.methods["go"] = [&](HostCalls& host, const AgentEvent& event) {
    log_and_say(host, "there", event.call);
    echo(host, event);
  };
  go_with("TraceParent", kTraceHeader);
  EXPECT_EQ(logger.count(kTraceId), 2U);
  EXPECT_EQ(logger.count("trace=" + kTraceHeader), 0U) << "each event is a span of its own";
  EXPECT_TRUE(logger.contains("method=say"));
  go_with("TraceParent", "00-00000000000000000000000000000000-b7ad6b7169203331-01");
  EXPECT_EQ(logger.count(kTraceId), 2U) << "that is no trace";
  EXPECT_EQ(logger.count("trace=00-"), 4U) << "the event and its call share one of their own";
}

// One trace has the work that an event causes in other agents, and all log lines about it.
TEST_F(AgentCallsTest, AnEventWithoutATraceOfItsClientHasOneOfItsOwn) {
  start_traced("here");
  asking.methods["go"] = [&](HostCalls& host, const AgentEvent& event) {
    EXPECT_TRUE(host.start_fiber("work"));
    log_and_say(host, "there", event.call);
    EXPECT_TRUE(host.complete(event.call, Error{Errc::kPlugin, "went wrong"}));
  };
  const auto trace_of = [this](const std::string& what) {
    for (const std::string& line : logger.events()) {
      const auto at = line.rfind("trace=00-");
      if (line.find(what) != std::string::npos && at != std::string::npos)
        return line.substr(at + 9, 32);
    }
    return "none in " + what;
  };
  go();
  const std::string trace = trace_of("text=there");
  for (const char* line : {"text=here", "agent.call_failed", "fiber:run:started"})
    EXPECT_EQ(trace_of(line), trace) << line;
  EXPECT_TRUE(logger.contains("method=go trace="));
  logger.clear();
  go();
  EXPECT_NE(trace_of("text=there"), trace) << "each event has its own";
}

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
    go();
  }
  // What waits, or is dead, in an agent of Asking.
  std::string listed() {
    std::string records;
    asking.methods["list"] = [&](HostCalls& host, const AgentEvent& event) {
      records = *host.notices();
      EXPECT_TRUE(host.complete(event.call, std::string_view()));
    };
    go("list");
    return records;
  }
  void answer_all() { room.methods["add"] = room.methods["end"] = answer_with(""); }
  std::vector<std::string> ids;
};

TEST_F(NotifyTest, ItIsDeliveredAfterTheTurnInOrderAndItsRowGoes) {
  start();
  answer_all();
  notify(callee(), {"add", "add", "end"});
  EXPECT_EQ(room.begun,
            (std::vector<std::string>{callee() + " add", callee() + " add", callee() + " end"}));
  for (std::size_t each = 0; each < 3; ++each)
    EXPECT_EQ(room.callers[each], R"({"class":"Asking","name":")" + caller() +
                                      R"(","notification":")" + ids[each] + R"("})");
  EXPECT_EQ(listed(), "[]");
}

TEST_F(NotifyTest, ACalleeThatDoesNotAnswerHoldsUpItsOwnAlone) {
  start();
  answer_all();
  room.methods["wait"] = keep_waiting;
  const std::string slow = name_on(1, "ToldRoom", "slow");
  const std::string quick = name_on(1, "ToldRoom", "quick");
  notify(slow, {"wait", "end"});
  room.begun.clear();
  notify(quick, {"add"});
  EXPECT_EQ(room.begun, std::vector<std::string>{quick + " add"});
}

TEST_F(NotifyTest, AnErrorOfTheCalleesCodeIsADeliveryButBusyAsksForARetry) {
  start();
  for (const Errc code : {Errc::kPlugin, Errc::kInvalidArgument, Errc::kNotFound}) {
    room.begun.clear();
    logger.clear();
    room.methods["add"] = answer_with(code, "no");
    notify(callee(), {"add"});
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
  notify(callee(), {"add"});
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
  notify(callee(), {"add"});
  advance(minutes(3));
  EXPECT_NE(listed().find(R"("last_error":"the class is not loaded")"), std::string::npos);
  runtime_->classes().put(away);
  advance(minutes(10));
  EXPECT_EQ(room.begun, std::vector<std::string>{callee() + " add"});
}

TEST_F(NotifyTest, AnotherProcessDeliversWhatWasCommittedAndWhatWasOnItsWay) {
  start();
  room.methods["add"] = keep_waiting;
  notify(callee(), {"add", "end"});
  stop();
  room.begun.clear();
  answer_all();
  start();
  advance(minutes(1));
  EXPECT_EQ(room.begun, (std::vector<std::string>{callee() + " add", callee() + " end"}));
  const std::size_t count = room.callers.size();
  EXPECT_NE(room.callers[count - 2].find(ids[0]), std::string::npos) << "the same id";
}

TEST_F(NotifyTest, AfterADayItIsDeadAndThoseBehindItGoOn) {
  start();
  room.methods["add"] = answer_with(Errc::kUnavailable, "never");
  room.methods["end"] = answer_with("");
  notify(callee(), {"add", "end"});
  for (int half_hour = 0; half_hour < 47; ++half_hour) advance(minutes(30));
  EXPECT_EQ(listed().find(R"("state":"dead")"), std::string::npos);
  for (int half_hour = 0; half_hour < 3; ++half_hour) advance(minutes(30));
  EXPECT_TRUE(logger.contains("notify:dead"));
  EXPECT_EQ(room.begun.back(), callee() + " end");
  const std::string dead = listed();
  EXPECT_NE(dead.find(R"("state":"dead")"), std::string::npos);
  EXPECT_EQ(dead.find(R"("method":"end")"), std::string::npos);
}

}  // namespace
}  // namespace hearth::runtime::testing

// Clients of agents below agents: which agents the gate asks, and what a client is told.
#include "api/sub_agent_gate.hpp"

#include "api/api_fixture.hpp"

#include <chrono>
#include <functional>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

namespace hearth::api::testing {
namespace {

// A class "Inbox" that decides by the name of the child, and writes down what it is asked.
class SubAgentGateTest : public ApiFixture {
 protected:
  void start_inbox(runtime::ClassSettings settings = {}) {
    start();
    serve(
        "Inbox",
        [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
          if (event.kind == EventKind::kSubAgent) return decide(host, event);
          if (event.kind == EventKind::kRequest) {
            if (waits_) std::exchange(waits_, nullptr)();
            return host.complete(event.call, std::string_view("inbox"));
          }
          return nothing(host, event);
        },
        std::move(settings));
    serve("Chat", [](HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kRequest)
        return host.complete(event.call, std::string_view("chat " + host.key().name));
      if (event.kind == EventKind::kSubAgent && event.body == "hidden")
        return Error{Errc::kNotFound, "there is no such draft"};
      return nothing(host, event);
    });
  }
  Result<void> decide(HostCalls& host, const AgentEvent& event) {
    const auto view = host.request(event.call);
    EXPECT_TRUE(view);
    const std::string* cookie = runtime::find_header(*view->headers, "cookie");
    asked_.push_back(std::string(event.name) + " " + std::string(event.body) + " at " +
                     std::string(view->target) + (cookie == nullptr ? "" : " " + *cookie));
    if (event.body == "forbidden") return Error{Errc::kForbidden, "not yours"};
    if (event.body == "busy") return Error{Errc::kUnavailable, "later"};
    if (event.body == "buggy") return Error{Errc::kPlugin, "secret"};
    if (event.body == "later buggy") {
      return host.complete(event.call, Error{Errc::kPlugin, "secret"});
    }
    if (event.body == "unpaid") {
      view->response->status = 402;
      view->response->headers.emplace_back("X-Price", "5");
      return host.complete(event.call, std::string_view("pay first"));
    }
    if (event.body == "broken") {
      view->response->status = 502;
      return host.complete(event.call, std::string_view());
    }
    if (event.body == "slow") {
      waits_ = [&host, call = event.call] { (void)host.complete(call, std::string_view()); };
      waiting_.release();
      return {};
    }
    if (event.body == "unasked") return Error{Errc::kUnsupported, "no interest"};
    return host.complete(event.call, std::string_view());
  }

  std::vector<std::string> asked_;  // on the loop's thread; read once that has answered
  std::function<void()> waits_;     // at the next request: lets in the waiting client
  std::counting_semaphore<> waiting_{0};
};

TEST_F(SubAgentGateTest, AnAgentBelowIsOfAClassAndANameOfItsOwn) {
  start_inbox();
  Client client = connect("/agents/inbox/u/sub/chat/mon%2Fday?_pk=1");
  const std::string identity = client.read_text();
  EXPECT_TRUE(contains(identity, R"("name":"mon/day")", R"("agent":"chat")"));
  EXPECT_EQ(get("/agents/inbox/u/sub/chat/mon%2Fday/leaf").body, "chat Inbox/u/mon%2Fday");
  EXPECT_EQ(get("/agents/inbox/u").body, "inbox");
  EXPECT_EQ(get("/agents/chat/mon%2Fday").body, "chat mon%2Fday") << "a root is another agent";
}

TEST_F(SubAgentGateTest, EachAgentOnTheWayIsAskedWithTheClientsRequest) {
  start_inbox();
  const std::string target = "/agents/inbox/u/sub/inbox/v/sub/chat/c?x=1";
  EXPECT_EQ(ask(http("GET", target, "Cookie: k=v\r\n")).body, "chat Inbox/u/Inbox/v/c");
  EXPECT_EQ(asked_, (std::vector<std::string>{"Inbox v at " + target + " k=v",
                                              "Chat c at " + target + " k=v"}));
}

TEST_F(SubAgentGateTest, ARefusalIsAnAnswerOrACloseThatStopsTheClientOrNot) {
  start_inbox();
  struct Case {
    std::string name;
    int status;
    int close_code;
  };
  for (const Case& each : std::vector<Case>{{"forbidden", 403, 4403},
                                            {"busy", 503, 1013},
                                            {"buggy", 500, 1011},
                                            {"unpaid", 402, 4402},
                                            {"broken", 502, 1011}}) {
    const std::string target = "/agents/inbox/u/sub/chat/" + each.name;
    const Reply reply = get(target);
    EXPECT_EQ(reply.status, each.status) << each.name;
    EXPECT_TRUE(lacks(reply.body, "secret"));
    const Frame frame = first_frame(target);
    EXPECT_EQ(frame.close_code(), each.close_code) << each.name;
    EXPECT_EQ(frame.close_reason(),
              "Sub-agent connection rejected (" + std::to_string(each.status) + ")");
  }
  const Reply unpaid = get("/agents/inbox/u/sub/chat/unpaid");
  EXPECT_EQ(unpaid.body, "pay first");
  EXPECT_TRUE(contains(unpaid.head, "X-Price: 5\r\n"));
  EXPECT_EQ(get("/agents/inbox/u/sub/chat/unasked").status, 200) << "it has no interest";
}

TEST_F(SubAgentGateTest, TheTextOfABugIsForTheLogUnderTheTraceThatTheClientReads) {
  start_inbox();
  for (const char* child : {"buggy", "later%20buggy"}) {
    logger_.clear();
    const Reply reply = get("/agents/inbox/u/sub/chat/" + std::string(child));
    const std::string begin = "the method failed (trace ";
    const std::size_t at = reply.body.find(begin);
    ASSERT_NE(at, std::string::npos) << reply.body;
    EXPECT_EQ(logger_.count("agent.call_failed class=Inbox agent=u event_kind=sub_agent"), 1U);
    EXPECT_EQ(logger_.count("error=secret"), 1U);
    EXPECT_EQ(logger_.count(" trace=00-" + reply.body.substr(at + begin.size(), 32)), 1U);
  }
}

TEST_F(SubAgentGateTest, AClassMayShowTheTextOfABug) {
  runtime::ClassSettings settings;
  settings.show_failures = true;
  start_inbox(std::move(settings));
  EXPECT_TRUE(contains(get("/agents/inbox/u/sub/chat/buggy").body, "secret"));
}

TEST_F(SubAgentGateTest, ARefusalFurtherDownComesFromTheOneThatIsAsked) {
  start_inbox();
  const std::string target = "/agents/inbox/u/sub/chat/c/sub/chat/hidden";
  EXPECT_EQ(get(target).status, 404);
  Client client = connect(target);
  EXPECT_EQ(client.read_frame().close_code(), 4404);
}

TEST_F(SubAgentGateTest, EachNewAgentOfTheWayCountsBeforeAnyIsAsked) {
  net_options_.per_address.exempt.clear();
  net_options_.per_address.new_agents = 4;
  start_inbox();
  EXPECT_EQ(get("/agents/inbox/u/sub/inbox/v/sub/chat/c").status, 200) << "three";
  EXPECT_EQ(get("/agents/inbox/u/sub/inbox/v/sub/chat/c").status, 200) << "they exist";
  asked_.clear();
  const std::string target = "/agents/inbox/u/sub/inbox/w/sub/chat/forbidden";
  EXPECT_EQ(get(target).status, 429) << "five";
  EXPECT_EQ(close_code(target), 1013);
  EXPECT_EQ(get("/agents/inbox/u").status, 200);  // after the agent has written it down
  EXPECT_EQ(asked_, std::vector<std::string>{});
}

TEST_F(SubAgentGateTest, AClientThatWaitsWhileAccessIsWithdrawnComesAgain) {
  start_inbox();
  for (const bool is_withdrawn : {false, true}) {
    Client client = connect("/agents/inbox/u/sub/chat/slow");
    if (is_withdrawn) runtime_->classes().access_changed();
    EXPECT_EQ(get("/agents/inbox/u/let-it-in").body, "inbox");
    const Frame first = client.read_frame();
    EXPECT_EQ(first.close_code(), is_withdrawn ? 1012 : 0);
    if (is_withdrawn) EXPECT_EQ(first.close_reason(), kAccessChanged);
  }
}

TEST_F(SubAgentGateTest, ARequestThatWaitsWhileAccessIsWithdrawnComesAgain) {
  start_inbox();
  for (const bool is_withdrawn : {false, true}) {
    RawClient client(port());
    client.send(http("GET", "/agents/inbox/u/sub/chat/slow"));
    ASSERT_TRUE(waiting_.try_acquire_for(std::chrono::seconds(10)));
    if (is_withdrawn) runtime_->classes().access_changed();
    EXPECT_EQ(get("/agents/inbox/u/let-it-in").body, "inbox");
    const Reply reply = client.read_reply();
    EXPECT_EQ(reply.status, is_withdrawn ? 503 : 200) << reply.body;
    if (!is_withdrawn) continue;
    EXPECT_TRUE(contains(reply.body, kAccessChanged));
    EXPECT_TRUE(contains(reply.head, "Retry-After: 1\r\n"));
  }
}

TEST_F(SubAgentGateTest, WhatAClientSendsBeforeItIsLetThroughIsKept) {
  start_inbox();
  Client client = connect("/agents/inbox/u/sub/sampler/s");
  client.say(Client::call_text("1", "id"));
  client.read_greeting();
  EXPECT_TRUE(contains(client.read_text(), R"("id":"1")"));
}

TEST_F(SubAgentGateTest, ClassesAndNamesBelowAreCheckedAsThoseAbove) {
  start_inbox();
  runtime_->classes().expect("hoped-for");
  EXPECT_EQ(get("/agents/inbox/u/sub/hoped-for/a").status, 503);
  EXPECT_EQ(get("/agents/inbox/u/sub/chat/%00").status, 400);
  EXPECT_EQ(close_code("/agents/inbox/u/sub/chat/%FF"), 4400);
  EXPECT_TRUE(asked_.empty());
}

}  // namespace
}  // namespace hearth::api::testing

// Requests of operations on the mock host: the kept part of an answer, and the request for the
// rest.

#include "operation_kind.hpp"

#include <hearth/sse.hpp>
#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using hearth::Effect;
using hearth::Json;
using hearth::OperationAttempt;
using hearth::Probed;
using hearth::Task;
using hearth::testing::CallError;
using hearth::testing::FetchReply;
using hearth::testing::Host;
using hearth::testing::SentRequest;
using std::chrono::hours;
using std::chrono::seconds;

constexpr const char* kEvents = "id: 1\ndata: one\n\nid: 2\ndata: two\n\nid: 3\nda";

class Scribe : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Scribe>& m) {
    m.add("write", &Scribe::write);
    m.add("once", &Scribe::once);
    m.add("twice", &Scribe::twice);
    m.add("later", &Scribe::later);
    m.add("judge", &Scribe::judge);
    m.add("part", &Scribe::part);
    m.add("request", &Scribe::request);
    m.add("state", &Scribe::state);
    m.add("cancel", &Scribe::cancel);
    m.fiber("write", &Scribe::run);
    hearth::OperationKind kind = operation_kind(Effect::kUnsafe);
    m.operation("plain", kind);
    kind.key_header = "X-Once";
    kind.resume = [](const hearth::FetchRequest& request, const hearth::PartialAnswer& answer) {
      const hearth::WholeEvents whole = hearth::whole_events(answer.body);
      hearth::ResumedFetch rest = {.request = request, .from = whole.bytes};
      rest.request.url += "/rest";
      rest.request.headers.emplace_back("Last-Event-ID", whole.last_id);
      return rest;
    };
    m.operation("resumed", kind);
    kind.effect = Effect::kKeyed;
    m.operation("keyed", kind);
    kind.effect = Effect::kIdempotent;
    m.operation("repeated", kind);
    kind.effect = Effect::kUnsafe;
    kind.acts_by_request = true;
    m.operation("sole", kind);
    kind.acts_by_request = false;
    kind.resume = [](const hearth::FetchRequest& request, const hearth::PartialAnswer& answer) {
      hearth::ResumedFetch rest = {.request = request};
      const std::string from = std::to_string(answer.body.size());
      rest.request.headers.emplace_back("Range", "bytes=" + from + "-");
      return rest;
    };
    m.operation("ranged", kind);
  }

  enum class Again : std::uint8_t { kNo, kAtOnce, kLater };
  Task<std::string> ask(OperationAttempt attempt, Again again) {
    hearth::FetchRequest request{
        .method = "POST", .url = "https://pen.example/texts", .op = attempt.id};
    auto response = co_await fetch(request);
    EXPECT_EQ(response.status(), 200U);
    std::string text;
    while (auto piece = co_await response.next()) text += *piece;
    EXPECT_FALSE(co_await response.next()) << "the end is given again";
    if (again == Again::kLater) co_await sleep(seconds(1));
    if (again != Again::kNo) static_cast<void>(co_await fetch(request));
    co_return text;
  }
  Task<std::string> run(std::string kind, hearth::FiberContext&) {
    const auto act = [this](OperationAttempt attempt) {
      return ask(std::move(attempt), Again::kNo);
    };
    hearth::OperationCall call{.kind = std::move(kind)};
    std::string text = co_await operation(std::move(call), act);
    kv().put("text", text);
    co_return text;
  }
  Task<std::string> write(std::string kind) { return run_fiber<std::string>("write", kind); }
  Task<std::string> once(std::string kind) { return act_with_key(std::move(kind), Again::kNo); }
  // The same operation, whose function fails behind the answer: it asks again.
  Task<std::string> twice(std::string kind) {
    return act_with_key(std::move(kind), Again::kAtOnce);
  }
  Task<std::string> later(std::string kind) { return act_with_key(std::move(kind), Again::kLater); }
  Task<std::string> act_with_key(std::string kind, Again again) {
    const auto act = [this, again](OperationAttempt attempt) {
      return ask(std::move(attempt), again);
    };
    hearth::OperationCall call{.kind = std::move(kind), .key = "twice"};
    co_return co_await operation(std::move(call), act);
  }
  // The events up to [DONE]. An event "bad" is refused, with or without ("drop") an exception.
  Task<std::string> read_events(OperationAttempt attempt, std::string how) {
    if (how == "early") throw hearth::Error(HEARTH_E_BUSY, "fails before it asks");
    if (how == "slow") co_await sleep(seconds(1));
    if (how == "no op") co_return "of elsewhere";
    hearth::FetchRequest request{
        .method = "POST", .url = "https://pen.example/texts", .op = attempt.id};
    auto response = co_await fetch(request);
    hearth::SseReader events(response, {.last = "[DONE]"});
    std::string all;
    while (auto event = co_await events.next()) {
      if (event->data == "bad" && how == "drop") {
        attempt.drop_answer();
        static_cast<void>(co_await response.text());
        response = co_await fetch(request);
        co_return co_await response.text();
      }
      if (event->data == "bad") throw hearth::Error(HEARTH_E_BUSY, "of no use");
      all += event->data;
    }
    co_return all;
  }
  Task<std::string> judge(std::string kind, std::string how) {
    const auto act = [this, how](OperationAttempt attempt) {
      return read_events(std::move(attempt), how);
    };
    hearth::OperationCall call{.kind = std::move(kind), .key = "judged"};
    co_return co_await operation(std::move(call), act);
  }
  Json part() {
    const auto answer = partial_answer(list_operations().at(0).id);
    if (!answer) return nullptr;
    return {{"status", answer->status}, {"body", answer->body}, {"whole", answer->whole}};
  }
  Json request() {
    const auto request = list_operations().at(0).request;
    if (!request) return nullptr;
    return {{"status", request->status.value_or(0)},
            {"upstream", request->upstream_id.value_or("none")},
            {"bytes", request->stored_bytes}};
  }
  bool cancel() { return cancel_fiber(list_fibers().at(0).id); }
  unsigned state() { return static_cast<unsigned>(list_operations().at(0).state); }
};

class OperationFetchTest : public ::testing::Test {
 protected:
  OperationFetchTest() {
    host_.on_fetch([this](const SentRequest& request) {
      sent_.push_back(request);
      FetchReply reply = replies_.front();
      replies_.erase(replies_.begin());
      return reply;
    });
  }
  // Its beginning, and then nothing for a very long time.
  static FetchReply begun() {
    return {
        .headers = {{"Request-Id", "req-5"}}, .pieces = {kEvents, "never"}, .between = hours(1000)};
  }
  // A kill in the middle of the answer, and its recovery.
  void interrupt(const char* kind) {
    agent_.start("write", kind);
    host_.advance(seconds(1));
    agent_.kill();
    host_.advance(seconds(2));
  }
  static constexpr unsigned state_of(hearth::OperationState state) {
    return static_cast<unsigned>(state);
  }

  std::vector<FetchReply> replies_;
  std::vector<SentRequest> sent_;
  Host host_;
  hearth::testing::AgentHandle agent_ = host_.create<Scribe>("a");
};

TEST_F(OperationFetchTest, TheKeyGoesAlongAndTheAnswerIsKnown) {
  replies_ = {{.headers = {{"X-Request-ID", "req-1"}}, .body = "text"}};
  EXPECT_EQ(agent_.call("write", "plain"), "text");
  EXPECT_EQ(sent_.at(0).header("Idempotency-Key").size(), 64U);
  EXPECT_EQ(agent_.call("request"), (Json{{"status", 200}, {"upstream", "req-1"}, {"bytes", 0}}));
  EXPECT_EQ(agent_.call("part").at("body"), "") << "its result is kept in its place";
}

TEST_F(OperationFetchTest, AKillInTheMiddleIsUnknownIfNobodyCanAskForTheRest) {
  replies_ = {begun()};
  interrupt("plain");
  EXPECT_EQ(sent_.size(), 1U);
  EXPECT_EQ(agent_.call("state"), state_of(hearth::OperationState::kUnknown));
  EXPECT_EQ(agent_.call("part"), (Json{{"status", 200}, {"body", kEvents}, {"whole", false}}));
}

TEST_F(OperationFetchTest, I4_AKillInTheMiddleGoesOnFromTheLastPiece) {
  const std::string rest = "id: 3\ndata: three\n\n";
  replies_ = {begun(), {.status = 206, .body = rest}};
  interrupt("resumed");
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[1].url, "https://pen.example/texts/rest");
  EXPECT_EQ(sent_[1].header("Last-Event-ID"), "2");
  EXPECT_EQ(sent_[1].header("X-Once"), sent_[0].header("X-Once"));
  EXPECT_EQ(agent_.call("state"), state_of(hearth::OperationState::kCompleted));
  const std::string whole = std::string(kEvents).substr(0, 34) + rest;
  EXPECT_EQ(agent_.sql("SELECT value ->> '$' FROM cf_agents_kv WHERE key = 'text'"),
            (Json{{whole}}));
  EXPECT_EQ(agent_.call("request").at("upstream"), "req-5");
}

TEST_F(OperationFetchTest, I4_AnAnswerThatIsStoredWholeIsNotAskedForAgain) {
  replies_ = {{.body = "text"}};
  agent_.start("later", "resumed");
  agent_.kill();
  EXPECT_EQ(agent_.call("once", "resumed"), "text");
  EXPECT_EQ(sent_.size(), 1U);
}

TEST_F(OperationFetchTest, I4_AnAnswerWhoseRestIsMissingGoesOnAfterAFailureToo) {
  FetchReply cut{.body = kEvents};
  cut.failure = {.phase = HEARTH_FETCH_PHASE_BODY, .sent = true};
  replies_ = {cut, {.status = 206, .body = "data: [DONE]\n\n"}};
  EXPECT_THROW(agent_.call("judge", "resumed", ""), CallError);
  EXPECT_THROW(agent_.call("judge", "resumed", "early"), CallError);
  EXPECT_EQ(agent_.call("judge", "resumed", ""), "onetwo");
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[1].header("Last-Event-ID"), "2");
}

constexpr const char* kGood = "data: good\n\ndata: [DONE]\n\n";

TEST_F(OperationFetchTest, AnAnswerOfNoUseIsAskedForAnewIfTheEffectAllows) {
  const FetchReply bad{.body = "data: bad\n\n"};
  const FetchReply early{.body = "data: one\n\n"};
  for (const FetchReply& useless : {bad, early}) {
    for (const std::string kind : {"keyed", "repeated", "resumed"}) {
      SCOPED_TRACE(kind + " " + useless.body);
      sent_.clear();
      replies_ = {useless, {.body = kGood}};
      agent_ = host_.create<Scribe>(kind + useless.body.substr(6, 3));
      EXPECT_THROW(agent_.call("judge", kind, ""), CallError);
      if (kind == "resumed") {
        EXPECT_THROW(agent_.call("judge", kind, ""), CallError);
        EXPECT_EQ(sent_.size(), 1U);
        EXPECT_EQ(agent_.call("state"), state_of(hearth::OperationState::kUnknown));
        EXPECT_EQ(agent_.call("part").at("body"), useless.body);
      } else {
        EXPECT_EQ(agent_.call("judge", kind, ""), "good");
        ASSERT_EQ(sent_.size(), 2U);
        EXPECT_EQ(sent_[1].url, sent_[0].url) << "not for a rest";
        EXPECT_EQ(sent_[1].header("X-Once"), sent_[0].header("X-Once"));
      }
    }
  }
}

TEST_F(OperationFetchTest, AnAnswerThatIsDroppedIsAskedForAnewInTheSameRun) {
  replies_ = {{.body = "data: bad\n\n"}, {.body = "good"}};
  EXPECT_EQ(agent_.call("judge", "repeated", "drop"), "good");
  EXPECT_EQ(sent_.size(), 2U);
  agent_ = host_.create<Scribe>("b");
  replies_ = {{.body = "data: bad\n\n"}};
  EXPECT_THROW(agent_.call("judge", "resumed", "drop"), CallError) << "CONFLICT";
  EXPECT_EQ(agent_.call("state"), state_of(hearth::OperationState::kUnknown));
}

TEST_F(OperationFetchTest, OneThatActsByItsRequestIsRunAgainUntilThatHasLeft) {
  replies_ = {{.body = kGood}};
  agent_.start("judge", "sole", "slow");
  agent_.kill();
  EXPECT_EQ(agent_.call("state"), state_of(hearth::OperationState::kNotExecuted));
  EXPECT_EQ(agent_.call("judge", "sole", ""), "good");
  EXPECT_EQ(sent_.size(), 1U);

  agent_ = host_.create<Scribe>("b");
  replies_ = {{.status = 500, .after = hours(1)}};
  agent_.start("judge", "sole", "");
  agent_.kill();
  EXPECT_EQ(agent_.call("state"), state_of(hearth::OperationState::kUnknown));
}

TEST_F(OperationFetchTest, OneThatIsSaidToActByItsRequestMustSendIt) {
  EXPECT_THROW(agent_.call("judge", "sole", "no op"), CallError);
  EXPECT_EQ(agent_.call("state"), state_of(hearth::OperationState::kUnknown));
  EXPECT_THROW(agent_.call("judge", "sole", ""), CallError);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(OperationFetchTest, AnOtherSideThatDoesNotGoOnLeavesItUnknown) {
  replies_ = {begun(), {.status = 410}};
  interrupt("resumed");
  EXPECT_EQ(sent_.size(), 2U);
  EXPECT_EQ(agent_.call("state"), state_of(hearth::OperationState::kUnknown));
  EXPECT_EQ(agent_.call("part").at("body"), std::string(kEvents).substr(0, 34));
}

TEST_F(OperationFetchTest, WhatHasNotLeftWasNotExecuted) {
  replies_ = {{.status = 0, .failure = FetchReply::Failure{}}};
  EXPECT_THROW(agent_.call("write", "plain"), CallError);
  EXPECT_EQ(agent_.call("state"), state_of(hearth::OperationState::kNotExecuted));
  EXPECT_EQ(agent_.call("request"), Json(nullptr));
}

TEST_F(OperationFetchTest, ACancelledFiberStillLearnsTheOutcomeOfItsOperation) {
  replies_ = {{.pieces = {"te", "xt"}, .after = seconds(1), .between = seconds(1)}};
  EXPECT_FALSE(agent_.start("write", "plain").done());
  EXPECT_EQ(agent_.call("cancel"), true);
  host_.advance(seconds(3));
  EXPECT_EQ(agent_.call("state"), state_of(hearth::OperationState::kCompleted));
}

TEST_F(OperationFetchTest, AnUnsafeOperationSendsOneRequest) {
  replies_ = {{.body = "text"}, {.body = "text"}};
  EXPECT_THROW(agent_.call("twice", "plain"), CallError) << "CONFLICT";
  EXPECT_EQ(sent_.size(), 1U);
}

TEST_F(OperationFetchTest, OnlyTheFirstRequestOfARunGoesOnWithWhatIsStored) {
  replies_ = {{.body = "text"}};
  agent_.start("later", "resumed");
  EXPECT_EQ(sent_.size(), 1U);
  agent_.kill();
  EXPECT_THROW(agent_.call("twice", "resumed"), CallError);
  EXPECT_EQ(sent_.size(), 1U) << "the first one is given what is stored, the second is refused";
}

TEST_F(OperationFetchTest, AnotherRequestOfARunIsOneOfItsOwn) {
  replies_ = {{.body = "text"}, {.body = "once more"}};
  EXPECT_EQ(agent_.call("twice", "keyed"), "text");
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[0].header("X-Once"), sent_[1].header("X-Once"));
}

TEST_F(OperationFetchTest, APartIsAddedOnlyIfItBeginsWhereItWasAskedFor) {
  const std::string begun_with = kEvents;
  const std::string from = "bytes " + std::to_string(begun_with.size()) + "-";
  replies_ = {begun(),
              {.status = 206, .headers = {{"Content-Range", from + "99/100"}}, .body = "rest"}};
  interrupt("ranged");
  EXPECT_EQ(agent_.call("state"), state_of(hearth::OperationState::kCompleted));
  EXPECT_EQ(agent_.sql("SELECT value ->> '$' FROM cf_agents_kv WHERE key = 'text'"),
            (Json{{begun_with + "rest"}}));
}

TEST_F(OperationFetchTest, AllOfAnAnswerIsNotItsRest) {
  replies_ = {begun(), {.status = 200, .body = std::string(kEvents) + "rest"}};
  interrupt("ranged");
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(agent_.call("state"), state_of(hearth::OperationState::kUnknown));
  EXPECT_EQ(agent_.call("part").at("body"), kEvents);
}

// ---- files --------------------------------------------------------------------------------------

class Runner : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Runner>& m) {
    m.add("run", &Runner::run);
    m.operation("exec", operation_kind(Effect::kProbe));
  }
  // Each attempt acts; the first `failures` of them fail afterwards.
  Task<std::string> run(int failures) {
    const auto act = [failures](const OperationAttempt& attempt) {
      std::ofstream(attempt.path()) << "result " << attempt.attempt;
      if (attempt.attempt <= failures) throw hearth::Error(HEARTH_E_BUSY, "cut off");
      return attempt.path();
    };
    const auto probe = [](const OperationAttempt& attempt) {
      std::ifstream file(attempt.path());
      std::string word;
      std::getline(file, word);
      return word.empty() ? Probed::not_executed() : Probed::completed(word);
    };
    hearth::OperationCall call{.kind = "exec", .key = "k"};
    co_return co_await operation(std::move(call), act, probe);
  }
};

TEST(OperationPathTest, I3_AProbeFindsTheFileThatAnAttemptHasLeft) {
  Host host;
  auto agent = host.create<Runner>("a");
  EXPECT_THROW(agent.call("run", 1), CallError);
  agent.kill();
  EXPECT_EQ(agent.call("run", 1), "result 1");
}

TEST(WholeEventsTest, EndBehindTheLastBlankLine) {
  const auto of = [](std::string_view stream) {
    const hearth::WholeEvents whole = hearth::whole_events(stream);
    return std::to_string(whole.bytes) + " " + whole.last_id;
  };
  EXPECT_EQ(of(""), "0 ");
  EXPECT_EQ(of("id: 1\ndata: a\n"), "0 ");
  EXPECT_EQ(of("id: 1\ndata: a\n\n"), "15 1");
  EXPECT_EQ(of("id:1\r\ndata: a\r\n\r\nid: 2\r\n"), "17 1");
  EXPECT_EQ(of("id: 1\ndata: a\n\ndata: b\n\nid: 3\ndata: c"), "24 1");
  EXPECT_EQ(of(kEvents), "34 2");
}

}  // namespace

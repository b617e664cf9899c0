// What the ledger promises across crashes and versions of the code, as an agent sees it.
// tests/README.md has the table of all such promises.

#include "operation_kind.hpp"

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

using hearth::Effect;
using hearth::Json;
using hearth::OperationAttempt;
using hearth::OperationCall;
using hearth::Probed;
using hearth::Task;
using hearth::testing::FetchReply;
using hearth::testing::Host;
using hearth::testing::SentRequest;
using std::chrono::hours;
using std::chrono::seconds;

// The results of a tool, where it puts them: by the id of the operation.
std::map<std::string, std::string> files;

// One fiber, "plan", does one operation for each word of its plan. `plan` is the output of a model,
// which may differ in the next run.
std::vector<std::string> plan;

template <int Version>
class Reviser : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Reviser>& m) {
    m.add("start", &Reviser::start);
    m.add("results", &Reviser::results);
    m.add("resolve", &Reviser::resolve);
    m.add("ledger", &Reviser::ledger);
    m.fiber("plan", &Reviser::work);
    m.operation("call", operation_kind(Version == 2 ? Effect::kUnsafe : Effect::kIdempotent));
    m.operation("tool", operation_kind(Effect::kProbe));
    if (Version < 3)
      m.operation("pay", operation_kind(Version == 2 ? Effect::kRead : Effect::kUnsafe));
  }
  Reviser() { sql("CREATE TABLE IF NOT EXISTS results(text TEXT)"); }

  std::string start(const std::string& kind) { return start_fiber("plan", kind).id(); }
  std::vector<std::string> results() {
    return sql("SELECT text FROM results ORDER BY rowid").template rows<std::string>();
  }
  Json ledger() {
    Json all = Json::array();
    for (const auto& each : list_operations())
      all.push_back({{"id", each.id}, {"kind", each.kind}, {"attempts", each.attempts}});
    return all;
  }
  bool resolve(const std::string& id) {
    return resolve_operation(id, Probed::completed("by hand"), "looked");
  }
  Task<void> on_operation_unknown(const hearth::OperationRecord& operation) override {
    kv().put("told", {{"kind", operation.kind}, {"id", operation.id}});
    return {};
  }

 private:
  Task<std::string> ask(OperationAttempt attempt, std::string word) {
    hearth::FetchRequest request{.method = "POST",
                                 .url = "https://tool.example/" + word,
                                 .headers = {{"Idempotency-Key", std::move(attempt.id)}}};
    auto response = co_await fetch(std::move(request));
    if (!response.ok()) throw hearth::Error(HEARTH_E_BUSY, "the tool fails");
    co_return co_await response.text();
  }
  Task<void> work(std::string kind, hearth::FiberContext&) {
    for (const std::string& word : std::vector<std::string>(plan)) {
      const auto act = [this, word](OperationAttempt attempt) {
        return ask(std::move(attempt), word);
      };
      const auto look = [](const OperationAttempt& attempt) {
        const auto found = files.find(attempt.id);
        return found == files.end() ? Probed::not_executed() : Probed::completed(found->second);
      };
      std::string result;
      try {
        OperationCall call{.kind = kind, .args = word};
        result = co_await operation(std::move(call), act, look);
      } catch (const hearth::Error& error) {
        result = error.what();
      }
      sql("INSERT INTO results VALUES(?)", result);
    }
  }
};

class OperationPromisesTest : public ::testing::Test {
 protected:
  OperationPromisesTest() {
    files.clear();
    host_.on_fetch([this](const SentRequest& request) {
      const std::string word = request.url.substr(request.url.rfind('/') + 1);
      const std::string result = word + " " + std::to_string(++times_[word]);
      files[request.header("Idempotency-Key")] = result;
      FetchReply reply{.body = result};
      if (word == hangs_) reply.after = hours(1000);
      return reply;
    });
  }
  using Words = std::vector<std::string>;
  // Killed while `word` is under way, with the results of what came before.
  void kill_at(const std::string& word, const char* kind, Words words) {
    hangs_ = word;
    plan = std::move(words);
    agent_.call("start", kind);
    agent_.kill();
    hangs_.clear();
  }
  std::string only_id() { return agent_.call("ledger").at(0).at("id").get<std::string>(); }

  std::map<std::string, int> times_;  // effects
  std::string hangs_;                 // acts, and its answer never comes
  Host host_;
  hearth::testing::AgentHandle agent_ = host_.create<Reviser<1>>("a");
};

TEST_F(OperationPromisesTest, I1_StartedIsThereBeforeTheEffectAndCompletedAfterIt) {
  Json during;
  host_.on_fetch([&](const SentRequest&) {
    during = agent_.sql("SELECT state FROM cf_agents_operations");
    return FetchReply{.body = "done"};
  });
  plan = {"a"};
  agent_.call("start", "pay");
  EXPECT_EQ(during, Json::parse(R"([["started"]])"));
  EXPECT_EQ(agent_.sql("SELECT state FROM cf_agents_operations"),
            Json::parse(R"([["completed"]])"));
}

TEST_F(OperationPromisesTest, I1_WhatAKillLeavesSaysHowFarItWas) {
  const auto on_disk = [this] { return agent_.sql("SELECT state FROM cf_agents_operations"); };
  kill_at("a", "tool", {"a"});
  EXPECT_EQ(times_["a"], 1) << "it has had its effect";
  EXPECT_FALSE(agent_.is_live());
  EXPECT_EQ(on_disk(), Json::parse(R"([["started"]])"));
  host_.advance(seconds(2));
  agent_.kill();
  EXPECT_EQ(on_disk(), Json::parse(R"([["completed"]])"));
}

TEST_F(OperationPromisesTest, I3_WhatIsFoundUnderItsIdIsNotRunAgain) {
  kill_at("a", "tool", {"a"});
  host_.advance(seconds(2));
  EXPECT_EQ(agent_.call("results"), Json({"a 1"}));
  EXPECT_EQ(times_["a"], 1);
}

TEST_F(OperationPromisesTest, I6_ARegeneratedPlanInAnotherOrderFindsWhatWasDone) {
  kill_at("c", "pay", {"a", "b", "c"});
  EXPECT_EQ(times_, (std::map<std::string, int>{{"a", 1}, {"b", 1}, {"c", 1}}));
  plan = {"b", "d", "a"};
  host_.advance(seconds(2));
  const Json results = agent_.call("results");
  EXPECT_EQ(results, Json({"a 1", "b 1", "b 1", "d 1", "a 1"})) << "the first two before the kill";
  EXPECT_EQ(times_["a"], 1);
  EXPECT_EQ(times_["b"], 1);
}

TEST_F(OperationPromisesTest, I6_EqualCallsOnPurposeAreTwoAlsoWhenTheyMove) {
  kill_at("b", "pay", {"a", "a", "b"});
  plan = {"c", "a", "a", "a"};
  host_.advance(seconds(2));
  EXPECT_EQ(agent_.call("results"), Json({"a 1", "a 2", "c 1", "a 1", "a 2", "a 3"}));
}

TEST_F(OperationPromisesTest, AClockThatIsSetLosesNothingThatHasCompleted) {
  for (const int step : {-48, 48}) {
    SCOPED_TRACE(step);
    agent_ = host_.create<Reviser<1>>(std::to_string(step));
    times_.clear();
    kill_at("b", "pay", {"a", "b"});
    const std::int64_t now = agent_.as<Reviser<1>>().now().time_since_epoch().count();
    agent_.kill();
    host_.set_wall(hearth::Time(std::chrono::milliseconds(now) + hours(step)));
    host_.advance(hours(1));
    const Json results = agent_.call("results");
    ASSERT_EQ(results.size(), 3U);
    EXPECT_EQ(results.at(1), "a 1");
    EXPECT_NE(results.at(2).get<std::string>().find("may have executed"), std::string::npos);
    EXPECT_EQ(times_, (std::map<std::string, int>{{"a", 1}, {"b", 1}}));
  }
}

// `call` was idempotent and is unsafe in the next version, `pay` the other way round.
TEST_F(OperationPromisesTest, OfAKindThatChangesItsClassTheStricterOneCounts) {
  for (const char* const kind : {"call", "pay"}) {
    SCOPED_TRACE(kind);
    agent_ = host_.create<Reviser<1>>(kind);
    times_.clear();
    kill_at("a", kind, {"a"});
    agent_.become<Reviser<2>>();
    host_.advance(seconds(2));
    EXPECT_EQ(agent_.call("results").at(0),
              "operation " + only_id() + " may have executed; verify before retrying");
    EXPECT_EQ(times_["a"], 1);
  }
}

TEST_F(OperationPromisesTest, ARowOfAKindThatTheNewVersionDoesNotKnowIsToldKeptAndResolved) {
  kill_at("a", "pay", {"a"});
  agent_.become<Reviser<3>>();
  host_.advance(seconds(2));
  const std::string id = only_id();
  EXPECT_EQ(agent_.sql("SELECT value FROM cf_agents_kv WHERE key = 'told'").size(), 1U);
  EXPECT_EQ(agent_.call("ledger").at(0).at("kind"), "pay");
  EXPECT_EQ(times_["a"], 1) << "nobody runs it";
  const Json results = agent_.call("results");
  ASSERT_EQ(results.size(), 1U);
  EXPECT_NE(results.at(0).get<std::string>().find("pay"), std::string::npos) << "no such kind";
  EXPECT_EQ(agent_.call("resolve", id), true);
  agent_.become<Reviser<1>>();
  EXPECT_EQ(agent_.sql("SELECT state FROM cf_agents_operations"),
            Json::parse(R"([["completed"]])"));
}

}  // namespace

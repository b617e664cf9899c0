// The hooks of an author, and the steps that the log names: turns on the mock host, with each
// provider.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

Scripted hangs(std::vector<std::string> words) {
  words.emplace_back("never");
  return says(std::move(words), hours(100));
}
Scripted silent() {
  return {.says = {{.text = "never"}}, .after = hours(100)};
}

struct HookRow {
  const char* name;
  Json options;
  std::vector<Scripted> answers;
  std::string_view body;  // of the last frame; empty: the turn has not failed
  const char* text;       // of the answer
  std::size_t requests = 0;
  Json exhausted = Json::array();
  std::vector<std::string> steps = {};  // each once in the log
  bool is_killed = false;               // after 15 s
};

const std::string kGivenUp = RecoveryConfig().terminal_message;
const Json kStalls = {{"stall_timeout_ms", 20'000}};
Json with(Json options, const Json& more) {
  options.update(more);
  return options;
}

std::vector<HookRow> hook_rows() {
  const std::vector<Scripted> stalls = {hangs({"one "}), silent(), silent(), says({"two"})};
  const std::vector<Scripted> cuts = {cut(says({"one "})), cut(says({"two "})), says({"three"})};
  const std::vector<Scripted> slow = {says({"one ", "two ", "three"}, seconds(10)), says({"four"})};
  const std::vector<Scripted> odd = {refuses(400, "come back"), says({"one"})};
  const std::string stalled = "chat:stream:stalled turn=r1";
  const std::string exhausted = "chat:recovery:exhausted turn=r1 reason=";
  return {
      {"should_keep_recovering says no",
       with(kStalls, {{"hook", "keep:false"}}),
       stalls,
       kGivenUp,
       "one ",
       3,
       {"recovery_aborted"},
       {exhausted + "recovery_aborted"}},
      {"should_keep_recovering throws: it goes on",
       with(kStalls, {{"hook", "keep:throw"}}),
       stalls,
       "",
       "one two",
       4,
       Json::array(),
       {"should_keep_recovering failed: no luck"}},
      {"no work after an interruption",
       {{"recovery", {{"max_recovery_work", 0}}}},
       cuts,
       kGivenUp,
       "one two ",
       2,
       {"work_budget_exceeded"},
       {exhausted + "work_budget_exceeded"}},
      {"enough work", {{"recovery", {{"max_recovery_work", 100}}}}, cuts, "", "one two three", 3},
      {"on_exhausted throws",
       {{"recovery", {{"max_recovery_work", 0}}}, {"hook", "exhausted:throw"}},
       cuts,
       kGivenUp,
       "one two ",
       2,
       {"work_budget_exceeded"},
       {"on_exhausted failed: no luck"}},
      {"C27 on_chat_recovery throws",
       {{"hook", "recovery:throw"}},
       slow,
       "The answer failed.",
       "one two ",
       1,
       Json::array(),
       {"chat:recovery:failed turn=r1: no luck"},
       true},
      {"on_chat_recovery says stop",
       {{"proceed", false}},
       slow,
       "",
       "one two ",
       1,
       Json::array(),
       {"chat:recovery:skipped turn=r1"},
       true},
      {"an answer stalls",
       kStalls,
       {hangs({"one "}), says({"two"})},
       "",
       "one two",
       2,
       Json::array(),
       {stalled}},
      {"classify_error",
       {{"hook", "classify"}},
       odd,
       "",
       "one",
       2,
       Json::array(),
       {"chat:request:failed turn=r1 kind=transient: HTTP 400: come back"}},
      {"error_text",
       {{"hook", "text"}},
       odd,
       "Ask Bob.",
       "",
       1,
       Json::array(),
       {"chat:request:failed turn=r1 kind=invalid: HTTP 400: come back"}},
      {"a provider's words are one line",
       Json::object(),
       {refuses(400, "a\nb\x1b[2J\u0085\u00e9")},
       client_text(FailureKind::kInvalid),
       "",
       1,
       Json::array(),
       {"kind=invalid: HTTP 400: a b [2J  \u00e9"}},
  };
}

class HooksTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, HooksTest, each_dialect(), provider_name);

TEST_P(HooksTest, C41_EachRowEndsAsItsHookSaysAndTheLogNamesTheStep) {
  for (const HookRow& row : hook_rows()) {
    SCOPED_TRACE(row.name);
    Stage own(GetParam());
    auto agent = own.make(row.options);
    for (const Scripted& answer : row.answers) own.model.then(answer);
    ChatClient client(agent, "tab");
    own.say(client, "r1", "count", seconds(15));
    if (row.is_killed) agent.kill();
    ChatClient back(agent);
    own.wait(seconds(300));
    ChatClient& shown = row.is_killed ? back : client;
    shown.read();
    const Json done = shown.done("r1");
    ASSERT_TRUE(done.is_object());
    EXPECT_EQ(done.value("body", ""), row.body);
    EXPECT_EQ(done.value("error", false), !row.body.empty());
    const Json stored = transcript_of(agent);
    EXPECT_EQ(stored.size() < 2 ? "" : text_of(stored[1]), row.text);
    EXPECT_EQ(own.model.requests().size(), row.requests);
    EXPECT_EQ(agent.call("notes", "exhausted"), row.exhausted);
    EXPECT_EQ(agent.call("unsettled"), 0);
    for (const std::string& step : row.steps) EXPECT_EQ(own.logged(step), 1U) << step;
  }
}

// What is done to a turn, so long after what was done before.
struct Act {
  milliseconds after;
  const char* what;
};
struct EndRow {
  const char* name;
  Json options;
  std::vector<Act> acts;
  bool is_cut = false;  // the answer, after 20 s
};

std::vector<EndRow> end_rows() {
  const Act kill{seconds(15), "kill"};
  const Json none = Json::object();
  const Json slow = {{"hook", "recovery:slow"}};
  return {
      {"on_chat_recovery says stop", {{"proceed", false}}, {kill}},
      {"on_chat_recovery wants nothing of it", {{"proceed", false}, {"persist", false}}, {kill}},
      {"on_chat_recovery throws", {{"hook", "recovery:throw"}}, {kill}},
      {"given up", {{"recovery", {{"max_attempts", 1}}}}, {kill}},
      {"without recovery", {{"recovery", false}}, {kill}},
      {"stopped, and killed at once", none, {{seconds(15), "mark as stopping"}, {{}, "kill"}}},
      {"stopped before it goes on", slow, {kill, {seconds(5), "stop"}}},
      {"stopped before a cut answer goes on", none, {{milliseconds(20'500), "stop"}}, true},
      {"its fiber is cancelled", none, {{seconds(15), "cancel_fibers"}}},
      {"its fiber is cancelled before it goes on", slow, {kill, {seconds(5), "cancel_fibers"}}},
      {"its fiber is cancelled, and killed at once",
       slow,
       {kill, {seconds(5), "cancel_fibers"}, {{}, "kill"}}},
      {"cleared", none, {{seconds(15), "clear"}}},
      {"cleared before it goes on", slow, {kill, {seconds(5), "clear"}}},
      {"cleared, and killed at once", none, {{seconds(15), "mark as aborted"}, {{}, "kill"}}},
  };
}

void do_to(testing::Host& host, testing::AgentHandle& agent, const Act& act) {
  host.advance(act.after);
  const std::string what = act.what;
  ChatClient tab(agent);
  if (what == "kill") agent.kill();
  if (what == "stop") tab.stop("r1");
  if (what == "clear") tab.clear();
  if (what == "cancel_fibers" || what == "complete_calls") std::ignore = agent.call(what);
  if (what == "mark as stopping") std::ignore = agent.sql("UPDATE chat_turns SET stopping = 1");
  if (what == "mark as aborted")
    std::ignore = agent.sql("UPDATE chat_turns SET state = 'aborted', ended = 1");
}

// Also at the provider, where a background answer would go on.
TEST_P(HooksTest, HoweverATurnEndsItsCallIsSettled) {
  const bool can_resume = GetParam() == std::string("openai-responses");
  for (const EndRow& row : end_rows()) {
    for (const bool is_background : {false, can_resume}) {
      SCOPED_TRACE(row.name + std::string(is_background ? " in the background" : ""));
      Stage own(GetParam());
      auto agent = own.make(with(row.options, {{"background", is_background}}));
      Scripted answer = says({"one ", "two ", "three"}, seconds(10));
      if (row.is_cut) answer = cut(says({"one ", "two "}, seconds(10)));
      own.model.then(answer);
      ChatClient client(agent);
      client.say("r1", "count");
      bool is_stopped = false;
      for (const Act& act : row.acts) {
        do_to(own.host, agent, act);
        const std::string what = act.what;
        is_stopped =
            is_stopped || what == "cancel_fibers" || what == "stop" || what == "mark as stopping";
      }
      own.wait(seconds(300));
      EXPECT_EQ(agent.call("is_stable", 0), true);
      EXPECT_EQ(agent.call("unsettled"), 0);
      EXPECT_EQ(agent.sql("SELECT id FROM chat_turns WHERE ended IS NULL"), Json::array());
      if (is_stopped)
        EXPECT_EQ(agent.sql("SELECT state FROM chat_turns"),
                  Json::array({Json::array({"aborted"})}));
      agent.kill();
      own.wait(seconds(300));
      const auto cancels = std::ranges::count_if(own.model.requests(), [](const auto& sent) {
        return sent.url.ends_with("/resp_1/cancel");
      });
      EXPECT_EQ(cancels, is_background ? 1 : 0);
      EXPECT_EQ(own.model.requests().size(), is_background ? 2U : 1U) << "nothing brings it back";
    }
  }
}

TEST_P(HooksTest, ATurnEndsWhateverAnOperatorHasMadeOfItsCall) {
  auto agent = make({{"hook", "recovery:slow"}});
  model.then(says({"one ", "two ", "three"}, seconds(10)));
  ChatClient client(agent);
  client.say("r1", "count");
  for (const Act& act :
       {Act{seconds(15), "kill"}, {seconds(5), "complete_calls"}, {{}, "cancel_fibers"}})
    do_to(host, agent, act);
  wait(seconds(300));
  EXPECT_EQ(agent.sql("SELECT state FROM chat_turns"), Json::array({Json::array({"aborted"})}));
  EXPECT_EQ(agent.call("is_stable", 0), true);
}

// A refusal that has arrived in part.
TEST_P(HooksTest, ACallThatWasRefusedIsNotPaidHoweverItsTurnEnds) {
  const Act kill{seconds(15), "kill"};
  const std::vector<EndRow> rows = {
      {"stopped", Json::object(), {{seconds(15), "stop"}, {{}, "kill"}}},
      {"stopped before it goes on", {{"hook", "recovery:slow"}}, {kill, {seconds(5), "stop"}}},
      {"its fiber is cancelled", Json::object(), {{seconds(15), "cancel_fibers"}, {{}, "kill"}}},
      {"its fiber is cancelled before it goes on",
       {{"hook", "recovery:slow"}},
       {kill, {seconds(5), "cancel_fibers"}}}};
  for (const EndRow& row : rows) {
    for (const bool is_background : {false, GetParam() == std::string("openai-responses")}) {
      SCOPED_TRACE(row.name + std::string(is_background ? " in the background" : ""));
      Stage own(GetParam());
      auto agent = own.make(with(row.options, {{"background", is_background}}));
      Scripted refused = refuses(400, "no");
      refused.between = seconds(10);
      own.model.then(refused);
      ChatClient client(agent);
      client.say("r1", "count");
      for (const Act& act : row.acts) do_to(own.host, agent, act);
      own.wait(seconds(300));
      EXPECT_EQ(agent.call("unsettled"), 0);
      EXPECT_EQ(agent.sql("SELECT state, json_extract(spent, '$.calls') FROM chat_turns"),
                Json::array({Json::array({"aborted", 0})}));
    }
  }
}

// It costs the turn that it fails in, and no other.
TEST_P(HooksTest, ASanitizeThatAlwaysThrowsEndsTheTurnWithAReason) {
  struct Row {
    const char* role;
    std::size_t stored;
    std::size_t requests;
  };
  for (const Row& row : {Row{"assistant", 2, 4}, Row{"user", 0, 0}}) {
    SCOPED_TRACE(row.role);
    Stage own(GetParam());
    auto agent = own.make({{"hook", std::string("sanitize:") + row.role}});
    own.model.then(asks("refund", {{"id", "o1"}}));  // is stored in mid-turn
    own.model.then_all({says({"one"}), says({"two"}), says({"three"})});
    ChatClient client(agent);
    std::vector<std::string> turns = {"r1", "r2", "r3"};
    for (const std::string& turn : turns) client.say(turn, "count");
    if (row.role == std::string("user")) {
      client.send({{"type", "cf_agent_chat_messages"},
                   {"messages", Json::array({user_message("u9", "set")})}});
      const auto door = agent.request("POST", "/agents/support/a/chat", R"({"text":"hi"})");
      EXPECT_EQ(door.status, 400U);
      EXPECT_TRUE(has(door.body, "could not be stored"));
    } else {
      turns.push_back(agent.call("start", "count", "k"));
    }
    own.wait(seconds(60), client);
    for (const std::string& turn : turns) {
      ASSERT_TRUE(client.done(turn).is_object()) << turn;
      EXPECT_EQ(client.done(turn).value("body", ""), "The message could not be stored.");
    }
    EXPECT_EQ(transcript_of(agent).size(), row.stored == 0 ? 0U : turns.size());
    EXPECT_EQ(own.model.requests().size(), row.requests);
    EXPECT_GE(own.logged("sanitize failed: no luck"), turns.size());
    const std::size_t told = row.stored == 0 ? 0 : turns.size();
    EXPECT_EQ(agent.call("notes", "error"), Json(std::vector<std::string>(told, "sanitize")));
    EXPECT_EQ(agent.call("is_stable", 0), true);
  }
}

// No client can answer the call any more: the model reads what the hook gives, or an error.
TEST_P(HooksTest, C46_ACallThatNoAnswerCanReachIsRepairedInTheTranscript) {
  for (const char* const hook : {"", "repair"}) {
    SCOPED_TRACE(hook);
    Stage own(GetParam());
    auto agent = own.make({{"hook", hook}});
    own.model.then_all({asks("where", {{"a", 1}}), says({"Never mind."})});
    ChatClient client(agent);
    client.ask_where("r1", "where am I?");
    own.wait(seconds(1));
    EXPECT_EQ(own.logged("chat:transcript:repaired"), 0U);
    own.say(client, "r2", "forget it", seconds(1));
    EXPECT_EQ(client.shown("r2"), "Never mind.");
    const Json answered = transcript_of(agent)[1];
    EXPECT_EQ(
        own.logged("chat:transcript:repaired message=" + answered.at("id").get<std::string>()), 1U);
    const Json part = answered.at("parts").back();
    ASSERT_EQ(own.model.requests().size(), 2U);
    if (*hook == 0) {
      EXPECT_EQ(part.at("state"), "output-error");
    } else {
      EXPECT_EQ(part.at("text"), "[tool-where left]");
      EXPECT_TRUE(own.model.asked_with(1, "[tool-where left]"));
    }
  }
}

// Given up by a recovery, or by the host; and a kill while the author's hook runs.
TEST_P(HooksTest, C41_OnExhaustedIsCalledOnceWhoeverGivesUpAndWhateverKillsIt) {
  struct Row {
    const char* hook;
    const char* reason;
    bool is_killed;
  };
  for (const Row& row : {Row{"exhausted:slow", "work_budget_exceeded", false},
                         {"exhausted:slow", "work_budget_exceeded", true},
                         {"dead", "max_attempts_exceeded", false},
                         {"dead:slow", "max_attempts_exceeded", true}}) {
    SCOPED_TRACE(row.hook + std::string(row.is_killed ? " killed" : ""));
    Stage own(GetParam());
    Json options = {{"hook", row.hook}};
    const bool is_recovery = row.reason != std::string("max_attempts_exceeded");
    if (is_recovery) options["recovery"] = {{"max_recovery_work", 0}};
    auto agent = own.make(options);
    const Scripted one = says({"one "});
    own.model.then(is_recovery ? cut(one) : one);
    if (is_recovery) own.model.then(cut(says({"two "})));
    own.model.then({"three"});
    ChatClient client = own.talk(agent, "count", seconds(7));
    EXPECT_EQ(agent.call("notes", "exhausted"), Json::array({row.reason}));
    if (row.is_killed) agent.kill();
    ChatClient back(agent);
    own.wait(seconds(60), back);
    EXPECT_EQ(agent.call("notes", "exhausted"), Json::array({row.reason}));
    EXPECT_EQ(own.logged(std::string("chat:recovery:exhausted turn=r1 reason=") + row.reason), 1U);
    EXPECT_EQ(agent.call("notes", "error"), Json::array({row.reason}));
    EXPECT_EQ(agent.call("notes", "end"), Json::array({"error"}));
    EXPECT_EQ(text_of(transcript_of(agent)[1]), is_recovery ? "one two " : "one ");
    const Json done = back.done("r1");
    EXPECT_EQ(done.is_object() ? done.value("body", "") : kGivenUp, kGivenUp);
    // The next turn runs.
    own.say(back, "r2", "go on", seconds(5));
    EXPECT_EQ(back.shown("r2"), "three");
  }
}

// Its hook fails once for each turn; it is called again later.
class Told : public ChatAgent {
 public:
  static void methods(Methods<Told>& m) {
    chat_methods(m);
    m.add("told", &Told::told);
  }
  Task<void> on_turn_end(TurnEnd end) override {
    kv().put(end.request_id, kv().get<int>(end.request_id).value_or(0) + 1);
    if (failed_.insert(end.request_id).second) throw std::runtime_error("it is away");
    return {};
  }
  int told(std::string turn) { return kv().get<int>(turn).value_or(0); }

 private:
  std::set<std::string> failed_;
};

// At the limit of fibers, old records make room: not those whose end is still to be told.
TEST(TurnEndTest, IsToldAgainWhateverComesMeanwhile) {
  for (const bool is_waiting : {false, true}) {
    SCOPED_TRACE(is_waiting);
    Stage own(ScriptedModel::kDialects[0]);
    own.model.then_all({says({"one"}, milliseconds(20'000)), says({"two"})});
    auto agent = own.make<Told>();
    ChatClient client(agent);
    own.say(client, "r1", "hi", milliseconds(is_waiting ? 1'000 : 41'000));
    if (is_waiting) own.say(client, "r2", "hi", milliseconds(1'000));
    own.host.fail_start_fiber(HEARTH_E_LIMIT);
    own.wait(milliseconds(45'000));
    if (!is_waiting) own.say(client, "r2", "hi", milliseconds(100));
    own.host.fail_start_fiber(HEARTH_OK);
    own.wait(std::chrono::hours(2), client);
    EXPECT_EQ(agent.call("told", "r1"), 2);
    EXPECT_EQ(agent.call("told", "r2"), is_waiting ? 2 : 0);
    own.say(client, "r3", "hi", std::chrono::hours(2));
    EXPECT_EQ(agent.call("told", "r3"), 2);
    EXPECT_EQ(client.outcome("r3"), "completed");
  }
}

}  // namespace
}  // namespace hearth::chat

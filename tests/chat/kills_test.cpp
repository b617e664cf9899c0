// Conversations that are killed after each piece of an answer, on the mock host, with each
// provider: what is stored and what clients have seen is that of an undisturbed run.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

using Words = std::vector<std::string>;

// Says what of these words the prompt does not have yet, as a model that is asked to go on.
Scripted goes_on(std::string_view body, const Words& words) {
  std::string said;
  std::size_t next = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    said += words[i];
    // Anthropic takes no space at the end.
    if (has(body, said.substr(0, said.find_last_not_of(' ') + 1))) next = i + 1;
  }
  return says(Words(words.begin() + static_cast<std::ptrdiff_t>(next), words.end()), seconds(1));
}

struct Scene {
  const char* name;
  std::function<Scripted(std::string_view body)> model;
  std::size_t turns = 1;  // with the continuations
  Json options = Json::object();
  const char* dialect = "";  // only in this one
  bool is_door = false;
};

std::vector<Scene> scenes() {
  const Words first = {"alpha ", "beta "};
  const Words last = {"gamma ", "delta ", "epsilon."};
  const auto asks_then = [=](const char* tool, const Json& input, const char* result) {
    return [=](std::string_view body) {
      if (has(body, result)) return goes_on(body, last);
      Scripted answer = goes_on(body, first);
      answer.says.push_back({.tool = tool, .input = input});
      return answer;
    };
  };
  const auto thinks = [=](std::string_view body) {
    Scripted answer = goes_on(body, last);
    if (answer.says.size() < last.size()) return answer;
    answer.says.insert(answer.says.begin(), {{.reasoning = "hm "}, {.reasoning = "hm"}});
    return answer;
  };
  const auto parallel = [=](std::string_view body) {
    Scripted answer = goes_on(body, {"alpha "});
    bool has_all = true;
    for (const char* const id : {"order-1", "order-2", "order-3"}) {
      if (has(body, std::string("found\":\"") + id) ||
          has(body, std::string("found\\\":\\\"") + id))
        continue;
      has_all = false;
      answer.says.push_back({.tool = "find", .input = {{"id", id}}});
    }
    return has_all ? goes_on(body, last) : answer;
  };
  const auto in_line = [=](std::string_view body) {
    return goes_on(body, has(body, "second") ? last : first);
  };
  const auto text = [=](std::string_view body) { return goes_on(body, last); };
  const auto looks = asks_then("look", {{"id", "o1"}}, "500");
  return {
      {"reasoning", thinks},
      {"background", looks, 1, {{"background", true}}, "openai-responses"},
      {"background reasoning", thinks, 1, {{"background", true}}, "openai-responses"},
      {"approval", asks_then("refund", {{"id", "o1"}}, "refunded"), 2},
      {"client tool", asks_then("where", {{"a", 1}}, "Rome"), 2},
      {"parallel calls", parallel},
      {"queue", in_line, 2},
      {"door", text, 1, Json::object(), "", true},
      {"door with a tool", looks, 1, Json::object(), "", true},
  };
}

// What a run has come to.
struct Played {
  std::string stored;  // the texts, thoughts and results
  std::size_t calls = 0;
  Json refunds;
  int ticks = 0;
};

class KillsTest : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr const char* kPath = "/agents/support/a/chat";

  // Each chunk by its turn and number: it never becomes another one.
  void see(const std::string& turn, std::uint64_t seq, const std::string& chunk) {
    if (!seen_.contains(turn)) turns_.push_back(turn);
    const auto [at, is_new] = seen_[turn].emplace(seq, chunk);
    if (!is_new) EXPECT_EQ(at->second, chunk) << turn << " " << seq;
  }
  void read(ChatClient& tab) {
    tab.read();
    for (const Json& frame : tab.frames("cf_agent_use_chat_response"))
      if (frame.contains("seq")) see(frame.at("id"), frame.at("seq"), frame.at("body"));
  }
  void read(const testing::HttpCall& door) {
    for (const ServerSentEvent& event : read_events(door.answer().body))
      if (event.event != "done") see("door", std::stoull(event.id), event.data);
  }
  // None is missing, and together they are the text that is stored. A client that is back after the
  // end reads the stored messages instead.
  void expect_all_seen(const Json& stored) {
    std::string shown;
    bool is_whole = false;
    for (const std::string& turn : turns_) {
      const auto& chunks = seen_.at(turn);
      EXPECT_EQ(chunks.rbegin()->first + 1, chunks.size()) << turn;
      for (const auto& [seq, chunk] : chunks) {
        const Json read = parse_json(chunk);
        is_whole = read.at("type") == "finish";
        if (read.at("type") == "reset-step") shown.clear();
        if (read.at("type") == "text-delta") shown += read.at("delta").get<std::string>();
      }
    }
    std::string all;
    for (const Json& message : stored)
      if (message.at("role") == "assistant") all += text_of(message);
    EXPECT_EQ(shown, is_whole ? all : all.substr(0, shown.size()));
  }
  static std::string told(const Json& stored) {
    std::string all;
    for (const Json& message : stored) {
      all += "\n" + message.at("role").get<std::string>() + ": " + text_of(message);
      std::string thoughts;
      std::set<std::string> results;
      for (const Json& part : message.at("parts")) {
        if (part.at("type") == "reasoning") thoughts += part.at("text").get<std::string>();
        if (part.value("state", "") == "output-available")
          results.insert(part.at("type").get<std::string>() + to_text(part.at("output")));
      }
      all += " | " + thoughts;
      for (const std::string& result : results) all += " | " + result;
    }
    return all;
  }
  // The client does what the stored messages ask it for.
  static void act(testing::AgentHandle& agent, ChatClient& tab) {
    const Json stored = transcript_of(agent);
    if (stored.empty()) return;
    for (const Json& part : stored.back().at("parts")) {
      const std::string state = part.value("state", "");
      if (state == "approval-requested") tab.approve(part.at("toolCallId"), true);
      if (state == "input-available" && part.at("type") == "tool-where")
        tab.answer(part.at("toolCallId"), {{"city", "Rome"}});
    }
  }

  // `kill`: behind this second; negative: never.
  Played play(const Scene& scene, int kill) {
    seen_.clear();
    turns_.clear();
    testing::Host host;
    ScriptedModel model(host, GetParam());
    model.by_request(scene.model);
    Json options = model.options();
    options.update(scene.options);
    auto agent = host.create<Support>("a", options);
    std::optional<ChatClient> tab(std::in_place, agent, "tab");
    std::optional<testing::HttpCall> door;
    const auto ask = [&] {
      testing::Headers headers = {{"Idempotency-Key", "k"}};
      if (seen_.contains("door"))
        headers.emplace_back("Last-Event-ID", std::to_string(seen_.at("door").rbegin()->first));
      door.emplace(agent.start_request("POST", kPath, R"({"text":"hi"})", headers));
    };
    if (scene.is_door) {
      ask();
    } else {
      tab->ask("r1", Json::array({user_message("u1", "hi")}),
               {{"clientTools", Json::array({{{"name", "where"}}})}});
      if (scene.name == std::string("queue")) tab->say("r2", "second");
    }
    Played played;
    host.advance(milliseconds(500));
    for (int i = 0, after = 0; i < 200 && after < 3; ++i) {
      scene.is_door ? read(*door) : read(*tab);
      if (i == kill) {
        agent.kill();
        tab.emplace(agent, "tab");
        if (scene.is_door) ask();
      }
      if (!scene.is_door) act(agent, *tab);
      host.advance(seconds(1));
      if (agent.call("is_stable", 0) == true) ++after;
      if (after == 0) ++played.ticks;
    }
    scene.is_door ? read(*door) : read(*tab);
    const Json stored = transcript_of(agent);
    expect_all_seen(stored);
    played.stored = told(stored);
    played.refunds = agent.call("notes", "refund");
    const Json ends = agent.call("notes", "end");  // each at least once
    EXPECT_GE(ends.size(), scene.turns);
    EXPECT_EQ(ends, Json(Words(ends.size(), "completed")));
    EXPECT_EQ(agent.call("unsettled"), 0);
    // Each request has its row, and each row beyond those of an undisturbed run says why.
    const Json calls = agent.call("model_calls");
    const auto posts = std::ranges::count_if(
        model.requests(), [](const testing::SentRequest& sent) { return sent.method == "POST"; });
    EXPECT_EQ(static_cast<std::size_t>(posts), calls.size());
    played.calls = static_cast<std::size_t>(std::ranges::count(calls, Json("")));
    EXPECT_LE(calls.size(),
              played.calls + (kill < 0 || scene.options.contains("background") ? 0 : 1))
        << to_text(calls);
    return played;
  }

 private:
  std::map<std::string, std::map<std::uint64_t, std::string>> seen_;
  std::vector<std::string> turns_;  // in their order
};
INSTANTIATE_TEST_SUITE_P(Providers, KillsTest, each_dialect(), provider_name);

TEST_P(KillsTest, W4_AKillAfterEachPieceChangesNothingThatIsStoredSeenOrPaid) {
  for (const Scene& scene : scenes()) {
    if (*scene.dialect != 0 && scene.dialect != std::string(GetParam())) continue;
    SCOPED_TRACE(scene.name);
    const Played undisturbed = play(scene, -1);
    ASSERT_GE(undisturbed.ticks, 2);
    for (int kill = 0; kill < undisturbed.ticks && !HasFailure(); ++kill) {
      SCOPED_TRACE(kill);
      const Played killed = play(scene, kill);
      EXPECT_EQ(killed.stored, undisturbed.stored);
      EXPECT_EQ(killed.refunds, undisturbed.refunds);
    }
  }
}

}  // namespace
}  // namespace hearth::chat

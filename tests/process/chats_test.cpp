// `hearth chats`, and what `hearth why` says of chats, with a real server and a scripted model.
#include "json/json.hpp"
#include "process/operator_fixture.hpp"
#include "support/built.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

class ChatsTest : public OperatorTest {
 protected:
  ChatsTest() : model_({"python3", (built::sources() / "packaging/model_server").string()}) {
    install(bundled("assistant"), "assistant.so");
    const std::string said = model_.wait_for_line();
    const std::string address = said.substr(said.rfind('/') + 1);
    put("classes/talks.yaml",
        "class: talks\ncode: assistant\negress: {allow: [\"" + address +
            "\"]}\noptions:\n  provider: chat-completions\n  base_url: http://" + address +
            "/v1\n  model: m\n  tools: [{name: pay, approval: true, http: {method: POST, url: "
            "\"http://" +
            address + "/pay\", effect: unsafe}}, {name: locate, client: true}]\n");
    put("hearth.yaml", "classes: classes\nshards: 2\n");
    server_ = start();
  }
  [[nodiscard]] std::unique_ptr<ServerProcess> start() const {
    return serve_ready({"--config", "hearth.yaml"});
  }
  // The model follows the script. The connection stays open, and nothing of the answer is read.
  void say(const std::string& agent, const std::string& script) {
    const std::string body = dump_json(Json{{"text", agent + "\n```json\n" + script + "\n```"}});
    clients_.push_back(std::make_unique<RawClient>(server_->port()));
    clients_.back()->send("POST /agents/talks/" + agent +
                          "/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                          "Content-Length: " +
                          std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  // The chat in the list, once it is in this state and so many turns wait behind it.
  [[nodiscard]] Json chat(const std::string& agent, const std::string& state,
                          int waiting = 0) const {
    const auto look = [&] {
      const Json page = json({"chats", "list", "talks"});
      for (const Json& each : page.at("chats")) {
        if (each.at("agent") == agent) return each;
      }
      return Json::object();
    };
    return soon(look, [&](const Json& seen) {
      return seen.value("state", "") == state && seen.at("waiting") == waiting;
    });
  }
  [[nodiscard]] Json waits_of(const std::string& agent) const {
    return json({"why", "talks/" + agent}).at("waits");
  }
  static Json wait_of_kind(const Json& waits, const std::string& kind) {
    for (const Json& each : waits) {
      if (each.at("kind") == kind) return each;
    }
    return Json::object();
  }

  ServerProcess model_;
  std::unique_ptr<ServerProcess> server_;
  std::vector<std::unique_ptr<RawClient>> clients_;
};

TEST_F(ChatsTest, AreListedShownAndCancelledByTheirTurns) {
  EXPECT_EQ(ask({"chats", "list", "talks"}), "no chats\n");
  say("a", R"([[{"words":2},{"hold":"a"}]])");
  const Json running = chat("a", "running");
  EXPECT_EQ(running.at("messages"), 1);
  EXPECT_FALSE(running.at("since_ms").is_null());
  EXPECT_FALSE(running.at("last_at_ms").is_null());
  const auto first = running.at("turn").get<std::string>();
  say("a", R"([[{"words":2},{"hold":"b"}]])");
  (void)chat("a", "running", 1);

  const Json turns = json({"chats", "show", "talks/a"}).at("work");
  ASSERT_EQ(turns.size(), 2U) << "the newest first";
  EXPECT_EQ(turns.at(0).at("state"), "queued");
  EXPECT_EQ(turns.at(1).at("id"), first);
  EXPECT_EQ(turns.at(1).at("kind"), "turn");
  const Json page = json({"chats", "show", "talks/a", "--limit", "1"});
  const Json rest =
      json({"chats", "show", "talks/a", "--after", page.at("next").get<std::string>()});
  EXPECT_EQ(rest.at("work").at(0).at("id"), first);
  const Json shown = json({"chats", "show", "talks/a", first}).at("record");
  EXPECT_EQ(shown.at("fiber").at("name"), "chat.turn");
  EXPECT_EQ(shown.at("fiber").at("status"), "running");

  const auto second = turns.at(0).at("id").get<std::string>();
  EXPECT_TRUE(contains(refused({"chats", "cancel", "talks/a", second}), "its state is queued"));
  EXPECT_EQ(ask({"chats", "cancel", "talks/a", first, "--note", "enough"}),
            "turn " + first + " is stopping\n");
  const Json ended = soon([&] { return json({"chats", "show", "talks/a", first}); },
                          [](const Json& turn) { return turn.at("state") == "aborted"; });
  EXPECT_EQ(ended.at("record").at("fiber").at("error"), "enough");
  EXPECT_EQ(chat("a", "running").at("turn"), second) << "the next one goes on";
  EXPECT_TRUE(contains(ask({"audit", "-n", "20"}), R"("kind":"turn")"));
}

// Without the library, which ends a cancelled turn.
TEST_F(ChatsTest, ACancelledTurnIsStoppingUntilTheChatIsTold) {
  say("a", R"([[{"words":2},{"hold":"a"}]])");
  const auto turn = chat("a", "running").at("turn").get<std::string>();
  clients_.clear();
  (void)server_->kill();
  std::filesystem::remove(root_ / "plugins/assistant.so");
  server_ = start();
  EXPECT_EQ(chat("a", "running").at("turn"), turn);
  const std::string stopping = "turn " + turn + " is stopping\n";
  EXPECT_EQ(ask({"chats", "cancel", "talks/a", turn}), stopping);
  EXPECT_EQ(chat("a", "stopping").at("turn"), turn);
  const Json turns = json({"chats", "show", "talks/a", "--state", "stopping"}).at("work");
  ASSERT_EQ(turns.size(), 1U);
  EXPECT_EQ(turns.at(0).at("id"), turn);
  EXPECT_EQ(json({"chats", "show", "talks/a", turn}).at("state"), "stopping");
}

TEST_F(ChatsTest, WhyNamesTheApprovalOrTheClientThatIsMissingAlsoColdAndWithoutTheLibrary) {
  say("b", R"([[{"call":"pay","input":{}}]])");
  say("c", R"([[{"call":"locate","input":{}}]])");
  (void)chat("b", "asks");
  (void)chat("c", "asks");
  const Json approval = wait_of_kind(waits_of("b"), "approval");
  ASSERT_TRUE(approval.is_object() && !approval.empty()) << dump_json(waits_of("b"));
  EXPECT_EQ(approval.at("urgency"), "person");
  EXPECT_TRUE(contains(approval.at("what").get<std::string>(), "the tool \"pay\""));
  EXPECT_FALSE(approval.at("since_ms").is_null());
  const Json client = wait_of_kind(waits_of("c"), "client_tool");
  ASSERT_FALSE(client.empty()) << dump_json(waits_of("c"));
  EXPECT_EQ(client.at("urgency"), "none") << "it has just begun";
  EXPECT_TRUE(contains(client.at("what").get<std::string>(), "the tool \"locate\""));
  clients_.clear();
  EXPECT_EQ(server_->stop(), kClean);

  std::filesystem::remove(root_ / "plugins/assistant.so");
  server_ = start();
  EXPECT_EQ(chat("b", "asks").at("turn"), nullptr);
  EXPECT_FALSE(wait_of_kind(waits_of("b"), "approval").empty());
  // Without a class it is found by what the library has said.
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"stuck"}, {"stuck", "talks"}}) {
    const std::string stuck = ask(command);
    EXPECT_TRUE(contains(stuck, "the tool \"pay\""));
    EXPECT_TRUE(lacks(stuck, "waits for a person")) << "said once: " << stuck;
  }
  EXPECT_TRUE(
      contains(refused({"stuck", "talks", "--all"}, kBadUsage), "a CLASS or --all, not both"));
}

TEST_F(ChatsTest, TheRecordsOfItsTurnsNeverStopAChat) {
  EXPECT_EQ(server_->stop(), kClean);
  put("classes/talks.yaml",
      read_file(root_ / "classes/talks.yaml", 4096).value() + "fibers: {max_records: 3}\n");
  server_ = start();
  for (int turn = 0; turn < 8; ++turn) {
    say("d", R"([[{"words":2}]])");
    (void)clients_.back()->read_until(R"("outcome":"completed")");
  }
  EXPECT_EQ(server_->stop(), kClean);
  server_ = start();
  EXPECT_EQ(chat("d", "idle").at("messages"), 16);
}

}  // namespace
}  // namespace hearth::testing

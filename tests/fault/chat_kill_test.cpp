// Answers of a chat over kills of the server, for each dialect of providers. The model server
// (packaging/model_server) counts the requests; the client is POST .../chat, which resumes with
// Last-Event-ID.
//
//     HEARTH_CHAT_KILLS=2000 build/release/tests/fault_tests --gtest_filter='ChatKillTest.*'
//
// HEARTH_CHAT_SEED=17 begins with that seed; a random moment can be repeated as far as the machine
// does the same again.

#include "fault/fault_fixture.hpp"
#include "json/json.hpp"
#include "support/environment.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace hearth::testing {
namespace {

struct ChatClass {
  const char* name;
  const char* provider;
  const char* more;
};
constexpr std::array kChatClasses = {
    ChatClass{"responses", "openai-responses", "  background: true\n"},
    ChatClass{"completions", "chat-completions", ""},
    ChatClass{"messages", "anthropic", ""},
};
// Each is passed within a turn.
constexpr std::array kChatStops = {"managed.start.written",     "managed.start.committed",
                                   "operation.started.written", "operation.started.committed",
                                   "operation.settled.written", "operation.settled.committed",
                                   "managed.settle.written",    "managed.settle.committed"};

class ChatKillTest : public ProcessTest {
 protected:
  ChatKillTest()
      : model_({"python3", (built::sources() / "packaging/model_server").string(), "--words", "30",
                "--rate", "300"}) {
    install(bundled("assistant"), "assistant.so");
    put("hearth.yaml", "classes: classes\n");
    const std::string said = model_.wait_for_line();
    const std::string address = said.substr(said.rfind('/') + 1);
    model_port_ = static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1)));
    for (const ChatClass& each : kChatClasses)
      put(std::string("classes/") + each.name + ".yaml",
          std::string("class: ") + each.name + "\ncode: assistant\nfibers: {retry_base: 10ms}\n" +
              "egress: {allow: [\"" + address + "\"]}\noptions:\n  provider: " + each.provider +
              "\n  base_url: http://" + address + "/v1\n  model: m\n" + each.more);
  }

  // A question to an agent of its own, and what its client has seen of the answer.
  struct Question {
    const ChatClass* of = nullptr;
    std::string agent;
    std::vector<std::string> chunks = {};  // by their number
    Json end = nullptr;                    // null: it has not come
  };
  Question question(const ChatClass& of) { return {&of, "q" + std::to_string(++questions_)}; }
  // The client asks, again with the same key.
  static std::unique_ptr<RawClient> ask(const ServerProcess& server, const Question& question) {
    const std::string body = R"({"text":"question )" + question.agent + R"("})";
    std::string head = std::string("POST /agents/") + question.of->name + "/" + question.agent +
                       "/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
                       "Idempotency-Key: k\r\nContent-Length: " + std::to_string(body.size()) +
                       "\r\n";
    if (!question.chunks.empty())
      head += "Last-Event-ID: " + std::to_string(question.chunks.size() - 1) + "\r\n";
    auto client = std::make_unique<RawClient>(server.port());
    client->send(head + "\r\n" + body);
    return client;
  }
  // Takes the events to the end of the answer, or of the server.
  static void read(RawClient& client, Question& question) {
    std::string body;
    try {
      EXPECT_EQ(client.read_until("\r\n\r\n").substr(9, 3), "200");
      for (;;) {
        const std::size_t size = std::stoul(client.read_until("\r\n"), nullptr, 16);
        if (size == 0) break;
        body += client.read_exactly(size);
        client.read_exactly(2);
      }
    } catch (const std::runtime_error&) {
      SUCCEED() << "killed";
    }
    for (std::size_t at = 0, end = 0; (end = body.find("\n\n", at)) != std::string::npos;
         at = end + 2)
      take(body.substr(at, end - at + 1), question);
  }
  static void take(const std::string& event, Question& question) {
    const auto field = [&](const std::string& name) {
      const std::size_t at = event.find(name + ": ");
      if (at == std::string::npos) return std::string();
      const std::size_t begin = at + name.size() + 2;
      return event.substr(begin, event.find('\n', begin) - begin);
    };
    if (const std::string id = field("id"); !id.empty()) {
      EXPECT_EQ(id, std::to_string(question.chunks.size())) << "a chunk is missing, or came twice";
      question.chunks.push_back(field("data"));
    } else if (field("event") == "done") {
      question.end = parse_json(field("data")).value();
    }
  }
  static std::string text_of(const Question& question) {
    std::string text;
    for (const std::string& each : question.chunks) {
      const Json chunk = parse_json(each).value();
      const std::string type = chunk.value("type", "");
      if (type == "text-delta") text += chunk.value("delta", "");
      if (type == "reset-step") text.clear();
    }
    return text;
  }
  void answer_to_the_end(Question& question) {
    const auto server = serve_chats();
    const auto client = ask(*server, question);
    read(*client, question);
    EXPECT_EQ(server->stop(), kClean);
  }
  [[nodiscard]] std::unique_ptr<ServerProcess> serve_chats() const {
    return serve_ready({"--config", "hearth.yaml", "--shards", "1"});
  }

  // All of the text came, once; and no request was made that is in no ledger.
  void expect_whole(const Question& question) {
    SCOPED_TRACE(question.of->name + (" " + question.agent));
    EXPECT_EQ(question.end.value("outcome", ""), "completed");
    EXPECT_EQ(text_of(question), all_words());
    const std::string hash = sha256_hex(question.agent).substr(0, 32);
    const auto calls =
        rows_of(root_ / "data/agents" / question.of->name / hash.substr(0, 2) / (hash + ".db"),
                "SELECT id FROM cf_agents_operations WHERE kind LIKE 'chat.model%'");
    EXPECT_GE(calls.size(), 1U);
    EXPECT_LE(requests(question), calls.size());
    requests_ += requests(question);
  }
  std::size_t requests(const Question& question) {
    RawClient client(model_port_);
    const std::string lines =
        client.request("GET /journal HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").body;
    std::size_t count = 0;
    for (std::size_t at = 0, end = 0; (end = lines.find('\n', at)) != std::string::npos;
         at = end + 1) {
      const std::string line = lines.substr(at, end - at);
      const std::size_t place = line.find("question " + question.agent);  // in the request's body
      if (place == std::string::npos) continue;
      const char after = line[place + 9 + question.agent.size()];
      if (after == '"' || after == '\\') ++count;
    }
    return count;
  }
  static std::string all_words() {
    std::string text;
    for (int i = 1; i <= 30; ++i) text += (i == 1 ? "word" : " word") + std::to_string(i);
    return text;
  }

  ServerProcess model_;
  std::uint16_t model_port_ = 0;
  std::size_t questions_ = 0;
  std::size_t requests_ = 0;
};

TEST_F(ChatKillTest, AnAnswerGoesOnAfterAKillAtAnyMoment) {
  const std::uint64_t wanted = from_environment("HEARTH_CHAT_KILLS", kSanitized ? 9 : 40);
  const std::uint64_t first = from_environment("HEARTH_CHAT_SEED", 1);
  std::uint64_t seed = first;
  std::uint64_t kills = 0;
  for (; kills < wanted && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Question asked = question(kChatClasses[seed % kChatClasses.size()]);
    const std::uint64_t kills_of_it = 1 + random() % 3;
    for (std::uint64_t i = 0; i < kills_of_it; ++i, ++kills) {
      const auto server = serve_chats();
      const auto client = ask(*server, asked);
      // Any moment: this waits for nothing. An answer takes some 100 ms.
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 150'000));
      EXPECT_EQ(server->kill(), kKilled);
      read(*client, asked);
    }
    answer_to_the_end(asked);
    expect_whole(asked);
  }
  std::cout << kills << " kills of servers, " << questions_ << " answers, " << requests_
            << " requests; the next seed is " << seed << '\n';
}

TEST_F(ChatKillTest, AnAnswerGoesOnAfterAKillAtEachPlaceOfItsTurn) {
  for (const ChatClass& of : kChatClasses) {
    for (const std::string stop : kChatStops) {
      SCOPED_TRACE(stop);
      Question asked = question(of);
      {
        ServerProcess server(
            {"env", "HEARTH_STOP_AT=" + stop + ":1", built::server().string(), "serve", "--listen",
             "127.0.0.1:0", "--log-format", "human", "--config", "hearth.yaml", "--shards", "1"},
            root_);
        server.wait_until_ready();
        const auto client = ask(server, asked);
        server.wait_for_log("stopped at " + stop + "\n");
        EXPECT_EQ(server.kill(), kKilled);
        read(*client, asked);
      }
      answer_to_the_end(asked);
      expect_whole(asked);
    }
  }
}

}  // namespace
}  // namespace hearth::testing

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
#include "support/exposition.hpp"
#include "support/provider.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hearth::testing {
namespace {

struct ChatClass {
  const char* name;
  const char* provider;
  const char* more;           // options ...
  const char* settings = "";  // ... and what stands beside them
  const char* effect = "";    // of the tool `pay`, which the answer begins with; empty: no tool
  bool asks_user = false;     // before it pays
};
constexpr std::array kChatClasses = {
    ChatClass{"responses", "openai-responses", "  background: true\n"},
    ChatClass{"completions", "chat-completions", ""},
    ChatClass{"messages", "anthropic", ""},
};
constexpr ChatClass kLimited{"limited", "chat-completions", "",
                             "operations: {kinds: {chat.model: {per_day: 1}}}\n"};
constexpr std::array kPaying = {
    ChatClass{"keyed-responses", "openai-responses", "  background: true\n", "", "keyed"},
    ChatClass{"keyed-completions", "chat-completions", "", "", "keyed"},
    ChatClass{"keyed-messages", "anthropic", "", "", "keyed"},
    ChatClass{"unsafe-responses", "openai-responses", "  background: true\n", "", "unsafe"},
    ChatClass{"unsafe-completions", "chat-completions", "", "", "unsafe"},
    ChatClass{"unsafe-messages", "anthropic", "", "", "unsafe"},
};
constexpr std::array kAsking = {
    ChatClass{"asking-responses", "openai-responses", "  background: true\n", "", "keyed", true},
    ChatClass{"asking-completions", "chat-completions", "", "", "keyed", true},
    ChatClass{"asking-messages", "anthropic", "", "", "keyed", true},
};
// Its tool is a chat of kChatClasses[1], of the name "expert".
constexpr ChatClass kDesk{"desk", "chat-completions",
                          "  tools: [{name: ask, chat: {class: completions, name: expert}}]\n"};
// Each is passed within a turn; the parts are those of the answer, with their chunks.
struct ChatStop {
  const char* name;
  int visit = 1;
};
constexpr std::array kChatStops = {
    ChatStop{"managed.start.written"},        ChatStop{"managed.start.committed"},
    ChatStop{"operation.started.written"},    ChatStop{"operation.started.committed"},
    ChatStop{"operation.dispatched.written"}, ChatStop{"fetch.start.committed"},
    ChatStop{"operation.part.committed", 1},  ChatStop{"operation.part.committed", 4},
    ChatStop{"operation.settled.written"},    ChatStop{"operation.settled.committed"},
    ChatStop{"managed.settle.written"},       ChatStop{"managed.settle.committed"}};

// A recovery passes these behind a kill in mid-answer, each here in one dialect, in their order.
constexpr std::array kRecoveryStops = {
    "fiber.attempt.written",     "fiber.attempt.committed",      "operation.settled.written",
    "fetch.start.committed",     "operation.started.written",    "operation.started.committed",
    "operation.part.committed",  "operation.dispatched.written", "managed.settle.written",
    "operation.settled.written", "operation.settled.committed",  "managed.settle.committed"};

// The second visits are those of a tool. What an unsafe one has come to after a kill there: whether
// it has charged, and whether that is known. The server cannot tell what a tool does, so from its
// start on it may have acted.
struct ToolStop {
  const char* name;
  int charges;
  bool is_known;
};
constexpr std::array kToolStops = {
    ToolStop{"operation.started.written", 1, true},
    ToolStop{"operation.started.committed", 0, false},
    ToolStop{"operation.dispatched.written", 0, false},
    ToolStop{"fetch.start.committed", 0, false},
    ToolStop{"operation.settled.written", 1, false},
    ToolStop{"operation.settled.committed", 1, true},
};

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
    for (const ChatClass& each : kChatClasses) put_class(each, address);
    for (const ChatClass& each : kAsking) put_class(each, address);
    for (const ChatClass& each : kPaying) put_class(each, address);
    for (const ChatClass& each : {kLimited, kDesk}) put_class(each, address);
  }
  void put_class(const ChatClass& of, const std::string& address) {
    put(std::string("classes/") + of.name + ".yaml",
        std::string("class: ") + of.name + "\ncode: assistant\nfibers: {retry_base: 10ms}\n" +
            of.settings + "egress: {allow: [\"" + address + "\", \"" + shop() +
            "\"]}\noptions:\n  provider: " + of.provider + "\n  base_url: http://" + address +
            "/v1\n  model: m\n" + of.more + pay(of));
  }
  [[nodiscard]] std::string shop() const { return "127.0.0.1:" + std::to_string(shop_.http()); }
  [[nodiscard]] std::string pay(const ChatClass& of) const {
    if (*of.effect == 0) return {};
    return std::string("  tools: [{name: pay, approval: ") + (of.asks_user ? "true" : "false") +
           ", http: {method: POST, url: \"http://" + shop() + "/charges\", effect: " + of.effect +
           "}}]\n";
  }
  // How often the shop has charged, by the key of the request.
  Json charges(const std::string& query = "") const {
    RawClient client(shop_.http());
    return parse_json(client
                          .request("GET /charged" + query +
                                   " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                          .body)
        .value();
  }

  // A question to an agent of its own, and what its client has seen of the answer.
  struct Question {
    const ChatClass* of = nullptr;
    std::string agent;
    std::string key = "k";
    std::string script = {};               // of the model; empty: as the class needs it
    std::vector<std::string> chunks = {};  // by their number
    Json end = nullptr;                    // null: it has not come
  };
  Question question(const ChatClass& of) { return {&of, "q" + std::to_string(++questions_)}; }
  // The client asks, again with the same key.
  static std::unique_ptr<RawClient> ask(const ServerProcess& server, const Question& question) {
    std::string text = "question " + question.agent;
    std::string script = question.script;
    if (*question.of->effect != 0) script = R"([[{"call":"pay","input":{}}],[{"words":30}]])";
    if (!script.empty()) text += "\n```json\n" + script + "\n```";
    const std::string body = dump_json(Json{{"text", text}});
    std::string head = std::string("POST /agents/") + question.of->name + "/" + question.agent +
                       "/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
                       "Idempotency-Key: " + question.key +
                       "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
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
  // The chunk that settles the call; null: there is none. Fails the test if there are two.
  static Json result_of_tool(const Question& question) {
    Json result = nullptr;
    for (const std::string& each : question.chunks) {
      const Json chunk = parse_json(each).value();
      if (!chunk.value("type", "").starts_with("tool-output-")) continue;
      if (chunk.value("preliminary", false)) continue;
      EXPECT_TRUE(result.is_null()) << each;
      result = chunk;
    }
    return result;
  }
  // The server is killed at this visit of the place.
  void ask_and_kill(Question& question, const std::string& stop, int visit) {
    const auto server = serve_until(stop, visit);
    const auto client = ask(*server, question);
    server->wait_for_log("stopped at " + stop + "\n");
    EXPECT_EQ(server->kill(), kKilled);
    read(*client, question);
  }
  [[nodiscard]] std::unique_ptr<ServerProcess> serve_until(const std::string& stop,
                                                           int visit) const {
    auto server = start_until(stop, visit);
    server->wait_until_ready();
    return server;
  }
  // It may come there before it is ready.
  [[nodiscard]] std::unique_ptr<ServerProcess> start_until(const std::string& stop,
                                                           int visit) const {
    return std::make_unique<ServerProcess>(
        std::vector<std::string>{"env", "HEARTH_STOP_AT=" + stop + ":" + std::to_string(visit),
                                 built::server().string(), "serve", "--listen", "127.0.0.1:0",
                                 "--log-format", "human", "--config", "hearth.yaml", "--shards",
                                 "1"},
        root_);
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

  // All of the text came, once, and is stored.
  void expect_whole(const Question& question) {
    SCOPED_TRACE(question.of->name + (" " + question.agent));
    EXPECT_EQ(question.end.value("outcome", ""), "completed");
    EXPECT_EQ(text_of(question), all_words());
    expect_paid(question, *question.of->effect != 0 || question.of == &kDesk ? 2 : 1);
    expect_stored(question);
  }
  // So many answers were whole. Each other request has a row that says that its answer was cut; of
  // a provider that goes on with an answer, before it had any content.
  void expect_paid(const Question& question, std::size_t answers) {
    std::size_t whole = 0;
    std::size_t cut = 0;
    for (const std::string& row : rows_of_chat(
             question,
             "SELECT o.state, json_extract(d.body, '$.failure'), json_extract(d.body, "
             "'$.has_content') FROM cf_agents_operations o LEFT JOIN cf_agents_operation_documents "
             "d ON d.operation = o.seq AND d.part = 2 WHERE o.kind LIKE 'chat.model%'")) {
      const bool is_whole = row.starts_with("completed||");
      ++(is_whole ? whole : cut);
      if (is_whole) continue;
      EXPECT_TRUE(row.starts_with("completed|cut|")) << row;
      if (std::string_view(question.of->provider) == "openai-responses")
        EXPECT_EQ(row, "completed|cut|0");
    }
    EXPECT_EQ(whole, answers);
    EXPECT_GE(requests(question), answers);
    EXPECT_LE(requests(question), answers + cut);
    requests_ += requests(question);
  }
  static Json messages(const ServerProcess& server, const Question& question) {
    const Reply reply = request(
        server, "GET",
        std::string("/agents/") + question.of->name + "/" + question.agent + "/get-messages");
    EXPECT_EQ(reply.status, 200);
    return parse_json(reply.body).value();
  }
  // What the client was shown as accepted is stored, once: its own message ...
  static void expect_accepted(const ServerProcess& server, const Question& question) {
    if (question.chunks.empty()) return;
    const Json stored = messages(server, question);
    ASSERT_TRUE(stored.size() == 1 || stored.size() == 2) << dump_json(stored);
    EXPECT_EQ(stored[0]["role"], "user");
    EXPECT_EQ(stored_text(stored[0]).find("question " + question.agent), 0U);
  }
  // ... and the answer, which has the id that its client knows.
  void expect_stored(const Question& question) const {
    const auto server = serve_chats();
    expect_accepted(*server, question);
    const Json stored = messages(*server, question);
    ASSERT_EQ(stored.size(), 2U) << dump_json(stored);
    EXPECT_EQ(stored_text(stored[1]), all_words());
    std::vector<std::string> started;
    for (const std::string& each : question.chunks) {
      const Json chunk = parse_json(each).value();
      if (chunk["type"] == "start") started.push_back(chunk["messageId"].get<std::string>());
    }
    EXPECT_EQ(started, std::vector<std::string>{stored[1]["id"].get<std::string>()});
    EXPECT_EQ(server->stop(), kClean);
  }
  static std::string stored_text(const Json& message) {
    std::string text;
    for (const Json& part : message["parts"])
      if (part["type"] == "text") text += part["text"].get<std::string>();
    return text;
  }
  // The state of the call of `pay`; empty: it is not stored.
  static std::string state_of_call(const Json& stored, std::string* call = nullptr) {
    if (stored.size() < 2) return {};
    for (const Json& part : stored[1]["parts"]) {
      if (!part.contains("toolCallId")) continue;
      if (call != nullptr) *call = part["toolCallId"].get<std::string>();
      return part["state"].get<std::string>();
    }
    return {};
  }
  // A client with a WebSocket, which sends this frame.
  static std::unique_ptr<RawClient> send_frame(const ServerProcess& server,
                                               const Question& question, const Json& frame) {
    auto client = std::make_unique<RawClient>(server.port());
    client->send(std::string("GET /agents/") + question.of->name + "/" + question.agent +
                 " HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 "Sec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    EXPECT_EQ(client->read_until("\r\n\r\n").substr(9, 3), "101");
    const std::string text = dump_json(frame);  // at least 126 bytes, and a mask that changes none
    std::string head = "\x81\xfe";
    head += static_cast<char>(text.size() >> 8U);
    head += static_cast<char>(text.size() & 0xFFU);
    client->send(head + std::string(4, '\0') + text);
    return client;
  }
  static Json approval(const std::string& call) {
    return {{"type", "cf_agent_tool_approval"},
            {"toolCallId", call},
            {"approved", true},
            {"autoContinue", true},
            {"padding", std::string(126, ' ')}};
  }
  template <class Holds>
  static bool soon(const Holds& holds) {
    for (int i = 0; i < 500; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until it holds, at most 10 s
    }
    return false;
  }
  [[nodiscard]] std::vector<std::string> rows_of_chat(const Question& question,
                                                      const std::string& query) const {
    const std::string hash = sha256_hex(question.agent).substr(0, 32);
    return rows_of(root_ / "data/agents" / question.of->name / hash.substr(0, 2) / (hash + ".db"),
                   query);
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

  Provider shop_;
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
    const bool pays = seed % 4 == 0;
    Question asked = question(pays ? kPaying.at(seed / 4 % 3) : kChatClasses.at(seed % 3));
    charges("?reset");
    const std::uint64_t kills_of_it = 1 + random() % 3;
    for (std::uint64_t i = 0; i < kills_of_it; ++i, ++kills) {
      const auto server = serve_chats();
      expect_accepted(*server, asked);
      const auto client = ask(*server, asked);
      // Any moment: this waits for nothing. An answer takes some 100 ms.
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 150'000));
      EXPECT_EQ(server->kill(), kKilled);
      read(*client, asked);
    }
    answer_to_the_end(asked);
    expect_whole(asked);
    EXPECT_EQ(charges().size(), pays ? 1U : 0U) << "keys of the tool";
  }
  std::cout << kills << " kills of servers, " << questions_ << " answers, " << requests_
            << " requests; the next seed is " << seed << '\n';
}

TEST_F(ChatKillTest, AnAnswerGoesOnAfterAKillAtEachPlaceOfItsTurn) {
  for (std::size_t dialect = 0; dialect < kChatClasses.size(); ++dialect) {
    for (std::size_t place = 0; place < kChatStops.size(); ++place) {
      if (kSanitized && place % kChatClasses.size() != dialect) continue;
      const ChatStop& stop = kChatStops.at(place);
      SCOPED_TRACE(stop.name + std::string(" ") + std::to_string(stop.visit));
      Question asked = question(kChatClasses.at(dialect));
      ask_and_kill(asked, stop.name, stop.visit);
      answer_to_the_end(asked);
      expect_whole(asked);
    }
  }
}

// In the turn's first recovery; behind that it goes on unasked (C24).
TEST_F(ChatKillTest, C23_AnAnswerGoesOnByItselfAfterASecondKillAtEachPlaceOfItsRecovery) {
  for (std::size_t i = 0; i < kRecoveryStops.size(); ++i) {
    const std::string stop = kRecoveryStops.at(i);
    Question asked = question(kChatClasses.at(i % kChatClasses.size()));
    SCOPED_TRACE(stop + " " + asked.of->name);
    ask_and_kill(asked, "operation.part.committed", 4);
    {
      const auto server = start_until(stop, 1);
      server->wait_for_log("stopped at " + stop + "\n");
      EXPECT_EQ(server->kill(), kKilled);
    }
    {
      const auto server = serve_chats();
      EXPECT_TRUE(soon([&] {
        return rows_of_chat(asked, "SELECT state FROM chat_turns") ==
               std::vector<std::string>{"completed"};
      }));
      EXPECT_EQ(server->stop(), kClean);
    }
    answer_to_the_end(asked);
    expect_whole(asked);
  }
}

TEST_F(ChatKillTest, C31_AToolRunsOnceOverAKillAtEachOfItsPlacesOrAgainWithItsKey) {
  for (const bool is_keyed : {true, false}) {
    for (std::size_t i = 0; i < kToolStops.size(); ++i) {
      const ToolStop& stop = kToolStops.at(i);
      Question asked = question(kPaying.at((is_keyed ? 0 : 3) + i % 3));
      SCOPED_TRACE(stop.name + std::string(" ") + asked.of->name);
      charges("?reset");
      ask_and_kill(asked, stop.name, 2);
      answer_to_the_end(asked);
      expect_whole(asked);
      const Json charged = charges();
      const Json result = result_of_tool(asked);
      if (is_keyed) {
        ASSERT_EQ(charged.size(), 1U) << dump_json(charged);
        EXPECT_EQ(result.value("output", Json()), (Json{{"receipt", charged.begin().key()}}));
      } else {
        int count = 0;
        for (const Json& each : charged) count += each.get<int>();
        EXPECT_EQ(count, stop.charges) << dump_json(charged);
        EXPECT_EQ(result.contains("output"), stop.is_known) << dump_json(result);
        if (!stop.is_known)
          EXPECT_EQ(result.value("errorText", ""),
                    "This call may have been executed; verify before it is repeated.");
      }
    }
  }
}

// Within T5 (the call awaits its user), T7 (the user's answer begins the next turn) and that turn.
TEST_F(ChatKillTest, C23_AnApprovalIsAskedForOnceAndPaysOnceOverAKillAtEachPlace) {
  struct Row {
    const char* stop;
    bool is_answer;  // the kill comes with the user's answer
    std::size_t of;
  };
  for (const Row& row : {Row{"operation.settled.written", false, 0},
                         {"operation.settled.committed", false, 1},
                         {"operation.settled.committed", false, 2},
                         {"managed.start.written", true, 0},
                         {"managed.start.committed", true, 1},
                         {"fetch.start.committed", true, 2}}) {
    SCOPED_TRACE(row.stop + std::string(row.is_answer ? " of the answer" : ""));
    charges("?reset");
    Question asked = question(kAsking.at(row.of));
    SCOPED_TRACE(asked.of->name);
    if (!row.is_answer) ask_and_kill(asked, row.stop, 1);
    answer_to_the_end(asked);
    EXPECT_EQ(asked.end.value("outcome", ""), "completed");
    EXPECT_EQ(charges().size(), 0U);
    std::string call;
    {
      const auto server = row.is_answer ? serve_until(row.stop, 1) : serve_chats();
      ASSERT_EQ(state_of_call(messages(*server, asked), &call), "approval-requested");
      if (row.is_answer) {
        const auto client = send_frame(*server, asked, approval(call));
        server->wait_for_log("stopped at " + std::string(row.stop) + "\n");
      }
      EXPECT_EQ(server->kill(), kKilled);
    }
    const auto server = serve_chats();
    std::unique_ptr<RawClient> client;
    if (state_of_call(messages(*server, asked)) == "approval-requested")
      client = send_frame(*server, asked, approval(call));
    EXPECT_TRUE(soon([&] { return stored_text(messages(*server, asked)[1]) == all_words(); }));
    EXPECT_EQ(server->stop(), kClean);
    EXPECT_EQ(charges().size(), 1U);
    expect_paid(asked, 2);
    expect_stored(asked);
  }
}

// T8: what a client has cleared does not come back, nothing is asked for it, and its call is over;
// that of the first row, which is in the background, ends at the provider in a later commit.
TEST_F(ChatKillTest, C15_WhatAClearHasEndedStaysAwayOverAKill) {
  constexpr std::array kStops = {"operation.settled.written", "operation.settled.committed",
                                 "managed.settle.committed"};
  for (std::size_t i = 0; i < kStops.size(); ++i) {
    SCOPED_TRACE(kStops.at(i));
    Question asked = question(kChatClasses.at(i));
    asked.script = R"([[{"rate":20},{"words":30}]])";
    {
      const auto server = serve_until(kStops.at(i), 1);
      const auto client = ask(*server, asked);
      client->read_until("word3");
      const auto clearing = send_frame(
          *server, asked, {{"type", "cf_agent_chat_clear"}, {"padding", std::string(126, ' ')}});
      server->wait_for_log("stopped at " + std::string(kStops.at(i)) + "\n");
      EXPECT_EQ(server->kill(), kKilled);
    }
    const auto server = serve_chats();
    EXPECT_EQ(messages(*server, asked), Json::array());
    EXPECT_TRUE(soon([&] {
      return rows_of_chat(asked, "SELECT state FROM chat_turns") ==
                 std::vector<std::string>{"aborted"} &&
             rows_of_chat(asked,
                          "SELECT 1 FROM cf_agents_fibers WHERE status IN ('pending', 'running')")
                 .empty();
    }));
    EXPECT_EQ(messages(*server, asked), Json::array());
    EXPECT_EQ(server->stop(), kClean);
    EXPECT_EQ(rows_of_chat(asked, "SELECT state FROM cf_agents_operations"),
              std::vector<std::string>{"completed"});
    EXPECT_EQ(requests(asked), 1U);
  }
}

TEST_F(ChatKillTest, AChatThatAsksAnotherOneLosesNothingAndAsksOnce) {
  std::mt19937_64 random(from_environment("HEARTH_CHAT_SEED", 1));
  for (std::size_t i = 1; i <= (kSanitized ? 1 : 3) && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    Question asked = question(kDesk);
    asked.script = R"([[{"call":"ask","input":{"text":"question expert-)" + asked.agent +
                   R"("}}],[{"words":30}]])";
    for (int kills = 0; kills < 2; ++kills) {
      const auto server = serve_chats();
      const auto client = ask(*server, asked);
      // Any moment: this waits for nothing. Both answers take some 200 ms.
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 250'000));
      EXPECT_EQ(server->kill(), kKilled);
      read(*client, asked);
    }
    answer_to_the_end(asked);
    expect_whole(asked);
    EXPECT_EQ(result_of_tool(asked).value("output", Json()), all_words());
    const auto server = serve_chats();
    const Json stored = messages(*server, {&kChatClasses[1], "expert"});
    ASSERT_EQ(stored.size(), 2 * i) << dump_json(stored);
    EXPECT_EQ(stored_text(stored.back()), all_words());
    EXPECT_EQ(server->stop(), kClean);
  }
}

TEST_F(ChatKillTest, TheStepsOfARecoveryAreInTheMetrics) {
  Question asked = question(kChatClasses[1]);
  {
    const auto server = serve_chats();
    const auto client = ask(*server, asked);
    EXPECT_EQ(client->read_until("\r\n\r\n").substr(9, 3), "200");
    client->read_until("word3");
    EXPECT_EQ(server->kill(), kKilled);
  }
  const auto server = serve_chats();
  const auto client = ask(*server, asked);
  read(*client, asked);
  const Exposition seen(request(*server, "GET", "/metrics").body);
  EXPECT_EQ(seen.mistake(), "");
  for (const char* const event : {"detected", "attempt", "completed"})
    EXPECT_GE(
        seen.value("hearth_agent_events_total",
                   {{"class", "completions"}, {"event", std::string("chat:recovery:") + event}})
            .value_or(0),
        1)
        << event;
  EXPECT_EQ(server->stop(), kClean);
  expect_whole(asked);
}

TEST_F(ChatKillTest, C45_ALimitOfTheClassEndsATurnBeforeItsCallWhichIsNoneOfTheBudget) {
  Question first = question(kLimited);
  answer_to_the_end(first);
  expect_whole(first);
  Question second = first;
  second.key = "k2";
  second.chunks.clear();
  answer_to_the_end(second);
  EXPECT_EQ(second.end.value("outcome", ""), "error");
  EXPECT_EQ(second.end.value("error", ""),
            "This server has reached its daily limit of calls to the model.");
  EXPECT_EQ(requests(first), 1U);
  EXPECT_EQ(rows_of_chat(first,
                         "SELECT json_extract(value, '$.spent.calls') FROM cf_agents_kv "
                         "WHERE key = 'hearth.chat.day'"),
            (std::vector<std::string>{"1"}));
}

}  // namespace
}  // namespace hearth::testing

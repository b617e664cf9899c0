#pragma once
// The agent of the tests of whole conversations, on the mock host.
#include "chat_client.hpp"
#include "scripted_model.hpp"

#include <hearth/chat/chat_agent.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::chat {

struct Order {
  std::string id;
  int cents = 0;
  HEARTH_FIELDS(id, cents)
};

struct SupportOptions : ChatOptions {
  bool persist = true;  // of on_chat_recovery
  bool proceed = true;
  bool shout = false;  // sanitize() adds an exclamation mark ...
  bool slow_start = false;
  bool swell = false;     // ... or what no message can hold, to the answer "large"
  std::string hook = {};  // "keep:false" and so on: a hook that does something else

  template <class Visitor>
  void hearth_visit(const Visitor& visitor) {
    ChatOptions::hearth_visit([&](std::string_view names, auto&... fields) {
      visitor(std::string(names) + ", persist, proceed, shout, slow_start, swell, hook", fields...,
              persist, proceed, shout, slow_start, swell, hook);
    });
  }
};

// Keeps in its tables what its hooks were told.
class Support : public ChatAgent {
 public:
  static void methods(Methods<Support>& m) {
    chat_methods(m);
    m.add("notes", &Support::notes);
    m.add("start", &Support::start);
    m.add("wait", &Support::wait);
    m.add("go_on", &Support::go_on);
    m.add("is_stable", &Support::is_stable);
    m.add("costs", &Support::costs);
    m.add("unsettled", &Support::unsettled);
    m.add("cancel_fibers", &Support::cancel_fibers);
    m.add("complete_calls", &Support::complete_calls);
    m.add("model_calls", &Support::model_calls);
  }
  ChatOptions chat_options() override {
    own_ = read_chat_options<SupportOptions>(options());
    const ChatOptions& of_chat = own_;
    return of_chat;
  }
  Task<void> on_other_start() override {
    sql("CREATE TABLE IF NOT EXISTS notes(what TEXT, text TEXT)");
    if (own_.hook.starts_with("dead"))  // a fiber that fails beside its turn
      sql("CREATE TRIGGER IF NOT EXISTS dead BEFORE UPDATE OF state ON chat_turns "
          "WHEN NEW.state = 'completed' AND NOT EXISTS(SELECT 1 FROM notes WHERE what = "
          "'exhausted') BEGIN SELECT RAISE(ABORT, 'no luck'); END");
    if (own_.slow_start) co_await sleep(std::chrono::seconds(1));
  }
  Task<void> on_turn(Turn& turn) override {
    turn.system("You help customers of Acme.");
    turn.tool("refund", "Refunds an order.", Effect::kKeyed, &Support::refund, {.approval = true});
    turn.tool("look", "Finds an order.", Effect::kRead, &Support::look);
    turn.tool("find", "Finds a parcel.", Effect::kRead, &Support::find);
    turn.tool("send", "Sends an order.", Effect::kUnsafe, &Support::send);
    turn.write("begun", {{"type", "data-begun"}, {"data", turn.id()}});
    if (own_.hook == (turn.is_recovered() ? "summarise:later" : "summarise:first")) {
      Compaction all;
      all.messages.push_back(user_message("u", "count"));
      all.max_bytes = 100;
      auto summarising = turn.summarise(all);
      note("summary", co_await std::move(summarising));
    }
    auto generating = turn.generate();
    co_await std::move(generating);
  }
  Json refund(Order order, ToolCall /*call*/) {
    note("refund", order.id);
    return {{"refunded", order.id}};
  }
  Json look(const Order& order) { return {{"order", order.id}, {"cents", 500}}; }
  Task<Json> find(Order order) {
    co_await sleep(std::chrono::seconds(2));
    co_return Json{{"found", order.id}};
  }
  Task<Json> send(Order order) {
    note("send", order.id);
    co_await sleep(std::chrono::seconds(10));
    co_return Json{{"sent", order.id}};
  }
  void history(Json& messages) override { note("history", std::to_string(messages.size())); }
  Task<void> on_turn_end(TurnEnd end) override {
    note("end", end.status);
    return {};
  }
  Task<RecoveryChoice> on_chat_recovery(RecoveryContext context) override {
    note("recovery", context.recovery_kind + " " + std::to_string(context.attempt) + " " +
                         context.partial_text);
    if (own_.hook == "recovery:throw") throw std::runtime_error("no luck");
    if (own_.hook == "recovery:slow") co_await sleep(std::chrono::seconds(10));
    co_return RecoveryChoice{own_.persist, own_.proceed};
  }
  Task<bool> should_keep_recovering(RecoveryContext /*context*/) override {
    if (own_.hook == "keep:throw") throw std::runtime_error("no luck");
    note("keep", "");
    if (own_.hook == "keep:slow") co_await sleep(std::chrono::seconds(10));
    co_return own_.hook != "keep:false";
  }
  Task<void> on_exhausted(RecoveryContext context) override {
    note("exhausted", context.reason);
    if (own_.hook == "exhausted:throw") throw std::runtime_error("no luck");
    if (own_.hook.ends_with(":slow")) co_await sleep(std::chrono::seconds(10));
  }
  FailureKind classify_error(const Failure& failure) override {
    return own_.hook == "classify" ? FailureKind::kTransient : failure.kind;
  }
  std::string error_text(const Failure& failure) override {
    return own_.hook == "text" ? "Ask Bob." : ChatAgent::error_text(failure);
  }
  std::optional<Json> repair_tool_part(const Json& part) override {
    if (own_.hook != "repair") return std::nullopt;
    return Json{{"type", "text"}, {"text", "[" + part.at("type").get<std::string>() + " left]"}};
  }
  void on_chat_error(const std::string& /*text*/, const std::string& classification) override {
    note("error", classification);
  }
  void sanitize(Json& message) override {
    if (own_.hook == "sanitize:" + message.at("role").get<std::string>())
      throw std::runtime_error("no luck");
    if (message.at("role") != "assistant") return;
    if (own_.swell && text_of(message) == "large")
      message["metadata"] = std::string(kMaxMessageBytes, 'x');
    if (!own_.shout) return;
    for (Json& part : message.at("parts"))
      if (part.at("type") == "text") part["text"] = part.at("text").get<std::string>() + "!";
  }
  void note(const std::string& what, const std::string& text) {
    sql("INSERT INTO notes VALUES (?, ?)", what, text);
  }
  std::vector<std::string> notes(std::string what) {
    std::vector<std::string> all;
    Query rows = sql("SELECT text FROM notes WHERE what = ? ORDER BY rowid", what);
    while (auto row = rows.optional<std::string>()) all.push_back(*row);
    return all;
  }
  std::vector<std::uint64_t> costs() {
    std::vector<std::uint64_t> all;
    for (const OperationRecord& operation : list_operations()) all.push_back(operation.cost);
    return all;
  }
  // How the calls of the model were: "" or the name of a failure, in their order.
  std::vector<std::string> model_calls() {
    std::vector<std::string> all;
    for (const OperationRecord& operation : list_operations())
      if (operation.kind.starts_with("chat.model"))
        all.push_back(operation.result.value("failure", "?"));
    return all;
  }
  // Operations that have neither completed nor were not executed.
  int unsettled() {
    OperationFilter open;
    open.states = {OperationState::kRunning, OperationState::kInterrupted,
                   OperationState::kUnknown};
    return static_cast<int>(list_operations(open).size());
  }
  // As an operator may, with a result that no call has.
  void complete_calls() {
    for (const OperationRecord& operation : list_operations())
      resolve_operation(operation.id, Probed::completed(nullptr), "an operator");
  }
  void cancel_fibers() {
    for (const FiberRecord& fiber : list_fibers()) cancel_fiber(fiber.id);
  }
  std::string start(std::string text, std::string key) { return start_turn(text, {.key = key}); }
  Task<std::string> wait(std::string id) {
    auto waiting = wait_turn(id, std::chrono::hours(1));
    const TurnEnd end = co_await std::move(waiting);
    co_return end.status + " " + text_of(end.message);
  }
  std::string go_on() { return continue_last_turn(); }
  Task<bool> is_stable(int ms) {
    auto waiting = wait_until_stable(std::chrono::milliseconds(ms));
    co_return co_await std::move(waiting);
  }

 private:
  SupportOptions own_;
};

inline bool has(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

// A stream of events with this data.
inline testing::FetchReply event_stream(const std::vector<std::string>& events,
                                        std::chrono::milliseconds between) {
  testing::FetchReply reply{.headers = {{"Content-Type", "text/event-stream"}}, .between = between};
  for (const std::string& data : events) reply.pieces.push_back("data: " + data + "\n\n");
  return reply;
}

// A host with a model that says what a test has written.
class Stage {
 public:
  explicit Stage(std::string dialect) : model(host, std::move(dialect)) {}

  template <class Class = Support>
  testing::AgentHandle make(const Json& more = Json::object()) {
    Json options = model.options();
    options.update(more);
    return host.create<Class>("a", options);
  }
  // Lets time pass. Then these clients read.
  template <class... Clients>
  void wait(std::chrono::milliseconds time, Clients&... clients) {
    host.advance(time);
    (clients.read(), ...);
  }
  // How many lines of the log have these words.
  [[nodiscard]] std::size_t logged(const std::string& words) const {
    std::size_t lines = 0;
    for (const std::string& line : host.log()) lines += has(line, words) ? 1U : 0U;
    return lines;
  }
  // A client that sends this text as request r1, and reads after this time.
  ChatClient talk(testing::AgentHandle& agent, const std::string& text,
                  std::chrono::milliseconds time) {
    ChatClient client(agent);
    say(client, "r1", text, time);
    return client;
  }
  // The client sends this text as this request, and reads after this time.
  void say(ChatClient& client, const std::string& id, const std::string& text,
           std::chrono::milliseconds time) {
    client.say(id, text);
    wait(time, client);
  }
  void stop(ChatClient& client, const std::string& id, std::chrono::milliseconds time) {
    client.stop(id);
    wait(time, client);
  }

  testing::Host host;
  ScriptedModel model;
};

// Guests only read.
class Shut : public Support {
 public:
  static void methods(Methods<Shut>& m) { chat_methods(m); }
  void on_connecting(Connecting& client) override {
    if (client.query("guest")) client.set_readonly();
  }
};

class Conversation : public ::testing::TestWithParam<const char*>, protected Stage {
 protected:
  explicit Conversation(std::string dialect = GetParam()) : Stage(std::move(dialect)) {}
  // Without options of its own.
  testing::AgentHandle support = host.create<Support>("support", model.options());
};

inline auto each_dialect() {
  return ::testing::ValuesIn(ScriptedModel::kDialects);
}
inline std::string provider_name(const ::testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::erase(name, '-');
  return name;
}

inline Scripted says(std::vector<std::string> words, std::chrono::milliseconds between = {}) {
  Scripted answer;
  for (std::string& word : words) answer.says.push_back({.text = std::move(word)});
  answer.between = between;
  return answer;
}
inline Scripted cut(Scripted answer) {
  answer.is_cut = true;
  return answer;
}
inline Scripted thinks(std::chrono::milliseconds between = {}) {
  return {.says = {{.reasoning = "hm"}}, .between = between};
}
// An error as providers name it.
inline Scripted refuses(unsigned status, const std::string& text = {}) {
  return {.status = status, .error = to_text({{"error", {{"message", text}}}})};
}
inline Scripted asks(const std::string& tool, const Json& input) {
  Scripted answer;
  answer.says.push_back({.tool = tool, .input = input});
  return answer;
}
// One answer with what these say, at the pace of the first.
inline Scripted both(Scripted first, const Scripted& second) {
  first.says.insert(first.says.end(), second.says.begin(), second.says.end());
  return first;
}

}  // namespace hearth::chat

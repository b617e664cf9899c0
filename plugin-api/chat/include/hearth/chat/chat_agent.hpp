#pragma once
// hearth::ChatAgent: a conversation with a model, for the client useAgentChat (npm
// @cloudflare/ai-chat). A turn goes on by itself after an eviction, a crash or an update of the
// code, in the same message and without a second payment where the provider allows it.
//
//     class Support : public hearth::ChatAgent {
//      public:
//       static void methods(hearth::Methods<Support>& m) { chat_methods(m); }
//       hearth::Task<void> on_turn(hearth::chat::Turn& turn) override {
//         turn.system("You help customers of Acme.");
//         turn.tool("refund", "Refunds an order.", hearth::Effect::kKeyed, &Support::refund,
//                   {.approval = true});
//         co_await turn.generate();
//       }
//       hearth::Json refund(Order order, hearth::chat::ToolCall call);
//     };
//
// Model, limits and recovery are options of the class's YAML file: see options.hpp.
// plugin-api/chat/README.md has the rest.
//
// Frames of chats are handled one after the other. Hooks of Agent that the chat needs are final;
// what is not of the chat goes on to on_other_...().

#include <hearth/agent.hpp>
#include <hearth/chat/options.hpp>
#include <hearth/chat/recovery_context.hpp>
#include <hearth/chat/turn.hpp>
#include <hearth/chat/wire.hpp>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

namespace chat {

// How a turn has ended, for on_turn_end.
struct TurnEnd {
  std::string request_id;
  std::string status;  // completed, error, aborted
  std::string error;   // of an error, as the user has read it
  bool is_continuation = false;
  Json message;  // the answer; null: there is none
};

// A turn that the agent's code begins: start_turn().
struct StartTurn {
  std::string key = {};  // a second start with the same key gives the same turn
  Json body = nullptr;   // null: that of the last turn
};

}  // namespace chat

class ChatAgent : public Agent {
 public:
  ChatAgent();
  ~ChatAgent() override;

  // In methods() of the class: what a chat needs.
  template <class T>
  static void chat_methods(Methods<T>& m) {
    m.fiber("chat.turn", &ChatAgent::run_chat_turn);
    m.add("chat.start", &ChatAgent::start_for_agent, kIdempotent,
          "For agents: begins a turn, once for each key, and gives its id.");
    m.stream("chat.follow", &ChatAgent::follow_for_agent, kReadOnly,
             "For agents: the chunks of a turn from a number on, and how it ended.");
    m.add("chat.cancel", &ChatAgent::cancel_for_agent, kIdempotent, "For agents: stops a turn.");
    m.operation(chat::kModelKind, chat::model_kind());
    m.operation(chat::kResumableKind, chat::resumable_model_kind());
    for (const Effect effect :
         {Effect::kRead, Effect::kIdempotent, Effect::kKeyed, Effect::kUnsafe})
      m.operation(chat::tool_kind_name(effect), chat::tool_kind(effect));
  }

  // ---- hooks -----------------------------------------------------------------------------------
  // NOLINTBEGIN(performance-unnecessary-value-param)

  // A turn. The default asks the model, with the system prompt of the options and no tools.
  virtual Task<void> on_turn(chat::Turn& turn);
  // The options; by default those of the class's file. Called once for each instance.
  // Failure   Error(INVALID): the agent does not start
  virtual chat::ChatOptions chat_options();
  // By default the one that the options name.
  virtual std::unique_ptr<const chat::Provider> make_provider(const chat::ChatOptions& options);
  // A turn was interrupted, and is about to go on.
  virtual Task<chat::RecoveryChoice> on_chat_recovery(chat::RecoveryContext /*context*/) {
    co_return chat::RecoveryChoice();
  }
  // From the second attempt on; false gives the turn up. An exception counts as true.
  virtual Task<bool> should_keep_recovering(chat::RecoveryContext /*context*/) { co_return true; }
  // A turn is given up, before the client reads terminal_message. An exception is logged.
  virtual Task<void> on_exhausted(chat::RecoveryContext /*context*/) { return {}; }
  // After the last frame of a turn; at least once, also after a crash.
  virtual Task<void> on_turn_end(chat::TurnEnd /*end*/) { return {}; }
  // The sentence for the user when a call of the model has failed for good.
  virtual std::string error_text(const chat::Failure& failure) {
    return std::string(chat::client_text(failure.kind));
  }
  // Another kind for a failure of the provider.
  virtual chat::FailureKind classify_error(const chat::Failure& failure) { return failure.kind; }
  // Changes a message before it is stored, but not what was streamed.
  virtual void sanitize(Json& /*message*/) {}
  // Another part for a tool call that no answer can reach any more; nothing: an error.
  virtual std::optional<Json> repair_tool_part(const Json& /*part*/) { return std::nullopt; }
  // A summary of older messages, which takes their place in what the model gets; empty: they stay.
  // By default the model is asked. See context.hpp.
  virtual Task<std::string> compact(chat::Turn& turn, const chat::Compaction& compaction);
  // A turn ends as failed. `text`: what the user reads. `classification`: that of the provider's
  // failure (failure_name()), TurnFailed::reason(), or empty. An exception is logged.
  virtual void on_chat_error(const std::string& /*text*/, const std::string& /*classification*/) {}
  // Changes the messages that the model gets. They are the newest that fit into the window.
  virtual void history(Json& /*messages*/) {}
  // A client without a WebSocket asks for a turn: POST .../chat, for which on_connecting is not
  // asked. An exception refuses it: Error(FORBIDDEN, "...") as 403. The default refuses it in a
  // class that has on_connecting, so that a client that is readonly there cannot send here.
  virtual void on_posting(const Request& request);

  // As the hooks of Agent without "other", for what is not of the chat.
  virtual Task<void> on_other_start() { return {}; }
  virtual Task<void> on_other_connect(Connection /*client*/) { return {}; }
  virtual Task<void> on_other_message(Connection /*client*/, Message /*message*/) { return {}; }
  virtual Task<void> on_other_close(Connection /*client*/, unsigned /*code*/,
                                    std::string /*reason*/, bool /*clean*/) {
    return {};
  }
  virtual Task<Response> on_other_request(const Request& /*request*/) {
    throw Error(HEARTH_E_NOT_FOUND, "this agent answers no HTTP requests");
  }
  virtual Task<void> on_other_evict(EvictReason /*reason*/) { return {}; }
  virtual Task<void> on_other_fiber_complete(const FiberRecord& /*fiber*/) { return {}; }
  // NOLINTEND(performance-unnecessary-value-param)

  // ---- calls -----------------------------------------------------------------------------------

  // Adds messages and begins a turn behind those that wait. Gives its id.
  // Failure   Error(LIMIT): too many turns wait; Error(INVALID): no message
  std::string start_turn(const std::vector<Json>& messages, const chat::StartTurn& options = {});
  // The same with a text of the user.
  std::string start_turn(std::string_view text, const chat::StartTurn& options = {});
  // Goes on in the last answer, without a message of the user. Empty: the last message is none.
  std::string continue_last_turn(Json body = nullptr);
  // Waits for the end of a turn.
  // Failure   Error(NOT_FOUND), Error(TIMEOUT)
  [[nodiscard]] Task<chat::TurnEnd> wait_turn(std::string id, TimeOption timeout);
  // False: it has ended.
  bool cancel_turn(std::string_view id);
  // Removes all messages and turns; one that runs ends, and stores nothing.
  void clear_chat();
  // Adds or changes messages, and shows them to clients.
  void persist_messages(const std::vector<Json>& messages);
  [[nodiscard]] std::optional<Json> last_message() const;
  // The text of the answer that is being made; empty: none is.
  [[nodiscard]] std::string partial_text() const;
  // A client has to answer the last message: a tool of the client, or an approval.
  [[nodiscard]] bool has_pending_interaction() const;
  // Whether no turn ran or waited, and no client had to answer, within this time.
  [[nodiscard]] Task<bool> wait_until_stable(std::chrono::milliseconds timeout);

  // ---- for the chat ----------------------------------------------------------------------------

  Task<void> on_start() final;
  Task<void> on_connect(Connection client) final;
  Task<void> on_message(Connection client, Message message) final;
  Task<void> on_close(Connection client, unsigned code, std::string reason, bool clean) final;
  Task<Response> on_request(const Request& request) final;
  Task<void> on_evict(EvictReason reason) final;
  Task<void> on_fiber_complete(const FiberRecord& fiber) final;
  Task<void> run_chat_turn(Json input, FiberContext& fiber);
  // `asked_by`: the chats that wait for the answer, see TurnRecord.
  // Failure   Error(FORBIDDEN): the caller is no agent; Error(INVALID): this chat waits for it
  std::string start_for_agent(std::string text, std::string key,
                              std::optional<std::string> asked_by);
  Task<Json> follow_for_agent(Stream& out, std::string turn, std::uint64_t seq);
  bool cancel_for_agent(std::string turn);

 private:
  // A host may deliver events although the start has failed: Error(BUSY).
  [[nodiscard]] chat::Chat& begun() const;
  void require_agent() const;
  [[nodiscard]] bool asks_caller(std::string_view key) const;

  std::unique_ptr<chat::Chat> chat_;
};

}  // namespace hearth

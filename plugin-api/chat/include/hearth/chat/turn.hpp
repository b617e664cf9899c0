#pragma once
// What ChatAgent::on_turn gets: one turn of the chat, from the user's message to the end of the
// answer. on_turn runs again from its beginning after an interruption, with the same turn:
// generate() goes on where it was, and what has to happen once is marked or stashed.

#include <hearth/chat/ask_chat.hpp>
#include <hearth/chat/context.hpp>
#include <hearth/chat/model_call.hpp>
#include <hearth/chat/running_turn.hpp>
#include <hearth/chat/tool.hpp>
#include <hearth/chat/tool_calls.hpp>
#include <hearth/json.hpp>
#include <hearth/task.hpp>

#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {
class Agent;
class FiberContext;
}  // namespace hearth

namespace hearth::chat {

struct Chat;

// The turn was stopped, by the user or by the agent's code.
class TurnStopped : public Error {
 public:
  TurnStopped() : Error(HEARTH_E_CANCELLED, "the turn was stopped") {}
};

// Ends the turn as failed, with a sentence for the user. So does any hearth::Error that leaves
// on_turn; of another exception the user only gets to know that the answer has failed.
class TurnFailed : public Error {
 public:
  // `reason`: for the log, such as max_attempts_exceeded
  explicit TurnFailed(const std::string& text, std::string reason = {})
      : Error(HEARTH_E_FINAL, text, true), reason_(std::move(reason)) {}
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  std::string reason_;
};

class Turn {
 public:
  Turn(Chat& chat, RunningTurn& running, FiberContext& fiber);
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  [[nodiscard]] const std::string& id() const { return running_.record().id; }
  [[nodiscard]] TurnKind kind() const { return running_.record().kind; }
  // The turn was interrupted before, and goes on.
  [[nodiscard]] bool is_recovered() const { return running_.record().incident.attempt > 0; }
  // The other fields of the client's request; null: there are none.
  [[nodiscard]] const Json& body() const { return running_.record().body; }
  // The answer so far, a UIMessage, and its text.
  [[nodiscard]] const Json& message() const { return running_.message(); }
  [[nodiscard]] std::string text() const { return running_.text(); }
  // Requested when the user stops the turn.
  [[nodiscard]] std::stop_token stop_token() const { return running_.stop().get_token(); }

  // ---- before generate()

  void system(std::string text) { system_ = std::move(text); }
  // Those of the class's file, to be changed.
  [[nodiscard]] ModelOptions& model() noexcept { return model_; }
  void tool(Tool tool) { tools_.add(std::move(tool)); }
  // A member function of the agent, see tool.hpp.
  template <class Class, class Result, class... Parameters>
  void tool(std::string name, std::string description, Effect effect,
            Result (Class::*function)(Parameters...), ToolOptions options = {}) {
    tool(tools::member_tool(std::move(name), std::move(description), effect, agent(), function,
                            std::move(options)));
  }

  // The chat `agent_class`/`agent` answers, see ask_chat.hpp.
  void chat_tool(std::string name, std::string description, std::string agent_class,
                 std::string agent, ToolOptions options = {}) {
    tool(ask_chat_tool(this->agent(), {std::move(name), std::move(description), ask_chat_schema()},
                       std::move(agent_class), std::move(agent), std::move(options)));
  }

  // Asks the model, runs its tools, and asks again, until it has answered, or a client has to
  // answer (a tool of the client, an approval): then the reply makes a turn of its own, which goes
  // on in the same message.
  // Failure   TurnStopped, TurnFailed, TurnGone: let them pass
  [[nodiscard]] Task<void> generate();

  // Writes a chunk of the AI SDK into the answer, once for each mark over all interruptions.
  void write(std::string_view mark, Json chunk);
  // Asks the model for a summary, in a call of its own that counts as one of the turn. Empty: it
  // gave none.
  [[nodiscard]] Task<std::string> summarise(const Compaction& compaction);
  // Kept with the turn, such as for on_chat_recovery.
  // Failure   Error(LIMIT): over kMaxStashBytes
  void stash(Json value);
  [[nodiscard]] const Json& stash() const { return running_.record().stash; }

  // ---- for the chat

  [[nodiscard]] RunningTurn& running() noexcept { return running_; }
  // Ends the call that was interrupted, if there is one, at the provider, too. What has arrived of
  // it is kept.
  [[nodiscard]] Task<void> end_call();
  // Takes back what a call has said that was interrupted or cut. Results of tools stay, and so does
  // a call that may have been executed.
  [[nodiscard]] Task<void> drop_text();

 private:
  [[nodiscard]] Agent& agent() const;
  [[nodiscard]] bool is_done() const;
  [[nodiscard]] Prompt prompt();
  [[nodiscard]] Task<void> ask();
  [[nodiscard]] Task<void> ask_once(HttpCall request);
  struct CallResult {
    std::optional<CallOutcome> outcome = {};  // nothing: see `failure`
    Failure failure = {};
    bool is_called = true;
  };
  [[nodiscard]] ModelCall model_call(HttpCall request) const;
  [[nodiscard]] std::size_t room() const;
  [[nodiscard]] Task<CallResult> call_now(ModelCall call, TakeChunks take);
  [[nodiscard]] TakeChunks into_answer();
  // A call that was interrupted has its reservation; one of another purpose is ended. `purpose`: of
  // ModelCall
  [[nodiscard]] Task<void> reserve_call(const HttpCall& request, std::string purpose);
  void settle_call(const CallOutcome& outcome);
  void take_outcome(const CallOutcome& outcome);
  [[nodiscard]] Task<bool> compact(std::string_view reason);
  void take_back_step();  // of a call that was cut
  [[noreturn]] void fail(const Failure& failure) const;
  [[nodiscard]] Task<void> recover(Failure failure, bool is_stalled, bool is_called);

  Chat& chat_;
  RunningTurn& running_;
  FiberContext& fiber_;
  std::string system_;
  ModelOptions model_;
  ToolCalls tools_;
  int generated_ = 0;  // calls of generate() in this run
};

}  // namespace hearth::chat

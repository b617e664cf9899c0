// A chat with a model without writing code: the model, its limits and its tools are options of the
// class's file (config/classes/assistant.yaml explains them). Clients use useAgentChat.
//
// A tool is a request to another server (http), a call of another agent (agent), a question to
// another chat (chat), or is run by the client (client). A tool whose effect is not certain is not
// repeated: the model reads that it may have been executed.

#include "tools.hpp"

#include <hearth/chat/chat_agent.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

class Assistant : public hearth::ChatAgent {
 public:
  static void methods(hearth::Methods<Assistant>& m) { chat_methods(m); }

  hearth::chat::ChatOptions chat_options() override {
    assistant::AssistantOptions options = assistant::read_assistant_options(this->options());
    tools_ = std::move(options.tools);
    const hearth::chat::ChatOptions& of_chat = options;
    return of_chat;
  }

  hearth::Task<void> on_turn(hearth::chat::Turn& turn) override {
    for (const assistant::ToolConfig& config : tools_) turn.tool(tool_of(config));
    co_await turn.generate();
  }

 private:
  static constexpr std::chrono::minutes kTimeout{5};

  // Lifetime  `config` is in tools_.
  hearth::chat::Tool tool_of(const assistant::ToolConfig& config) {
    hearth::chat::Tool tool;
    tool.spec = {config.name, config.description, config.schema};
    tool.effect = config.effect();
    tool.options.approval = config.approval;
    if (config.http) {
      tool.run = [this, &config](hearth::Json input, hearth::chat::ToolCall call) {
        return send_request(config, std::move(input), std::move(call));
      };
    } else if (config.agent) {
      tool.run = [this, &config](hearth::Json input, hearth::chat::ToolCall call) {
        return call_agent(config, std::move(input), std::move(call.stop));
      };
    }
    if (config.chat) {
      tool.run = [this, &config](hearth::Json input, hearth::chat::ToolCall call) {
        std::string name = assistant::agent_name(config, input);
        return hearth::chat::ask_chat(*this, config.chat->agent_class, std::move(name),
                                      std::move(input), std::move(call));
      };
    }
    return tool;
  }

  hearth::Task<hearth::Json> send_request(const assistant::ToolConfig& config, hearth::Json input,
                                          hearth::chat::ToolCall call) {
    const hearth::Effect effect = config.effect();
    hearth::FetchRequest request = assistant::http_request(config, std::move(input));
    request.timeout = kTimeout;
    request.stop = std::move(call.stop);
    // Then the ledger knows whether it has left. Its key is of use to a keyed one.
    if (effect == hearth::Effect::kKeyed || effect == hearth::Effect::kUnsafe)
      request.op = std::move(call.op);
    auto response = co_await fetch(std::move(request));
    const unsigned status = response.status();
    auto reading = read_body(response);
    std::string body = co_await std::move(reading);
    if (response.ok()) co_return assistant::answer_json(status, std::move(body));
    const std::string text = assistant::error_sentence(status, std::move(body));
    if (assistant::is_refusal(status, effect)) throw hearth::NotExecuted(text);
    log.warn("the tool ", config.name, " failed: ", text);
    throw hearth::Error(HEARTH_E_BUSY, text);
  }

  // One byte more than is wanted shows that there is more.
  static hearth::Task<std::string> read_body(hearth::FetchResponse& response) {
    const std::size_t wanted =
        (response.ok() ? assistant::kMaxAnswerBytes : assistant::kMaxErrorBytes) + 1;
    std::string body;
    while (body.size() < wanted) {
      auto next = response.next();
      auto piece = co_await next;
      if (!piece) break;
      body += *piece;
    }
    if (body.size() > wanted) body.resize(wanted);
    co_return body;
  }

  // A call of another agent, which a stop does not wait for.
  struct AgentCall {
    explicit AgentCall(Assistant& agent) : changed(agent) {}
    bool is_over = false;
    hearth::Json answer;
    std::exception_ptr failure;
    hearth::Signal changed;
  };

  hearth::Task<hearth::Json> call_agent(const assistant::ToolConfig& config, hearth::Json input,
                                        std::stop_token stop) {
    if (stop.stop_requested())
      throw hearth::NotExecuted("the turn was stopped", HEARTH_E_CANCELLED);
    auto call = std::make_shared<AgentCall>(*this);
    after_turn([this, call, &config, input = std::move(input), stop] {
      return ask_agent(call, config, input, stop);
    });
    while (!call->is_over) {
      auto waiting = call->changed.wait(stop);
      co_await std::move(waiting);
    }
    if (call->failure) std::rethrow_exception(call->failure);
    co_return std::move(call->answer);
  }

  hearth::Task<void> ask_agent(std::shared_ptr<AgentCall> call, const assistant::ToolConfig& config,
                               hearth::Json input, std::stop_token stop) {
    if (stop.stop_requested()) co_return;  // nothing waits for it
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): a tool of an agent
    const assistant::AgentTool& target = *config.agent;
    try {
      auto callee =
          agent(target.agent_class, assistant::agent_name(config, input), {.timeout = kTimeout});
      auto calling = callee.call(target.method, input);
      call->answer = co_await calling;
    } catch (const hearth::CallError& error) {
      call->failure = !error.began() || is_refusal(error)
                          ? std::make_exception_ptr(hearth::NotExecuted(error.what(), error.code()))
                          : std::current_exception();
    } catch (...) {
      call->failure = std::current_exception();
    }
    call->is_over = true;
    call->changed.notify();
  }

  // The callee's own answer, not the end of its work.
  static bool is_refusal(const hearth::CallError& error) {
    switch (error.code()) {
      case HEARTH_E_INVALID:
      case HEARTH_E_NOT_FOUND:
      case HEARTH_E_FORBIDDEN:
      case HEARTH_E_CONFLICT:
      case HEARTH_E_LIMIT:
      case HEARTH_E_FINAL: return true;
      default: return false;
    }
  }

  std::vector<assistant::ToolConfig> tools_;
};

HEARTH_PLUGIN("assistant", "1.0.0", Assistant)

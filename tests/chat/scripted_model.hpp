#pragma once
// A model on the mock host: what it says is a list of steps, in each of the three dialects.
#include <hearth/chat/options.hpp>
#include <hearth/testing/host.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::chat {

// What a model says in one event, or a few that belong together.
struct Said {
  std::string text = {};
  std::string reasoning = {};
  std::string tool = {};  // a call, with this input
  Json input = nullptr;
  std::string id = {};    // of the call; empty: one is made
  std::string seal = {};  // of reasoning: what its provider wants to see again. Not in
                          // chat-completions. Without a text, Anthropic has redacted it
};

// One answer of the model.
struct Scripted {
  std::vector<Said> says = {};
  bool is_cut = false;      // the connection ends behind the last of them ...
  bool is_unended = false;  // ... or the body does
  unsigned status = 200;
  std::string error = {};  // the body of a status of 400 or more; of 200 the last event's text
  testing::Headers headers = {};
  int input_tokens = 10;
  int output_tokens = 5;
  std::chrono::milliseconds between{0};
  std::chrono::milliseconds after{0};  // until its first byte
  int pings = 0;                       // behind what it says; they are `between` apart, too
  bool is_unreachable = false;         // the connection is refused
};

class ScriptedModel {
 public:
  static constexpr const char* kDialects[] = {"openai-responses", "chat-completions", "anthropic"};

  ScriptedModel(testing::Host& host, std::string dialect) : dialect_(std::move(dialect)) {
    host.on_fetch([this](const testing::SentRequest& request) { return reply(request); });
  }

  // The answers to the next requests; the last one is given again and again.
  void then(Scripted answer) { answers_.push_back(std::move(answer)); }
  void then(std::vector<std::string> words) {
    Scripted answer;
    for (std::string& word : words) answer.says.push_back({.text = std::move(word)});
    then(std::move(answer));
  }
  void then_all(std::vector<Scripted> answers) {
    for (Scripted& answer : answers) then(std::move(answer));
  }
  // From now on the body of a request says what is answered.
  void by_request(std::function<Scripted(std::string_view body)> choose) {
    choose_ = std::move(choose);
  }
  [[nodiscard]] const std::vector<testing::SentRequest>& requests() const { return requests_; }
  // Whether this request has these words.
  [[nodiscard]] bool asked_with(std::size_t request, std::string_view words) const {
    return requests_.at(request).body.find(words) != std::string::npos;
  }
  [[nodiscard]] Json options() const {
    return {{"provider", dialect_}, {"base_url", "http://127.0.0.1:1/v1"}, {"model", "m"}};
  }
  [[nodiscard]] const std::string& dialect() const { return dialect_; }
  // Of openai-responses: how long a cancel takes.
  std::chrono::milliseconds cancel_takes{0};
  // Not empty: the rest of a cut answer cannot be streamed, and each poll gives the next of these.
  // A number is a status, a text no JSON.
  std::vector<Json> polls;
  std::chrono::milliseconds first_poll_takes{0};

  // The answer to a request, for a test whose host has other servers too.
  testing::FetchReply reply(const testing::SentRequest& request) {
    requests_.push_back(request);
    if (choose_ && request.method == "POST") then(choose_(request.body));
    testing::FetchReply reply;
    if (answers_.empty()) {
      reply.status = 500;
      return reply;
    }
    if (request.method == "GET") return rest_of(request);
    if (request.url.ends_with("/cancel")) {
      reply.after = cancel_takes;
      return reply;
    }
    const Scripted& answer = answers_.at(std::min(next_, answers_.size() - 1));
    ++next_;
    if (answer.is_unreachable) {
      reply.status = 0;
      reply.failure = testing::FetchReply::Failure();
      return reply;
    }
    reply.status = answer.status;
    reply.headers = answer.headers;
    if (answer.status >= 400) {
      reply.body = answer.error;
      if (answer.between.count() > 0) reply.pieces = {" "};
      reply.between = answer.between;
      return reply;
    }
    reply.headers.emplace_back("Content-Type", "text/event-stream");
    reply.between = answer.between;
    reply.after = answer.after;
    if (dialect_ == "openai-responses")
      responses(answer, reply);
    else if (dialect_ == "anthropic")
      messages(answer, reply);
    else
      completions(answer, reply);
    if (answer.is_cut) {
      testing::FetchReply::Failure failure;
      failure.phase = HEARTH_FETCH_PHASE_BODY;
      failure.sent = true;
      reply.failure = failure;
    }
    return reply;
  }

 private:
  // The rest of the last background answer.
  testing::FetchReply rest_of(const testing::SentRequest& request) {
    testing::FetchReply reply;
    if (!polls.empty()) {
      const bool is_stream = request.url.find("stream=true") != std::string::npos;
      if (!is_stream) reply.after = std::exchange(first_poll_takes, {});
      reply.headers.emplace_back("Content-Type", "application/json");
      const Json answer = is_stream ? Json(400) : polls.at(std::min(polled_++, polls.size() - 1));
      reply.status = answer.is_number() ? answer.get<unsigned>() : 200;
      reply.body = answer.is_number()   ? "{}"
                   : answer.is_string() ? answer.get<std::string>()
                                        : to_text(answer);
      return reply;
    }
    reply.headers.emplace_back("Content-Type", "text/event-stream");
    const std::string mark = "starting_after=";
    const std::size_t at = request.url.find(mark);
    const int seen = at == std::string::npos ? -1 : std::stoi(request.url.substr(at + mark.size()));
    responses(answers_.at(next_ - 1), reply, seen);
    return reply;
  }

  // Events without content come with the next one, so that all dialects take the same time.
  void lead(const Json& data) { lead_ += "data: " + to_text(data) + "\n\n"; }
  void piece(testing::FetchReply& reply, const std::string& text) {
    reply.pieces.push_back(std::exchange(lead_, {}) + text);
  }
  void event(testing::FetchReply& reply, const Json& data) {
    lead(data);
    piece(reply, {});
  }
  // True: the answer ends here, before its last event.
  bool ends_early(const Scripted& answer, testing::FetchReply& reply, Json error) {
    if (!answer.is_cut && !answer.is_unended && answer.error.empty()) return false;
    if (!answer.error.empty()) {
      error["error"]["message"] = answer.error;
      lead(error);
    }
    if (!lead_.empty()) piece(reply, {});
    return true;
  }
  void ping(const Scripted& answer, testing::FetchReply& reply) {
    for (int i = 0; i < answer.pings; ++i) piece(reply, ": ping\n\n");
  }
  static std::string id_of(const Said& call, std::size_t answer, int at) {
    if (!call.id.empty()) return call.id;
    return "call_" + std::to_string(answer) + "_" + std::to_string(at);
  }

  // `seen`: the last event that the client has.
  void responses(const Scripted& answer, testing::FetchReply& reply, int seen = -1) {
    const std::string id = "resp_" + std::to_string(next_);
    int number = 0;
    const auto send = [&](Json data, bool is_lead = false) {
      data["sequence_number"] = number;
      if (number++ <= seen) return;
      lead(data);
      if (!is_lead) piece(reply, {});
    };
    send({{"type", "response.created"}, {"response", {{"id", id}, {"status", "in_progress"}}}},
         true);
    int at = 0;
    for (std::size_t i = 0; i < answer.says.size(); ++i, ++at) {
      const Said& said = answer.says[i];
      const std::string item = "item_" + std::to_string(at);
      if (!said.tool.empty()) {
        Json added{{"id", item}, {"type", "function_call"}, {"name", said.tool}};
        added["call_id"] = id_of(said, next_, at);
        added["arguments"] = "";
        send({{"type", "response.output_item.added"}, {"output_index", at}, {"item", added}}, true);
        added["arguments"] = to_text(said.input);
        send({{"type", "response.output_item.done"}, {"output_index", at}, {"item", added}});
      } else if (!said.reasoning.empty() || !said.seal.empty()) {
        Json thought{{"id", item}, {"type", "reasoning"}};
        send({{"type", "response.output_item.added"}, {"output_index", at}, {"item", thought}},
             true);
        send({{"type", "response.reasoning_summary_text.delta"},
              {"item_id", item},
              {"output_index", at},
              {"summary_index", 0},
              {"delta", said.reasoning}});
        if (said.seal.empty()) continue;
        thought["encrypted_content"] = said.seal;
        send({{"type", "response.output_item.done"}, {"output_index", at}, {"item", thought}},
             true);
      } else {
        // One item for adjacent texts.
        const bool is_first = i == 0 || answer.says[i - 1].text.empty();
        if (!is_first) --at;
        const std::string text_item = "item_" + std::to_string(at);
        if (is_first)
          send({{"type", "response.output_item.added"},
                {"output_index", at},
                {"item", {{"id", text_item}, {"type", "message"}}}},
               true);
        send({{"type", "response.output_text.delta"},
              {"item_id", text_item},
              {"output_index", at},
              {"content_index", 0},
              {"delta", said.text}});
      }
    }
    ping(answer, reply);
    if (ends_early(answer, reply, {{"type", "error"}})) return;
    send({{"type", "response.completed"},
          {"response",
           {{"id", id},
            {"status", "completed"},
            {"output", Json::array()},
            {"usage",
             {{"input_tokens", answer.input_tokens}, {"output_tokens", answer.output_tokens}}}}}});
  }

  void completions(const Scripted& answer, testing::FetchReply& reply) {
    int calls = 0;
    const auto send = [&](const Json& delta, const Json& reason) {
      lead({{"choices",
             Json::array({{{"index", 0}, {"delta", delta}, {"finish_reason", reason}}})}});
      if (reason.is_null()) piece(reply, {});
    };
    for (const Said& said : answer.says) {
      if (!said.tool.empty()) {
        Json tool{{"index", calls}, {"id", id_of(said, next_, calls)}, {"type", "function"}};
        ++calls;
        tool["function"] = {{"name", said.tool}, {"arguments", to_text(said.input)}};
        send({{"tool_calls", Json::array({tool})}}, nullptr);
      } else if (!said.reasoning.empty()) {
        send({{"reasoning_content", said.reasoning}}, nullptr);
      } else {
        send({{"content", said.text}}, nullptr);
      }
    }
    ping(answer, reply);
    if (ends_early(answer, reply, Json::object())) return;
    send(Json::object(), calls > 0 ? "tool_calls" : "stop");
    lead({{"choices", Json::array()},
          {"usage",
           {{"prompt_tokens", answer.input_tokens}, {"completion_tokens", answer.output_tokens}}}});
    piece(reply, "data: [DONE]\n\n");
  }

  void messages(const Scripted& answer, testing::FetchReply& reply) {
    lead({{"type", "message_start"},
          {"message", {{"usage", {{"input_tokens", answer.input_tokens}, {"output_tokens", 1}}}}}});
    int at = -1;
    bool has_calls = false;
    std::string open;
    const auto close = [&] {
      if (!open.empty()) lead({{"type", "content_block_stop"}, {"index", at}});
      open.clear();
    };
    const auto begin = [&](const std::string& kind, const Json& block) {
      if (open == kind && kind != "tool_use") return;
      close();
      ++at;
      open = kind;
      lead({{"type", "content_block_start"}, {"index", at}, {"content_block", block}});
    };
    const auto send = [&](const Json& delta, bool is_lead = false) {
      lead({{"type", "content_block_delta"}, {"index", at}, {"delta", delta}});
      if (!is_lead) piece(reply, {});
    };
    for (const Said& said : answer.says) {
      if (!said.tool.empty()) {
        has_calls = true;
        Json call{{"type", "tool_use"}, {"name", said.tool}, {"input", Json::object()}};
        call["id"] = id_of(said, next_, at + 1);
        begin("tool_use", call);
        send({{"type", "input_json_delta"}, {"partial_json", to_text(said.input)}});
      } else if (!said.reasoning.empty()) {
        begin("thinking", {{"type", "thinking"}, {"thinking", ""}});
        send({{"type", "thinking_delta"}, {"thinking", said.reasoning}});
        if (!said.seal.empty()) send({{"type", "signature_delta"}, {"signature", said.seal}}, true);
      } else if (!said.seal.empty()) {
        begin("redacted_thinking", {{"type", "redacted_thinking"}, {"data", said.seal}});
      } else {
        begin("text", {{"type", "text"}, {"text", ""}});
        send({{"type", "text_delta"}, {"text", said.text}});
      }
    }
    for (int i = 0; i < answer.pings; ++i) event(reply, {{"type", "ping"}});
    if (ends_early(answer, reply, {{"type", "error"}})) return;
    close();
    lead({{"type", "message_delta"},
          {"delta", {{"stop_reason", has_calls ? "tool_use" : "end_turn"}}},
          {"usage", {{"output_tokens", answer.output_tokens}}}});
    event(reply, {{"type", "message_stop"}});
  }

  std::string dialect_;
  std::vector<Scripted> answers_;
  std::function<Scripted(std::string_view)> choose_;
  std::size_t next_ = 0;
  std::size_t polled_ = 0;
  std::string lead_;
  std::vector<testing::SentRequest> requests_;
};

}  // namespace hearth::chat

#pragma once
// The options of the class `assistant`, and the requests of its tools: functions from values to
// values. config/classes/assistant.yaml explains the options.

#include <hearth/chat/options.hpp>
#include <hearth/fetch.hpp>
#include <hearth/fields.hpp>
#include <hearth/json.hpp>
#include <hearth/operation_kind.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assistant {

// A template is a text with {field}, which stands for a member of the tool's input: a text, a
// number or a truth value. It is percent-encoded, so that it stays within its place.

struct HttpTool {
  std::string method = "GET";  // or POST, PUT, PATCH, DELETE
  std::string url;             // a template: fields in segments of the path and values of the query
  std::string credential;      // a name under egress.secrets; empty: none
  std::string effect;          // empty: read for GET, else unsafe
  HEARTH_FIELDS(method, url, credential, effect)
  HEARTH_REQUIRED(url)
};

struct AgentTool {
  std::string agent_class;  // `class`
  std::string name;         // a template
  std::string method;
  std::string effect = "unsafe";

  // As HEARTH_FIELDS, which cannot name a member `class`.
  template <class Visitor>
  void hearth_visit(const Visitor& visitor) {
    visitor("class, name, method, effect", agent_class, name, method, effect);
  }
  template <class Visitor>
  void hearth_visit(const Visitor& visitor) const {
    visitor("class, name, method, effect", agent_class, name, method, effect);
  }
};

// Another chat of this server, which answers `text` of the input.
struct ChatTool {
  std::string agent_class;  // `class`
  std::string name;         // a template

  template <class Visitor>
  void hearth_visit(const Visitor& visitor) {
    visitor("class, name", agent_class, name);
  }
  template <class Visitor>
  void hearth_visit(const Visitor& visitor) const {
    visitor("class, name", agent_class, name);
  }
};

// One of http, agent, chat and client, and no other, says where it runs.
struct ToolConfig {
  std::string name;
  std::string description;
  hearth::Json schema = {{"type", "object"}};  // of a chat: with `text`, which it has by default
  bool approval = false;                       // the user is asked first
  std::optional<HttpTool> http;
  std::optional<AgentTool> agent;
  std::optional<ChatTool> chat;
  bool client = false;
  HEARTH_FIELDS(name, description, schema, approval, http, agent, chat, client)
  HEARTH_REQUIRED(name)

  // What a second call does.
  [[nodiscard]] hearth::Effect effect() const;
};

// Those of every chat, two of them with another default, and `tools`.
struct AssistantOptions : hearth::chat::ChatOptions {
  std::vector<ToolConfig> tools;

  AssistantOptions() {
    stall_timeout_ms = 60'000;
    client_history = "append";
  }
  template <class Visitor>
  void hearth_visit(const Visitor& visitor) {
    ChatOptions::hearth_visit([&](std::string_view names, auto&... fields) {
      visitor(std::string(names) + ", tools", fields..., tools);
    });
  }
};

// Failure   Error(INVALID): a sentence that begins with the place, "options.tools[1].http.url: ..."
[[nodiscard]] AssistantOptions read_assistant_options(const hearth::Json& given);

// Members of the input that the URL does not use are the JSON body of POST, PUT and PATCH, and go
// into the query of the others: a list as one value for each element, null not at all.
// Failure   NotExecuted: a sentence for the model. A member is missing, is not in the schema's
//           `properties`, is not of a kind that fits into the URL, or would change its path.
[[nodiscard]] hearth::FetchRequest http_request(const ToolConfig& tool, hearth::Json input);

// The name of the agent or chat that `tool` calls, as AgentRef takes it.
// Failure   as http_request()
[[nodiscard]] std::string agent_name(const ToolConfig& tool, const hearth::Json& input);

// Whether an answer with this status says that nothing was done. With a key, an earlier request may
// have done it; then only a status about this very request counts.
[[nodiscard]] bool is_refusal(unsigned status, hearth::Effect effect);

// At most so much of an answer goes on to the model and into the chat.
inline constexpr std::size_t kMaxAnswerBytes = std::size_t{256} << 10;
// And of one with an error status, so that a sentence about it has at most 1,000 bytes.
inline constexpr std::size_t kMaxErrorBytes = 900;

// The answer's body as the tool's result: its JSON, else its text.
[[nodiscard]] hearth::Json answer_json(unsigned status, std::string body);

// "status 404: no such city"
[[nodiscard]] std::string error_sentence(unsigned status, std::string body);

}  // namespace assistant

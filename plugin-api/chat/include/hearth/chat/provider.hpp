#pragma once
// How a provider of models is spoken to. A provider does no I/O: its functions make values from
// values, and the same values from the same ones.
//
// The caller sends request(), gives each event of the answer to read(), and calls
// ModelAnswer::end() behind the last one. After a restart it gives the stored events to read() and
// drops their chunks.

#include <hearth/chat/answer.hpp>
#include <hearth/chat/failure.hpp>
#include <hearth/chat/prompt.hpp>
#include <hearth/fetch.hpp>
#include <hearth/json.hpp>
#include <hearth/sse.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::chat {

// Without the credential: the host adds it.
struct HttpCall {
  std::string method = "POST";
  std::string path;  // behind the base URL, which ends with the version ("/v1")
  HeaderList headers = {};
  Json body = nullptr;  // null: none
};

enum class FollowUp : std::uint8_t {
  kResume,  // the rest of the stream
  kPoll,    // the answer as far as it is made, as one JSON body for read_whole()
  kStop,    // ends the answer, which goes on without a connection
};

// Threads   any; it has no state.
// Failure   No function throws, for any event or body: it ends in ModelAnswer::fail().
class Provider {
 public:
  Provider() = default;
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;
  virtual ~Provider() = default;

  // gen_ai.provider.name of a call in traces, at most 200 bytes.
  [[nodiscard]] virtual std::string_view name() const { return "custom"; }
  [[nodiscard]] virtual HttpCall request(const Prompt& prompt) const = 0;
  virtual void read(const ServerSentEvent& event, ModelAnswer& answer) const = 0;
  // Whether a JSON body of status 200 is of the provider, and not of a gateway before it: another
  // one is no answer to a poll.
  [[nodiscard]] virtual bool is_answer(const Json& body) const { return body.is_object(); }
  // An answer of status 200 that is one JSON body: from FollowUp::kPoll, or of a server that does
  // not stream. Adds what the answer does not have yet. The answer may not be whole after it.
  virtual void read_whole(const Json& body, ModelAnswer& answer) const;
  // An answer of a status other than 200 to 299.
  [[nodiscard]] virtual Failure failure(unsigned status, const HeaderList& headers,
                                        std::string_view body, Time now) const {
    return classify(status, headers, body, now);
  }
  // Nothing: the provider cannot do this, or not with this answer.
  [[nodiscard]] virtual std::optional<HttpCall> follow_up(FollowUp what,
                                                          const ModelAnswer& answer) const;
};

// The object in an event's data. Nothing: there is none, and the answer fails if the data is not
// empty.
[[nodiscard]] std::optional<Json> event_object(const ServerSentEvent& event, ModelAnswer& answer);

// OpenAI's Responses. Reasoning is one part for each item, with the paragraphs of its summaries.
class OpenAiResponses : public Provider {
 public:
  [[nodiscard]] std::string_view name() const override { return "openai"; }
  [[nodiscard]] HttpCall request(const Prompt& prompt) const override;
  void read(const ServerSentEvent& event, ModelAnswer& answer) const override;
  [[nodiscard]] bool is_answer(const Json& body) const override;
  void read_whole(const Json& body, ModelAnswer& answer) const override;
  // For answers to a request with ModelOptions::is_resumable.
  [[nodiscard]] std::optional<HttpCall> follow_up(FollowUp what,
                                                  const ModelAnswer& answer) const override;
};

// chat/completions, as OpenAI, vLLM, the server of llama.cpp, Ollama and many gateways have it.
class ChatCompletions : public Provider {
 public:
  struct Dialect {
    bool max_completion_tokens = false;  // OpenAI's newer models reject max_tokens
    bool prefill = false;                // vLLM: a cut answer goes on without a message that asks
  };
  ChatCompletions() = default;
  explicit ChatCompletions(Dialect dialect) : dialect_(dialect) {}

  [[nodiscard]] std::string_view name() const override { return "openai"; }
  [[nodiscard]] HttpCall request(const Prompt& prompt) const override;
  void read(const ServerSentEvent& event, ModelAnswer& answer) const override;
  void read_whole(const Json& body, ModelAnswer& answer) const override;

 private:
  Dialect dialect_;
};

// Anthropic's Messages. It thinks only if nothing in the prompt forbids that: a cut answer goes on
// without thinking, for its own thoughts may have no signature.
class AnthropicMessages : public Provider {
 public:
  explicit AnthropicMessages(std::string version = "2023-06-01") : version_(std::move(version)) {}

  [[nodiscard]] std::string_view name() const override { return "anthropic"; }
  [[nodiscard]] HttpCall request(const Prompt& prompt) const override;
  void read(const ServerSentEvent& event, ModelAnswer& answer) const override;
  void read_whole(const Json& body, ModelAnswer& answer) const override;

 private:
  std::string version_;  // the header anthropic-version
};

}  // namespace hearth::chat

// What providers of models send. (As sdk_targets.cpp, for the chat stands on the SDK.)
#include "chat/shown.hpp"
#include "fuzz/targets.hpp"

#include <hearth/chat/provider.hpp>

#include <vector>

namespace hearth::fuzz {
namespace {

std::vector<ServerSentEvent> sent_events(std::string_view stream) {
  std::vector<ServerSentEvent> events;
  SseParser parser;
  parser.feed(stream);
  while (auto event = parser.take()) events.push_back(*std::move(event));
  return events;
}

Json whole_body(const std::string& text) {
  try {
    return parse_json(text);
  } catch (const Error&) {
    return text;
  }
}

// The first byte says how many events were stored when the server was killed.
void read_answer(const chat::Provider& provider, std::string_view bytes) {
  if (bytes.empty()) return;
  const auto stored = static_cast<std::size_t>(static_cast<unsigned char>(bytes.front()));
  const std::vector<ServerSentEvent> events = sent_events(bytes.substr(1));
  chat::ModelAnswer answer("a");
  chat::ModelAnswer again("a");
  chat::ModelAnswer whole("a");
  chat::Shown shown;
  chat::Shown shown_whole;
  for (std::size_t i = 0; i < events.size(); ++i) {
    provider.read(events[i], answer);
    provider.read(events[i], again);
    provider.read_whole(whole_body(events[i].data), whole);
    const chat::Chunks chunks = answer.take();
    shown.take(chunks);
    shown_whole.take(whole.take());
    if (i < stored) {
      (void)again.take();
    } else {
      require(again.take() == chunks, "an answer that is read again has the same rest");
    }
  }
  answer.end();
  again.end();
  const chat::Chunks chunks = answer.take();
  shown.take(chunks);
  require(again.take() == chunks, "an answer that is read again has the same end");
  require(answer.is_whole() != answer.failure().has_value(), "an answer is whole or has failed");
  for (const chat::AskedCall& call : answer.calls())
    require(call.input.is_object() != !call.error.empty(), "the input of a call is an object");
  const chat::Failure failure = provider.failure(400, {}, bytes, Time());
  require(failure.text.size() <= chat::kMaxFailureText, "a failure's text is bounded");
  // A client's message is a prompt as well.
  const chat::Prompt prompt{.messages = Json::array({shown.message()})};
  require(provider.request(prompt).body.is_object(), "a request has a body");
}

}  // namespace

void chat_anthropic(std::string_view bytes) {
  read_answer(chat::AnthropicMessages(), bytes);
}
void chat_completions(std::string_view bytes) {
  read_answer(chat::ChatCompletions(), bytes);
}
void chat_responses(std::string_view bytes) {
  read_answer(chat::OpenAiResponses(), bytes);
}

}  // namespace hearth::fuzz

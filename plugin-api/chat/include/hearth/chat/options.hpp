#pragma once
// The options of a chat, as the `options` of its class's YAML file have them.

#include <hearth/chat/context.hpp>
#include <hearth/chat/line.hpp>
#include <hearth/chat/provider.hpp>
#include <hearth/chat/recovery.hpp>
#include <hearth/chat/spending.hpp>
#include <hearth/chat/transcript.hpp>
#include <hearth/fields.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace hearth::chat {

struct ChatOptions {
  std::string provider = "chat-completions";           // or openai-responses, anthropic
  std::string base_url = "http://127.0.0.1:11434/v1";  // with the version at its end
  std::string model;
  std::string credential;   // a name under egress.secrets of the class; empty: no key is sent
  bool background = false;  // openai-responses: a cut answer is fetched on; OpenAI stores it
  bool prefill = false;     // chat-completions of vLLM: a cut answer goes on without a question
  std::string reasoning;    // low, medium, high; empty: the model's default
  std::string system;       // the system prompt of each call
  std::optional<std::int64_t> max_output_tokens;  // of one call
  std::int64_t context_tokens = 0;   // the model's window; 0: unknown, all messages are sent
  ContextOverflow context_overflow;  // what happens when a turn fills the window
  std::int64_t compact_after = 0;    // tokens of a history that is compacted before a turn; 0: off
  int max_steps = 10;                // calls of the model in a turn
  Budget budget;
  RecoveryConfig recovery;
  bool recover = true;  // `recovery: false`: an interrupted turn ends, and one whose call failed
  std::int64_t stall_timeout_ms = 0;    // no chunk comes for so long: as a cut; 0: off
  std::string client_history = "edit";  // or append: clients add messages of users alone
  std::string concurrency = "queue";    // or latest, merge, drop, debounce
  std::int64_t debounce_ms = 750;
  std::optional<std::int64_t> max_persisted_messages;  // the newest are kept
  HEARTH_FIELDS(provider, base_url, model, credential, background, prefill, reasoning, system,
                max_output_tokens, context_tokens, context_overflow, compact_after, max_steps,
                budget, recovery, stall_timeout_ms, client_history, concurrency, debounce_ms,
                max_persisted_messages)

  [[nodiscard]] ClientHistory history() const;
  [[nodiscard]] LineConfig line() const;
  [[nodiscard]] ModelOptions model_options() const;
  [[nodiscard]] std::int64_t window() const;  // in tokens; 0: unknown
  // The tokens that a call is taken to give where max_output_tokens does not say so.
  [[nodiscard]] std::int64_t usual_output() const;
  [[nodiscard]] ContextOverflow overflow() const;
};

// `recovery` may be true or false instead of an object: false is given back, and either is removed.
[[nodiscard]] bool take_recovery_switch(Json& options);

// A class's options: ChatOptions, or a struct derived from it with options of the class's own.
// Failure   Error(INVALID): "options.max_setps: unknown; known are provider, base_url, ..."
template <class Options>
[[nodiscard]] Options read_chat_options(Json given) {
  if (given.is_null()) return {};
  const bool recover = take_recovery_switch(given);
  auto options = read_options<Options>(given, "options");
  options.recover = recover;
  return options;
}

// Failure   Error(INVALID): a sentence that names the option, for the class's author.
void check_options(const ChatOptions& options);

// The provider that `options` names.
// Failure   Error(INVALID)
[[nodiscard]] std::unique_ptr<const Provider> make_provider(const ChatOptions& options);

}  // namespace hearth::chat

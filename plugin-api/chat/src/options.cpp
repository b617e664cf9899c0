#include <hearth/chat/options.hpp>
#include <hearth/error.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace hearth::chat {

namespace {

constexpr std::array<std::pair<LinePolicy, std::string_view>, 5> kPolicies = {{
    {LinePolicy::kQueue, "queue"},
    {LinePolicy::kLatest, "latest"},
    {LinePolicy::kMerge, "merge"},
    {LinePolicy::kDrop, "drop"},
    {LinePolicy::kDebounce, "debounce"},
}};

[[noreturn]] void refuse(const std::string& text) {
  throw Error(HEARTH_E_INVALID, "options." + text);
}

}  // namespace

ClientHistory ChatOptions::history() const {
  return client_history == "append" ? ClientHistory::kAppend : ClientHistory::kEdit;
}

LineConfig ChatOptions::line() const {
  const auto found =
      std::ranges::find(kPolicies, concurrency, &decltype(kPolicies)::value_type::second);
  return {found == kPolicies.end() ? LinePolicy::kQueue : found->first,
          std::chrono::milliseconds(debounce_ms)};
}

ModelOptions ChatOptions::model_options() const {
  ModelOptions options;
  options.model = model;
  options.max_output_tokens = max_output_tokens;
  options.reasoning = reasoning;
  options.is_resumable = background;
  return options;
}

std::int64_t ChatOptions::window() const {
  if (context_tokens > 0) return context_tokens;
  return context_overflow.proactive ? context_overflow.proactive->max_input_tokens : 0;
}

std::int64_t ChatOptions::usual_output() const {
  constexpr std::int64_t kTokens = 4'096;
  return max_output_tokens.value_or(context_tokens > 0 ? context_tokens / 8 : kTokens);
}

ContextOverflow ChatOptions::overflow() const {
  ContextOverflow overflow = context_overflow;
  if (overflow.proactive && overflow.proactive->max_input_tokens == 0)
    overflow.proactive->max_input_tokens = context_tokens;
  return overflow;
}

bool take_recovery_switch(Json& options) {
  const auto found = options.find("recovery");
  if (found == options.end() || !found->is_boolean()) return true;
  const bool recover = found->get<bool>();
  options.erase(found);
  return recover;
}

void check_options(const ChatOptions& options) {
  if (options.base_url.empty() || options.base_url.ends_with('/'))
    refuse("base_url: expected a URL without a slash at its end, such as http://127.0.0.1:8000/v1");
  if (options.client_history != "append" && options.client_history != "edit")
    refuse("client_history: expected append or edit");
  if (std::ranges::find(kPolicies, options.concurrency, &decltype(kPolicies)::value_type::second) ==
      kPolicies.end())
    refuse("concurrency: expected queue, latest, merge, drop or debounce");
  if (options.max_steps < 1) refuse("max_steps: expected at least 1");
  if (options.recovery.max_attempts < 1) refuse("recovery.max_attempts: expected at least 1");
  const auto& proactive = options.context_overflow.proactive;
  if (proactive && options.overflow().proactive->max_input_tokens < 1)
    refuse(
        "context_overflow.proactive.max_input_tokens: expected the tokens of the model's window");
  if (proactive && (proactive->headroom <= 0 || proactive->headroom > 1))
    refuse("context_overflow.proactive.headroom: expected more than 0 and at most 1");
}

std::unique_ptr<const Provider> make_provider(const ChatOptions& options) {
  if (options.provider == "openai-responses") return std::make_unique<OpenAiResponses>();
  if (options.background)
    refuse("background: only the provider openai-responses can go on with a cut answer");
  if (options.provider == "anthropic") return std::make_unique<AnthropicMessages>();
  if (options.provider == "chat-completions") {
    ChatCompletions::Dialect dialect;
    dialect.prefill = options.prefill;
    // OpenAI's own server wants the newer name.
    dialect.max_completion_tokens = options.base_url.starts_with("https://api.openai.com/");
    return std::make_unique<ChatCompletions>(dialect);
  }
  refuse("provider: expected openai-responses, chat-completions or anthropic");
}

}  // namespace hearth::chat

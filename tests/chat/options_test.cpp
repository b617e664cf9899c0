// The options of a chat, as a class's file has them.
#include "rows.hpp"

#include <hearth/chat/options.hpp>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace hearth::chat {
namespace {

std::string fault_of(const Json& json) {
  try {
    const auto options = read_chat_options<ChatOptions>(json);
    check_options(options);
    EXPECT_NE(make_provider(options), nullptr);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(ChatOptionsTest, AMistakeIsNamed) {
  const std::vector<std::pair<Json, std::string>> rows = {
      {Json::object(), ""},
      {{{"provider", "anthropic"}, {"budget", {{"day", {{"tokens", 5}}}}}}, ""},
      {{{"provider", "openai-responses"}, {"background", true}}, ""},
      {{{"provider", "gpt"}},
       "options.provider: expected openai-responses, chat-completions or anthropic"},
      {{{"base_url", "http://a/v1/"}},
       "options.base_url: expected a URL without a slash at its end, such as "
       "http://127.0.0.1:8000/v1"},
      {{{"concurrency", "all"}},
       "options.concurrency: expected queue, latest, merge, drop or debounce"},
      {{{"client_history", "all"}}, "options.client_history: expected append or edit"},
      {{{"max_steps", 0}}, "options.max_steps: expected at least 1"},
      {{{"recovery", {{"max_attempts", 0}}}}, "options.recovery.max_attempts: expected at least 1"},
      {{{"recovery", false}}, ""},
      {{{"recovery", 1}}, "options.recovery: expected object"},
      {{{"background", true}},
       "options.background: only the provider openai-responses can go on with a cut answer"},
      {{{"max_steps", "ten"}}, "options.max_steps: expected integer"},
      {{{"recovery", {{"max_atempts", 3}}}},
       "options.recovery.max_atempts: unknown; known are max_attempts, no_progress_timeout_ms, "
       "max_recovery_work, stable_timeout_ms, terminal_message"},
      {{{"budget", {{"day", {{"token", 3}}}}}},
       "options.budget.day.token: unknown; known are calls, tokens, cost"},
  };
  for (const auto& [json, expected] : rows) EXPECT_EQ(fault_of(json), expected) << to_text(json);
}

TEST(ChatOptionsTest, RecoveryIsASwitchOrHasItsOptions) {
  const auto recovers = [](const Json& value) {
    return read_chat_options<ChatOptions>({{"recovery", value}}).recover;
  };
  EXPECT_FALSE(recovers(false));
  EXPECT_TRUE(recovers(true));
  EXPECT_TRUE(recovers({{"max_attempts", 3}}));
}

}  // namespace
}  // namespace hearth::chat

#pragma once
// Compaction: a summary takes the place of the older messages in what the model gets. The messages
// stay in the transcript, where clients see them.
//
// When: before a turn whose history is long (ChatOptions::compact_after), within a turn whose last
// call has nearly filled the window (proactive), and after the provider has refused a prompt as too
// long (reactive).

#include <hearth/chat/prompt.hpp>
#include <hearth/chat/turns.hpp>
#include <hearth/fields.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::chat {

struct ProactiveCompaction {
  std::int64_t max_input_tokens = 0;  // of the model's window
  double headroom = 0.9;              // the share of it that a call may use
  int max_compactions = 1;            // in a turn
  HEARTH_FIELDS(max_input_tokens, headroom, max_compactions)
};

struct ContextOverflow {
  bool reactive = false;
  int max_retries = 1;  // of a turn, for `reactive`
  std::optional<ProactiveCompaction> proactive = {};
  HEARTH_FIELDS(reactive, max_retries, proactive)
};

// What the last compaction has left. An empty one covers nothing.
struct Summary {
  std::string from;         // the first message that it does not cover; empty: any
  std::string answer;       // the message whose first `parts` parts it covers
  std::uint64_t parts = 0;  // where a step begins
  std::string text;
  HEARTH_FIELDS(from, answer, parts, text)
};

// Removes from the messages, which are in their order, what the summary covers.
void leave_out_covered(const Summary& summary, std::vector<Json>& messages);
void leave_out_covered(const Summary& summary, Json& message);

// What a summary is to be made of, for ChatAgent::compact().
struct Compaction {
  std::string reason;             // compact_after, proactive, reactive
  Json messages = Json::array();  // UIMessages, without what the earlier summary covers
  std::string earlier;            // that summary; empty: there is none
  std::size_t max_bytes = 0;      // of a text that fits into the window for sure
  Summary next;                   // without its text
};

// All but the turn's own messages (or the last one of a user), and of its answer all but the last
// step. Nothing: that is nothing.
//
// `history`  as the model would get it, without what the earlier summary covers; then the answer
[[nodiscard]] std::optional<Compaction> plan_compaction(const Json& history, const Json& answer,
                                                        const std::vector<std::string>& own_ids,
                                                        const Summary& earlier);

// Asks for a summary in words. The oldest messages are left out where max_bytes is too little.
[[nodiscard]] Prompt summary_prompt(const Compaction& compaction, ModelOptions options);

// The system prompt with the summary.
[[nodiscard]] std::string with_summary(std::string system, const Summary& summary);

// Why the history is to be compacted before the next call; empty: it is not.
[[nodiscard]] std::string_view compaction_due(const CallPlan& plan, const ContextOverflow& overflow,
                                              std::int64_t compact_after,
                                              std::int64_t history_tokens);

}  // namespace hearth::chat

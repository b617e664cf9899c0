#include "history.hpp"

#include "parts.hpp"

#include <hearth/chat/chat_agent.hpp>
#include <hearth/chat/message.hpp>
#include <hearth/chat/tool_calls.hpp>

#include <algorithm>
#include <utility>

namespace hearth::chat {

namespace {

constexpr const char* kSummaryKey = "hearth.chat.summary";

bool has(const std::vector<std::string>& ids, const std::string& id) {
  return std::ranges::find(ids, id) != ids.end();
}

// Code of the agent repeats no message that it does not mean.
std::vector<std::string> own_of(const TurnRecord& turn,
                                const std::unordered_set<std::string>& answered) {
  if (turn.kind == TurnKind::kProgram) return turn.origin_ids;
  std::vector<std::string> own;
  std::ranges::copy_if(turn.origin_ids, std::back_inserter(own),
                       [&](const std::string& id) { return !answered.contains(id); });
  return own.empty() ? turn.origin_ids : own;
}

}  // namespace

void History::keep(const Summary& summary) {
  agent_.kv().put(kSummaryKey, Json(summary));
}

void History::forget_summary() {
  agent_.kv().remove(kSummaryKey);
}

// That of messages which are gone, by an edit or a new try, is gone with them.
Summary History::summary_for(const TurnRecord& turn) {
  const std::optional<Summary> summary = agent_.kv().get<Summary>(kSummaryKey);
  if (!summary) return {};
  const auto is_there = [&](const std::string& id) {
    return id == turn.message_id || transcript_.find(id).has_value();
  };
  if ((summary->from.empty() || is_there(summary->from)) &&
      (summary->parts == 0 || is_there(summary->answer)))
    return *summary;
  agent_.kv().remove(kSummaryKey);
  return {};
}

// The messages that have no answer yet.
std::vector<std::string> History::waiting_ids() const {
  std::vector<std::string> waiting;
  for (const TurnInLine& each : turns_.line())
    if (!each.is_running)
      waiting.insert(waiting.end(), each.origin_ids.begin(), each.origin_ids.end());
  return waiting;
}

std::vector<std::string> History::ids_in_use() const {
  std::vector<std::string> used;
  for (const TurnInLine& each : turns_.line()) {
    used.insert(used.end(), each.origin_ids.begin(), each.origin_ids.end());
    if (!each.message_id.empty()) used.push_back(each.message_id);
  }
  return used;
}

std::vector<std::string> History::own_ids(const TurnRecord& turn) const {
  return own_of(turn, turns_.answered_before(turn));
}

// All messages but the answer itself and what waits in the line; the turn's own come last, since
// others may have come between.
Json History::of(const TurnRecord& turn) {
  const std::vector<std::string> waiting = waiting_ids();
  const std::unordered_set<std::string> answered = turns_.answered_before(turn);
  const std::vector<std::string> own_ids = own_of(turn, answered);
  std::vector<std::string> of_client;
  for (const ToolSpec& tool : client_tools(turn)) of_client.push_back(tool.name);
  std::size_t room = kMaxHistoryBytes;
  if (options_.context_tokens > 0) {
    const std::int64_t input = options_.context_tokens - options_.usual_output();
    room = static_cast<std::size_t>(std::max<std::int64_t>(input, 256)) * 3;
  }
  Json before = Json::array();
  Json own = Json::array();
  bool has_changed = false;
  std::vector<Json> newest = transcript_.newest(room);
  leave_out_covered(summary_for(turn), newest);
  for (std::size_t i = 0; i < newest.size(); ++i) {
    Json& message = newest[i];
    const std::string& id = parts::text(message, "id");
    // A turn that waits may repeat what this one or one before it asks.
    const bool waits = has(waiting, id) && !has(turn.origin_ids, id) && !answered.contains(id);
    if (id == turn.message_id || waits) continue;
    RepairRules rules;
    rules.is_last = i + 1 == newest.size();
    rules.client_tools = of_client;
    rules.replace = [this](const Json& part) { return agent_.repair_tool_part(part); };
    if (repair(message, rules)) {
      transcript_.put(message);
      has_changed = true;
      agent_.log.event(HEARTH_LOG_INFO, "chat:transcript:repaired", "message=", id);
    }
    (has(own_ids, id) ? own : before).push_back(std::move(message));
  }
  if (has_changed) streams_.show_messages();
  if (own.empty()) {  // edited ones, which are older than the summary
    for (const std::string& id : own_ids)
      if (std::optional<Json> edited = transcript_.find(id)) own.push_back(std::move(*edited));
  }
  while (!before.empty() && !own.empty() && parts::text(before[0], "role") == "assistant")
    before.erase(0);
  for (Json& message : own) before.push_back(std::move(message));
  return before;
}

}  // namespace hearth::chat

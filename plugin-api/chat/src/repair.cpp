// Tool calls without a result: what a client answers, and what happens to the others.
#include "parts.hpp"

#include <hearth/chat/message.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace hearth::chat {

namespace {

constexpr const char* kInterrupted = "The call was interrupted before its result was recorded.";
constexpr const char* kNotRun = "The call was approved, but it did not run before the next turn.";
constexpr const char* kFailed = "The tool failed.";

void fail_part(Json& part, std::string_view text) {
  parts::end_input(part);
  part["state"] = "output-error";
  part["errorText"] = text;
}

// Whether an answer of a client can still come, or is to be used by the next call of the model.
bool is_awaited(const Json& part, const RepairRules& rules) {
  const std::string& state = parts::text(part, "state");
  if (state == "approval-requested") return true;
  if (state == "approval-responded") return rules.is_last;
  // Only a whole input was offered to clients.
  return state == "input-available" &&
         std::ranges::find(rules.client_tools, tool_of(part)) != rules.client_tools.end();
}

bool is_rejected(const Json& part) {
  const Json* const approval = parts::find(part, "approval");
  const Json* const answer = approval == nullptr ? nullptr : parts::find(*approval, "approved");
  return answer != nullptr && *answer == false;
}

bool may_replace(const Json& part) {
  const Json message{{"id", "-"}, {"role", "assistant"}, {"parts", {part}}};
  return message_fault(message).empty() && (!is_tool_part(part) || is_settled(part));
}

void settle(Json& part, const RepairRules& rules) {
  const std::string state = parts::text(part, "state");
  if (state == "approval-responded" && is_rejected(part)) {
    part["state"] = "output-denied";
    return;
  }
  if (rules.replace) {
    if (std::optional<Json> other = rules.replace(part); other && may_replace(*other)) {
      part = std::move(*other);
      return;
    }
  }
  fail_part(part, state == "approval-responded" ? kNotRun : kInterrupted);
}

bool mend_input(Json& part) {
  // The input that still streams is no input.
  if (!is_tool_part(part) || parts::text(part, "state") == "input-streaming") return false;
  const Json* const input = parts::find(part, "input");
  if (input != nullptr && input->is_object()) return false;
  part["input"] = parts::as_input(input == nullptr ? Json() : *input);
  return true;
}

// The call if it waits for an answer.
Answer find_asked(Json& message, std::string_view call, bool is_approval, Json*& part) {
  part = parts::find_call(message, call);
  if (part == nullptr) return Answer::kNoCall;
  const std::string& state = parts::text(*part, "state");
  const bool is_asked = state == "input-available" || state == "approval-requested" ||
                        (state == "approval-responded" && !is_approval);
  if (!is_asked) return Answer::kLate;
  parts::end_input(*part);
  return Answer::kTaken;
}

}  // namespace

bool is_pending(const Json& message) {
  return std::ranges::any_of(parts::of(message), [](const Json& part) {
    const std::string& state = parts::text(part, "state");
    return is_tool_part(part) && !parts::is_true(part, "providerExecuted") &&
           (state == "input-available" || state == "approval-requested");
  });
}

bool repair(Json& message, const RepairRules& rules) {
  bool is_changed = false;
  for (Json& part : parts::of(message)) {
    if (!is_tool_part(part)) continue;
    if (!is_settled(part) && !is_awaited(part, rules)) {
      settle(part, rules);
      is_changed = true;
    }
    if (mend_input(part)) is_changed = true;
  }
  return is_changed;
}

Answer answer_call(Json& message, std::string_view call, Json output) {
  Json* part = nullptr;
  const Answer answer = find_asked(message, call, false, part);
  if (answer != Answer::kTaken) return answer;
  (*part)["state"] = "output-available";
  (*part)["output"] = std::move(output);
  (*part)["preliminary"] = false;
  return answer;
}

Answer fail_call(Json& message, std::string_view call, std::string_view text) {
  Json* part = nullptr;
  const Answer answer = find_asked(message, call, false, part);
  if (answer == Answer::kTaken) fail_part(*part, text.empty() ? kFailed : text);
  return answer;
}

Answer approve_call(Json& message, std::string_view call, bool is_approved) {
  Json* part = nullptr;
  const Answer answer = find_asked(message, call, true, part);
  if (answer != Answer::kTaken) return answer;
  Json& approval = (*part)["approval"];
  if (!approval.is_object()) approval = Json::object();
  if (!parts::has_id(approval, "id")) approval["id"] = call;
  approval["approved"] = is_approved;
  (*part)["state"] = is_approved ? "approval-responded" : "output-denied";
  return answer;
}

}  // namespace hearth::chat

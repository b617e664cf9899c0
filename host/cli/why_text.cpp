#include "cli/why_text.hpp"

#include "cli/text_table.hpp"

#include <array>
#include <cstdlib>
#include <utility>

namespace hearth::cli {
namespace {

std::string text_of_wait(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// "5 s", "12 min", "3 h", "20 days": the age of a wait, or how long it goes on.
std::string age_text(std::int64_t ms) {
  static constexpr std::array<std::pair<std::int64_t, const char*>, 3> kUnits{
      {{86'400'000, " days"}, {3'600'000, " h"}, {60'000, " min"}}};
  ms = std::abs(ms);
  for (const auto& [unit, name] : kUnits) {
    if (ms >= 2 * unit) return std::to_string(ms / unit) + name;
  }
  return std::to_string(ms / 1000) + " s";
}

std::string wait_lines(const Json& wait, std::int64_t now_ms) {
  const std::string urgency = text_of_wait(wait, "urgency");
  std::string text = urgency == "person" ? "! " : urgency == "long" ? "~ " : "  ";
  text += text_of_wait(wait, "what");
  const std::int64_t none = -1;
  const auto number = [&](const char* key) {
    const auto found = wait.is_object() ? wait.find(key) : wait.end();
    return found != wait.end() && found->is_number_integer() ? found->get<std::int64_t>() : none;
  };
  if (const std::int64_t since = number("since_ms"); since != none)
    text += " For " + age_text(now_ms - since) + ".";
  if (const std::int64_t until = number("until_ms"); until != none)
    text += (until < now_ms ? " It was due " + age_text(now_ms - until) + " ago."
                            : " It ends in " + age_text(until - now_ms) + ".");
  if (const std::string ends = text_of_wait(wait, "ends_by"); !ends.empty()) text += " " + ends;
  std::string lines = one_line(text) + "\n";
  if (const std::string action = text_of_wait(wait, "do"); !action.empty())
    lines += "    do: " + one_line(action) + "\n";
  return lines;
}

}  // namespace

std::string why_text(const Json& answer, std::int64_t now_ms) {
  const auto waits = answer.is_object() ? answer.find("waits") : answer.end();
  const bool has_waits = waits != answer.end() && waits->is_array() && !waits->empty();
  const std::string not_seen = text_of_wait(answer, "not_seen");
  std::string lines = one_line(text_of_wait(answer, "class") + "/" + text_of_wait(answer, "agent") +
                               " is " + text_of_wait(answer, "state"));
  lines += has_waits || !not_seen.empty() ? ":\n" : ", and waits for nothing\n";
  if (has_waits) {
    for (const Json& wait : *waits) lines += wait_lines(wait, now_ms);
  }
  if (!not_seen.empty()) lines += one_line("  Its work was not read: " + not_seen) + "\n";
  return lines;
}

}  // namespace hearth::cli

#include "cli/why_text.hpp"

#include "cli/admin_client.hpp"
#include "cli/text_table.hpp"

#include <array>
#include <cstdlib>
#include <utility>

namespace hearth::cli {
namespace {

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

std::string wait_lines(const Json& wait, std::int64_t now_ms, const std::string& place) {
  const std::string urgency = text_member(wait, "urgency");
  std::string text = urgency == "person" ? "! " : urgency == "long" ? "~ " : "  ";
  text += text_member(wait, "what");
  if (const auto since = number_in(wait, "since_ms"))
    text += " For " + age_text(now_ms - *since) + ".";
  if (const auto until = number_in(wait, "until_ms"))
    text += (*until < now_ms ? " It was due " + age_text(now_ms - *until) + " ago."
                             : " It ends in " + age_text(*until - now_ms) + ".");
  if (const std::string ends = text_member(wait, "ends_by"); !ends.empty()) text += " " + ends;
  std::string lines = one_line(text) + "\n";
  if (const std::string action = text_member(wait, "do"); !action.empty())
    lines += "    do: " + one_line(action) + "\n";
  if (const std::string command = text_member(wait, "run"); !command.empty())
    lines += "    run: " + one_line(with_options(command, place)) + "\n";
  return lines;
}

}  // namespace

std::string why_text(const Json& answer, std::int64_t now_ms, const std::string& place,
                     bool is_only_urgent) {
  const Json& waits = list_in(answer, "waits");
  const std::string not_seen = text_member(answer, "not_seen");
  std::string lines = one_line(text_member(answer, "class") + "/" + text_member(answer, "agent") +
                               " is " + text_member(answer, "state"));
  lines += !waits.empty() || !not_seen.empty() ? ":\n" : ", and waits for nothing\n";
  for (const Json& wait : waits)
    if (!is_only_urgent || text_member(wait, "urgency") != "none")
      lines += wait_lines(wait, now_ms, place);
  if (!not_seen.empty()) lines += one_line("  Its work was not read: " + not_seen) + "\n";
  return lines;
}

}  // namespace hearth::cli

#include "plugins/check/check_report.hpp"

#include "base/escape.hpp"
#include "json/json.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace hearth::plugins {
namespace {

constexpr std::array kVerdicts = {
    CheckVerdict::kFailed, CheckVerdict::kCrashed, CheckVerdict::kTimedOut, CheckVerdict::kError,
    CheckVerdict::kPassed, CheckVerdict::kWarning, CheckVerdict::kSkipped};

// The word in front of a line; all have one width.
std::string_view mark_of(CheckVerdict verdict) {
  switch (verdict) {
    case CheckVerdict::kPassed: return "  ok       ";
    case CheckVerdict::kSkipped: return "  skipped  ";
    case CheckVerdict::kWarning: return "  warning  ";
    case CheckVerdict::kError: return "  ERROR    ";
    case CheckVerdict::kFailed: return "  FAILED   ";
    case CheckVerdict::kCrashed: return "  CRASHED  ";
    case CheckVerdict::kTimedOut: return "  TIME OUT ";
  }
  return "";
}

std::string_view group_of(std::string_view id) {
  if (id.starts_with("T1")) return "Loading and unloading";
  if (id.starts_with("T2")) return "Agents";
  if (id.starts_with("T3")) return "Events and results";
  if (id.starts_with("T4")) return "A host that fails";
  if (id.starts_with("T5")) return "What is lent";
  if (id.starts_with('P') || id.starts_with('L')) return "A trial in a process of its own";
  return "The file";
}

// The text may come from the library: escapes it, so that it cannot make lines of its own.
std::string readable_lines(std::string_view text) {
  std::string safe;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    append_escaped(safe, text.substr(at, end - at), EscapeStyle::kHuman);
    at = end + 1;
  }
  return safe;
}

bool is_shown(const CheckResult& result, bool only_failed) {
  return !only_failed || is_failure(result.verdict);
}

}  // namespace

std::string report_head(const CheckReport& report) {
  std::string text = readable_lines(report.file.native()) + ": ";
  if (report.plugin.empty()) {
    text += "no plugin that says what it is";
  } else {
    text += report.plugin + " " + report.version + ", classes";
    for (const std::string& name : report.classes) text += " " + name;
  }
  return text + "\nsha256 " + report.sha256 + ", seed " + std::to_string(report.seed) + "\n";
}

std::string result_text(const CheckResult& result) {
  constexpr std::string_view kIndent = "                  ";
  std::string id = result.id;
  id.resize(std::max<std::size_t>(id.size() + 1, 6), ' ');
  std::string text = std::string(mark_of(result.verdict)) + id + result.sentence + "\n";
  if (result.verdict == CheckVerdict::kPassed) return text;
  // Reasons already quote and escape text from the library.
  if (!result.reason.empty()) text += std::string(kIndent) + result.reason + "\n";
  if (!result.advice.empty()) text += std::string(kIndent) + "> " + result.advice + "\n";
  return text;
}

std::string report_end(const CheckReport& report) {
  std::string counts;
  for (const CheckVerdict verdict : kVerdicts) {
    const std::size_t count = report.count(verdict);
    if (count == 0) continue;
    if (!counts.empty()) counts += ", ";
    std::string word(to_string(verdict));
    std::ranges::replace(word, '_', ' ');
    counts += std::to_string(count) + " " + word;
  }
  if (report.untried > 0)
    counts += "; " + std::to_string(report.untried) + " not tried, since it cannot be loaded";
  return (report.passed() ? "passed: " : "NOT passed: ") + counts + "\n";
}

std::string report_text(const CheckReport& report, bool only_failed) {
  std::string text = report_head(report);
  std::string_view group;
  for (const CheckResult& each : report.results) {
    if (!is_shown(each, only_failed)) continue;
    if (group_of(each.id) != group) {
      group = group_of(each.id);
      text += "\n" + std::string(group) + "\n";
    }
    text += result_text(each);
  }
  return text + "\n" + report_end(report);
}

std::string report_json(const CheckReport& report, bool only_failed) {
  Json results = Json::array();
  for (const CheckResult& each : report.results) {
    if (!is_shown(each, only_failed)) continue;
    results.push_back(Json{{"id", each.id},
                           {"sentence", each.sentence},
                           {"verdict", to_string(each.verdict)},
                           {"reason", each.reason},
                           {"advice", each.advice},
                           {"took_ms", each.took.count()}});
  }
  Json counts = Json::object();
  for (const CheckVerdict verdict : kVerdicts)
    counts[std::string(to_string(verdict))] = report.count(verdict);
  return dump_json(Json{{"schema", 1},
                        {"file", report.file.native()},
                        {"sha256", report.sha256},
                        {"plugin", report.plugin},
                        {"version", report.version},
                        {"classes", report.classes},
                        {"seed", report.seed},
                        {"passed", report.passed()},
                        {"counts", std::move(counts)},
                        {"untried", report.untried},
                        {"results", std::move(results)}}) +
         "\n";
}

}  // namespace hearth::plugins

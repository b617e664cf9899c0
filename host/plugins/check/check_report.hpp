#pragma once
// The report of a check, as text.

#include "plugins/check/check.hpp"

#include <string>

namespace hearth::plugins {

// The head above the results: the file, its plugin and version, the seed. Ends with a line feed.
[[nodiscard]] std::string report_head(const CheckReport& report);

// One result: a line, and if it did not pass, the reason and the advice, indented.
[[nodiscard]] std::string result_text(const CheckResult& result);

// The last line: "passed: 60 passed, 1 warning, 2 skipped" or "NOT passed: 1 crashed, 59 passed".
[[nodiscard]] std::string report_end(const CheckReport& report);

// The whole report, by groups, each under a heading. `only_failed`: without results that passed,
// were skipped or are warnings.
[[nodiscard]] std::string report_text(const CheckReport& report, bool only_failed);

// The same as one JSON object and a line feed. plugin-api/README.md, "Check your library",
// describes it. Members do not change; later versions may add some.
[[nodiscard]] std::string report_json(const CheckReport& report, bool only_failed);

}  // namespace hearth::plugins

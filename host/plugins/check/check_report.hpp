#pragma once
// What a check has found, as text.

#include "plugins/check/check.hpp"

#include <string>

namespace hearth::plugins {

// What is above the results: the file, what it says it is, the seed. Ends with a line feed.
[[nodiscard]] std::string report_head(const CheckReport& report);

// One result: a line, and for what did not pass what is wrong and what to do, indented.
[[nodiscard]] std::string result_text(const CheckResult& result);

// The last line: "passed: 60 passed, 1 warning, 2 skipped" or "NOT passed: 1 crashed, 59 passed".
[[nodiscard]] std::string report_end(const CheckReport& report);

// All of it, by groups, each under a heading. `only_failed`: without what passed, was skipped or is
// a warning.
[[nodiscard]] std::string report_text(const CheckReport& report, bool only_failed);

// The same as one JSON object and a line feed; plugin-api/README.md, "Check your library",
// describes it. What is in it does not change; more may come.
[[nodiscard]] std::string report_json(const CheckReport& report, bool only_failed);

}  // namespace hearth::plugins

#pragma once
// What an agent waits for, as lines for people.

#include "json/json.hpp"

#include <cstdint>
#include <string>

namespace hearth::cli {

// An answer of GET /admin/agents/{class}/{name}/why. Lines of a wait that needs a person begin with
// `!`, and of one that is older than it should be with `~`. Ends with a line feed.
[[nodiscard]] std::string why_text(const Json& answer, std::int64_t now_ms,
                                   const std::string& place = {}, bool is_only_urgent = false);

}  // namespace hearth::cli

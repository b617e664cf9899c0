#pragma once
// Read-only SQL of administrators on an agent's database. For visits (runtime/agent_visit.hpp).

#include "base/error.hpp"
#include "extensions/agent_context.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::server {

inline constexpr std::size_t kMostSqlRows = 1000;
inline constexpr std::size_t kMostSqlBytes = std::size_t{1} << 20;
inline constexpr std::chrono::seconds kSqlPatience{2};

// {"columns":[...],"rows":[[...]],"truncated":bool}: at most kMostSqlRows, and no row behind
// kMostSqlBytes; with the last row at most five times that. `value`: of the parameter ?1.
// A blob is {"blob":"HEX"}. What is refused to the agent's own SQL (storage/plugin_sql.hpp) is
// refused here, and so is each statement that may write.
//
// kForbidden: it may write. kTimeout: kSqlPatience is over. kLimitExceeded: a row is too large. And
// the errors of PluginSql.
[[nodiscard]] Result<std::string> read_with_sql(
    extensions::AgentContext& agent, std::string_view sql,
    std::optional<std::string_view> value = std::nullopt);

}  // namespace hearth::server

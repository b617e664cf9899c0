#pragma once
// What a test may ask about an agent's data.

#include "extensions/agent_context.hpp"

#include <hearth/testing/mock.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::testhost {

// Rows as a JSON array of arrays. Throws runtime_error with SQLite's text.
[[nodiscard]] std::string rows_of(extensions::AgentContext& agent, const std::string& sql);
// `is_live`: it has an instance, whose fibers may run.
[[nodiscard]] std::vector<testing::FiberRecord> fibers_of(extensions::AgentContext& agent,
                                                          bool is_live);
// JSON arrays, as the extensions give them: the oldest first, schedules by their time.
[[nodiscard]] std::string fiber_records_of(extensions::AgentContext& agent);
[[nodiscard]] std::string schedules_of(extensions::AgentContext& agent);
[[nodiscard]] std::string queue_of(extensions::AgentContext& agent);
// When the schedule with this id is due, in Unix milliseconds; absent: there is none.
[[nodiscard]] std::optional<std::int64_t> due_in(extensions::AgentContext& agent,
                                                 std::string_view schedule);

}  // namespace hearth::testhost

#pragma once
// Places in lists of work, which are by age: the `next` of a page, which stays good when the work
// of that place has ended or was removed.

#include "storage/agent_database.hpp"

#include <string>
#include <string_view>

namespace hearth::server {

// Where this fiber, schedule or item stands now, without a slash; of another kind its id.
[[nodiscard]] std::string place_of_work(storage::AgentDatabase& database, std::string_view kind,
                                        std::string_view id);
// The id of what stands there now, or else right before it; empty: nothing does, so that a list
// begins with its first one. A text that is no place is its own id.
[[nodiscard]] std::string work_at_place(storage::AgentDatabase& database, std::string_view kind,
                                        std::string_view place);

}  // namespace hearth::server

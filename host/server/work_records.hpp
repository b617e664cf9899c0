#pragma once
// The durable work of one agent for administrators: fibers, schedules, items of the queue and turns
// of a chat, as records with a kind. For visits (runtime/agent_visit.hpp).

#include "api/admin_requests.hpp"
#include "base/error.hpp"
#include "extensions/agent_context.hpp"

#include <string>
#include <string_view>

namespace hearth::server {

// "fiber", "schedule", "item", "turn".
[[nodiscard]] bool is_kind_of_work(std::string_view word);

// {"work":[...],"next":"KIND/PLACE" or null}, by kind; fibers and turns the newest first, the
// others the oldest. Turns only if the query names them: each runs as a fiber. The next page goes
// on behind the place of the last one, whatever has become of that (server/work_places.hpp).
// Each has kind, id, name (or the callback's), state, created_at, next_at and error. A page may be
// shorter than its limit, and have a `next`: a call looks at a limited number of records.
[[nodiscard]] Result<std::string> work_page(extensions::AgentContext& agent,
                                            const api::WorkQuery& query);

// The same of one, and `record`: all that is known of it. Of a fiber also `operations`, as
// GET /admin/operations lists them: the first 100 that it has begun.
[[nodiscard]] Result<std::string> work_record(extensions::AgentContext& agent,
                                              std::string_view kind, std::string_view id);

// kind      action
// fiber     cancel: it is aborted; end: it gets change.outcome; revive: it goes on now, dead,
//           interrupted, or waiting for a retry or for code
// schedule  run: it runs now, and then as planned; pause, resume; revive: it is dead, or its
//           callback was missing; cancel: it is removed
// item      revive: a dead letter is delivered again; cancel: it is removed
// turn      cancel: its fiber is cancelled, and the chat ends the turn
//
// Returns the record afterwards; `record` is null if it is removed.
// kNotFound: there is no such work. kConflict: its state does not allow it. kInvalidArgument: the
// kind has no such action.
[[nodiscard]] Result<std::string> change_work(extensions::AgentContext& agent,
                                              std::string_view kind, std::string_view id,
                                              std::string_view action,
                                              const api::WorkChange& change);

}  // namespace hearth::server

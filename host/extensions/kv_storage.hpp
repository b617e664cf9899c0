#pragma once
// An agent's values by key as one JSON object, for administrators, who read and patch it.

#include "base/error.hpp"
#include "extensions/agent_context.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace hearth::extensions {

// A page of 1 to 1000 keys and some 4 MiB, in byte order of the keys, from the first key greater
// than `after`. {"storage":{"key":value,...},"next":"key"}: `next` is the `after` of the next page,
// or null.
[[nodiscard]] Result<std::string> storage_page(AgentContext& agent, std::string_view after,
                                               std::size_t limit);

// Applies a JSON merge patch (RFC 7396) to that object: null removes a key, an object is merged
// into the old value, and any other value replaces it. All changes are made, or none. Keys are
// removed before others are set, so that a patch may replace a key at the limit.
//   Failure  kInvalidArgument: not a JSON object. Else as KvExtension::put().
Result<void> patch_storage(AgentContext& agent, std::string_view patch);

// The result of patch_storage() for an agent that stores nothing yet.
[[nodiscard]] Result<void> check_first_patch(const KvSettings& limits, std::string_view patch);

}  // namespace hearth::extensions

#pragma once
// What an agent keeps by key, as one JSON object: for administrators, who read and patch it.

#include "base/error.hpp"
#include "extensions/agent_context.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace hearth::extensions {

// A page of the keys in byte order, those greater than `after`: of 1 to 1000 keys, and of some 4
// MiB. {"storage":{"key":value,...},"next":"key"}, where `next` is the `after` of the next page, or
// null.
[[nodiscard]] Result<std::string> storage_page(AgentContext& agent, std::string_view after,
                                               std::size_t limit);

// A JSON merge patch (RFC 7396) of that object: null removes a key, any other value takes the place
// of the old one, and an object is merged into it. All of it is done, or nothing. Keys are removed
// before others are set: a patch may replace a key at the limit.
//   Failure  kInvalidArgument: no JSON object. Else as KvExtension::put().
Result<void> patch_storage(AgentContext& agent, std::string_view patch);

// What patch_storage() would say to an agent that keeps nothing.
[[nodiscard]] Result<void> check_first_patch(const KvSettings& limits, std::string_view patch);

}  // namespace hearth::extensions

#pragma once
// Structs that a plugin passes (requests and filters), and texts that it borrows.

#include "extensions/abi_call.hpp"

#include <hearth/abi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace hearth::extensions {

// The struct as this server knows it. Members that a smaller (older) struct lacks are zero; further
// members of a larger (newer) struct are ignored. Absent for a null pointer, or if `struct_size` is
// too small to hold itself.
template <class T>
[[nodiscard]] std::optional<T> read_struct(const T* given) noexcept {
  if (given == nullptr || given->struct_size < sizeof(given->struct_size)) return std::nullopt;
  T known{};
  std::memcpy(&known, given, std::min<std::size_t>(given->struct_size, sizeof(T)));
  return known;
}

inline hearth_status bad_struct(AgentContext& agent) {
  return fail(agent, HEARTH_E_INVALID, "a request or a filter is missing, or has no struct_size");
}

// The number of records to list: `by_default` for 0; absent if `limit` is more than `most`.
[[nodiscard]] inline std::optional<std::size_t> read_limit(std::uint32_t limit,
                                                           std::size_t by_default,
                                                           std::size_t most) noexcept {
  if (limit == 0) return by_default;
  if (limit > most) return std::nullopt;
  return limit;
}

// Lends the plugin a text until its next call. `place` may be null: the plugin does not want the
// text.
inline void lend(AgentContext& agent, std::string text, hearth_bytes* place) {
  agent.lent_text = std::move(text);
  if (place != nullptr) *place = slice_of(agent.lent_text);
}

// The status of a function whose only result is a text.
inline hearth_status lend_result(AgentContext& agent, Result<std::string> result,
                                 hearth_bytes* place) {
  if (!result) return fail(agent, result.error());
  lend(agent, std::move(result.value()), place);
  return HEARTH_OK;
}

}  // namespace hearth::extensions

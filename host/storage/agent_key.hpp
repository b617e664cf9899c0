#pragma once
// What names an agent: its class and its name within the class.

#include "base/names.hpp"

#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace hearth::storage {

// A value: compared and hashed by both fields, ordered by class first, then by the name's bytes.
struct AgentKey {
  std::string agent_class;  // is_class_name(): it becomes part of a path
  std::string name;         // any bytes: it never does

  friend bool operator==(const AgentKey&, const AgentKey&) = default;
  friend std::strong_ordering operator<=>(const AgentKey&, const AgentKey&) = default;
};

}  // namespace hearth::storage

// For unordered containers and for choosing a shard. Stable within a process, not across builds.
template <>
struct std::hash<hearth::storage::AgentKey> {
  std::size_t operator()(const hearth::storage::AgentKey& key) const noexcept {
    const std::hash<std::string_view> hash;
    // The odd factor keeps ("a", "b") and ("b", "a") apart.
    return hash(key.agent_class) * std::size_t{0x9E3779B97F4A7C15} + hash(key.name);
  }
};

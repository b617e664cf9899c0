#pragma once
// The key of an agent, its class and its name within the class; and the key of a sub-agent.

#include "base/names.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::storage {

// A value: compared and hashed by both fields, ordered by class first, then by the name's bytes.
//
// A root's name has no slash. The name of a sub-agent is its path: the classes and names from the
// root down, its own name last. Slashes and percent signs in a name are encoded, except in the
// root's:
//
//   class Draft, name Inbox/user-123/Chat/a%2Fb/first
//                a Draft called "first", below the Chat "a/b", below the Inbox "user-123"
//
// So files, the directory and wakes, which know agents by their keys, work for sub-agents too.
struct AgentKey {
  // The largest depth().
  static constexpr unsigned kMaxDepth = 8;

  std::string agent_class;  // is_class_name(): it becomes part of a file's path
  std::string name;         // any bytes: it never becomes part of a file's path

  [[nodiscard]] bool is_sub_agent() const;
  // The number of agents above this one; 0 for a root.
  [[nodiscard]] unsigned depth() const;
  // The name without the path, decoded: the name that the agent's own code sees.
  [[nodiscard]] std::string own_name() const;
  [[nodiscard]] std::optional<AgentKey> parent() const;
  // The topmost agent above it; itself if it is a root. Its key decides on the shard.
  [[nodiscard]] AgentKey root() const;
  // `child_class` is_class_name(); the name may have any bytes.
  [[nodiscard]] AgentKey child(std::string_view child_class, std::string_view child_name) const;
  // Tells agents apart in every build. sha256_prefix() of both fields.
  [[nodiscard]] std::uint64_t digest() const;
  // The prefix of the names of all agents below this one, at any depth: "Inbox/user-123/".
  [[nodiscard]] std::string prefix_below() const;

  friend bool operator==(const AgentKey&, const AgentKey&) = default;
  friend std::strong_ordering operator<=>(const AgentKey&, const AgentKey&) = default;
};

// The longest name that code may give an agent, as a URL writes it, where é has six bytes: the
// default of limits.max_name, so that clients and administrators can reach every agent.
inline constexpr std::size_t kMaxNameBytes = 256;

// Whether a sub-agent may have this own name, decoded: UTF-8 without control characters, neither
// `.` nor `..`, and not too long in a URL.
[[nodiscard]] bool is_sub_agent_name(std::string_view name) noexcept;
// The same for a root's name, which is written as a URL writes it.
[[nodiscard]] bool is_root_name(std::string_view name);

// The name that a path has as `encoded`. Nothing if it is not a sub-agent's name, or if AgentKey
// encodes it in another way: each agent has exactly one key.
[[nodiscard]] std::optional<std::string> decode_sub_agent_name(std::string_view encoded);

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

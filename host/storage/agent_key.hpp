#pragma once
// What names an agent: its class and its name within the class. And what names one below another.

#include "base/names.hpp"

#include <compare>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::storage {

// A value: compared and hashed by both fields, ordered by class first, then by the name's bytes.
//
// A root's name has no slash. The name of a sub-agent is the way to it, its own name last, and all
// names but the root's have their slashes and percent signs encoded:
//
//   class Draft, name Inbox/user-123/Chat/a%2Fb/first
//                a Draft called "first", below the Chat "a/b", below the Inbox "user-123"
//
// So everything that knows agents by their keys (files, the directory, wakes) knows these as well.
struct AgentKey {
  // The most agents that may stand above one.
  static constexpr unsigned kMaxDepth = 8;

  std::string agent_class;  // is_class_name(): it becomes part of a path
  std::string name;         // any bytes: it never does

  [[nodiscard]] bool is_sub_agent() const;
  // How many agents stand above it.
  [[nodiscard]] unsigned depth() const;
  // What its own code knows it by.
  [[nodiscard]] std::string own_name() const;
  [[nodiscard]] std::optional<AgentKey> parent() const;
  // The topmost of those above it; itself if it is no sub-agent. It decides on the shard.
  [[nodiscard]] AgentKey root() const;
  // `child_class` is_class_name(); the name may have any bytes.
  [[nodiscard]] AgentKey child(std::string_view child_class, std::string_view child_name) const;
  // What the names of all agents below it begin with, at whatever depth: "Inbox/user-123/".
  [[nodiscard]] std::string prefix_below() const;

  friend bool operator==(const AgentKey&, const AgentKey&) = default;
  friend std::strong_ordering operator<=>(const AgentKey&, const AgentKey&) = default;
};

// The longest name of one below another, decoded.
inline constexpr std::size_t kMaxSubAgentNameBytes = 512;

// Whether an agent below another may be called so: 1 to 512 bytes of UTF-8 without control
// characters.
[[nodiscard]] bool is_sub_agent_name(std::string_view name) noexcept;

// The name that stands in a way as `encoded`. Nullopt: it is no sub-agent's name, or AgentKey
// encodes it in another way: a place has one key.
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

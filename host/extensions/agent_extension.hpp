#pragma once
// Data that extensions keep about one agent while it is in memory.

#include "base/interface.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace hearth::extensions {

class AgentContext;

// Which memory to give back: what no event has used since the last time, or all that an idle agent
// does not need.
enum class Trim { kUnused, kAll };

// An extension's data about one agent. Made when the agent's code first uses the extension.
//
// Threads  The agent's shard.
class AgentExtension : public Interface {
 public:
  // The agent's code has returned. Throws StorageError.
  virtual void end_turn() {}
  virtual void trim(Trim) {}
  // While this is true, the agent stays in memory, and is loaded again soon after a crash.
  [[nodiscard]] virtual bool keeps_alive() const { return false; }
  // A transaction of the agent's own is open: writes may be undone.
  [[nodiscard]] virtual bool in_transaction() const { return false; }
};

// The extensions' parts of one agent, at most one of each kind.
//
// Threads   The agent's shard.
// Lifetime  release() before the agent's database is closed.
class AgentExtensions {
 public:
  explicit AgentExtensions(AgentContext& agent) : agent_(agent) {}

  // The part of this kind; made from the agent's context if it does not exist.
  template <class Extension>
  Extension& get() {
    if (Extension* const there = find<Extension>()) return *there;
    auto made = std::make_unique<Extension>(agent_);
    Extension& part = *made;
    parts_.emplace_back(&kTag<Extension>, std::move(made));
    return part;
  }
  // Null if it was not made.
  template <class Extension>
  [[nodiscard]] Extension* find() const {
    for (const auto& [tag, part] : parts_) {
      if (tag == &kTag<Extension>) return static_cast<Extension*>(part.get());
    }
    return nullptr;
  }

  // ---- of all ----
  void end_turn() {
    // By index: a rollback may make another part.
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].second->end_turn();
  }
  void trim(Trim what) {
    for (const auto& [tag, part] : parts_) part->trim(what);
  }
  [[nodiscard]] bool keeps_alive() const {
    for (const auto& [tag, part] : parts_) {
      if (part->keeps_alive()) return true;
    }
    return false;
  }
  [[nodiscard]] bool in_transaction() const {
    for (const auto& [tag, part] : parts_) {
      if (part->in_transaction()) return true;
    }
    return false;
  }
  void release() {
    while (!parts_.empty()) {
      const auto last = std::move(parts_.back());
      parts_.pop_back();
    }
  }

 private:
  template <class Extension>
  static constexpr char kTag = 0;  // its address identifies the kind

  AgentContext& agent_;
  std::vector<std::pair<const char*, std::unique_ptr<AgentExtension>>> parts_;
};

}  // namespace hearth::extensions

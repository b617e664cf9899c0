#pragma once
// What an administrator asks of a shard.

#include "durable/wake_index.hpp"
#include "extensions/wait.hpp"
#include "runtime/agent_slots.hpp"
#include "runtime/agent_visit.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtime {

// Threads    The shard's.  Lifetime  The constructor arguments outlive it.
class ShardAdmin {
 public:
  ShardAdmin(const ShardServices& services, AgentSlots& slots)
      : services_(services), slots_(slots) {}

  // What an administrator sees of an agent, which need not exist.
  struct Standing {
    AgentState state = AgentState::kCold;
    bool in_memory = false;
    std::size_t connections = 0;
    std::string version;                  // of its code, while it is in memory
    std::string sha256;                   // of its library's content then
    const ServedClass* served = nullptr;  // the same, to compare: it may be gone by now
    durable::Wake wake;                   // what the wake index says
    bool condemned = false;
    std::optional<std::int64_t> last_active_ms = {};  // Unix time, while it is in memory
  };
  [[nodiscard]] Standing standing(const storage::AgentKey& key) const;
  // What an agent waits for, but for its durable work.
  [[nodiscard]] std::vector<extensions::Wait> waits(const storage::AgentKey& key);
  // Agents with a wait that fits, in order: one of waits(), or one that the wake index knows. That
  // knows operations that are unknown, that work is dead, and of the other durable work only the
  // moment when it is due, which is the earliest one.
  [[nodiscard]] std::vector<storage::AgentKey> waiting(
      const std::function<bool(const extensions::Wait&)>& fits);
  // Names of a class's agents that are in memory or have clients: the first ones greater than
  // `after`, in byte order. Such an agent may be missing in the directory, because it has stored
  // nothing.
  [[nodiscard]] std::vector<std::string> names_in_memory(std::string_view agent_class,
                                                         std::string_view after,
                                                         std::size_t at_most) const;
  // How many agents of each class are in memory.
  [[nodiscard]] std::map<std::string, std::size_t> live_by_class() const;
  // Evicts the agent; if it is starting, once it has started. Returns the state it was in. Does
  // nothing in other states.
  AgentState evict(const storage::AgentKey& key);
  // The same for any reason, with another grace; 0: at once, also if it starts or leaves.
  void evict(const storage::AgentKey& key, EvictReason reason, std::chrono::milliseconds grace);
  // Brings the agent into memory, as an event does.
  void wake(const storage::AgentKey& key, std::string_view segment);
  // What an administrator does with an agent's data: agent_visit.hpp.
  void visit(const storage::AgentKey& key, std::string_view segment, AgentVisit visit);
  // Lists an object that was never called. False: it is listed already.
  Result<bool> create_object(const storage::AgentKey& key);
  // Like a request of the agent itself (AgentContext::destroy). The destruction is certain when
  // this returns. kUnavailable: the agent is starting or leaving, or an earlier destruction waits;
  // try again.
  Result<void> destroy(const storage::AgentKey& key);

 private:
  const ShardServices& services_;
  AgentSlots& slots_;
};

}  // namespace hearth::runtime

#pragma once
// Which classes are served now, and with which settings.

#include "runtime/agent_class.hpp"
#include "runtime/class_settings.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtime {

// Agents of one version of a class: how they have started, and how many are in memory. Threads  Any.
struct StartCounts {
  std::atomic<std::uint32_t> started{0};
  std::atomic<std::uint32_t> failed{0};
  std::atomic<std::uint32_t> agents{0};  // not cold
};

// One class that is served: its code and its settings. Each change of one of them is another version of it, and agents know
// theirs by this object's address. Immutable but for the counts; whoever uses it holds it.
struct ServedClass {
  std::string segment;  // "chat-room": how clients name it
  std::shared_ptr<const AgentClass> agent_class;
  ClassSettings settings;
  std::string refusal = {};  // not empty: no agent of it is woken, and this is why, for clients
  std::shared_ptr<StartCounts> starts = std::make_shared<StartCounts>();
};

// Threads   All members from any thread. Asked once for each connection and each wake, never for a message.
class ClassRegistry {
 public:
  // False if the segment is taken.
  bool add(ServedClass served);

  // From now on the segment is served by `next`, whatever served it before: that is returned, or null.
  std::shared_ptr<const ServedClass> put(std::shared_ptr<const ServedClass> next);

  // The segment is served no more. It is *awaited* until put() brings it back or give_up() is called: the clients of its agents
  // stay connected meanwhile. What served it, or null.
  std::shared_ptr<const ServedClass> remove(std::string_view segment);
  [[nodiscard]] bool is_awaited(std::string_view segment) const;
  void give_up(std::string_view segment);

  // Null if there is no such class.
  [[nodiscard]] std::shared_ptr<const ServedClass> find(std::string_view segment) const;

  // By the class's own name ("ChatRoom"). Null if there is no such class.
  [[nodiscard]] std::shared_ptr<const ServedClass> find_by_name(std::string_view name) const;

  // In the order of the segments.
  [[nodiscard]] std::vector<std::shared_ptr<const ServedClass>> all() const;

  void clear();

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const ServedClass>, std::less<>>
      classes_;                                 // guarded by mutex_
  std::set<std::string, std::less<>> awaited_;  // guarded by mutex_: segments
};

}  // namespace hearth::runtime

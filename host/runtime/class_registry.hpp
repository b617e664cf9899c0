#pragma once
// Which classes are served now, and with which settings.

#include "runtime/agent_class.hpp"
#include "runtime/class_settings.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtime {

// One class that is served. Immutable; whoever uses it holds it.
struct ServedClass {
  std::string segment;  // "chat-room": how clients name it
  std::shared_ptr<const AgentClass> agent_class;
  ClassSettings settings;
};

// Threads   All members from any thread. Asked once for each connection and each wake, never for a message.
class ClassRegistry {
 public:
  // False if the segment is taken.
  bool add(ServedClass served);

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
      classes_;  // guarded by mutex_
};

}  // namespace hearth::runtime

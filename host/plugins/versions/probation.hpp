#pragma once
// What must run for a while before it counts as proven, and until when.

#include "base/clock.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace hearth::plugins {

// `Key`: names a library or a class. begin() on a key that is on probation starts its time anew.
// Threads   One.
template <class Key>
class Probation {
 public:
  void begin(const Key& key, SteadyTime ends) { ends_[key] = ends; }
  void end(const Key& key) { ends_.erase(key); }

  // When the next probation is over. Absent: there is none.
  [[nodiscard]] std::optional<SteadyTime> next() const {
    const auto first =
        std::ranges::min_element(ends_, {}, [](const auto& each) { return each.second; });
    return first == ends_.end() ? std::nullopt : std::optional(first->second);
  }

  // Ends the probations that are over at `now`, and returns their keys.
  [[nodiscard]] std::vector<Key> over(SteadyTime now) {
    std::vector<Key> keys;
    std::erase_if(ends_, [&](const auto& each) {
      if (each.second > now) return false;
      keys.push_back(each.first);
      return true;
    });
    return keys;
  }

 private:
  std::map<Key, SteadyTime> ends_;
};

}  // namespace hearth::plugins

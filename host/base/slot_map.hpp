#pragma once
// Values under numbers that are never reused: the table behind integer handles.

#include "base/assert.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace hearth {

// A set of T, each under an id that is never 0. The id of an erased value finds nothing, even after
// its place is reused, because the id's upper half counts the uses of the place. The count has 24
// bits; a place with the highest count is not used again.
//
// Promises   P1 find() of an erased id is null.
//            P2 Values do not move: pointers stay valid until erase().
//            P3 All operations are O(1), except for_each(), which is O(places).
// Threads    Not locked; like a std::vector.
template <class T>
class SlotMap {
 public:
  using Id = std::uint64_t;

  // Ids are below 2^56, so that an owner can use the other eight bits.
  static constexpr std::uint32_t kMaxGeneration = (1U << 24) - 1;

  template <class... Args>
  std::pair<Id, T&> emplace(Args&&... args) {
    std::uint32_t index = 0;
    if (free_.empty()) {
      index = static_cast<std::uint32_t>(places_.size());
      places_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    Place& place = places_[index];
    place.value.emplace(std::forward<Args>(args)...);
    ++size_;
    return {Id{place.generation} << 32 | index, *place.value};
  }

  [[nodiscard]] T* find(Id id) {
    const auto index = static_cast<std::uint32_t>(id);
    if (index >= places_.size()) return nullptr;
    Place& place = places_[index];
    if (place.generation != id >> 32 || !place.value) return nullptr;
    return &*place.value;
  }

  [[nodiscard]] const T* find(Id id) const {
    const auto index = static_cast<std::uint32_t>(id);
    if (index >= places_.size()) return nullptr;
    const Place& place = places_[index];
    if (place.generation != id >> 32 || !place.value) return nullptr;
    return &*place.value;
  }

  // True if there was such a value.
  bool erase(Id id) {
    if (find(id) == nullptr) return false;
    const auto index = static_cast<std::uint32_t>(id);
    Place& place = places_[index];
    --size_;
    const bool reusable = place.generation < kMaxGeneration;
    if (reusable) ++place.generation;
    place.value.reset();  // last: a destructor may look at this map
    if (reusable) free_.push_back(index);
    return true;
  }

  // Visits every value. `visit(Id, T&)` may erase the value that it gets, and must not add any.
  template <class Visit>
  void for_each(const Visit& visit) {
    for (std::uint32_t index = 0; index < places_.size(); ++index) {
      Place& place = places_[index];
      if (place.value) visit(Id{place.generation} << 32 | index, *place.value);
    }
  }

  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::uint32_t index = 0; index < places_.size(); ++index) {
      const Place& place = places_[index];
      if (place.value) visit(Id{place.generation} << 32 | index, *place.value);
    }
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  struct Place {
    std::uint32_t generation = 1;
    std::optional<T> value;
  };
  std::deque<Place> places_;
  std::vector<std::uint32_t> free_;
  std::size_t size_ = 0;
};

}  // namespace hearth

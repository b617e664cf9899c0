#pragma once
// Memory that is lent to a library. It can be made inaccessible afterwards: then a library that
// uses a kept pointer crashes at once.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// Promises  Behind lent memory there is an inaccessible page: reading past the end crashes the
//           process. After retire() any access does.
// Bounded   The last kMaxRegions stay mapped, so that their addresses are not reused; older ones
//           are unmapped.
// Failure   StorageError: the system gives no more memory, or no more mappings.
// Threads   One; label_at() any, also a signal handler's.
class GuardedMemory {
 public:
  static constexpr std::size_t kMaxRegions = 8192;
  static constexpr std::size_t kMaxLabel = 96;

  GuardedMemory();
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // A copy of `bytes` that may be read and written until retire(). Null for no bytes. `label` names
  // it: "event.body". The copy is as aligned as its size.
  void* lend(std::string_view bytes, std::string_view label);

  // As lend(), but never taken back: only the memory behind it is inaccessible.
  void* keep(std::string_view bytes, std::string_view label);

  // Takes back everything that was lent since `mark`, an earlier mark().
  [[nodiscard]] std::size_t mark() const { return lent_; }
  void retire(std::size_t mark);

  // The label of the memory at `address`, where the process crashed; null if it is not lent memory.
  [[nodiscard]] const char* label_at(const void* address) const noexcept;

 private:
  struct Region {
    std::byte* begin = nullptr;
    std::byte* copy = nullptr;
    std::size_t size = 0;  // with the page at its end
    bool retired = false;
    char label[kMaxLabel] = {};
  };
  static Region make_region(std::string_view bytes, std::string_view label);
  Region& place(std::size_t number) { return regions_[number % kMaxRegions]; }

  std::vector<Region> regions_;  // a ring
  std::vector<Region> kept_;
  std::size_t lent_ = 0;  // number of lend() calls so far
};

}  // namespace hearth::plugins

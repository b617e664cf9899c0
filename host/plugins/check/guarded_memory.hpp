#pragma once
// Memory for what is lent to a library: it can be made untouchable afterwards, so that a pointer
// that was kept is found out the moment it is followed.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// Promises  What is lent ends where a page begins that nobody may touch: reading past it ends the
//           process. After retire() it cannot be touched at all.
// Bounded   The last kMaxRegions are kept, so that what is in their place is nothing else; older
//           ones are unmapped.
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

  // A copy of `bytes` that may be read and written until retire(). Null for no bytes. `label` says
  // what it is: "event.body". The copy is aligned as its size is.
  void* lend(std::string_view bytes, std::string_view label);

  // As lend(), for what is never taken back: only what lies behind it cannot be touched.
  void* keep(std::string_view bytes, std::string_view label);

  // Takes back everything that was lent since `mark`, an earlier mark().
  [[nodiscard]] std::size_t mark() const { return lent_; }
  void retire(std::size_t mark);

  // What lies at `address`, for whoever crashed there: null if it is none of ours.
  [[nodiscard]] const char* label_at(const void* address) const noexcept;

 private:
  struct Region {
    std::byte* begin = nullptr;
    std::byte* copy = nullptr;
    std::size_t size = 0;  // the page at its end included
    bool retired = false;
    char label[kMaxLabel] = {};
  };
  static Region make_region(std::string_view bytes, std::string_view label);
  Region& place(std::size_t number) { return regions_[number % kMaxRegions]; }

  std::vector<Region> regions_;  // a ring
  std::vector<Region> kept_;
  std::size_t lent_ = 0;  // ever
};

}  // namespace hearth::plugins

#pragma once
// Where the code of each library lies. For the crash handler, which has an address and must not ask
// the dynamic loader.
//
// State    The table has static storage, as the records of calls (call_records.hpp): a signal
//          handler reaches nothing else.
// Bounded  2048 libraries at once, old generations included. Further libraries have no owner in the
//          table.

#include "diagnosis/call_records.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace hearth::diagnosis {

// The addresses from `from` to before `until`. Empty if the two are equal.
struct CodeRange {
  std::uintptr_t from = 0;
  std::uintptr_t until = 0;

  [[nodiscard]] bool contains(std::uintptr_t address) const {
    return address >= from && address < until;
  }
};

// The code of the library that contains the address `inside`. Empty: no library does.
//   Threads   Any; asks the dynamic loader.
[[nodiscard]] CodeRange find_code_range(const void* inside);

struct LibraryCode;

// Publishes the code of one library until the object is destroyed. Destroy it before the library is
// unmapped.
//
// Threads   The loader's. A crash in the library during the destructor may find no owner.
class PublishedCode {
 public:
  // `inside`: any address in the library. `classes`: with commas between them; the agent_class of
  // the owner that find_code_owner() returns.
  PublishedCode(std::string library_file, std::string hash, std::uint64_t version,
                std::string classes, const void* inside);
  ~PublishedCode();
  PublishedCode(const PublishedCode&) = delete;
  PublishedCode& operator=(const PublishedCode&) = delete;

 private:
  std::unique_ptr<const LibraryCode> code_;
  std::size_t place_;  // in the table; past its end: the table was full
};

// The texts of this many unpublished libraries are kept: a handler on another thread may still be
// reading them.
inline constexpr std::size_t kRememberedOwners = 64;

// The owner of the code at the address. Null: no published library has the address.
//   Safety    Async-signal-safe. The owner stays valid until it and kRememberedOwners other
//             libraries after it are unpublished. That is longer than a crash handler runs.
[[nodiscard]] const CallOwner* find_code_owner(std::uintptr_t address) noexcept;

}  // namespace hearth::diagnosis

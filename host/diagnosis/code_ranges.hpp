#pragma once
// Where the code of each library lies, for who holds an address and must not ask the dynamic
// loader: the handler of a crash.
//
// State    The table is the process's own, as the records of calls are (call_records.hpp): a
//          handler reaches nothing else.
// Bounded  2048 libraries at once, old generations included. The code of one beyond that is
//          nobody's.

#include "diagnosis/call_records.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace hearth::diagnosis {

// The addresses from `from` to before `until`. None, if the two are equal.
struct CodeRange {
  std::uintptr_t from = 0;
  std::uintptr_t until = 0;

  [[nodiscard]] bool contains(std::uintptr_t address) const {
    return address >= from && address < until;
  }
};

// The code of the library in which `inside` is an address. Empty: it is in none.
//   Threads   Any; asks the dynamic loader.
[[nodiscard]] CodeRange find_code_range(const void* inside);

struct LibraryCode;

// Publishes the code of one library until it is destroyed, which must be before the library is
// unmapped.
//
// Threads   The loader's. A crash in the library at the very moment at which it is unpublished may
//           be attributed to nobody.
class PublishedCode {
 public:
  // `inside`: any address in the library. `owner`: who is found; its agent_class may be several,
  // with commas between them.
  PublishedCode(std::string library_file, std::string hash, std::uint64_t version,
                std::string classes, const void* inside);
  ~PublishedCode();
  PublishedCode(const PublishedCode&) = delete;
  PublishedCode& operator=(const PublishedCode&) = delete;

 private:
  std::unique_ptr<const LibraryCode> code_;
  std::size_t place_;  // in the table; behind its end: there was none
};

// Libraries that were unpublished before the texts of one are freed: a handler that has found it
// may be reading them on another thread.
inline constexpr std::size_t kRememberedOwners = 64;

// Whose code is at the address. Null: nobody's, or not a library's.
//   Safety    Async-signal-safe. The owner is valid until it, and then kRememberedOwners others,
//             are unpublished: longer than the handler of a crash runs.
[[nodiscard]] const CallOwner* find_code_owner(std::uintptr_t address) noexcept;

}  // namespace hearth::diagnosis

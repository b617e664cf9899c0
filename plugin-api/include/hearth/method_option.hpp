#pragma once
// Options of a method in the list of its class.

#include <hearth/ext/methods.h>

#include <cstdint>

namespace hearth {

// One option of a method: a promise, or a description.
class MethodOption {
 public:
  constexpr MethodOption() = default;
  // A literal, for people and for language models: "The greetings so far." At most 4096 bytes.
  // NOLINTNEXTLINE(google-explicit-constructor): a description is given as it is
  constexpr MethodOption(const char* description) : description_(description) {}
  // HEARTH_METHOD_*; see ext/methods.h.
  static constexpr MethodOption promise(std::uint32_t flags) {
    MethodOption option;
    option.flags_ = flags;
    return option;
  }

  // Both promises: `hearth::kExclusive | hearth::kIdempotent`.
  friend constexpr MethodOption operator|(const MethodOption& one, const MethodOption& other) {
    return promise(one.flags_ | other.flags_);
  }

  [[nodiscard]] constexpr std::uint32_t flags() const { return flags_; }
  [[nodiscard]] constexpr const char* description() const { return description_; }

 private:
  std::uint32_t flags_ = 0;
  const char* description_ = "";
};

// Promise: a run of the method that was cut off anywhere, followed by a complete run, has the same
// effect as one complete run.
inline constexpr MethodOption kIdempotent = MethodOption::promise(HEARTH_METHOD_IDEMPOTENT);
// Promise: the method changes nothing that outlives the call, neither here nor elsewhere. It is
// idempotent, too.
inline constexpr MethodOption kReadOnly =
    MethodOption::promise(std::uint32_t{HEARTH_METHOD_READ_ONLY} | HEARTH_METHOD_IDEMPOTENT);
// The host runs a call of this method alone: no other call or request of the agent is in progress
// meanwhile. Schedules, queue items, fibers and frames go on beside it.
inline constexpr MethodOption kExclusive = MethodOption::promise(HEARTH_METHOD_EXCLUSIVE);

}  // namespace hearth

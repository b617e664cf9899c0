#pragma once
// Whether a missing file is a loss.

#include <cstdint>

namespace hearth::storage {

// What is known of an agent's file. The writes of a killed process survive; a loss of power loses
// writes that were not synced.
enum class Kept : std::uint8_t {
  kUnknown,  // it may be empty or missing: the agent is recorded before its first commit
  // the first commit was made after the system booted, so no loss of power came since
  kInThisBoot,
  kOnDevice,  // a commit, and the names that lead to it, are on the device
};

}  // namespace hearth::storage

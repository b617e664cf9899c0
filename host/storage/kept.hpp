#pragma once
// Whether a missing file is a loss.

#include <cstdint>

namespace hearth::storage {

// What is known of an agent's file. The writes of a killed process survive; a loss of power loses
// writes that were not synced.
enum class Kept : std::uint8_t {
  kUnknown,  // it may be empty or missing: the agent is recorded before its first commit
  // The first commit was made in this boot, so no power loss has followed it.
  kInThisBoot,
  kOnDevice,  // a commit, and the names that lead to it, are on the device
};

}  // namespace hearth::storage

#pragma once
// Whether a file that is not there is a loss.

#include <cstdint>

namespace hearth::storage {

// What is known of an agent's file. A process that is killed leaves all that it has written; a loss
// of power takes what was not synced.
enum class Kept : std::uint8_t {
  kUnknown,  // it may hold nothing: the agent is recorded before its first commit
  // the first commit was made since the system was booted, so that no power was lost since
  kInThisBoot,
  kOnDevice,  // a commit, and the names that lead to it, are on the device
};

}  // namespace hearth::storage

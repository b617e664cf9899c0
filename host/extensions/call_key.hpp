#pragma once
// A caller's own name for one call, under which the call may be sent again.

#include <string>

namespace hearth::extensions {

struct CallKey {
  // Longer keys are refused where they come in: a UUID has 36 bytes.
  static constexpr std::size_t kMaxBytes = 255;

  std::string key;
  std::string fingerprint;  // of method and arguments: another one is another call

  friend bool operator==(const CallKey&, const CallKey&) = default;
};

}  // namespace hearth::extensions

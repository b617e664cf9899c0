#pragma once
// A caller's name for one call, for safe retries of the call.

#include <string>

namespace hearth::extensions {

struct CallKey {
  // Longer keys are refused at the server's edge: a UUID has 36 bytes.
  static constexpr std::size_t kMaxBytes = 255;

  std::string key;
  std::string fingerprint;  // of method and arguments: with another fingerprint it is another call

  friend bool operator==(const CallKey&, const CallKey&) = default;
};

}  // namespace hearth::extensions

#pragma once
// Randomness that a test can repeat.

#include "base/random.hpp"

#include <cstdint>
#include <mutex>
#include <random>

namespace hearth::testing {

// The same seed gives the same bytes, on every machine (std::mt19937_64 is specified to the bit).
// Threads   fill() is safe to call from any thread; the order of the calls decides which call gets
//           which bytes.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed = 1) : engine_(seed) {}

  void fill(std::span<std::byte> out) override {
    const std::lock_guard lock(mutex_);
    for (std::byte& byte : out) byte = static_cast<std::byte>(engine_() & 0xFFU);
  }

 private:
  std::mutex mutex_;
  std::mt19937_64 engine_;
};

}  // namespace hearth::testing

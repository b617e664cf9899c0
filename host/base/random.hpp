#pragma once
// Randomness comes through this interface, so that a test can seed it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hearth {

// Threads   fill() is safe to call from any thread.
class Random {
 public:
  Random() = default;
  virtual ~Random() = default;
  Random(const Random&) = delete;
  Random& operator=(const Random&) = delete;

  // Fills `out` with bytes that nobody can predict (for ids and tokens).
  virtual void fill(std::span<std::byte> out) = 0;
};

// getrandom(2). Aborts when the system has no randomness: nothing could run safely then.
class SystemRandom final : public Random {
 public:
  void fill(std::span<std::byte> out) override;
};

// 0 to `most`, each about as likely: for waits that are to differ.
std::uint32_t random_up_to(std::uint32_t most, Random& random);

// 122 bits of `random` as a version 4 UUID in its 36-character lower-case form (RFC 9562).
std::string make_uuid(Random& random);

}  // namespace hearth

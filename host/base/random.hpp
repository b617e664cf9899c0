#pragma once
// Code gets random bytes through this interface, so that a test can seed them.

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

  // Fills `out` with unpredictable bytes (for ids and tokens).
  virtual void fill(std::span<std::byte> out) = 0;
};

// getrandom(2). Aborts if the system has no random bytes: the server would not be safe.
class SystemRandom final : public Random {
 public:
  void fill(std::span<std::byte> out) override;
};

// 0 to `most`, each about as likely. For delays that should differ.
std::uint32_t random_up_to(std::uint32_t most, Random& random);

// 122 bits of `random` as a version 4 UUID in its 36-character lower-case form (RFC 9562).
std::string make_uuid(Random& random);

}  // namespace hearth

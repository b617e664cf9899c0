#pragma once
// Secrets that the server shares with programs that it trusts.

#include "base/random.hpp"

#include <string>
#include <string_view>

namespace hearth {

// Whether both texts are equal. The time depends on their lengths only, so it does not show an
// attacker how much of a guess is right.
[[nodiscard]] bool is_same_secret(std::string_view a, std::string_view b) noexcept;

// 64 hexadecimal digits for 32 bytes of `random`: too many to guess.
[[nodiscard]] std::string make_secret(Random& random);

}  // namespace hearth

#pragma once
// Secrets that a program shares with those it trusts.

#include "base/random.hpp"

#include <string>
#include <string_view>

namespace hearth {

// Whether both are the same text, in a time that depends on their lengths alone: whoever guesses
// learns nothing from it about how much of a guess is right.
[[nodiscard]] bool is_same_secret(std::string_view a, std::string_view b) noexcept;

// 64 hexadecimal digits that stand for 32 bytes of `random`: more than anybody can guess.
[[nodiscard]] std::string make_secret(Random& random);

}  // namespace hearth

#pragma once
// "Did you mean ...?"

#include <cstddef>
#include <span>
#include <string_view>

namespace hearth::config {

// How many single-character mistakes turn `a` into `b`: an extra character, a missing one, a wrong
// one, two neighbours swapped. Takes time in proportion to the product of the lengths.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate with the fewest mistakes, the first of several. Empty: none is near. A candidate is
// near with at most two mistakes, or at most one for every three of its letters.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> candidates);

}  // namespace hearth::config

#pragma once
// "Did you mean ...?"

#include <cstddef>
#include <span>
#include <string_view>

namespace hearth::config {

// How many single-character mistakes (one too many, one missing, a wrong one, two neighbours
// swapped) turn `a` into `b`. Time is the product of the lengths.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate with the fewest mistakes, the first of several; empty when none is so near that
// `word` can be a slip of it: more than two mistakes, and more than a third of its letters.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> candidates);

}  // namespace hearth::config

#include "config/edit_distance.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace hearth::config {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table. Row i has the distances of a's first i letters to all beginnings
  // of b. A swap needs the row two before.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr std::size_t kMaxWord = 64;  // no key of ours is half as long
  if (word.size() > kMaxWord) return {};
  std::string_view best;
  std::size_t fewest = kMaxWord;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    const std::size_t tolerated = std::max<std::size_t>(2, candidate.size() / 3);
    // A word of two letters is not a slip of another one.
    if (distance > tolerated || distance >= candidate.size() || distance >= fewest) continue;
    best = candidate;
    fewest = distance;
  }
  return best;
}

}  // namespace hearth::config

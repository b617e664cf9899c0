#pragma once
// What a call to a model has used, in tokens, as its provider reports it.

#include <hearth/fields.hpp>

#include <cstdint>
#include <optional>

namespace hearth::chat {

// What a provider has not reported is absent.
struct Usage {
  std::optional<std::int64_t> input_tokens = {};  // with the cached ones
  std::optional<std::int64_t> cached_tokens = {};
  std::optional<std::int64_t> output_tokens = {};  // with those of reasoning
  std::optional<std::int64_t> reasoning_tokens = {};
  std::optional<std::int64_t> total_tokens = {};
  HEARTH_FIELDS(input_tokens, cached_tokens, output_tokens, reasoning_tokens, total_tokens)

  // The total, or the sum of what is known. Absent: nothing is known.
  [[nodiscard]] std::optional<std::int64_t> total() const {
    if (total_tokens) return total_tokens;
    if (!input_tokens && !output_tokens) return std::nullopt;
    return input_tokens.value_or(0) + output_tokens.value_or(0);
  }
  // Whether the prompt has filled `headroom` of the model's window. Where its tokens are missing,
  // all tokens count.
  [[nodiscard]] bool fills(std::int64_t window_tokens, double headroom = 0.9) const {
    const auto used = input_tokens ? input_tokens : total();
    return used && static_cast<double>(*used) >= static_cast<double>(window_tokens) * headroom;
  }
};

}  // namespace hearth::chat

#pragma once
// The extensions of the ABI, by their names: what a library's note may ask for.

#include <string_view>

namespace hearth::plugins {

// Whether a plugin may require `id`: what the host provides (extensions/registry.hpp), and what
// only a plugin provides.
[[nodiscard]] bool knows_extension(std::string_view id) noexcept;

}  // namespace hearth::plugins

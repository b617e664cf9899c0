#pragma once
// The names of the ABI's extensions that a library's note may require.

#include <string_view>

namespace hearth::plugins {

// Whether a plugin may require `id`: an extension that the host provides (extensions/registry.hpp),
// or one that only plugins provide.
[[nodiscard]] bool knows_extension(std::string_view id) noexcept;

}  // namespace hearth::plugins

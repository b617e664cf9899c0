#pragma once
// The extensions of the ABI that this server has.

#include <span>
#include <string_view>

namespace hearth::extensions {

struct Registered {
  std::string_view id;     // "hearth.queue/1"
  const void* (*table)();  // of C functions, the same for every library: the first argument of each
                           // function is the host that it serves
};

// In the order of their ids.
[[nodiscard]] std::span<const Registered> registered_extensions() noexcept;

// The table of the extension `id`, or null.
[[nodiscard]] const void* find_extension(std::string_view id) noexcept;

}  // namespace hearth::extensions

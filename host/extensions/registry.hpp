#pragma once
// The extensions of the ABI that this server has.

#include <span>
#include <string_view>

namespace hearth::extensions {

struct Registered {
  std::string_view id;  // "hearth.queue/1"
  const void* table;    // of C functions, the same for every library: the first argument of each
                        // function is the host that it serves
  const void* watched;  // the same, with each call watched: watched_tables.hpp
};

// In the order of their ids.
[[nodiscard]] std::span<const Registered> registered_extensions() noexcept;

// Null: there is no such extension.
[[nodiscard]] const Registered* find_extension(std::string_view id) noexcept;
// An id as a library passes it, which may be null or not terminated; empty: it is no id.
[[nodiscard]] std::string_view name_of_extension(const char* id) noexcept;

}  // namespace hearth::extensions

#pragma once
// Which calls and requests of an agent wait for others of it.

#include "extensions/types.hpp"

#include <hearth/abi.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::extensions {

// What a class says of it. One that *runs alone* begins when no other is in progress, and no other
// begins before it is over. While it waits, those of clients that came later wait behind it; those
// of other agents do not, for what is in progress may wait for their answers.
//
// Lifetime   The names outlive it.
struct CallOrder {
  bool serial = false;                       // `calls: serial`: each runs alone
  std::span<const std::string> exclusive{};  // methods that do (HEARTH_METHOD_EXCLUSIVE); sorted

  // Whether one may have to wait for another.
  [[nodiscard]] bool holds_calls() const { return serial || !exclusive.empty(); }
  // `name`: of an event that runs a method, as its kind has it.
  [[nodiscard]] bool runs_alone(EventKind kind, std::string_view name) const {
    return serial || (kind == EventKind::kCall && std::ranges::binary_search(exclusive, name));
  }
};

// Those that a class lists as HEARTH_METHOD_EXCLUSIVE, sorted.
//   Requires   A table that can be trusted.
[[nodiscard]] std::vector<std::string> exclusive_methods(const hearth_class& definition);

}  // namespace hearth::extensions

#pragma once
// Which calls and requests of an agent wait for each other.

#include "extensions/types.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace hearth::extensions {

// The rules of a class. A call that *runs alone* begins when no other is in progress, and no other
// begins before it has ended. While it waits, later calls of clients wait behind it. Later calls of
// other agents do not: a call in progress may wait for the answer to one of them.
//
// Lifetime   The names outlive it.
struct CallOrder {
  bool serial = false;                       // `calls: serial`: each runs alone
  std::span<const std::string> exclusive{};  // HEARTH_METHOD_EXCLUSIVE: run alone; sorted

  // Whether a call may have to wait for another one.
  [[nodiscard]] bool holds_calls() const { return serial || !exclusive.empty(); }
  // `name`: the name of the event; for kCall the method.
  [[nodiscard]] bool runs_alone(EventKind kind, std::string_view name) const {
    return serial || (kind == EventKind::kCall && std::ranges::binary_search(exclusive, name));
  }
};

}  // namespace hearth::extensions

#pragma once
// The spelling of a class name in a URL.

#include <string>
#include <string_view>

namespace hearth::protocol {

// The URL segment of a class, exactly as the npm clients compute it: they apply this rule to their
// `agent` option, and compare the result with the segment that the server sends.
//
//   1. A name without lower-case letters (and with at least one letter): lower-cased, `_` to `-`.
//   2. Any other: each capital becomes `-` and its lower-case letter; one leading `-` is removed;
//      `_` becomes `-`; one trailing `-` is removed.
//
// Only A to Z have a case; other bytes do not change. For names like MyAgent a second application
// changes nothing. Different classes can share a segment (MyAgent, myAgent): code that fills a
// table by segment must check for that.
std::string kebab_case(std::string_view class_name);

}  // namespace hearth::protocol

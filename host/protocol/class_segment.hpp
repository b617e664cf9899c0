#pragma once
// How a class name is spelled in a URL.

#include <string>
#include <string_view>

namespace hearth::protocol {

// The URL segment of a class: the rule of the npm clients, to the letter, because they apply it to
// their `agent` option and compare the result with what the server tells them.
//
//   1. A name without lower-case letters (and with at least one letter): lower-cased, `_` to `-`.
//   2. Any other: each capital becomes `-` and its lower-case letter; one leading `-` goes; `_`
//      becomes `-`; one trailing `-` goes.
//
// Only A to Z count as letters with a case; other bytes pass unchanged. Applying it twice changes
// nothing for names of type MyAgent. Different classes can share a segment (MyAgent, myAgent):
// whoever fills a table by segment must check.
std::string kebab_case(std::string_view class_name);

}  // namespace hearth::protocol

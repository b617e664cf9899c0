#pragma once
// How much a search in a full-text table may ask for.

#include "base/error.hpp"

#include <cstddef>
#include <string_view>

namespace hearth::storage {

// FTS5 compares the matches of each phrase of a NEAR group with those of all others: 32 phrases in
// a row of a million tokens that are all the same take 5 s, 64 take four times as long.
inline constexpr std::size_t kMostNearPhrases = 32;

// Whether a text is a query of FTS5 with so many phrases in all its NEAR groups together, or
// nothing that FTS5 takes as a query. (How many tokens it may have: full_text_tokens.hpp.)
//
// Errors  kLimitExceeded, with a sentence for the author.
[[nodiscard]] Result<void> check_full_text_query(std::string_view text);

// What a query with more than kMostQueryTokens is refused with.
[[nodiscard]] Error long_query_error();

// Whether the text of a statement names this table with an argument list behind it: a search as
// `SELECT ... FROM table('query')`. May be true of a statement that does not search.
[[nodiscard]] bool calls_table(std::string_view sql, std::string_view table);

}  // namespace hearth::storage

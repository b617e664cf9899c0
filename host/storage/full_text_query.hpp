#pragma once
// Limits of a search in a full-text table.

#include "base/error.hpp"

#include <cstddef>
#include <string_view>

namespace hearth::storage {

// The most phrases in the NEAR groups of a query. FTS5 compares the matches of each phrase of a
// NEAR group with those of all other phrases. In a row of a million equal tokens 32 phrases take 5
// s, and 64 phrases take four times as long.
inline constexpr std::size_t kMostNearPhrases = 32;

// Fails if a query of FTS5 has more than kMostNearPhrases phrases in all its NEAR groups together.
// Text that FTS5 does not accept as a query is fine. (full_text_tokens.hpp bounds the tokens.)
//
// Errors  kLimitExceeded, with a sentence for the author.
[[nodiscard]] Result<void> check_full_text_query(std::string_view text);

// The error of a query with more than kMostQueryTokens.
[[nodiscard]] Error long_query_error();

// Whether the text of a statement has this table's name with an argument list after it, as in a
// search `SELECT ... FROM table('query')`. May be true for a statement that does not search.
[[nodiscard]] bool calls_table(std::string_view sql, std::string_view table);

}  // namespace hearth::storage

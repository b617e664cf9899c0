#pragma once
// How much a search in a full-text table may ask for.

#include "base/error.hpp"

#include <cstddef>
#include <string_view>

namespace hearth::storage {

// FTS5 reads a query, and begins to look for all its words, within one instruction: 100,000 words
// take 11 s and 1.6 GB. A thousand take a tenth of a second and 20 MB.
inline constexpr std::size_t kMostQueryWords = 1'000;
// FTS5 compares the matches of each phrase of a NEAR group with those of all others: 32 phrases in
// a row of a million tokens that are all the same take 5 s, 64 take four times as long.
inline constexpr std::size_t kMostNearPhrases = 32;

// Whether a text is a query of FTS5 that is within the two bounds, or nothing that FTS5 takes as a
// query. A word is a run of letters, digits, `_` and what is not ASCII, in quotes or not.
//
// Errors  kLimitExceeded, with a sentence for the author.
[[nodiscard]] Result<void> check_full_text_query(std::string_view text);

// Whether the text of a statement names this table with an argument list behind it: a search as
// `SELECT ... FROM table('query')`. May be true of a statement that does not search.
[[nodiscard]] bool calls_table(std::string_view sql, std::string_view table);

}  // namespace hearth::storage

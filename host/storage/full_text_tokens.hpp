#pragma once
// How many tokens a full-text query may have, whatever its text comes from.

#include <cstddef>
#include <string_view>

struct sqlite3;

namespace hearth::storage {

// Puts tokenizers in front of unicode61, ascii and trigram on this connection, and so of porter,
// which works on one of them. They count the tokens that queries ask for, MATCH as well as the LIKE
// and GLOB that trigram looks up, in StepBudget::current(): one too many is SQLITE_TOOBIG.
//
// Not here  Tables that name no tokenizer: they take the first that was ever registered, which is
//           SQLite's unicode61. Of the texts that are bound for them is_long_query() tells.
// Failure   StorageError if SQLite refuses one.
void count_query_tokens(sqlite3& connection);

// Whether a text has more than kMostQueryTokens to a table that names no tokenizer.
[[nodiscard]] bool is_long_query(sqlite3& connection, std::string_view text);

}  // namespace hearth::storage

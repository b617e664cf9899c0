#pragma once
// Bounds the tokens of a full-text query, wherever its text comes from.

#include <cstddef>
#include <string_view>

struct sqlite3;

namespace hearth::storage {

// Puts tokenizers in front of unicode61, ascii and trigram on this connection. porter, which uses
// one of these, gets them too. They count the tokens of queries in StepBudget::current(), for MATCH
// and for the LIKE and GLOB of trigram: one token too many is SQLITE_TOOBIG.
//
// Not here  Tables that name no tokenizer. They use the first one ever registered, SQLite's
//           unicode61. is_long_query() checks the texts that are bound for them.
// Failure   StorageError if SQLite refuses a tokenizer.
void count_query_tokens(sqlite3& connection);

// Whether a text has more than kMostQueryTokens for a table that names no tokenizer.
[[nodiscard]] bool is_long_query(sqlite3& connection, std::string_view text);

}  // namespace hearth::storage

#include "storage/full_text_tokens.hpp"

#include "storage/connection.hpp"
#include "storage/full_text_functions.hpp"
#include "storage/step_budget.hpp"

#include <sqlite3.h>

#include <atomic>
#include <string>

namespace hearth::storage {
namespace {

using OnToken = int (*)(void*, int, const char*, int, int, int);
using Tokenize = int (*)(Fts5Tokenizer*, void*, int, const char*, int, OnToken);

struct Sink {
  void* context;
  OnToken on_token;
};

int pass_on(void* to, int flags, const char* token, int size, int begin, int end) {
  StepBudget* const budget = StepBudget::current();
  if (budget != nullptr && !budget->take_query_token()) return SQLITE_TOOBIG;
  const Sink& sink = *static_cast<const Sink*>(to);
  return sink.on_token(sink.context, flags, token, size, begin, end);
}

enum Kind { kUnicode61, kAscii, kTrigram };

// SQLite's tokenizer, the same on all connections.
template <Kind kKind>
std::atomic<Tokenize> own_tokenize = nullptr;

template <Kind kKind>
int tokenize(Fts5Tokenizer* tokenizer, void* context, int flags, const char* text, int size,
             OnToken on_token) {
  const Tokenize own = own_tokenize<kKind>;
  if ((flags & FTS5_TOKENIZE_QUERY) == 0)
    return own(tokenizer, context, flags, text, size, on_token);
  Sink sink{context, on_token};
  return own(tokenizer, &sink, flags, text, size, pass_on);
}

// For LIKE, FTS5 recognises trigram by its xCreate function. So xCreate stays SQLite's.
template <Kind kKind>
void count_tokens_of(sqlite3& connection, fts5_api& api, const char* name) {
  void* data = nullptr;
  fts5_tokenizer tokenizer{};
  if (api.xFindTokenizer(&api, name, &data, &tokenizer) != SQLITE_OK) return;  // an older SQLite
  if (tokenizer.xTokenize == &tokenize<kKind>) return;
  own_tokenize<kKind> = tokenizer.xTokenize;
  tokenizer.xTokenize = &tokenize<kKind>;
  if (api.xCreateTokenizer(&api, name, data, &tokenizer, nullptr) != SQLITE_OK)
    throw_storage_error(connection, "add the tokenizer " + std::string(name));
}

int count_token(void* to, int /*flags*/, const char* /*token*/, int /*size*/, int /*begin*/,
                int /*end*/) {
  return ++*static_cast<std::size_t*>(to) > kMostQueryTokens ? SQLITE_TOOBIG : SQLITE_OK;
}

}  // namespace

void count_query_tokens(sqlite3& connection) {
  fts5_api* const api = full_text_api(connection);
  if (api == nullptr) return;
  count_tokens_of<kUnicode61>(connection, *api, "unicode61");
  count_tokens_of<kAscii>(connection, *api, "ascii");
  count_tokens_of<kTrigram>(connection, *api, "trigram");
}

bool is_long_query(sqlite3& connection, std::string_view text) {
  // There is at least one byte between two tokens.
  if (text.size() < 2 * kMostQueryTokens) return false;
  fts5_api* const api = full_text_api(connection);
  void* data = nullptr;
  fts5_tokenizer tokenizer{};
  Fts5Tokenizer* instance = nullptr;
  if (api == nullptr || api->xFindTokenizer(api, nullptr, &data, &tokenizer) != SQLITE_OK ||
      tokenizer.xCreate(data, nullptr, 0, &instance) != SQLITE_OK)
    return false;
  std::size_t tokens = 0;
  tokenizer.xTokenize(instance, &tokens, FTS5_TOKENIZE_DOCUMENT, text.data(),
                      static_cast<int>(text.size()), count_token);
  tokenizer.xDelete(instance);
  return tokens > kMostQueryTokens;
}

}  // namespace hearth::storage

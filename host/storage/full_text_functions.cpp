#include "storage/full_text_functions.hpp"

#include "storage/connection.hpp"
#include "storage/full_text_rank.hpp"
#include "storage/step_budget.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hearth::storage {
namespace {

// They take 16 MiB, and a tenth of a second to sort.
constexpr std::size_t kMostMatches = std::size_t{1} << 20;

struct Match {
  int column = 0;
  int token = 0;  // the first one, from 0
  int phrase = 0;
  int tokens = 0;  // of the phrase
};
// The bytes of a token in its text.
struct Extent {
  int begin = 0;
  int end = 0;
};

// FTS5's data about the row of a function's call. After a call has failed, later calls return
// nothing, and result() has the error.
//
// Bounded   A row with more than kMostMatches, summed over the phrases of the query, is
//           SQLITE_TOOBIG.
// Lifetime  The function's call.
class MatchedRow {
 public:
  MatchedRow(const Fts5ExtensionApi& api, Fts5Context* row) : api_(api), row_(row) {}

  [[nodiscard]] int result() const { return result_; }
  [[nodiscard]] int columns() const { return api_.xColumnCount(row_); }
  [[nodiscard]] int phrases() const { return api_.xPhraseCount(row_); }
  [[nodiscard]] bool holds(int code) {
    if (result_ == SQLITE_OK) result_ = code;
    return result_ == SQLITE_OK;
  }
  // In the order of the text; phrases that begin at the same token, in the order of the query.
  std::vector<Match> matches() {
    std::vector<Match> found;
    for (int phrase = 0; phrase < phrases() && add_matches(found, phrase);) ++phrase;
    std::ranges::sort(found, [](const Match& a, const Match& b) {
      return std::tie(a.column, a.token, a.phrase) < std::tie(b.column, b.token, b.phrase);
    });
    return found;
  }
  // Null if there is none.
  std::string_view text(int column) {
    const char* text = nullptr;
    int size = 0;
    if (!holds(api_.xColumnText(row_, column, &text, &size)) || text == nullptr) return {};
    return {text, static_cast<std::size_t>(size)};
  }
  std::vector<Extent> tokens(std::string_view text) {
    std::vector<Extent> found;
    const auto add = [](void* to, int flags, const char*, int, int begin, int end) {
      if ((flags & FTS5_TOKEN_COLOCATED) == 0)
        static_cast<std::vector<Extent>*>(to)->push_back({begin, end});
      return SQLITE_OK;
    };
    (void)holds(api_.xTokenize(row_, text.data(), static_cast<int>(text.size()), &found, add));
    return found;
  }
  // Of one column, or of all columns (-1).
  int size_in_tokens(int column) {
    int size = 0;
    (void)holds(api_.xColumnSize(row_, column, &size));
    return size;
  }

 private:
  // SQLite's xInst() would read each phrase of the query for each match.
  bool add_matches(std::vector<Match>& found, int phrase) {
    const int tokens = api_.xPhraseSize(row_, phrase);
    Fts5PhraseIter at{};
    int column = 0;
    int token = 0;
    if (!holds(api_.xPhraseFirst(row_, phrase, &at, &column, &token))) return false;
    for (; column >= 0; api_.xPhraseNext(row_, &at, &column, &token)) {
      if (!holds(found.size() == kMostMatches ? SQLITE_TOOBIG : SQLITE_OK)) return false;
      found.push_back({column, token, phrase, tokens});
    }
    return true;
  }

  const Fts5ExtensionApi& api_;
  Fts5Context* row_;
  int result_ = SQLITE_OK;
};

struct TokenRange {
  int first = 0;
  int last = 0;
};

std::string_view text_or_nothing(sqlite3_value* value) {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  return text == nullptr ? std::string_view() : std::string_view(text);
}

// Joins matches that share a token. In order.
std::vector<TokenRange> marked_ranges(const std::vector<Match>& matches, int column) {
  std::vector<TokenRange> ranges;
  for (const Match& match : matches) {
    if (match.column != column) continue;
    const int last = match.token + match.tokens - 1;
    if (ranges.empty() || match.token > ranges.back().last) {
      ranges.push_back({match.token, last});
    } else {
      ranges.back().last = std::max(ranges.back().last, last);
    }
  }
  return ranges;
}

struct Marks {
  std::string_view open;
  std::string_view close;
};

std::size_t most_bytes(sqlite3_context* context) {
  return static_cast<std::size_t>(
      sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1));
}

// The text from `begin` to the end of the window, with marks around the matches that begin in the
// window. Sets `begin` to the end of that text. Ends early after more than `most` bytes.
std::string marked_text(std::string_view text, const std::vector<Extent>& tokens,
                        const std::vector<TokenRange>& ranges, TokenRange window, Marks marks,
                        std::size_t most, std::size_t& begin) {
  std::string marked;
  const auto append_until = [&](int end) {
    const auto to = static_cast<std::size_t>(end);
    if (to > begin) marked.append(text.substr(begin, to - begin));
    begin = std::max(begin, to);
  };
  bool is_open = false;
  const int last_token = std::min(window.last, static_cast<int>(tokens.size()) - 1);
  for (const auto& [first, last] : ranges) {
    if (first < window.first) continue;
    if (first > last_token || marked.size() > most) break;
    const int from = tokens[static_cast<std::size_t>(first)].begin;
    // Tokens may share bytes (as with trigram): then the mark before continues.
    if (is_open && static_cast<std::size_t>(from) >= begin) {
      marked.append(marks.close);
      is_open = false;
    }
    append_until(from);
    if (!std::exchange(is_open, true)) marked.append(marks.open);
    append_until(tokens[static_cast<std::size_t>(std::min(last, last_token))].end);
  }
  if (is_open) marked.append(marks.close);
  if (last_token >= 0) append_until(tokens[static_cast<std::size_t>(last_token)].end);
  return marked;
}

void give(sqlite3_context* context, const MatchedRow& row, const std::string& text) {
  if (row.result() != SQLITE_OK) return sqlite3_result_error_code(context, row.result());
  if (text.size() > most_bytes(context)) return sqlite3_result_error_toobig(context);
  // Up to the first zero byte, like SQLite's.
  sqlite3_result_text(context, text.c_str(), -1, SQLITE_TRANSIENT);
}

void highlight(const Fts5ExtensionApi* api, Fts5Context* fts, sqlite3_context* context, int count,
               sqlite3_value** arguments) {
  if (count != 3) {
    return sqlite3_result_error(context, "wrong number of arguments to function highlight()", -1);
  }
  MatchedRow row(*api, fts);
  const int column = sqlite3_value_int(arguments[0]);
  const std::string_view text = row.text(column);
  if (row.result() == SQLITE_RANGE) return sqlite3_result_text(context, "", -1, SQLITE_STATIC);
  if (row.result() == SQLITE_OK && text.data() == nullptr) return;
  const std::vector<Extent> tokens = row.tokens(text);
  const TokenRange all{0, static_cast<int>(tokens.size()) - 1};
  std::size_t at = 0;
  std::string marked = marked_text(text, tokens, marked_ranges(row.matches(), column), all,
                                   {text_or_nothing(arguments[1]), text_or_nothing(arguments[2])},
                                   most_bytes(context), at);
  give(context, row, marked.append(text.substr(at)));
}

// ---- snippet ------------------------------------------------------------------------------------

// The tokens that begin a sentence: the first token, and tokens after a full stop or a colon and
// white space.
std::vector<int> sentence_starts(std::string_view text, const std::vector<Extent>& tokens) {
  std::vector<int> starts;
  std::size_t looked_at = 0;
  std::size_t solid_end = 0;  // the end of the last text before looked_at that is not white space
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto begin = static_cast<std::size_t>(tokens[i].begin);
    for (; looked_at < begin; ++looked_at) {
      if (std::string_view(" \t\n\r").find(text[looked_at]) == std::string_view::npos)
        solid_end = looked_at + 1;
    }
    const bool is_behind = solid_end > 0 && solid_end < begin &&
                           (text[solid_end - 1] == '.' || text[solid_end - 1] == ':');
    if (i == 0 || is_behind) starts.push_back(static_cast<int>(i));
  }
  return starts;
}

// The matches of a column in a window of tokens, which only moves forward.
class SnippetWindow {
 public:
  SnippetWindow(const std::vector<Match>& matches, int phrases, int tokens)
      : matches_(matches), tokens_(tokens), seen_(static_cast<std::size_t>(phrases)) {}

  void move_to(int first) {
    const std::int64_t end = std::int64_t{first} + tokens_;
    for (; end_ < matches_.size() && matches_[end_].token < end; ++end_) {
      if (seen_[static_cast<std::size_t>(matches_[end_].phrase)]++ == 0) ++distinct_;
    }
    for (; begin_ < end_ && matches_[begin_].token < first; ++begin_) {
      if (--seen_[static_cast<std::size_t>(matches_[begin_].phrase)] == 0) --distinct_;
    }
  }
  // The first match of a phrase counts a thousand times as much as another match.
  [[nodiscard]] std::int64_t score() const {
    return distinct_ * 1000 + static_cast<std::int64_t>(end_ - begin_) - distinct_;
  }
  // The start of a window that has these matches in its middle.
  [[nodiscard]] int centred(int column_tokens) const {
    const std::int64_t first = matches_[begin_].token;
    const std::int64_t last = matches_[end_ - 1].token + matches_[end_ - 1].tokens;
    std::int64_t start = first - (tokens_ - (last - first)) / 2;
    if (start + tokens_ > column_tokens) start = column_tokens - tokens_;
    return static_cast<int>(std::max<std::int64_t>(start, 0));
  }

 private:
  const std::vector<Match>& matches_;
  const std::int64_t tokens_;
  std::vector<int> seen_;  // by phrase
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::int64_t distinct_ = 0;
};

struct Snippet {
  int column = 0;
  int first = 0;  // token
  std::int64_t score = 0;
  int column_tokens = 0;
};

// Tries windows that begin at a match, and at the start of its sentence.
void improve(Snippet& best, MatchedRow& row, const std::vector<Match>& all, int column,
             int tokens) {
  std::vector<Match> matches;
  std::ranges::copy_if(all, std::back_inserter(matches),
                       [column](const Match& match) { return match.column == column; });
  const std::string_view text = row.text(column);
  const std::vector<int> starts = sentence_starts(text, row.tokens(text));
  const int size = row.size_in_tokens(column);
  SnippetWindow from_match(matches, row.phrases(), tokens);
  SnippetWindow from_sentence(matches, row.phrases(), tokens);
  const auto offer = [&](int first, std::int64_t score) {
    if (score > best.score) best = {column, first, score, size};
  };
  std::size_t sentence = 0;
  for (const Match& match : matches) {
    if (!row.holds(match.token > size ? SQLITE_CORRUPT_VTAB : SQLITE_OK)) return;
    from_match.move_to(match.token);
    offer(from_match.centred(size), from_match.score());
    if (starts.empty() || size <= tokens) continue;
    while (sentence + 1 < starts.size() && starts[sentence + 1] <= match.token) ++sentence;
    const int start = starts[sentence];
    if (start >= match.token) continue;
    from_sentence.move_to(start);
    offer(start, from_sentence.score() + (start == 0 ? 120 : 100));
  }
}

void snippet(const Fts5ExtensionApi* api, Fts5Context* fts, sqlite3_context* context, int count,
             sqlite3_value** arguments) {
  if (count != 5) {
    return sqlite3_result_error(context, "wrong number of arguments to function snippet()", -1);
  }
  MatchedRow row(*api, fts);
  const int wanted = sqlite3_value_int(arguments[0]);
  const std::string_view ellipsis = text_or_nothing(arguments[3]);
  const int tokens = std::max(sqlite3_value_int(arguments[4]), 1);
  const std::vector<Match> matches = row.matches();
  Snippet best{.column = std::max(wanted, 0)};
  for (int column = 0; column < row.columns(); ++column) {
    if (wanted < 0 || wanted == column) improve(best, row, matches, column, tokens);
  }
  const std::string_view text = row.text(best.column);
  if (best.column_tokens == 0) best.column_tokens = row.size_in_tokens(best.column);
  if (row.result() == SQLITE_OK && text.data() == nullptr) return;
  const std::vector<Extent> extents = row.tokens(text);
  const std::int64_t last = std::int64_t{best.first} + tokens - 1;
  const auto first = static_cast<std::size_t>(best.first);
  std::size_t at = 0;
  if (best.first > 0 && first < extents.size()) at = static_cast<std::size_t>(extents[first].begin);
  const TokenRange window{best.first,
                          static_cast<int>(std::min<std::int64_t>(last, best.column_tokens))};
  std::string marked(best.first > 0 ? ellipsis : std::string_view());
  marked += marked_text(text, extents, marked_ranges(matches, best.column), window,
                        {text_or_nothing(arguments[1]), text_or_nothing(arguments[2])},
                        most_bytes(context), at);
  marked.append(last >= best.column_tokens - 1 ? text.substr(at) : ellipsis);
  give(context, row, marked);
}

// A row may take half a second, and a step may read a hundred rows between two looks at the clock.
template <fts5_extension_function kFunction>
void look_then_call(const Fts5ExtensionApi* api, Fts5Context* row, sqlite3_context* context,
                    int count, sqlite3_value** arguments) {
  if (!StepBudget::has_time_for(StepBudget::kWorkPerLook))
    return sqlite3_result_error_code(context, SQLITE_INTERRUPT);
  kFunction(api, row, context, count, arguments);
}

}  // namespace

fts5_api* full_text_api(sqlite3& connection) {
  fts5_api* api = nullptr;
  sqlite3_stmt* prepared = nullptr;
  sqlite3_prepare_v2(&connection, "SELECT fts5(?1)", -1, &prepared, nullptr);
  sqlite3_bind_pointer(prepared, 1, static_cast<void*>(&api), "fts5_api_ptr", nullptr);
  sqlite3_step(prepared);
  sqlite3_finalize(prepared);
  return api;
}

void replace_full_text_functions(sqlite3& connection) {
  fts5_api* const api = full_text_api(connection);
  if (api == nullptr) return;
  // FTS5 uses the newest function of a name.
  for (const auto& [name, function] : {std::pair{"highlight", &look_then_call<highlight>},
                                       std::pair{"snippet", &look_then_call<snippet>},
                                       std::pair{"bm25", &look_then_call<rank_by_bm25>}}) {
    if (api->xCreateFunction(api, name, nullptr, function, nullptr) != SQLITE_OK)
      throw_storage_error(connection, "add the function " + std::string(name));
  }
}

}  // namespace hearth::storage

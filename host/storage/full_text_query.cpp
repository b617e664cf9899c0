#include "storage/full_text_query.hpp"

#include "storage/authorizer.hpp"
#include "storage/step_budget.hpp"

#include <algorithm>
#include <string>

namespace hearth::storage {
namespace {

// The characters of a bareword (documentation of FTS5).
bool is_query_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '\x1a' || static_cast<unsigned char>(c) >= 0x80;
}

bool is_query_blank(char c) {
  return std::string_view(" \t\r\n").find(c) != std::string_view::npos;
}

// Reads a query from its start to its end, once.
class QueryReader {
 public:
  explicit QueryReader(std::string_view text) : rest_(text) {}

  Result<void> read() {
    while (!rest_.empty() && phrases_ <= kMostNearPhrases) read_next();
    if (phrases_ > kMostNearPhrases)
      return Error{Errc::kLimitExceeded, "NEAR in a full-text query takes at most " +
                                             std::to_string(kMostNearPhrases) + " phrases"};
    return {};
  }

 private:
  void read_next() {
    const char first = rest_.front();
    if (first == '"') {
      read_string();
    } else if (is_query_letter(first)) {
      read_word();
    } else {
      rest_.remove_prefix(1);
      // (The distance follows a comma.)
      if (first == '(' || first == ')' || first == ',') in_near_ = first == '(' && follows_near_;
      if (!is_query_blank(first)) follows_near_ = false;
    }
  }

  void read_word() {
    const auto end = std::ranges::find_if_not(rest_, is_query_letter);
    const std::string_view word = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(word.size());
    if (in_near_) ++phrases_;
    follows_near_ = word == "NEAR";
  }

  // A quote in a string is written twice. This reads it as two strings, and counts one phrase more.
  void read_string() {
    rest_.remove_prefix(std::min(rest_.find('"', 1), rest_.size() - 1) + 1);
    if (in_near_) ++phrases_;
    follows_near_ = false;
  }

  std::string_view rest_;
  std::size_t phrases_ = 0;  // in all NEAR groups
  bool in_near_ = false;
  bool follows_near_ = false;  // the last word, with only blanks since
};

}  // namespace

Result<void> check_full_text_query(std::string_view text) {
  return QueryReader(text).read();
}

Error long_query_error() {
  return Error{Errc::kLimitExceeded,
               "a full-text query takes at most " + std::to_string(kMostQueryTokens) + " tokens"};
}

bool calls_table(std::string_view sql, std::string_view table) {
  for (std::size_t at = 0; at + table.size() < sql.size(); ++at) {
    if (!equal_ignoring_case(sql.substr(at, table.size()), table)) continue;
    std::string_view behind = sql.substr(at + table.size());
    if (std::string_view("\"]`'").find(behind.front()) != std::string_view::npos)
      behind.remove_prefix(1);
    const auto next = behind.find_first_not_of(" \t\r\n\f");
    if (next != std::string_view::npos && behind[next] == '(') return true;
  }
  return false;
}

}  // namespace hearth::storage

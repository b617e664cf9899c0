#include "storage/sql_functions.hpp"

#include "storage/connection.hpp"

#include <sqlite3.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace hearth::storage {
namespace {

using Arguments = sqlite3_value**;

// 64 KiB times 64 KiB: a quarter of a second.
constexpr std::uint64_t kMostPatched = std::uint64_t{1} << 32;
constexpr unsigned kJsonSubtype = 'J';  // SQLite's mark of text that is JSON

// Null for NULL, and when memory is out.
const char* text_of(sqlite3_value* value) {
  return reinterpret_cast<const char*>(sqlite3_value_text(value));
}

// Of a value that is not NULL. Valid until the value is converted otherwise.
std::string_view view_of(sqlite3_value* value) {
  const char* const text = text_of(value);
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_value_bytes(value))};
}

bool is_null(sqlite3_value* value) {
  return sqlite3_value_type(value) == SQLITE_NULL;
}

void give_text(sqlite3_context* context, std::string_view text) {
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

// The first, or the last, character of text that is not empty.
std::string_view first_character(std::string_view text) {
  std::size_t end = 1;
  while (end < text.size() && continues(text[end])) ++end;
  return text.substr(0, end);
}
std::string_view last_character(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && continues(text[begin])) --begin;
  return text.substr(begin);
}

enum Sides { kLeft = 1, kRight = 2, kBoth = 3 };

template <Sides kSides>
void trim(sqlite3_context* context, int count, Arguments arguments) {
  if (is_null(arguments[0]) || (count == 2 && is_null(arguments[1]))) return;
  std::string_view text = view_of(arguments[0]);
  std::unordered_set<std::string_view> characters;
  std::string_view left = count == 2 ? view_of(arguments[1]) : " ";
  left = left.substr(0, left.find('\0'));  // as SQLite reads them
  while (!left.empty()) {
    const std::string_view each = first_character(left);
    characters.insert(each);
    left.remove_prefix(each.size());
  }
  if ((kSides & kLeft) != 0) {
    while (!text.empty() && characters.contains(first_character(text))) {
      text.remove_prefix(first_character(text).size());
    }
  }
  if ((kSides & kRight) != 0) {
    while (!text.empty() && characters.contains(last_character(text))) {
      text.remove_suffix(last_character(text).size());
    }
  }
  give_text(context, text);
}

// glibc's memmem() takes time in proportion to both, unlike std::string_view::find().
std::optional<std::size_t> find_bytes(std::string_view text, std::string_view wanted) {
  const void* const found = ::memmem(text.data(), text.size(), wanted.data(), wanted.size());
  if (found == nullptr) return std::nullopt;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

// Where it begins, in characters or, of blobs, in bytes, from 1; 0: nowhere.
std::int64_t position_of(std::string_view wanted, std::string_view text, bool is_text) {
  if (wanted.empty()) return 1;
  // A character begins where none goes on.
  if (is_text && continues(wanted.front())) return text.starts_with(wanted) ? 1 : 0;
  const auto found = find_bytes(text, wanted);
  if (!found) return 0;
  if (!is_text) return static_cast<std::int64_t>(*found) + 1;
  std::int64_t position = 1;
  for (std::size_t i = 1; i <= *found; ++i) position += continues(text[i]) ? 0 : 1;
  return position;
}

void instr(sqlite3_context* context, int, Arguments arguments) {
  if (is_null(arguments[0]) || is_null(arguments[1])) return;
  const bool are_blobs = sqlite3_value_type(arguments[0]) == SQLITE_BLOB &&
                         sqlite3_value_type(arguments[1]) == SQLITE_BLOB;
  const std::string_view text = view_of(arguments[0]);
  const std::string_view wanted = view_of(arguments[1]);
  sqlite3_result_int64(context, position_of(wanted, text, !are_blobs));
}

void replace(sqlite3_context* context, int, Arguments arguments) {
  for (int i = 0; i < 3; ++i) {
    if (is_null(arguments[i])) return;
  }
  const std::string_view text = view_of(arguments[0]);
  const std::string_view wanted = view_of(arguments[1]);
  const std::string_view instead = view_of(arguments[2]);
  if (wanted.empty() || wanted.front() == '\0') {
    return sqlite3_result_value(context, arguments[0]);
  }
  const auto most = static_cast<std::size_t>(
      sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1));
  std::string result;
  std::string_view left = text;
  while (const auto found = find_bytes(left, wanted)) {
    result.append(left.substr(0, *found)).append(instead);
    left.remove_prefix(*found + wanted.size());
    if (result.size() + left.size() > most) return sqlite3_result_error_toobig(context);
  }
  give_text(context, result.append(left));
}

// On a connection where it is still SQLite's own.
void json_patch(sqlite3_context* context, int, Arguments arguments) {
  if (is_null(arguments[0]) || is_null(arguments[1])) return;
  const std::uint64_t bytes = view_of(arguments[0]).size();
  const std::uint64_t more = view_of(arguments[1]).size();
  if (bytes * more > kMostPatched) {
    sqlite3_result_error(context, "json_patch: the documents are too large together", -1);
    return sqlite3_result_error_code(context, SQLITE_TOOBIG);
  }
  const auto close = [](sqlite3* each) { sqlite3_close(each); };
  const auto finalize = [](sqlite3_stmt* each) { sqlite3_finalize(each); };
  sqlite3* opened = nullptr;
  const int open_result =
      sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  const std::unique_ptr<sqlite3, decltype(close)> plain(opened, close);
  if (open_result != SQLITE_OK) return sqlite3_result_error_code(context, open_result);
  sqlite3_stmt* prepared = nullptr;
  sqlite3_prepare_v2(opened, "SELECT json_patch(?, ?)", -1, &prepared, nullptr);
  const std::unique_ptr<sqlite3_stmt, decltype(finalize)> statement(prepared, finalize);
  sqlite3_bind_value(prepared, 1, arguments[0]);
  sqlite3_bind_value(prepared, 2, arguments[1]);
  if (sqlite3_step(prepared) != SQLITE_ROW) {
    return sqlite3_result_error(context, sqlite3_errmsg(opened), -1);
  }
  sqlite3_result_value(context, sqlite3_column_value(prepared, 0));
  sqlite3_result_subtype(context, kJsonSubtype);
}

struct Replacement {
  const char* name;
  int arguments;
  void (*function)(sqlite3_context*, int, Arguments);
};

constexpr std::array<Replacement, 9> kReplacements = {{
    {"trim", 1, trim<kBoth>},
    {"trim", 2, trim<kBoth>},
    {"ltrim", 1, trim<kLeft>},
    {"ltrim", 2, trim<kLeft>},
    {"rtrim", 1, trim<kRight>},
    {"rtrim", 2, trim<kRight>},
    {"instr", 2, instr},
    {"replace", 3, replace},
    {"json_patch", 2, json_patch},
}};

}  // namespace

void replace_slow_functions(sqlite3& connection) {
  for (const auto& [name, arguments, function] : kReplacements) {
    const int result = sqlite3_create_function_v2(
        &connection, name, arguments, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
        nullptr, function, nullptr, nullptr, nullptr);
    if (result != SQLITE_OK)
      throw_storage_error(connection, "add the function " + std::string(name));
  }
}

}  // namespace hearth::storage

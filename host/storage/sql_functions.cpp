#include "storage/sql_functions.hpp"

#include "storage/connection.hpp"
#include "storage/step_budget.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace hearth::storage {
namespace {

using Arguments = sqlite3_value**;

// 64 KiB times 64 KiB takes a quarter of a second.
constexpr std::uint64_t kMostPatched = std::uint64_t{1} << 32;
// Each step takes a stack frame: half a million steps crash the process.
constexpr std::ptrdiff_t kMostPathSteps = 1'000;
constexpr std::size_t kMostKeptCalls = 32;
constexpr unsigned kJsonSubtype = 'J';  // SQLite's mark of text that is JSON

// Null for NULL, and if no memory is left.
const char* text_of(sqlite3_value* value) {
  return reinterpret_cast<const char*>(sqlite3_value_text(value));
}

// For a value that is not NULL. Valid until the value is converted to another type.
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

// An upper bound of the steps of a path.
std::ptrdiff_t count_steps(std::string_view path) {
  return std::ranges::count_if(path, [](char c) { return c == '.' || c == '['; });
}

// SQLite's own functions, on a separate connection without a file: a connection that has replaced a
// function cannot call SQLite's. It stays open, because opening takes longer than most calls.
//
// Threads   One object for each thread.
class OwnFunctions {
 public:
  static OwnFunctions& of_thread() {
    thread_local OwnFunctions functions;
    return functions;
  }

  // `call` has a ?N for each argument. The result is JSON text, or an error.
  void call(sqlite3_context* context, const std::string& call,
            std::span<sqlite3_value* const> arguments) {
    if (connection_ == nullptr && !open())
      return sqlite3_result_error_code(context, SQLITE_CANTOPEN);
    sqlite3_limit(connection_.get(), SQLITE_LIMIT_LENGTH,
                  sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1));
    sqlite3_stmt* const statement = prepare(call);
    int result = statement == nullptr ? SQLITE_ERROR : SQLITE_OK;
    for (std::size_t i = 0; i < arguments.size() && result == SQLITE_OK; ++i)
      result = sqlite3_bind_value(statement, static_cast<int>(i) + 1, arguments[i]);
    if (result == SQLITE_OK) result = sqlite3_step(statement);
    if (result == SQLITE_ROW) {
      sqlite3_result_value(context, sqlite3_column_value(statement, 0));
      if (sqlite3_column_type(statement, 0) == SQLITE_TEXT)
        sqlite3_result_subtype(context, kJsonSubtype);
    } else {
      sqlite3_result_error(context, sqlite3_errmsg(connection_.get()), -1);
      if (result != SQLITE_ERROR) sqlite3_result_error_code(context, result);
    }
    if (statement == nullptr) return;
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);  // the values may be large
  }

 private:
  struct Close {
    void operator()(sqlite3* each) const { sqlite3_close(each); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* each) const { sqlite3_finalize(each); }
  };

  bool open() {
    sqlite3* opened = nullptr;
    const int result =
        sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
    connection_.reset(opened);
    if (result != SQLITE_OK) connection_.reset();
    return result == SQLITE_OK;
  }

  sqlite3_stmt* prepare(const std::string& call) {
    if (const auto kept = statements_.find(call); kept != statements_.end())
      return kept->second.get();
    if (statements_.size() >= kMostKeptCalls) statements_.clear();
    sqlite3_stmt* prepared = nullptr;
    const std::string sql = "SELECT " + call;
    sqlite3_prepare_v3(connection_.get(), sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &prepared,
                       nullptr);
    if (prepared != nullptr) statements_[call].reset(prepared);
    return prepared;
  }

  std::unique_ptr<sqlite3, Close> connection_;
  std::unordered_map<std::string, std::unique_ptr<sqlite3_stmt, Finalize>> statements_;
};

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

// The first or the last character of a text that is not empty.
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
  left = left.substr(0, left.find('\0'));  // as SQLite reads it
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

// glibc's memmem() takes time in proportion to both lengths, unlike std::string_view::find().
std::optional<std::size_t> find_bytes(std::string_view text, std::string_view wanted) {
  const void* const found = ::memmem(text.data(), text.size(), wanted.data(), wanted.size());
  if (found == nullptr) return std::nullopt;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

// The position of `wanted` from 1, in characters, or in bytes for blobs; 0: not found.
std::int64_t position_of(std::string_view wanted, std::string_view text, bool is_text) {
  if (wanted.empty()) return 1;
  // A character begins where no other character continues.
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

void refuse_as_too_big(sqlite3_context* context, const std::string& why) {
  sqlite3_result_error(context, why.c_str(), -1);
  sqlite3_result_error_code(context, SQLITE_TOOBIG);
}

// Whether SQLite treats the value as JSON, not as a text.
bool is_json(sqlite3_value* value) {
  return sqlite3_value_subtype(value) == kJsonSubtype;
}

void json_patch(sqlite3_context* context, int count, Arguments arguments) {
  if (is_null(arguments[0]) || is_null(arguments[1])) return;
  const std::uint64_t bytes = view_of(arguments[0]).size();
  const std::uint64_t more = view_of(arguments[1]).size();
  if (bytes * more > kMostPatched)
    return refuse_as_too_big(context, "json_patch: the documents are too large together");
  if (!StepBudget::has_time_for(StepBudget::kWorkPerLook))
    return sqlite3_result_error_code(context, SQLITE_INTERRUPT);
  OwnFunctions::of_thread().call(context, "json_patch(?1,?2)", {arguments, arguments + count});
}

// json_set and json_insert: (document, path, value, path, value, ...). Only these two create the
// members of a path; other functions follow a path only as deep as the document.
template <const char* kName>
void set_by_path(sqlite3_context* context, int count, Arguments arguments) {
  std::string call = kName;
  for (int i = 0; i < count; ++i) {
    const bool is_path = i % 2 == 1;
    if (is_path && count_steps(view_of(arguments[i])) > kMostPathSteps) {
      return refuse_as_too_big(context, std::string(kName) + ": a path has at most " +
                                            std::to_string(kMostPathSteps) + " steps");
    }
    const std::string place = "?" + std::to_string(i + 1);
    call += i == 0 ? "(" : ",";
    call += i > 0 && !is_path && is_json(arguments[i]) ? "json(" + place + ")" : place;
  }
  call += count == 0 ? "()" : ")";
  OwnFunctions::of_thread().call(context, call, {arguments, arguments + count});
}
constexpr char kJsonSet[] = "json_set";
constexpr char kJsonInsert[] = "json_insert";

using Function = void (*)(sqlite3_context*, int, Arguments);

// A function is one instruction, and a row may call hundreds of functions.
template <Function kFunction>
void within_time(sqlite3_context* context, int count, Arguments arguments) {
  std::size_t bytes = 0;
  for (int i = 0; i < count; ++i)
    bytes += static_cast<std::size_t>(sqlite3_value_bytes(arguments[i]));
  if (!StepBudget::has_time_for(bytes)) return sqlite3_result_error_code(context, SQLITE_INTERRUPT);
  kFunction(context, count, arguments);
}

struct Replacement {
  const char* name;
  int arguments;
  Function function;
};

constexpr std::array<Replacement, 11> kReplacements = {{
    {"trim", 1, within_time<trim<kBoth>>},
    {"trim", 2, within_time<trim<kBoth>>},
    {"ltrim", 1, within_time<trim<kLeft>>},
    {"ltrim", 2, within_time<trim<kLeft>>},
    {"rtrim", 1, within_time<trim<kRight>>},
    {"rtrim", 2, within_time<trim<kRight>>},
    {"instr", 2, within_time<instr>},
    {"replace", 3, within_time<replace>},
    {"json_patch", 2, within_time<json_patch>},
    {"json_set", -1, within_time<set_by_path<kJsonSet>>},
    {"json_insert", -1, within_time<set_by_path<kJsonInsert>>},
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

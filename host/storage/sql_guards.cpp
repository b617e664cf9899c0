#include "storage/sql_guards.hpp"

#include "storage/connection.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace hearth::storage {
namespace {

using Arguments = std::span<sqlite3_value* const>;

// Each step takes a frame of the stack: half a million steps end the process.
constexpr std::ptrdiff_t kMostPathSteps = 1'000;
constexpr std::string_view kBeforeConversion = "-+ #0123456789!,.*l";
constexpr std::uint64_t kMostWidth = 10'000'000;
constexpr std::size_t kMostKeptCalls = 32;
constexpr unsigned kJsonSubtype = 'J';  // SQLite's mark of text that is JSON

struct Guard {
  const char* name;
  int arguments;  // -1: any number
  // Of the lengths of the first two. kPaths: every second one is a path. kFormat: printf(), whose
  // widths have a bound.
  std::uint64_t most_product;
};
constexpr std::uint64_t kPaths = 0;
constexpr std::uint64_t kFormat = 1;

constexpr std::uint64_t product_of(std::uint64_t kib) {
  return (kib << 10U) * (kib << 10U);
}

constexpr std::array<Guard, 10> kGuards = {{
    {"trim", 2, product_of(16)},
    {"ltrim", 2, product_of(16)},
    {"rtrim", 2, product_of(16)},
    {"instr", 2, product_of(64)},
    {"replace", 3, product_of(64)},
    {"json_patch", 2, product_of(64)},
    {"json_set", -1, kPaths},
    {"json_insert", -1, kPaths},
    {"printf", -1, kFormat},
    {"format", -1, kFormat},
}};

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

  // `call` has a ?N for each argument.
  void call(sqlite3_context* context, const std::string& call, Arguments arguments) {
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
      if (call.find("json_") != std::string::npos &&
          sqlite3_column_type(statement, 0) == SQLITE_TEXT)
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

// An upper bound of the steps of a path.
std::ptrdiff_t count_steps(sqlite3_value* path) {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_value_text(path));
  return std::ranges::count_if(std::string_view(text == nullptr ? "" : text),
                               [](char c) { return c == '.' || c == '['; });
}

// The sum of the widths and precisions of a format, which arguments may give: SQLite makes each
// character of them in a step of its own, also beyond the longest text.
std::uint64_t width_of(Arguments arguments) {
  std::size_t used = 1;
  const auto next = [&]() -> std::uint64_t {
    const sqlite3_int64 value = used < arguments.size() ? sqlite3_value_int64(arguments[used]) : 0;
    ++used;
    const std::int64_t most = std::numeric_limits<std::int32_t>::max();
    return static_cast<std::uint64_t>(std::clamp<std::int64_t>(value, -most, most) *
                                      (value < 0 ? -1 : 1));
  };
  const auto* const text = reinterpret_cast<const char*>(sqlite3_value_text(arguments[0]));
  std::string_view format(text == nullptr ? "" : text);
  std::uint64_t all = 0;
  while (!format.empty()) {
    format.remove_prefix(std::min(format.find('%'), format.size() - 1) + 1);
    std::uint64_t number = 0;
    while (!format.empty() && kBeforeConversion.find(format[0]) != std::string_view::npos) {
      const char c = format[0];
      if (c == '*') all += next();
      number = c >= '0' && c <= '9'
                   ? std::min(number * 10 + static_cast<std::uint64_t>(c - '0'), kMostWidth + 1)
                   : 0;
      all += number;  // of several digits, each: close enough
      format.remove_prefix(1);
    }
    const bool takes_none = format.empty() || format[0] == '%' || format[0] == 'n';
    if (!takes_none) ++used;
    if (!format.empty()) format.remove_prefix(1);
  }
  return all;
}

bool is_too_large(const Guard& guard, Arguments arguments) {
  if (guard.most_product == kFormat) return !arguments.empty() && width_of(arguments) > kMostWidth;
  if (guard.most_product == kPaths) {
    for (std::size_t i = 1; i < arguments.size(); i += 2)
      if (count_steps(arguments[i]) > kMostPathSteps) return true;
    return false;
  }
  const auto bytes = [arguments](std::size_t i) {
    return static_cast<std::uint64_t>(sqlite3_value_bytes(arguments[i]));
  };
  return bytes(0) * bytes(1) > guard.most_product;
}

void call_guarded(sqlite3_context* context, int count, sqlite3_value** values) {
  const Guard& guard = *static_cast<const Guard*>(sqlite3_user_data(context));
  const Arguments arguments(values, static_cast<std::size_t>(count));
  if (is_too_large(guard, arguments)) {
    const std::string why = std::string(guard.name) + ": the arguments are too large";
    sqlite3_result_error(context, why.c_str(), -1);
    return sqlite3_result_error_code(context, SQLITE_TOOBIG);
  }
  std::string call = guard.name;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string place = "?" + std::to_string(i + 1);
    call += i == 0 ? "(" : ",";
    // A bound value has no mark of its own.
    call += sqlite3_value_subtype(arguments[i]) == kJsonSubtype ? "json(" + place + ")" : place;
  }
  call += count == 0 ? "()" : ")";
  OwnFunctions::of_thread().call(context, call, arguments);
}

}  // namespace

void guard_slow_functions(sqlite3& connection) {
  for (const Guard& guard : kGuards) {
    const int result = sqlite3_create_function_v2(
        &connection, guard.name, guard.arguments,
        SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, const_cast<Guard*>(&guard),
        call_guarded, nullptr, nullptr, nullptr);
    if (result != SQLITE_OK)
      throw_storage_error(connection, "guard the function " + std::string(guard.name));
  }
}

}  // namespace hearth::storage

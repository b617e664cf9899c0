#include "storage/sql_guards.hpp"

#include "storage/connection.hpp"

#include <sqlite3.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace hearth::storage {
namespace {

struct CloseGuarded {
  void operator()(sqlite3* each) const { sqlite3_close(each); }
};
struct FinalizeGuarded {
  void operator()(sqlite3_stmt* each) const { sqlite3_finalize(each); }
};
using GuardedDatabase = std::unique_ptr<sqlite3, CloseGuarded>;

GuardedDatabase open_guarded(bool guarded) {
  initialize_sqlite();
  sqlite3* opened = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &opened), SQLITE_OK);
  GuardedDatabase database(opened);
  if (guarded) guard_slow_functions(*database);
  return database;
}

// The first column of the first row with its type, or the error.
std::string answer(sqlite3& database, const std::string& sql,
                   const std::vector<std::string>& arguments = {}) {
  sqlite3_stmt* prepared = nullptr;
  sqlite3_prepare_v2(&database, sql.c_str(), -1, &prepared, nullptr);
  const std::unique_ptr<sqlite3_stmt, FinalizeGuarded> statement(prepared);
  int place = 0;
  for (const std::string& each : arguments)
    sqlite3_bind_text64(prepared, ++place, each.data(), each.size(), SQLITE_STATIC, SQLITE_UTF8);
  if (sqlite3_step(prepared) != SQLITE_ROW) return sqlite3_errmsg(&database);
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(prepared, 0));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(prepared, 0));
  return std::to_string(sqlite3_column_type(prepared, 0)) + " " +
         (text == nullptr ? "" : std::string(text, size));
}

TEST(SqlGuardsTest, SmallArgumentsGetSqlitesOwnFunction) {
  const GuardedDatabase own = open_guarded(false);
  const GuardedDatabase guarded = open_guarded(true);
  std::vector<std::string> calls = {
      R"(json_patch('{"b":1,"a":[1.0,2]}', '{"a":9,"c":{"d":null}}'))",
      R"(json_patch('{"a":1', '{}'))",
      R"(json_patch(NULL, '{}'))",
  };
  for (const std::string arguments : {"'  a b  '", "'éaé','é'", "'a',NULL", "12312,2",
                                      "x'616263',x'62'", "'aXa','a'", "'a',''"}) {
    for (const std::string function : {"trim", "ltrim", "rtrim", "instr"})
      calls.push_back(function + "(" + arguments + ")");
    calls.push_back("replace(" + arguments + ",'<>')");
  }
  for (const std::string arguments :
       {R"('{"a":1}', '$.a', 2, '$.b', 'text')", R"('{"a":1}', '$.c.d', json('[1, 2]'))",
        R"('{}', '$.a', '[1]', '$.b', json_array(1), '$.c', json_set('{}', '$.x', 1))",
        R"('{}', '$.a', NULL, '$.b', 1.5, '$.c', 9007199254740993)", R"('{}', NULL, 1)",
        R"(NULL, '$.a', 1)", R"('{}')", R"('{')", R"('{}', 'a', 1)", R"('{}', '$.a')",
        R"('{}', '$.a', x'00')", ""}) {
    for (const std::string function : {"json_set", "json_insert"})
      calls.push_back(function + "(" + arguments + ")");
  }
  for (const std::string& call : calls) {
    // (json_array takes the result as JSON if it has SQLite's mark.)
    for (const std::string& sql : {"SELECT " + call, "SELECT json_array(" + call + ")"})
      EXPECT_EQ(answer(*guarded, sql), answer(*own, sql)) << sql;
  }
}

TEST(SqlGuardsTest, ArgumentsThatTakeLongTogetherAreRefused) {
  struct Row {
    const char* call;
    const char* name;
    std::size_t most;  // as two texts of this length
  };
  constexpr std::size_t kKib = 1'024;
  const Row rows[] = {
      {"trim(?1, ?2)", "trim", 16 * kKib},
      {"ltrim(?1, ?2)", "ltrim", 16 * kKib},
      {"rtrim(?1, ?2)", "rtrim", 16 * kKib},
      {"instr(?1, ?2)", "instr", 64 * kKib},
      {"replace(?1, ?2, 'x')", "replace", 64 * kKib},
      {"json_patch('\"' || ?1 || '\"', '\"' || ?2 || '\"')", "json_patch", 64 * kKib - 2},
  };
  const GuardedDatabase database = open_guarded(true);
  for (const auto& [call, name, most] : rows) {
    const std::string sql = "SELECT typeof(" + std::string(call) + ")";
    const std::string text(most, 'a');
    EXPECT_TRUE(answer(*database, sql, {text, text}).starts_with("3 ")) << call;
    EXPECT_EQ(answer(*database, sql, {text + "a", text}),
              std::string(name) + ": the arguments are too large");
    EXPECT_EQ(answer(*database, sql, {text, text + "a"}),
              std::string(name) + ": the arguments are too large");
    EXPECT_TRUE(answer(*database, sql, {text + text, "a"}).starts_with("3 ")) << call;
  }
  const std::string long_text(std::size_t{1} << 20U, ' ');
  EXPECT_EQ(answer(*database, "SELECT trim(?)", {long_text}), "3 ") << "linear";
}

// SQLite's own makes each character in a step, and only then finds that the text is too long.
TEST(SqlGuardsTest, AFormatHasNoGreatWidths) {
  const GuardedDatabase database = open_guarded(true);
  for (const std::string function : {"printf", "format"}) {
    const auto asked = [&](const std::string& arguments) {
      return answer(*database, "SELECT " + function + "(" + arguments + ")", {});
    };
    const std::string refused = function + ": the arguments are too large";
    EXPECT_EQ(asked("'%05d|%-4s|%.3f|%%|%,d', 7, 'a', 0.5, 1234567890123"),
              "3 00007|a   |0.500|%|1,234,567,890,123");
    EXPECT_EQ(asked("'%0*d|%.*f|%s', 8, 123456789012, 1, 2.55, 1e18"),
              "3 123456789012|2.6|1.0e+18");
    EXPECT_EQ(asked(""), "5 ");
    EXPECT_EQ(asked("'%'"), "3 %");
    for (const char* const wide :
         {"'%.900000000c', 'x'", "'%900000000d', 1", "'%.*c', 2000000000, 'x'",
          "'%*d', -2000000000, 1", "'%s%.*c', 'a', 900000000, 'x'",
          "'%.*c%.*c', 9000000, 'x', 9000000, 'x'", "'%*d', -9223372036854775808, 1",
          "'%n%*d', 2000000000, 1"})
      EXPECT_EQ(asked(wide), refused) << wide;
  }
}

// SQLite's own makes each step of a path in a frame of the stack: this would end the process.
TEST(SqlGuardsTest, APathHasNoMoreStepsThanTheStackHolds) {
  const GuardedDatabase database = open_guarded(true);
  const auto path = [](int steps, const char* step) {
    std::string path = "$";
    for (int i = 0; i < steps; ++i) path += step;
    return path;
  };
  for (const std::string function : {"json_set", "json_insert"}) {
    const std::string sql = "SELECT length(" + function + "('{}', ?, 1))";
    const std::string refused = function + ": the arguments are too large";
    EXPECT_EQ(answer(*database, sql, {path(1'000, ".a")}), "1 6001") << sql;
    EXPECT_EQ(answer(*database, sql, {path(1'001, ".a")}), refused);
    EXPECT_EQ(answer(*database, sql, {path(500'000, "[0]")}), refused);
    EXPECT_EQ(answer(*database, "SELECT " + function + "('{}', '$.a', 1, '$' || ?, 1)",
                     {path(500'000, ".a").substr(1)}),
              refused);
  }
  // The others follow a path no deeper than the document is.
  const std::string deep = path(500'000, ".a");
  for (const char* sql :
       {"SELECT json_replace('{\"a\":{}}', ?, 1)", "SELECT json_remove('{\"a\":{}}', ?)"})
    EXPECT_EQ(answer(*database, sql, {deep}), "3 {\"a\":{}}") << sql;
  for (const char* sql :
       {"SELECT json_extract('{\"a\":{}}', ?)", "SELECT json_type('{\"a\":{}}', ?)",
        "SELECT json_array_length('{\"a\":{}}', ?)", "SELECT '{\"a\":{}}' -> ?",
        "SELECT '{\"a\":{}}' ->> ?", "SELECT '{\"a\":{}}' -> substr(?, 3)",
        "SELECT sum(1) FROM json_each('{\"a\":{}}', ?)",
        "SELECT sum(1) FROM json_tree('{\"a\":{}}', ?)"})
    EXPECT_EQ(answer(*database, sql, {deep}), "5 ") << sql;
}

}  // namespace
}  // namespace hearth::storage

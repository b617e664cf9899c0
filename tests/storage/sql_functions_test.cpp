#include "storage/sql_functions.hpp"

#include "storage/connection.hpp"

#include <sqlite3.h>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hearth::storage {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* each) const { sqlite3_close(each); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* each) const { sqlite3_finalize(each); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

Database open_database() {
  initialize_sqlite();
  sqlite3* opened = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &opened), SQLITE_OK);
  return Database(opened);
}

// The first column of the first row with its type, or the error.
std::string ask(sqlite3& database, const std::string& sql,
                const std::vector<std::string>& arguments = {}) {
  sqlite3_stmt* prepared = nullptr;
  sqlite3_prepare_v2(&database, sql.c_str(), -1, &prepared, nullptr);
  const std::unique_ptr<sqlite3_stmt, FinalizeStatement> statement(prepared);
  int place = 0;
  for (const std::string& each : arguments) {
    sqlite3_bind_text64(prepared, ++place, each.data(), each.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  if (sqlite3_step(prepared) != SQLITE_ROW) return sqlite3_errmsg(&database);
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(prepared, 0));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(prepared, 0));
  return std::to_string(sqlite3_column_type(prepared, 0)) + " " +
         (text == nullptr ? "" : std::string(text, size));
}

TEST(SqlFunctionsTest, GiveWhatSqlitesOwnGive) {
  const std::vector<std::string> values = {"NULL",
                                           "''",
                                           "' '",
                                           "'a'",
                                           "'  a b  '",
                                           "'aaXaa'",
                                           "'abcabc'",
                                           "'bca'",
                                           "'é'",
                                           "'éaé'",
                                           "'€uro€'",
                                           "'日本日'",
                                           "'日'",
                                           "'😀x😀'",
                                           "12312",
                                           "12",
                                           "-1.5",
                                           "x''",
                                           "x'616263'",
                                           "x'62'",
                                           "x'ff00ff'",
                                           "x'00'",
                                           "'ab' || char(0) || 'c'",
                                           "char(0)",
                                           "'c'",
                                           "'abcabcabcd'",
                                           "'abcabcd'"};
  const std::vector<std::string> patterns = {
      "trim(A)",         "ltrim(A)",       "rtrim(A)",        "trim(A,B)",
      "ltrim(A,B)",      "rtrim(A,B)",     "instr(A,B)",      "replace(A,B,'<>')",
      "replace(A,B,'')", "replace(A,B,A)", "replace(A,'a',B)"};
  const Database own = open_database();
  const Database replaced = open_database();
  replace_slow_functions(*replaced);
  for (const std::string& a : values) {
    for (const std::string& b : values) {
      for (std::string each : patterns) {
        for (std::size_t at = 0; (at = each.find_first_of("AB", at)) != std::string::npos;) {
          const std::string& value = each[at] == 'A' ? a : b;
          each.replace(at, 1, value);
          at += value.size();
        }
        EXPECT_EQ(ask(*replaced, "SELECT " + each), ask(*own, "SELECT " + each)) << each;
      }
    }
  }
}

TEST(SqlFunctionsTest, APatchIsSqlitesOwnAndJson) {
  const Database own = open_database();
  const Database replaced = open_database();
  replace_slow_functions(*replaced);
  for (const std::string sql :
       {R"(SELECT json_patch('{"b":1,"a":[1.0,2]}', '{"a":9,"c":{"d":null}}'))",
        R"(SELECT json_array(json_patch('{"a":1}', '{"a":null}')))",
        R"(SELECT json_patch('{"a":1', '{}'))", R"(SELECT json_patch(NULL, '{}'))",
        R"(SELECT json_patch('[1]', '{"a":1}'))"}) {
    EXPECT_EQ(ask(*replaced, sql), ask(*own, sql)) << sql;
  }
  const std::string large = "{\"a\":\"" + std::string(70'000, 'x') + "\"}";
  EXPECT_EQ(ask(*replaced, "SELECT json_patch(?, ?)", {large, large}),
            "json_patch: the documents are too large together");
  EXPECT_EQ(ask(*replaced, "SELECT length(json_patch(?, ?))", {large, "{\"b\":1}"}), "1 70014");
}

TEST(SqlFunctionsTest, WhatIsSetByPathIsSqlitesOwnAndJson) {
  const Database own = open_database();
  const Database replaced = open_database();
  replace_slow_functions(*replaced);
  for (const std::string function : {"json_set", "json_insert"}) {
    for (const std::string arguments :
         {R"('{"a":1}', '$.a', 2, '$.b', 'text')", R"('{"a":1}', '$.c.d', json('[1, 2]'))",
          R"('{}', '$.a', '[1]', '$.b', json_array(1), '$.c', json_set('{}', '$.x', 1))",
          R"('{}', '$.a', NULL, '$.b', 1.5, '$.c', 9007199254740993)", R"('[1]', '$[#]', 'é')",
          R"('{}', NULL, 1)", R"('{}', '$."a.b"', 1)", R"(NULL, '$.a', 1)", R"('{}')",
          R"('[1, 2 ]')", R"('{')", R"('{}', 'a', 1)", R"('{}', '$.a')", R"('{}', '$.a', x'00')",
          ""}) {
      const std::string call = function + "(" + arguments + ")";
      for (const std::string& sql :
           {"SELECT " + call, "SELECT json_array(" + call + ")", "SELECT typeof(" + call + ")"})
        EXPECT_EQ(ask(*replaced, sql), ask(*own, sql)) << sql;
    }
  }
}

// SQLite's own makes each step of a path in a frame of the stack: this would end the process.
TEST(SqlFunctionsTest, APathHasNoMoreStepsThanTheStackHolds) {
  const Database database = open_database();
  replace_slow_functions(*database);
  const auto path = [](int steps, const char* step) {
    std::string path = "$";
    for (int i = 0; i < steps; ++i) path += step;
    return path;
  };
  for (const std::string function : {"json_set", "json_insert"}) {
    const std::string sql = "SELECT length(" + function + "('{}', ?, 1))";
    EXPECT_EQ(ask(*database, sql, {path(1'000, ".a")}), "1 6001") << sql;
    for (const auto& [steps, step] : {std::pair{1'001, ".a"}, {500'000, ".a"}, {500'000, "[0]"}}) {
      EXPECT_EQ(ask(*database, sql, {path(steps, step)}),
                function + ": a path has at most 1000 steps");
    }
    EXPECT_EQ(ask(*database, "SELECT " + function + "('{}', '$.a', 1, '$' || ?, 1)",
                  {path(500'000, ".a").substr(1)}),
              function + ": a path has at most 1000 steps");
  }
  // The others follow a path no deeper than the document is.
  const std::string deep = path(500'000, ".a");
  for (const char* sql :
       {"SELECT json_replace('{\"a\":{}}', ?, 1)", "SELECT json_remove('{\"a\":{}}', ?)"})
    EXPECT_EQ(ask(*database, sql, {deep}), "3 {\"a\":{}}") << sql;
  for (const char* sql :
       {"SELECT json_extract('{\"a\":{}}', ?)", "SELECT json_type('{\"a\":{}}', ?)",
        "SELECT json_array_length('{\"a\":{}}', ?)", "SELECT '{\"a\":{}}' -> ?",
        "SELECT '{\"a\":{}}' ->> ?", "SELECT '{\"a\":{}}' -> substr(?, 3)",
        "SELECT sum(1) FROM json_each('{\"a\":{}}', ?)",
        "SELECT sum(1) FROM json_tree('{\"a\":{}}', ?)"})
    EXPECT_EQ(ask(*database, sql, {deep}), "5 ") << sql;
}

struct SlowCase {
  std::string sql;
  std::vector<std::string> arguments;
};

std::chrono::steady_clock::duration time_of(sqlite3* database, const SlowCase& each) {
  const auto start = std::chrono::steady_clock::now();
  const std::string answer = ask(*database, each.sql, each.arguments);
  EXPECT_TRUE(answer.starts_with("1 ") || answer.starts_with("3 ")) << each.sql << ": " << answer;
  return std::chrono::steady_clock::now() - start;
}

// With the longest arguments of an agent: SQLite's own take minutes for some of them. The
// measure is SQLite's LIKE with the longest pattern, which takes a second or so.
TEST(SqlFunctionsTest, NoneTakesLongerThanItsArgumentsAre) {
  // A sanitizer checks all of the text at each call of memmem(), which makes the time quadratic
  // again.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  constexpr std::size_t kLong = std::size_t{64} << 10;
  constexpr int kMost = 100;
#else
  constexpr std::size_t kLong = std::size_t{2} << 20;
  constexpr int kMost = 4;
#endif
  const std::string all_a(kLong, 'a');
  const std::string many_b_then_a = std::string(kLong, 'b') + "a";
  const std::string half_a_then_b = std::string(kLong / 2, 'a') + "b";
  std::string many_keys = "{";
  for (int i = 0; i < 5'000; ++i) many_keys += "\"key" + std::to_string(i) + "\":1,";
  many_keys.back() = '}';
  const std::string pattern(198, 'a');
  const std::vector<SlowCase> cases = {
      {"SELECT length(trim(?, ?))", {all_a, many_b_then_a}},
      {"SELECT length(ltrim(?, ?))", {all_a, many_b_then_a}},
      {"SELECT length(rtrim(?, ?))", {all_a, many_b_then_a}},
      {"SELECT instr(?, ?)", {all_a, half_a_then_b}},
      {"SELECT instr(CAST(? AS BLOB), CAST(? AS BLOB))", {all_a, half_a_then_b}},
      {"SELECT length(replace(?, ?, 'x'))", {all_a, half_a_then_b}},
      {"SELECT length(replace(?, 'a', ''))", {all_a}},
      {"SELECT length(replace(?, 'aa', 'b'))", {all_a}},
      {"SELECT length(json_patch(?, ?))", {many_keys, many_keys}},
      {"SELECT ? GLOB ?", {all_a, "*" + pattern + "b"}},
      {"SELECT length(hex(?))", {all_a}},
      {"SELECT length(quote(?))", {all_a}},
      {"SELECT length(printf('%,.*d', 2000000, 1))", {}},
      {"SELECT length(printf('%.*f', 2000000, 1e300))", {}},
      {"SELECT length(strftime(?, 'now'))", {std::string(kLong / 2, 'Y')}},
      {"SELECT length(group_concat(value)) FROM json_each(?)",
       {"[" + std::string(100'000, '1') + "]"}},
  };
  const Database database = open_database();
  replace_slow_functions(*database);
  sqlite3_limit(database.get(), SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200);
  const auto measure = time_of(database.get(), {"SELECT ? LIKE ?", {all_a, "%" + pattern + "b"}});
  for (const SlowCase& each : cases)
    EXPECT_LT(time_of(database.get(), each), kMost * measure) << each.sql;
}

}  // namespace
}  // namespace hearth::storage

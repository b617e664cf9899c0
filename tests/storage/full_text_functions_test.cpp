#include "storage/full_text_functions.hpp"

#include "storage/connection.hpp"

#include <sqlite3.h>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace hearth::storage {
namespace {

struct CloseTextDatabase {
  void operator()(sqlite3* each) const { sqlite3_close(each); }
};
struct FinalizeTextStatement {
  void operator()(sqlite3_stmt* each) const { sqlite3_finalize(each); }
};
using TextDatabase = std::unique_ptr<sqlite3, CloseTextDatabase>;

class FullTextFunctionsTest : public ::testing::Test {
 protected:
  static TextDatabase open(bool replaced) {
    initialize_sqlite();
    sqlite3* opened = nullptr;
    EXPECT_EQ(sqlite3_open(":memory:", &opened), SQLITE_OK);
    TextDatabase database(opened);
    if (replaced) replace_full_text_functions(*database);
    return database;
  }
  // All rows' first columns with their types, and the error if there is one.
  static std::string rows(sqlite3& database, const std::string& sql,
                          const std::vector<std::string>& arguments = {}) {
    sqlite3_stmt* prepared = nullptr;
    sqlite3_prepare_v2(&database, sql.c_str(), -1, &prepared, nullptr);
    const std::unique_ptr<sqlite3_stmt, FinalizeTextStatement> statement(prepared);
    int place = 0;
    for (const std::string& each : arguments)
      sqlite3_bind_text64(prepared, ++place, each.data(), each.size(), SQLITE_STATIC, SQLITE_UTF8);
    std::string all;
    int code = sqlite3_step(prepared);
    for (; code == SQLITE_ROW; code = sqlite3_step(prepared)) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(prepared, 0));
      all += std::to_string(sqlite3_column_type(prepared, 0)) + " " +
             (text == nullptr ? "" : text) + "\n";
    }
    if (code != SQLITE_DONE) all += std::string("error ") + sqlite3_errmsg(&database);
    return all;
  }
};

const std::vector<std::string> kTexts = {
    "",
    "a",
    "a b c",
    "  a, b.  c: d",
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen",
    "a a a b a a",
    "First words. Then a sentence with b. And: another a b one.\n\nLast b c d e f g h i j k l",
    "b x x x x x x x x x x x x a b c x x x x x x x x x x x x x x x c",
    "é ünï a Ä日本 b. ß a",
    "abcabcabc abc",
    "x. a",
    "a .b :c\t. d",
};
const std::vector<std::string> kQueries = {"a",
                                           "b",
                                           "a b",
                                           "a OR b",
                                           "\"a b\"",
                                           "\"a a\"",
                                           "\"a b\" OR \"b c\"",
                                           "a OR a",
                                           "abc",
                                           "a*",
                                           "NEAR(a b, 3)",
                                           "{x} : a",
                                           "seven",
                                           "fourteen OR one",
                                           "a NOT zz",
                                           "\"a b\" OR a OR b OR c OR d"};
const std::vector<std::string> kFunctions = {"highlight(f, 0, '<', '>')",
                                             "highlight(f, 1, '[', ']')",
                                             "highlight(f, 0, NULL, '>')",
                                             "highlight(f, 0, '', '')",
                                             "highlight(f, 9, '<', '>')",
                                             "highlight(f, -1, '<', '>')",
                                             "highlight(f, 0, '<')",
                                             "snippet(f, 0, '<', '>', '..', 2)",
                                             "snippet(f, 0, '<', '>', '..', 3)",
                                             "snippet(f, 0, '<', '>', '..', 5)",
                                             "snippet(f, 0, '<', '>', '..', 8)",
                                             "snippet(f, 0, '<', '>', '..', 64)",
                                             "snippet(f, 1, '<', '>', NULL, 4)",
                                             "snippet(f, -1, '<', '>', '..', 4)",
                                             "snippet(f, -1, NULL, NULL, '..', 10)",
                                             "snippet(f, 0, '<', '>', '..')",
                                             "snippet(f, -1, '<', '>', '..', 2147483647)",
                                             "bm25(f)",
                                             "bm25(f, 2.5)",
                                             "bm25(f, 0.5, -3, 7, 9)",
                                             "bm25(f, 0, 'x')",
                                             "rank"};

TEST_F(FullTextFunctionsTest, GiveWhatSqlitesOwnGive) {
  for (const std::string options :
       {"", ", tokenize = 'porter'", ", tokenize = 'ascii'", ", tokenize = 'trigram'",
        ", detail = column", ", detail = none", ", content = ''", ", columnsize = 0",
        ", prefix = '1 2'"}) {
    const TextDatabase own = open(false);
    const TextDatabase replaced = open(true);
    for (sqlite3* each : {own.get(), replaced.get()}) {
      EXPECT_EQ(rows(*each, "CREATE VIRTUAL TABLE f USING fts5(x, y" + options + ")"), "");
      for (std::size_t i = 0; i < kTexts.size(); ++i) {
        EXPECT_EQ(rows(*each, "INSERT INTO f(rowid, x, y) VALUES(" + std::to_string(i) + ", ?, ?)",
                       {kTexts[i], kTexts[(i * 5 + 1) % kTexts.size()]}),
                  "");
      }
    }
    for (const std::string& query : kQueries) {
      // SQLite 3.40 repeats text where matches share bytes; later versions do not.
      if (options.ends_with("'trigram'") && query.starts_with('"')) continue;
      for (const std::string& function : kFunctions) {
        const std::string sql = "SELECT " + function + " FROM f(?) ORDER BY rowid";
        EXPECT_EQ(rows(*replaced, sql, {query}), rows(*own, sql, {query}))
            << options << " " << function << " " << query;
      }
      const std::string by_rank = R"(SELECT rank FROM f WHERE f MATCH ? AND
                                     rank MATCH 'snippet(0, "<", ">", "..", 3)' ORDER BY rowid)";
      EXPECT_EQ(rows(*replaced, by_rank, {query}), rows(*own, by_rank, {query})) << query;
    }
  }
}

TEST_F(FullTextFunctionsTest, MatchesThatShareBytesHaveOneMark) {
  const TextDatabase database = open(true);
  EXPECT_EQ(rows(*database, "CREATE VIRTUAL TABLE f USING fts5(x, tokenize = 'trigram')"), "");
  EXPECT_EQ(rows(*database, "INSERT INTO f VALUES('a a a b a a')"), "");
  EXPECT_EQ(rows(*database, "SELECT highlight(f, 0, '<', '>') FROM f('\"a a\"')"),
            "3 <a a a> b <a a>\n");
}

// SQLite 3.40 gives the whole column if the first token is the one; later versions do not.
TEST_F(FullTextFunctionsTest, ASnippetOfOneTokenIsOneToken) {
  const TextDatabase database = open(true);
  EXPECT_EQ(rows(*database, "CREATE VIRTUAL TABLE f USING fts5(x)"), "");
  EXPECT_EQ(rows(*database, "INSERT INTO f VALUES('a b a'), ('b a b')"), "");
  for (const std::string tokens : {"1", "0", "-1"}) {
    EXPECT_EQ(rows(*database, "SELECT snippet(f, 0, '<', '>', '..', " + tokens + ") FROM f('a')"),
              "3 <a>..\n3 ..<a>..\n");
  }
}

TEST_F(FullTextFunctionsTest, AContentThatHasChangedMarksNothingOutsideOfIt) {
  const TextDatabase database = open(true);
  for (const char* sql : {"CREATE TABLE t(x)", "INSERT INTO t VALUES('a b c d e f a')",
                          "CREATE VIRTUAL TABLE f USING fts5(x, content = 't')",
                          "INSERT INTO f(f) VALUES('rebuild')", "UPDATE t SET x = 'a b'"}) {
    EXPECT_EQ(rows(*database, sql), "") << sql;
  }
  EXPECT_EQ(rows(*database, "SELECT highlight(f, 0, '<', '>') FROM f('a')"), "3 <a> b\n");
  EXPECT_EQ(rows(*database, "SELECT snippet(f, 0, '<', '>', '..', 9) FROM f('a')"), "3 <a> b\n");
}

// SQLite's own take hours.
TEST_F(FullTextFunctionsTest, NoneTakesLongerThanTheTextIs) {
  const TextDatabase database = open(true);
  EXPECT_EQ(rows(*database, "CREATE VIRTUAL TABLE f USING fts5(x)"), "");
  EXPECT_EQ(rows(*database, "CREATE VIRTUAL TABLE g USING fts5(x, tokenize = 'trigram')"), "");
  std::string many;
  for (int i = 0; i < 400'000; ++i) many += "a. ";
  EXPECT_EQ(rows(*database, "INSERT INTO f VALUES(?)", {many}), "");
  EXPECT_EQ(rows(*database, "INSERT INTO g VALUES(?)", {std::string(300'000, ' ') + "abc"}), "");
  for (
      const std::string sql :
      {"SELECT length(highlight(f, 0, '<', '>')) FROM f('a')",
       "SELECT length(snippet(f, 0, '<', '>', '..', 5)) FROM f('a')",
       "SELECT length(snippet(f, 0, '<', '>', '..', 1000000)) FROM f('a OR a')",
       "SELECT length(snippet(f, -1, '<', '>', '..', 200000)) FROM f('\"a a a\"')",
       "SELECT length(snippet(g, 0, '<', '>', '..', 5)) FROM g('abc')",
       // SQLite's own: 11 s.
       R"(SELECT bm25(f) < 0 FROM f('a a a a a a a a a a a a a a a a a a a a a a a a a a a a a'))"}) {
    const auto start = std::chrono::steady_clock::now();
    const std::string answer = rows(*database, sql);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << sql;
    EXPECT_TRUE(answer.starts_with("1 ")) << sql << ": " << answer;
  }
  EXPECT_EQ(rows(*database, "SELECT highlight(f, 0, '<', '>') FROM f('a OR a OR a')"),
            "error string or blob too big");
  // Neither do marks take more memory than a value may have.
  sqlite3_limit(database.get(), SQLITE_LIMIT_LENGTH, 2 << 20);
  EXPECT_EQ(
      rows(*database, "SELECT highlight(f, 0, ?, '') FROM f('a')", {std::string(1 << 20, '<')}),
      "error string or blob too big");
}

}  // namespace
}  // namespace hearth::storage

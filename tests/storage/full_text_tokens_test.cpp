#include "storage/full_text_tokens.hpp"

#include "storage/plugin_sql_fixture.hpp"
#include "storage/step_budget.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace hearth::storage {
namespace {

std::string so_many(std::size_t times, std::string_view text) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

class FullTextTokensTest : public PluginSqlTest {
 protected:
  // The query is stored, so no check of bound values limits it.
  Result<void> search(const std::string& condition, const std::string& query) {
    EXPECT_TRUE(run("DELETE FROM q"));
    const StatementHandle insert = prepare("INSERT INTO q VALUES(?)");
    EXPECT_TRUE(sql_->bind_text(insert, 1, query));
    EXPECT_TRUE(sql_->step(insert));
    EXPECT_TRUE(sql_->finalize(insert));
    return run("SELECT f.rowid FROM q, f WHERE " + condition + " q.query");
  }
};

TEST_F(FullTextTokensTest, TheTokensOfAQueryAreBoundedWhateverItComesFrom) {
  struct Case {
    const char* tokenizer;
    const char* condition;
    std::string most;
    std::string too_many;
  };
  const std::string words = so_many(256, "a ");
  const std::string spaced = so_many(256, "a\xC2\xA0");
  const std::string letters(258, 'a');  // 256 times three
  const Case cases[] = {
      {"unicode61", "f MATCH", words, words + "a"},
      {"unicode61", "f MATCH", "\"" + words + "\"", "\"" + words + "a\""},
      {"unicode61", "f MATCH", spaced, spaced + "a"},
      {"unicode61 remove_diacritics 2", "f MATCH", words, words + "a"},
      {"ascii", "f MATCH", words, words + "a"},
      {"porter", "f MATCH", words, words + "a"},
      {"porter ascii", "f MATCH", words, words + "a"},
      {"trigram", "f MATCH", letters, letters + "a"},
  };
  ASSERT_TRUE(run("CREATE TABLE q(query)"));
  for (const Case& each : cases) {
    ASSERT_TRUE(run("CREATE VIRTUAL TABLE f USING fts5(x, tokenize='" +
                    std::string(each.tokenizer) + "')"));
    ASSERT_TRUE(run("INSERT INTO f VALUES('a b c')"));
    EXPECT_TRUE(search(each.condition, each.most)) << each.tokenizer;
    const Result<void> refused = search(each.condition, each.too_many);
    ASSERT_TRUE(refused.has_error()) << each.tokenizer;
    EXPECT_EQ(refused.error().code, Errc::kLimitExceeded);
    EXPECT_EQ(refused.error().message, "a full-text query takes at most 256 tokens");
    EXPECT_FALSE(database_.broken());
    ASSERT_TRUE(run("DROP TABLE f"));
  }
}

TEST_F(FullTextTokensTest, WhatTrigramLooksUpForLikeAndGlobIsBounded) {
  ASSERT_TRUE(run("CREATE VIRTUAL TABLE f USING fts5(x, tokenize=trigram)"));
  ASSERT_TRUE(run("INSERT INTO f VALUES('some text')"));
  for (const auto& [call, any] : {std::pair{"LIKE", "%"}, std::pair{"GLOB", "*"}}) {
    const auto find = [&, operation = std::string(call),
                       edge = std::string(any)](const std::string& text) {
      const StatementHandle handle = prepare("SELECT x FROM f WHERE x " + operation + " ?");
      EXPECT_TRUE(sql_->bind_text(handle, 1, edge + text + edge));
      const Result<StepOutcome> outcome = sql_->step(handle);
      EXPECT_TRUE(sql_->finalize(handle));
      return outcome;
    };
    const Result<StepOutcome> found = find("me te");
    ASSERT_TRUE(found) << call;
    EXPECT_EQ(*found, StepOutcome::kRow) << call;
    const Result<StepOutcome> refused = find(std::string(100'000, 'a'));
    ASSERT_TRUE(refused.has_error()) << call;
    EXPECT_EQ(refused.error().code, Errc::kLimitExceeded) << call;
  }
}

TEST_F(FullTextTokensTest, ManyQueriesInOneStatementAreCountedEachForItself) {
  ASSERT_TRUE(run("CREATE VIRTUAL TABLE f USING fts5(x, tokenize=unicode61)"));
  ASSERT_TRUE(run("INSERT INTO f VALUES('" + so_many(40, "a ") + "')"));
  ASSERT_TRUE(run("CREATE TABLE q(query)"));
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(run("INSERT INTO q VALUES('" + so_many(20, "a ") + "')"));
  database_.commit();
  EXPECT_EQ(ask("SELECT count(*) FROM q, f WHERE f MATCH q.query"), 100);
}

TEST_F(FullTextTokensTest, ALongQueryIsOneOfManyTokensNotOfManyLetters) {
  sqlite3& connection = database_.connection();
  EXPECT_FALSE(is_long_query(connection, so_many(256, "word ")));
  EXPECT_TRUE(is_long_query(connection, so_many(257, "a ")));
  EXPECT_TRUE(is_long_query(connection, so_many(257, "a\xC2\xA0")));
  EXPECT_TRUE(is_long_query(connection, so_many(257, "\xE4\xB8\xAD\xE3\x80\x82")));
  EXPECT_FALSE(is_long_query(connection, so_many(10'000, "\xE4\xB8\xAD")));
  EXPECT_FALSE(is_long_query(connection, std::string(100'000, 'a')));
}

}  // namespace
}  // namespace hearth::storage

// sql() and transaction() on the mock host's SQLite.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace {

using hearth::Json;
using hearth::testing::Host;

struct NoteRow {
  std::int64_t id = 0;
  std::string text;
  std::optional<double> score;
  HEARTH_FIELDS(id, text, score)
};

class Notes : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Notes>& m) { m.add("broken", &Notes::broken); }
  void broken() { sql("SELECT secret FROM nowhere"); }
  Notes() {
    sql("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL, score REAL, "
        "bytes BLOB)");
  }
};

class SqlTest : public ::testing::Test {
 protected:
  template <class Run>
  static hearth::SqlError error_of(Run run) {
    try {
      run();
    } catch (const hearth::SqlError& error) {
      return error;
    }
    return hearth::SqlError(HEARTH_OK, "no error", "");
  }

  Host host_;
  hearth::testing::AgentHandle handle_ = host_.create<Notes>("n");
  Notes& notes_ = handle_.as<Notes>();
};

TEST_F(SqlTest, BindsAndReadsEveryType) {
  const hearth::Blob bytes = {std::byte{0}, std::byte{255}};
  notes_.sql("INSERT INTO notes VALUES (?, ?, ?, ?)", 7, "seven", 7.5, bytes);
  const auto row = notes_.sql("SELECT * FROM notes")
                       .value<std::tuple<std::int64_t, std::string, double, hearth::Blob>>();
  EXPECT_EQ(row, std::make_tuple(std::int64_t{7}, std::string("seven"), 7.5, bytes));
  const std::string text("\u00e9\0x", 4);
  notes_.sql("INSERT INTO notes VALUES (?, ?, ?, ?)", true, text, nullptr, std::optional<int>());
  EXPECT_EQ(notes_.sql("SELECT id, text, score FROM notes WHERE id = 1").value<NoteRow>().text,
            text);
  EXPECT_EQ(notes_.sql("SELECT typeof(bytes) FROM notes WHERE id = 1").value<std::string>(),
            "null");
  EXPECT_EQ(notes_.sql("SELECT ?", Json({{"a", 1}})).value<std::string>(), "{\"a\":1}");
}

TEST_F(SqlTest, RowsComeAsTuplesStructsSingleColumnsAndJson) {
  notes_.sql("INSERT INTO notes(text, score) VALUES ('a', 1.5), ('b', NULL)");
  EXPECT_EQ(notes_.sql("SELECT text FROM notes ORDER BY id").rows<std::string>(),
            (std::vector<std::string>{"a", "b"}));
  const auto structs = notes_.sql("SELECT score, text, id FROM notes ORDER BY id").rows<NoteRow>();
  ASSERT_EQ(structs.size(), 2U);
  EXPECT_EQ(structs[0].text, "a");
  EXPECT_EQ(structs[1].id, 2);
  EXPECT_EQ(structs[1].score, std::nullopt);
  EXPECT_EQ(notes_.sql("SELECT id, score, x'00ff' AS b FROM notes ORDER BY id").json(),
            Json({{{"id", 1}, {"score", 1.5}, {"b", "AP8="}},
                  {{"id", 2}, {"score", nullptr}, {"b", "AP8="}}}));
  EXPECT_EQ(notes_.sql("SELECT 1 WHERE 0").optional<int>(), std::nullopt);
  EXPECT_EQ(notes_.sql("SELECT 5").optional<int>(), 5);
  EXPECT_TRUE(notes_.sql("SELECT 1 WHERE 0").rows<int>().empty());
}

TEST_F(SqlTest, RunsAStatementEvenIfNobodyReadsIt) {
  notes_.sql("INSERT INTO notes(text) VALUES ('x') RETURNING id");
  EXPECT_EQ(notes_.sql("SELECT count(*) FROM notes").value<int>(), 1);
}

TEST_F(SqlTest, CountsChangesAndNamesTheLastRow) {
  EXPECT_EQ(notes_.sql("INSERT INTO notes(text) VALUES ('x'), ('y')").last_insert_rowid(), 2);
  EXPECT_EQ(notes_.sql("UPDATE notes SET text = 'z'").changes(), 2);
}

TEST_F(SqlTest, ErrorsCarrySqlitesWordsAndTheSql) {
  const auto error = error_of([&] { notes_.sql("SELECT * FROM nowhere"); });
  EXPECT_STREQ(error.what(), "no such table: nowhere");
  EXPECT_EQ(error.sql(), "SELECT * FROM nowhere");
  EXPECT_EQ(error_of([&] { notes_.sql("INSERT INTO notes(text) VALUES (NULL)"); }).code(),
            HEARTH_E_CONFLICT);
  EXPECT_EQ(error_of([&] { notes_.sql("SELECT 1; SELECT 2"); }).code(), HEARTH_E_INVALID);
  EXPECT_EQ(error_of([&] { notes_.sql("SELECT ?", 1, 2); }).code(), HEARTH_E_INVALID);
}

TEST_F(SqlTest, ACallerReadsSqlitesWordsAndTheLogTheSqlToo) {
  EXPECT_EQ(handle_.start("broken").error(), "no such table: nowhere");
  EXPECT_EQ(host_.log().back(), "error failed in SQL: SELECT secret FROM nowhere");
}

TEST_F(SqlTest, WhatBelongsToTheHostIsForbidden) {
  notes_.set_state(1);  // makes the host's table
  for (const char* const sql :
       {"BEGIN", "COMMIT", "SAVEPOINT a", "ATTACH ':memory:' AS b", "PRAGMA user_version = 1",
        "DELETE FROM cf_agents_state", "CREATE TABLE cf_agents_mine (x)"}) {
    EXPECT_EQ(error_of([&] { notes_.sql(sql); }).code(), HEARTH_E_FORBIDDEN) << sql;
  }
  EXPECT_EQ(notes_.sql("SELECT count(*) FROM cf_agents_state").value<int>(), 1);
}

TEST_F(SqlTest, ValuesThatDoNotFitAreErrors) {
  EXPECT_STREQ(
      error_of([&] { static_cast<void>(notes_.sql("SELECT NULL AS x").value<int>()); }).what(),
      "column x is NULL; read it as std::optional");
  EXPECT_NE(
      error_of([&] { static_cast<void>(notes_.sql("SELECT 300").value<std::uint8_t>()); }).code(),
      HEARTH_OK);
  EXPECT_NE(error_of([&] {
              static_cast<void>(notes_.sql("SELECT 1, 2").value<std::tuple<int>>());
            }).code(),
            HEARTH_OK);
  EXPECT_NE(
      error_of([&] { static_cast<void>(notes_.sql("SELECT 1 AS id").value<NoteRow>()); }).code(),
      HEARTH_OK);
  EXPECT_NE(
      error_of([&] { notes_.sql("SELECT ?", std::numeric_limits<std::uint64_t>::max()); }).code(),
      HEARTH_OK);
  EXPECT_THROW(static_cast<void>(notes_.sql("SELECT 1 WHERE 0").value<int>()), hearth::Error);
}

TEST_F(SqlTest, ATransactionIsUndoneUnlessCommitted) {
  {
    auto undone = notes_.transaction();
    notes_.sql("INSERT INTO notes(text) VALUES ('undone')");
  }
  {
    auto outer = notes_.transaction();
    notes_.sql("INSERT INTO notes(text) VALUES ('kept')");
    {
      auto inner = notes_.transaction();
      notes_.sql("INSERT INTO notes(text) VALUES ('undone too')");
    }
    outer.commit();
  }
  EXPECT_EQ(notes_.sql("SELECT text FROM notes").rows<std::string>(),
            std::vector<std::string>{"kept"});
}

TEST_F(SqlTest, TablesSurviveAnEviction) {
  notes_.sql("INSERT INTO notes(text) VALUES ('kept')");
  handle_.evict();
  EXPECT_EQ(handle_.as<Notes>().sql("SELECT text FROM notes").value<std::string>(), "kept");
}

}  // namespace

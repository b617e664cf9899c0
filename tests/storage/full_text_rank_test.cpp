// (That the results are SQLite's own: full_text_functions_test.cpp.)
#include "storage/full_text_rank.hpp"

#include "storage/connection.hpp"

#include <sqlite3.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace hearth::storage {
namespace {

struct CloseRankedDatabase {
  void operator()(sqlite3* each) const { sqlite3_close(each); }
};

// What FTS5 reports is passed on, and a row without figures has no rank.
TEST(FullTextRankTest, AFailureOfFts5IsTheFunctions) {
  initialize_sqlite();
  sqlite3* opened = nullptr;
  ASSERT_EQ(sqlite3_open(":memory:", &opened), SQLITE_OK);
  const std::unique_ptr<sqlite3, CloseRankedDatabase> database(opened);
  const auto rank = [](sqlite3_context* context, int count, sqlite3_value** weights) {
    Fts5ExtensionApi api{};
    api.xGetAuxdata = [](Fts5Context*, int) -> void* { return nullptr; };
    api.xRowCount = [](Fts5Context*, sqlite3_int64*) { return SQLITE_IOERR; };
    rank_by_bm25(&api, nullptr, context, count, weights);
  };
  ASSERT_EQ(sqlite3_create_function(opened, "failing_rank", 0, SQLITE_UTF8, nullptr, rank, nullptr,
                                    nullptr),
            SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(opened, "SELECT failing_rank()", nullptr, nullptr, nullptr), SQLITE_IOERR);
}

}  // namespace
}  // namespace hearth::storage

#include "extensions/sql.hpp"

#include "extensions/abi_fixture.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiSqlTest : public AbiHostTest {
 protected:
  hearth_statement prepare(std::string_view sql) {
    hearth_statement statement = 0;
    EXPECT_EQ(sql_.prepare(host_, kAgent, slice(sql), &statement), HEARTH_OK)
        << sql << ": " << last_error();
    return statement;
  }
  void run(std::string_view sql) {
    const hearth_statement statement = prepare(sql);
    EXPECT_EQ(sql_.step(host_, kAgent, statement), HEARTH_OK) << sql << ": " << last_error();
    EXPECT_EQ(sql_.finalize(host_, kAgent, statement), HEARTH_OK);
  }
  std::int64_t count() {
    const hearth_statement statement = prepare("SELECT count(*) FROM t");
    EXPECT_EQ(sql_.step(host_, kAgent, statement), HEARTH_ROW);
    std::int64_t value = -1;
    EXPECT_EQ(sql_.column_int64(host_, kAgent, statement, 0, &value), HEARTH_OK);
    EXPECT_EQ(sql_.finalize(host_, kAgent, statement), HEARTH_OK);
    return value;
  }

  const hearth_sql_v1& sql_ = extension<hearth_sql_v1>(HEARTH_EXT_SQL);
};

TEST_F(AbiSqlTest, ValuesGoInAndComeOut) {
  run("CREATE TABLE t(a, b, c, d, e)");
  const hearth_statement insert = prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?)");
  EXPECT_EQ(sql_.bind_int64(host_, kAgent, insert, 1, -9'000'000'000), HEARTH_OK);
  EXPECT_EQ(sql_.bind_double(host_, kAgent, insert, 2, 1.5), HEARTH_OK);
  EXPECT_EQ(sql_.bind_text(host_, kAgent, insert, 3, slice("text")), HEARTH_OK);
  EXPECT_EQ(sql_.bind_blob(host_, kAgent, insert, 4, slice(kNotUtf8)), HEARTH_OK);
  EXPECT_EQ(sql_.bind_null(host_, kAgent, insert, 5), HEARTH_OK);
  EXPECT_EQ(sql_.step(host_, kAgent, insert), HEARTH_OK);
  std::int64_t rows = 0;
  std::int64_t rowid = 0;
  EXPECT_EQ(sql_.changes(host_, kAgent, &rows), HEARTH_OK);
  EXPECT_EQ(sql_.last_insert_rowid(host_, kAgent, &rowid), HEARTH_OK);
  EXPECT_EQ(rows, 1);
  EXPECT_EQ(rowid, 1);

  const hearth_statement select = prepare("SELECT a, b, c, d, e FROM t");
  std::uint32_t columns = 0;
  EXPECT_EQ(sql_.column_count(host_, kAgent, select, &columns), HEARTH_OK);
  EXPECT_EQ(columns, 5U);
  ASSERT_EQ(sql_.step(host_, kAgent, select), HEARTH_ROW);
  hearth_bytes out{};
  EXPECT_EQ(lent(sql_.column_name, select, 2U), "c");
  const std::array<std::uint32_t, 5> types = {HEARTH_SQL_INTEGER, HEARTH_SQL_FLOAT, HEARTH_SQL_TEXT,
                                              HEARTH_SQL_BLOB, HEARTH_SQL_NULL};
  for (std::uint32_t column = 0; column < 5; ++column) {
    std::uint32_t type = 0;
    EXPECT_EQ(sql_.column_type(host_, kAgent, select, column, &type), HEARTH_OK);
    EXPECT_EQ(type, types[column]);
  }
  std::int64_t integer = 0;
  double real = 0;
  EXPECT_EQ(sql_.column_int64(host_, kAgent, select, 0, &integer), HEARTH_OK);
  EXPECT_EQ(integer, -9'000'000'000);
  EXPECT_EQ(sql_.column_double(host_, kAgent, select, 1, &real), HEARTH_OK);
  EXPECT_EQ(real, 1.5);
  EXPECT_EQ(lent(sql_.column_bytes, select, 2U), "text");
  EXPECT_EQ(lent(sql_.column_bytes, select, 3U), kNotUtf8);
  EXPECT_EQ(sql_.column_bytes(host_, kAgent, select, 4, &out), HEARTH_OK);
  EXPECT_EQ(out.len, 0U);
  EXPECT_EQ(lent(sql_.column_bytes, select, 0U), "-9000000000");
  EXPECT_EQ(sql_.step(host_, kAgent, select), HEARTH_OK);
  EXPECT_EQ(sql_.reset(host_, kAgent, select), HEARTH_OK);
  EXPECT_EQ(sql_.step(host_, kAgent, select), HEARTH_ROW);
  EXPECT_EQ(sql_.finalize(host_, kAgent, select), HEARTH_OK);
}

TEST_F(AbiSqlTest, MistakesAreToldApart) {
  hearth_statement statement = 0;
  EXPECT_EQ(sql_.prepare(host_, kAgent, slice("SELECT nonsense FROM"), &statement),
            HEARTH_E_INVALID);
  EXPECT_FALSE(last_error().empty());
  EXPECT_EQ(sql_.prepare(host_, kAgent, slice("ATTACH 'x' AS y"), &statement), HEARTH_E_FORBIDDEN);
  EXPECT_EQ(sql_.prepare(host_, kAgent, slice(kNotUtf8), &statement), HEARTH_E_INVALID);
  EXPECT_EQ(sql_.prepare(host_, kAgent, kNullWithLength, &statement), HEARTH_E_INVALID);
  EXPECT_EQ(sql_.prepare(host_, kAgent, slice("SELECT 1"), nullptr), HEARTH_E_INVALID);
  EXPECT_EQ(sql_.prepare(host_, kAgent, slice(std::string(300'000, ' ')), &statement),
            HEARTH_E_LIMIT);

  statement = prepare("SELECT ?");
  EXPECT_EQ(sql_.bind_int64(host_, kAgent, statement, 2, 1),
            HEARTH_E_INVALID);  // no such placeholder
  EXPECT_EQ(sql_.bind_int64(host_, kAgent, statement, 0xffffffff, 1), HEARTH_E_INVALID);
  EXPECT_EQ(sql_.bind_text(host_, kAgent, statement, 1, slice(kNotUtf8)), HEARTH_E_INVALID);
  std::int64_t value = 0;
  EXPECT_EQ(sql_.column_int64(host_, kAgent, statement, 0, &value),
            HEARTH_E_INVALID);  // no row yet
  ASSERT_EQ(sql_.step(host_, kAgent, statement), HEARTH_ROW);
  EXPECT_EQ(sql_.column_int64(host_, kAgent, statement, 1, &value),
            HEARTH_E_INVALID);  // no such column
  EXPECT_EQ(sql_.column_int64(host_, kAgent, statement, 0, nullptr), HEARTH_E_INVALID);

  EXPECT_EQ(sql_.finalize(host_, kAgent, statement), HEARTH_OK);
  hearth_bytes out{};
  for (const hearth_statement stale : {statement, hearth_statement{0}, ~hearth_statement{0}}) {
    EXPECT_EQ(sql_.bind_int64(host_, kAgent, stale, 1, 1), HEARTH_E_GONE);
    EXPECT_EQ(sql_.bind_text(host_, kAgent, stale, 1, slice("x")), HEARTH_E_GONE);
    EXPECT_EQ(sql_.step(host_, kAgent, stale), HEARTH_E_GONE);
    EXPECT_EQ(sql_.column_bytes(host_, kAgent, stale, 0, &out), HEARTH_E_GONE);
    EXPECT_EQ(sql_.finalize(host_, kAgent, stale), HEARTH_E_GONE);
  }
}

TEST_F(AbiSqlTest, AConstraintIsAConflict) {
  run("CREATE TABLE t(a UNIQUE)");
  run("INSERT INTO t VALUES (1)");
  const hearth_statement insert = prepare("INSERT INTO t VALUES (1)");
  EXPECT_EQ(sql_.step(host_, kAgent, insert), HEARTH_E_CONFLICT);
  EXPECT_NE(last_error().find("UNIQUE"), std::string::npos) << last_error();
}

TEST_F(AbiSqlTest, SavepointsUndoAPartOfATurn) {
  run("CREATE TABLE t(a)");
  run("INSERT INTO t VALUES (1)");
  std::uint32_t outer = 0;
  std::uint32_t inner = 0;
  ASSERT_EQ(sql_.begin_savepoint(host_, kAgent, &outer), HEARTH_OK) << last_error();
  run("INSERT INTO t VALUES (2)");
  ASSERT_EQ(sql_.begin_savepoint(host_, kAgent, &inner), HEARTH_OK);
  run("INSERT INTO t VALUES (3)");
  EXPECT_EQ(sql_.rollback_savepoint(host_, kAgent, inner), HEARTH_OK);
  EXPECT_EQ(count(), 2);
  EXPECT_EQ(sql_.rollback_savepoint(host_, kAgent, inner), HEARTH_E_GONE);
  EXPECT_EQ(sql_.release_savepoint(host_, kAgent, outer), HEARTH_OK);
  EXPECT_EQ(sql_.release_savepoint(host_, kAgent, outer), HEARTH_E_GONE);
  EXPECT_EQ(count(), 2);
  EXPECT_EQ(sql_.begin_savepoint(host_, kAgent, nullptr), HEARTH_E_INVALID);
}

TEST_F(AbiSqlTest, ABrokenDiskBreaksTheAgent) {
  agent_.break_storage();
  hearth_statement statement = 0;
  EXPECT_EQ(sql_.prepare(host_, kAgent, slice("SELECT 1"), &statement), HEARTH_E_IO);
  EXPECT_NE(agent_.broken, "");
}

}  // namespace
}  // namespace hearth::extensions

#include "storage/statement.hpp"

#include "base/assert.hpp"
#include "storage/connection.hpp"

#include <sqlite3.h>

#include <utility>

namespace hearth::storage {
namespace {

// "running <the statement>: ..." tells more than the name of a function of SQLite.
[[noreturn]] void throw_statement_error(sqlite3_stmt* stmt, const char* doing) {
  throw_storage_error(*sqlite3_db_handle(stmt),
                      std::string(doing) + " \"" + sqlite3_sql(stmt) + "\"");
}

int bind_one(sqlite3_stmt* stmt, int index, const Param& param) {
  struct Binder {
    sqlite3_stmt* stmt;
    int index;
    int operator()(std::nullptr_t) const { return sqlite3_bind_null(stmt, index); }
    int operator()(std::int64_t value) const { return sqlite3_bind_int64(stmt, index, value); }
    int operator()(double value) const { return sqlite3_bind_double(stmt, index, value); }
    // An empty view may carry a null pointer, which SQLite would bind as NULL instead of ''.
    int operator()(std::string_view value) const {
      return sqlite3_bind_text64(stmt, index, value.empty() ? "" : value.data(), value.size(),
                                 SQLITE_STATIC, SQLITE_UTF8);
    }
    int operator()(Bytes value) const {
      return sqlite3_bind_blob64(stmt, index,
                                 value.empty() ? "" : static_cast<const void*>(value.data()),
                                 value.size(), SQLITE_STATIC);
    }
  };
  return std::visit(Binder{stmt, index}, param);
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* stmt) const noexcept {
  sqlite3_finalize(stmt);
}

Statement::Statement(sqlite3& connection, std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const char* tail = nullptr;
  const int rc = sqlite3_prepare_v3(&connection, sql.data(), static_cast<int>(sql.size()),
                                    SQLITE_PREPARE_PERSISTENT, &raw, &tail);
  stmt_.reset(raw);  // own it before anything below can throw
  if (rc != SQLITE_OK) throw_storage_error(connection, "preparing \"" + std::string(sql) + "\"");
  HEARTH_ASSERT(stmt_ != nullptr, "SQL text holds no statement");
  HEARTH_ASSERT(tail == sql.data() + sql.size(), "SQL text holds more than one statement");
}

Rows Statement::query(std::span<const Param> params) {
  bind(params);
  return Rows(*this);
}

std::int64_t Statement::execute(std::span<const Param> params) {
  sqlite3* const connection = sqlite3_db_handle(stmt_.get());
  const std::int64_t before = sqlite3_total_changes64(connection);
  {
    Rows rows = query(params);
    while (rows.next()) {
    }
  }
  return sqlite3_total_changes64(connection) - before;
}

void Statement::bind(std::span<const Param> params) {
  HEARTH_ASSERT(!cursor_open_, "statement re-run while its Rows is alive");
  HEARTH_ASSERT(static_cast<int>(params.size()) == sqlite3_bind_parameter_count(stmt_.get()),
                "wrong number of parameters");
  int index = 0;
  for (const Param& param : params) {
    if (bind_one(stmt_.get(), ++index, param) != SQLITE_OK)
      throw_statement_error(stmt_.get(), "binding");
  }
}

Rows::Rows(Statement& owner) noexcept : owner_(&owner) {
  owner.cursor_open_ = true;
}

Rows::Rows(Rows&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), on_row_(std::exchange(other.on_row_, false)) {}

Rows::~Rows() {
  if (owner_ == nullptr) return;
  // Reset repeats the error of the last step, which next() has already thrown.
  sqlite3_reset(owner_->stmt_.get());
  sqlite3_clear_bindings(
      owner_->stmt_.get());  // drop borrowed pointers before the caller's data dies
  owner_->cursor_open_ = false;
}

bool Rows::next() {
  HEARTH_ASSERT(owner_ != nullptr, "Rows used after being moved from");
  sqlite3_stmt* const stmt = owner_->stmt_.get();
  const int rc = sqlite3_step(stmt);
  on_row_ = (rc == SQLITE_ROW);
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) throw_statement_error(stmt, "running");
  return on_row_;
}

std::int64_t Rows::integer(int column) const {
  HEARTH_ASSERT(on_row_, "column read without a row");
  return sqlite3_column_int64(owner_->stmt_.get(), column);
}

double Rows::real(int column) const {
  HEARTH_ASSERT(on_row_, "column read without a row");
  return sqlite3_column_double(owner_->stmt_.get(), column);
}

std::string_view Rows::text(int column) const {
  HEARTH_ASSERT(on_row_, "column read without a row");
  // Order matters: column_bytes() after column_text() gives the size of the UTF-8 form.
  const unsigned char* data = sqlite3_column_text(owner_->stmt_.get(), column);
  const int size = sqlite3_column_bytes(owner_->stmt_.get(), column);
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)};
}

Bytes Rows::bytes(int column) const {
  HEARTH_ASSERT(on_row_, "column read without a row");
  const void* data = sqlite3_column_blob(owner_->stmt_.get(), column);
  const int size = sqlite3_column_bytes(owner_->stmt_.get(), column);
  return {static_cast<const std::byte*>(data), static_cast<std::size_t>(size)};
}

bool Rows::is_null(int column) const {
  HEARTH_ASSERT(on_row_, "column read without a row");
  return sqlite3_column_type(owner_->stmt_.get(), column) == SQLITE_NULL;
}

Param nullable(const std::optional<std::string>& text) {
  return text ? Param(std::string_view(*text)) : Param(nullptr);
}

Param nullable(std::optional<std::int64_t> number) {
  return number ? Param(*number) : Param(nullptr);
}

bool has_table(sqlite3& connection, std::string_view name) {
  Statement find(connection, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?");
  return find.query(name).next();
}

std::optional<std::string> text_or_none(const Rows& rows, int column) {
  if (rows.is_null(column)) return std::nullopt;
  return std::string(rows.text(column));
}

std::optional<std::int64_t> integer_or_none(const Rows& rows, int column) {
  if (rows.is_null(column)) return std::nullopt;
  return rows.integer(column);
}

}  // namespace hearth::storage

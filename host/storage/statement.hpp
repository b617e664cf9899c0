#pragma once
// A prepared SQL statement and the cursor over its rows.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

struct sqlite3;
struct sqlite3_stmt;

namespace hearth::storage {

class Rows;

// A value for a `?`. Views are borrowed, not copied; see Statement::query().
using Bytes = std::span<const std::byte>;
using Param = std::variant<std::nullptr_t, std::int64_t, double, std::string_view, Bytes>;

// NULL if there is no value; the text is borrowed.
[[nodiscard]] Param nullable(const std::optional<std::string>& text);
[[nodiscard]] Param nullable(std::optional<std::int64_t> number);

// Integers, truth values and enumerators are INTEGER in SQL; other values are as Param has them.
template <class Value>
concept IntegerParam = std::integral<Value> || std::is_enum_v<Value>;
template <class Value>
concept ParamValue = IntegerParam<Value> || std::constructible_from<Param, const Value&>;

template <ParamValue Value>
[[nodiscard]] Param param_of(const Value& value) {
  if constexpr (IntegerParam<Value>) {
    return static_cast<std::int64_t>(value);
  } else {
    return Param(value);
  }
}
template <ParamValue... Values>
[[nodiscard]] std::array<Param, sizeof...(Values)> params_of(const Values&... values) {
  return {param_of(values)...};
}

// Owns one sqlite3_stmt. Cheap to keep, costly to make: prepare once, run often.
//
// Lifetime    Must be destroyed before the connection that it was prepared on.
// Threads     The same thread as its connection. No method is safe to call concurrently.
// Invariant   At most one Rows per Statement is alive (asserted), so a cached statement cannot be
//             run again while its result is half read.
class Statement {
 public:
  // `sql` must be exactly one statement. Throws StorageError if SQLite rejects it. The SQL is
  // always the host's own text, so a rejection is an error of the program or the schema, never of
  // input.
  Statement(sqlite3& connection, std::string_view sql);
  // A Rows points to its Statement, so a Statement must not move either.
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Starts the statement with `params` bound to ?1, ?2, ... in order.
  //
  // Text and bytes are NOT copied: their data must outlive the returned Rows. The number of params
  // must match the number of placeholders (asserted).
  [[nodiscard]] Rows query(std::span<const Param> params = {});
  template <ParamValue... Values>
  [[nodiscard]] Rows query(const Values&... values);

  // Runs to the end and ignores rows. Returns the number of rows inserted, updated or deleted.
  std::int64_t execute(std::span<const Param> params = {});
  template <ParamValue... Values>
  std::int64_t execute(const Values&... values) {
    return execute(params_of(values...));
  }

 private:
  friend class Rows;
  struct Finalize {
    void operator()(sqlite3_stmt* stmt) const noexcept;
  };

  void bind(std::span<const Param> params);

  std::unique_ptr<sqlite3_stmt, Finalize> stmt_;
  bool cursor_open_ = false;  // a Rows for this statement is alive
};

// A running query. Move-only. The destructor resets the statement, which also ends the implicit
// read transaction, so keep a Rows no longer than the loop that reads it.
//
//   for (Rows rows = stmt.query(name); rows.next();) use(rows.text(0));
//
class Rows {
 public:
  Rows(Rows&& other) noexcept;
  Rows& operator=(Rows&&) = delete;
  ~Rows();

  // Advances to the next row; false after the last one. Throws StorageError (I/O, busy, corrupt).
  [[nodiscard]] bool next();

  // Columns of the current row, from 0. Call only after next() returned true (asserted).
  // The views stay valid until the following next() or the destruction of *this.
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string_view text(int column) const;
  [[nodiscard]] Bytes bytes(int column) const;
  [[nodiscard]] bool is_null(int column) const;

 private:
  friend class Statement;
  explicit Rows(Statement& owner) noexcept;

  Statement* owner_;  // null after being moved from
  bool on_row_ = false;
};

template <ParamValue... Values>
Rows Statement::query(const Values&... values) {
  return query(params_of(values...));
}

// Whether the main schema has this table.
[[nodiscard]] bool has_table(sqlite3& connection, std::string_view name);

// A column of the current row; nothing if it is NULL.
[[nodiscard]] std::optional<std::string> text_or_none(const Rows& rows, int column);
[[nodiscard]] std::optional<std::int64_t> integer_or_none(const Rows& rows, int column);

}  // namespace hearth::storage

#pragma once
// The agent's own SQLite database.
//
//     sql("INSERT INTO notes(text, stars) VALUES (?, ?)", text, 5);
//     auto rows  = sql("SELECT id, text FROM notes WHERE stars >= ?", 3)
//                      .rows<std::tuple<int64_t, std::string>>();
//     auto count = sql("SELECT count(*) FROM notes").value<int>();
//     auto first = sql("SELECT text FROM notes ORDER BY id").optional<std::string>();
//     Json all   = sql("SELECT * FROM notes").json();

#include <hearth/detail/activation.hpp>
#include <hearth/fields.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hearth {

// Bytes of a BLOB column.
using Blob = std::vector<std::byte>;

namespace detail {

// A compiled statement with its text for errors. The destructor gives it back.
class Statement {
 public:
  Statement(Activation& activation, std::string_view sql)
      : activation_(activation), table_(need(activation.tables().sql, HEARTH_EXT_SQL)), sql_(sql) {
    check(table_.prepare(host(), agent(), slice(sql), &id_));
  }
  ~Statement() { static_cast<void>(table_.finalize(host(), agent(), id_)); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(std::uint32_t index, std::nullptr_t) {
    check(table_.bind_null(host(), agent(), id_, index));
  }
  void bind(std::uint32_t index, std::string_view text) {
    check(table_.bind_text(host(), agent(), id_, index, slice(text)));
  }
  void bind(std::uint32_t index, std::span<const std::byte> bytes) {
    check(table_.bind_blob(host(), agent(), id_, index, slice(bytes)));
  }
  // Templates, so that a pointer is not taken for a bool, nor an integer for a double.
  template <std::integral T>
  void bind(std::uint32_t index, T value) {
    if constexpr (std::same_as<T, bool>) {
      check(table_.bind_int64(host(), agent(), id_, index, value ? 1 : 0));
    } else {
      if (!std::in_range<std::int64_t>(value)) refuse("integer too large for SQLite");
      check(table_.bind_int64(host(), agent(), id_, index, static_cast<std::int64_t>(value)));
    }
  }
  template <std::floating_point T>
  void bind(std::uint32_t index, T value) {
    check(table_.bind_double(host(), agent(), id_, index, static_cast<double>(value)));
  }
  template <class T>
  void bind(std::uint32_t index, const std::optional<T>& value) {
    if (value)
      bind(index, *value);
    else
      bind(index, nullptr);
  }
  // As JSON text. A template, so that nothing is converted to Json by accident.
  template <std::same_as<Json> T>
  void bind(std::uint32_t index, const T& value) {
    bind(index, std::string_view(to_text(value)));
  }
  // Only so that the compiler says what to write.
  template <class T>
    requires(std::is_class_v<T> || std::is_enum_v<T>) &&
            (!std::same_as<T, Json> && !kIsOptional<T> &&
             !std::convertible_to<const T&, std::string_view> &&
             !std::convertible_to<const T&, std::span<const std::byte>>)
  void bind(std::uint32_t /*index*/, const T& /*value*/) {
    static_assert(std::same_as<T, void>,
                  "SQL takes numbers, texts, bytes, Json, and a std::optional of one: write "
                  "t.time_since_epoch().count() for a time, hearth::Json(v) for a struct");
  }

  bool step();

  [[nodiscard]] std::uint32_t columns() const;
  [[nodiscard]] std::string column_name(std::uint32_t column) const;
  [[nodiscard]] std::uint32_t type(std::uint32_t column) const;
  [[nodiscard]] std::int64_t integer(std::uint32_t column) const;
  [[nodiscard]] double real(std::uint32_t column) const;
  // Borrowed until the next call to the host.
  [[nodiscard]] std::string_view bytes(std::uint32_t column) const;
  [[nodiscard]] std::int64_t changes() const;
  [[nodiscard]] std::int64_t last_insert_rowid() const;

  [[noreturn]] void refuse(const std::string& why) const {
    throw SqlError(HEARTH_E_INVALID, why, std::string(sql_));
  }

 private:
  [[nodiscard]] const hearth_host* host() const noexcept { return activation_.host(); }
  [[nodiscard]] hearth_agent agent() const noexcept { return activation_.id(); }
  void check(hearth_status status) const {
    if (status < 0)
      throw SqlError(status, activation_.last_error(status, "SQL"), std::string(sql_));
  }

  Activation& activation_;
  const hearth_sql_v1& table_;
  std::string sql_;
  hearth_statement id_ = 0;
};

std::string base64(std::string_view bytes);

template <class T>
T read_column(const Statement& statement, std::uint32_t column) {
  const std::uint32_t type = statement.type(column);
  if constexpr (kIsOptional<T>) {
    if (type == HEARTH_SQL_NULL) return std::nullopt;
    return read_column<typename T::value_type>(statement, column);
  } else if constexpr (std::same_as<T, Json>) {
    switch (type) {
      case HEARTH_SQL_INTEGER: return statement.integer(column);
      case HEARTH_SQL_FLOAT: return statement.real(column);
      case HEARTH_SQL_TEXT: return std::string(statement.bytes(column));
      case HEARTH_SQL_BLOB: return base64(statement.bytes(column));
      default: return nullptr;
    }
  } else {
    if (type == HEARTH_SQL_NULL) {
      statement.refuse("column " + statement.column_name(column) +
                       " is NULL; read it as std::optional");
    }
    if constexpr (std::same_as<T, bool>) {
      return statement.integer(column) != 0;
    } else if constexpr (std::integral<T>) {
      const std::int64_t value = statement.integer(column);
      if (!std::in_range<T>(value))
        statement.refuse("column " + statement.column_name(column) + " is out of range");
      return static_cast<T>(value);
    } else if constexpr (std::floating_point<T>) {
      return static_cast<T>(statement.real(column));
    } else if constexpr (std::same_as<T, std::string>) {
      return std::string(statement.bytes(column));
    } else {
      static_assert(std::same_as<T, Blob>,
                    "a column is an integer, bool, floating-point number, std::string, "
                    "hearth::Blob, hearth::Json, or a std::optional of one");
      const auto bytes = std::as_bytes(std::span(statement.bytes(column)));
      return Blob(bytes.begin(), bytes.end());
    }
  }
}

// Fills a struct with HEARTH_FIELDS from the columns of the same names.
class ColumnReader {
 public:
  explicit ColumnReader(const Statement& statement) : statement_(statement) {}

  template <class... Fields>
  void operator()(std::string_view names, Fields&... fields) const {
    (read(next_name(names), fields), ...);
  }

 private:
  template <class Field>
  void read(std::string_view name, Field& field) const {
    for (std::uint32_t column = 0; column < statement_.columns(); ++column) {
      if (statement_.column_name(column) != name) continue;
      field = read_column<Field>(statement_, column);
      return;
    }
    statement_.refuse("the result has no column " + std::string(name));
  }

  const Statement& statement_;
};

template <class T>
inline constexpr bool kIsTuple = false;
template <class... T>
inline constexpr bool kIsTuple<std::tuple<T...>> = true;

template <class Row>
Row read_row(const Statement& statement) {
  if constexpr (kIsTuple<Row>) {
    constexpr std::size_t kWanted = std::tuple_size_v<Row>;
    if (statement.columns() != kWanted) {
      statement.refuse("the result has " + std::to_string(statement.columns()) + " columns, not " +
                       std::to_string(kWanted));
    }
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Row(read_column<std::tuple_element_t<I, Row>>(statement, I)...);
    }(std::make_index_sequence<kWanted>());
  } else if constexpr (HasFields<Row>) {
    Row row;
    row.hearth_visit(ColumnReader(statement));
    return row;
  } else {
    static_assert(!std::is_class_v<Row> || std::same_as<Row, std::string> ||
                      std::same_as<Row, Blob> || std::same_as<Row, Json> || kIsOptional<Row>,
                  "a row is a std::tuple, the type of its one column, or a struct that lists its "
                  "members with HEARTH_FIELDS(a, b)");
    return read_column<Row>(statement, 0);
  }
}

}  // namespace detail

// One statement that has begun: its changes are done. Made by Agent::sql().
//
// Row types  a std::tuple with one element for each column, a struct with HEARTH_FIELDS named as
//            the columns, or one column's type: an integer, bool, floating-point number,
//            std::string, Blob, Json, std::optional (NULL). In Json a BLOB is base64 text.
// Lifetime   Read it in the same expression; it may not be kept across a co_await.
// Failure    SqlError with SQLite's text. NULL without std::optional and numbers that do not fit
//            are errors.
class Query {
 public:
  template <class... Values>
  Query(detail::Activation& activation, std::string_view sql, const Values&... values)
      : statement_(activation, sql), on_row_(begin(values...)) {}
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // All rows that have not been read yet.
  template <class Row>
  [[nodiscard]] std::vector<Row> rows() {
    std::vector<Row> all;
    while (on_row_) {
      all.push_back(detail::read_row<Row>(statement_));
      on_row_ = statement_.step();
    }
    return all;
  }

  // The next row, if there is one.
  template <class Row>
  [[nodiscard]] std::optional<Row> optional() {
    if (!on_row_) return std::nullopt;
    std::optional<Row> row(detail::read_row<Row>(statement_));
    on_row_ = statement_.step();
    return row;
  }

  // The next row, which must be there: Error(NOT_FOUND).
  template <class Row>
  [[nodiscard]] Row value() {
    if (!on_row_) throw Error(HEARTH_E_NOT_FOUND, "no such row");
    return detail::read_row<Row>(statement_);
  }

  // All remaining rows as an array of objects.
  [[nodiscard]] Json json() {
    Json all = Json::array();
    while (on_row_) {
      Json row = Json::object();
      for (std::uint32_t column = 0; column < statement_.columns(); ++column) {
        row[statement_.column_name(column)] = detail::read_column<Json>(statement_, column);
      }
      all.push_back(std::move(row));
      on_row_ = statement_.step();
    }
    return all;
  }

  // Rows that the agent's last INSERT, UPDATE or DELETE changed; the rowid of its last INSERT.
  [[nodiscard]] std::int64_t changes() const { return statement_.changes(); }
  [[nodiscard]] std::int64_t last_insert_rowid() const { return statement_.last_insert_rowid(); }

 private:
  template <class... Values>
  bool begin(const Values&... values) {
    std::uint32_t index = 0;
    (statement_.bind(++index, values), ...);
    return statement_.step();
  }

  detail::Statement statement_;
  bool on_row_;
};

// Undoes all writes since it was made, unless commit() was called. Made by Agent::transaction();
// transactions nest.
// Undone    Rows and the state: clients and on_state_changed see a state only if it is kept.
//           Nothing else: frames that were sent leave, attachments stay. Fibers, schedules and the
//           queue cannot be changed inside (Error(INVALID)).
// Lifetime  Inside one turn: writes before a co_await are kept.
class [[nodiscard]] Transaction {
 public:
  explicit Transaction(detail::Activation& activation)
      : activation_(activation), table_(detail::need(activation.tables().sql, HEARTH_EXT_SQL)) {
    activation_.check(table_.begin_savepoint(activation_.host(), activation_.id(), &depth_),
                      "transaction");
  }
  ~Transaction() {
    if (open_)
      static_cast<void>(table_.rollback_savepoint(activation_.host(), activation_.id(), depth_));
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit() {
    open_ = false;
    activation_.check(table_.release_savepoint(activation_.host(), activation_.id(), depth_),
                      "commit");
  }

 private:
  detail::Activation& activation_;
  const hearth_sql_v1& table_;
  std::uint32_t depth_ = 0;
  bool open_ = true;
};

}  // namespace hearth

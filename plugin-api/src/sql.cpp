#include <hearth/sql.hpp>

namespace hearth::detail {

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t taken = bytes.size() - i < 3 ? bytes.size() - i : 3;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < taken ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k)
      out.push_back(k <= taken ? kDigits[group >> (18 - 6 * k) & 63] : '=');
  }
  return out;
}

bool Statement::step() {
  const hearth_status status = table_.step(host(), agent(), id_);
  check(status);
  return status == HEARTH_ROW;
}

std::uint32_t Statement::columns() const {
  std::uint32_t count = 0;
  check(table_.column_count(host(), agent(), id_, &count));
  return count;
}

std::string Statement::column_name(std::uint32_t column) const {
  hearth_bytes name = {nullptr, 0};
  check(table_.column_name(host(), agent(), id_, column, &name));
  return std::string(view(name));
}

std::uint32_t Statement::type(std::uint32_t column) const {
  std::uint32_t type = HEARTH_SQL_NULL;
  check(table_.column_type(host(), agent(), id_, column, &type));
  return type;
}

std::int64_t Statement::integer(std::uint32_t column) const {
  std::int64_t value = 0;
  check(table_.column_int64(host(), agent(), id_, column, &value));
  return value;
}

double Statement::real(std::uint32_t column) const {
  double value = 0;
  check(table_.column_double(host(), agent(), id_, column, &value));
  return value;
}

std::string_view Statement::bytes(std::uint32_t column) const {
  hearth_bytes value = {nullptr, 0};
  check(table_.column_bytes(host(), agent(), id_, column, &value));
  return view(value);
}

std::int64_t Statement::changes() const {
  std::int64_t rows = 0;
  check(table_.changes(host(), agent(), &rows));
  return rows;
}

std::int64_t Statement::last_insert_rowid() const {
  std::int64_t rowid = 0;
  check(table_.last_insert_rowid(host(), agent(), &rowid));
  return rowid;
}

}  // namespace hearth::detail

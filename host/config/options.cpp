#include "config/options.hpp"

#include "base/escape.hpp"

#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <system_error>

namespace hearth::config {
namespace {

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}
bool is_octal(char c) {
  return c >= '0' && c <= '7';
}
bool is_hexadecimal(char c) {
  return is_decimal(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Removes the digits at the beginning of `text`; true if there was one.
bool take_digits(std::string_view& text, bool (*is_digit)(char)) {
  const std::size_t before = text.size();
  while (!text.empty() && is_digit(text.front())) text.remove_prefix(1);
  return text.size() < before;
}

bool take_sign(std::string_view& text) {
  if (text.empty() || (text.front() != '-' && text.front() != '+')) return false;
  text.remove_prefix(1);
  return true;
}

bool is_all(std::string_view text, bool (*is_digit)(char)) {
  return take_digits(text, is_digit) && text.empty();
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_float(std::string_view text) {
  take_sign(text);
  const bool whole = take_digits(text, is_decimal);
  bool fraction = false;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    fraction = take_digits(text, is_decimal);
  }
  if (!whole && !fraction) return false;
  if (text.empty()) return true;
  if (text.front() != 'e' && text.front() != 'E') return false;
  text.remove_prefix(1);
  take_sign(text);
  return is_all(text, is_decimal);
}

// The message does not repeat the text, here and below: options may be secret.
Error does_not_fit(std::string_view into) {
  std::string message = "a number that does not fit into ";
  message += into;
  message += "; quote it to keep it as text";
  return Error{Errc::kInvalidArgument, std::move(message)};
}

template <class Number>
std::optional<Number> parsed(std::string_view digits, int base) {
  Number value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

Result<Json> integer(std::string_view text, std::string_view digits, int base, bool negative) {
  // from_chars takes a minus. Only so can the smallest integer be read.
  if (negative) {
    const auto value = parsed<std::int64_t>(text, base);
    if (!value) return does_not_fit("64 bits");
    return Json(*value);
  }
  const auto value = parsed<std::uint64_t>(digits, base);
  if (!value) return does_not_fit("64 bits");
  return Json(*value);
}

}  // namespace

Result<Json> core_schema_value(std::string_view text) {
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return Json(nullptr);
  if (is_one_of(text, {"true", "True", "TRUE"})) return Json(true);
  if (is_one_of(text, {"false", "False", "FALSE"})) return Json(false);

  std::string_view unsigned_text = text;
  const bool has_sign = take_sign(unsigned_text);
  if (is_all(unsigned_text, is_decimal)) {
    return integer(text, unsigned_text, 10, text.front() == '-');
  }
  if (text.starts_with("0o") && is_all(text.substr(2), is_octal)) {
    return integer(text, text.substr(2), 8, false);
  }
  if (text.starts_with("0x") && is_all(text.substr(2), is_hexadecimal)) {
    return integer(text, text.substr(2), 16, false);
  }
  if (is_one_of(unsigned_text, {".inf", ".Inf", ".INF"}) ||
      (!has_sign && is_one_of(text, {".nan", ".NaN", ".NAN"}))) {
    return Error{Errc::kInvalidArgument,
                 "JSON has neither infinities nor .nan; quote it to keep it as text"};
  }
  if (is_float(text)) {
    const std::string_view digits = text.front() == '+' ? unsigned_text : text;
    double value = 0;
    const auto error = std::from_chars(digits.data(), digits.data() + digits.size(), value).ec;
    if (error != std::errc{}) return does_not_fit("a double");
    return Json(value);
  }
  return Json(std::string(text));
}

Json to_json(const YamlNode& node, const std::string& path, Report& report) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
    case YamlNode::Kind::kRefused: return nullptr;
    case YamlNode::Kind::kScalar: {
      if (node.is_quoted) return node.text;
      auto value = core_schema_value(node.text);
      if (value) return *std::move(value);
      report.add(node.at, path + ": " + value.error().message);
      return nullptr;
    }
    case YamlNode::Kind::kList: {
      Json list = Json::array();
      for (std::size_t i = 0; i < node.items.size(); ++i) {
        list.push_back(to_json(node.items[i], path + '[' + std::to_string(i) + ']', report));
      }
      return list;
    }
    case YamlNode::Kind::kMapping: {
      Json object = Json::object();
      for (const YamlEntry& entry : node.entries) {
        std::string inner = path + '.';
        append_escaped(inner, cut_text(entry.key, 80), EscapeStyle::kHuman);
        object[entry.key] = to_json(entry.value, inner, report);
      }
      return object;
    }
  }
  return nullptr;
}

}  // namespace hearth::config

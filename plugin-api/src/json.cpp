#include <hearth/json.hpp>

template class nlohmann::basic_json<>;

namespace hearth {

void append_json_text(std::string& out, std::string_view text) {
  out.push_back('"');
  std::size_t plain = 0;  // start of the run that needs no escape
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, plain, i - plain);
    plain = i + 1;
    switch (c) {
      case '"': out.append("\\\""); break;
      case '\\': out.append("\\\\"); break;
      case '\n': out.append("\\n"); break;
      case '\r': out.append("\\r"); break;
      case '\t': out.append("\\t"); break;
      default: {
        constexpr char kHex[] = "0123456789abcdef";
        out.append("\\u00");
        out.push_back(kHex[c >> 4]);
        out.push_back(kHex[c & 15]);
      }
    }
  }
  out.append(text, plain, std::string_view::npos);
  out.push_back('"');
}

namespace detail {

void append_double(std::string& out, double number) {
  if (std::isfinite(number)) {
    append_number(out, number);
  } else {
    out.append("null");  // JSON has no infinity; JavaScript writes null too
  }
}

bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

std::string without_lone_surrogates(std::string_view text) {
  if (text.find("\\u") == std::string_view::npos) return {};
  std::size_t at = hearth_lone_surrogate(text.data(), text.size(), 0);
  if (at == text.size()) return {};
  std::string mended(text);
  for (; at < mended.size(); at = hearth_lone_surrogate(mended.data(), mended.size(), at))
    mended.replace(at + 2, 4, HEARTH_REPLACEMENT_DIGITS);
  return mended;
}

std::string_view json_error_text(const Json::exception& error) {
  const std::string_view text = error.what();
  const std::size_t tag = text.find("] ");
  return tag == std::string_view::npos ? text : text.substr(tag + 2);
}

}  // namespace detail

}  // namespace hearth

namespace hearth {

namespace {

// Each level takes some of the stack. What a host takes is far less deep.
constexpr int kMostNested = 10'000;

void append_nested(std::string& out, const Json& value, int depth) {
  if (depth > kMostNested) throw Error(HEARTH_E_INVALID, "a value of JSON is nested too deeply");
  switch (value.type()) {
    case Json::value_t::object: {
      char separator = '{';
      for (const auto& [key, member] : value.get_ref<const Json::object_t&>()) {
        out.push_back(separator);
        append_json_text(out, key);
        out.push_back(':');
        append_nested(out, member, depth + 1);
        separator = ',';
      }
      out.append(separator == '{' ? "{}" : "}");
      return;
    }
    case Json::value_t::array: {
      char separator = '[';
      for (const Json& element : value.get_ref<const Json::array_t&>()) {
        out.push_back(separator);
        append_nested(out, element, depth + 1);
        separator = ',';
      }
      out.append(separator == '[' ? "[]" : "]");
      return;
    }
    case Json::value_t::string: append_json_text(out, value.get_ref<const std::string&>()); return;
    case Json::value_t::boolean: out.append(value.get<bool>() ? "true" : "false"); return;
    case Json::value_t::number_integer:
      detail::append_number(out, value.get<std::int64_t>());
      return;
    case Json::value_t::number_unsigned:
      detail::append_number(out, value.get<std::uint64_t>());
      return;
    case Json::value_t::number_float: detail::append_double(out, value.get<double>()); return;
    case Json::value_t::binary:
      append_json(out, Json(static_cast<const std::vector<std::uint8_t>&>(value.get_binary())));
      return;
    case Json::value_t::null:
    case Json::value_t::discarded: out.append("null"); return;
  }
}

}  // namespace

void append_json(std::string& out, const Json& value) {
  append_nested(out, value, 0);
}

Json parse_json(std::string_view text) {
  if (detail::too_deep(text)) throw Error(HEARTH_E_INVALID, "JSON is nested too deeply");
  const std::string mended = detail::without_lone_surrogates(text);
  if (!mended.empty()) text = mended;
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& error) {
    throw Error(HEARTH_E_INVALID, "not valid JSON, at byte " + std::to_string(error.byte));
  } catch (const Json::out_of_range&) {
    throw Error(HEARTH_E_INVALID, "not valid JSON: a number is too large");
  }
}

}  // namespace hearth

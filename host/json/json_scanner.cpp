#include "json/json_scanner.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "base/utf8.hpp"
#include "json/json.hpp"
#include "json/json_text.hpp"

#include <algorithm>
#include <bitset>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <vector>

namespace hearth {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The value of four hexadecimal digits.
std::uint32_t hex_value(std::string_view digits) {
  std::uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

bool is_high_surrogate(std::uint32_t unit) {
  return unit >= 0xD800 && unit <= 0xDBFF;
}

bool is_low_surrogate(std::uint32_t unit) {
  return unit >= 0xDC00 && unit <= 0xDFFF;
}

// Whether a JSON number has its first significant digit left of the decimal point, once the
// exponent is applied. Tells overflow from underflow, where from_chars says only "range".
bool is_above_one(std::string_view number) {
  const std::size_t exponent_at = std::min(number.find_first_of("eE"), number.size());
  const std::string_view mantissa = number.substr(0, exponent_at);
  std::int64_t exponent = 0;
  if (exponent_at < number.size()) {
    std::string_view digits = number.substr(exponent_at + 1);
    if (digits.front() == '+') digits.remove_prefix(1);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (parsed.ec != std::errc{}) return digits.front() != '-';
  }
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  const std::size_t first = std::min(mantissa.find_first_of("123456789"), mantissa.size());
  return static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first) > -exponent;
}

bool fits_double(std::string_view number) {
  // Without an exponent, fewer digits than this cannot reach the largest double.
  constexpr std::size_t kSafeDigits = 300;
  if (number.size() < kSafeDigits && number.find_first_of("eE") == std::string_view::npos) {
    return true;
  }
  double value = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
  if (parsed.ec == std::errc{}) return std::isfinite(value);
  return !is_above_one(number);
}

// The containers that are open around a value, as one bit each: true for an object.
class Containers {
 public:
  [[nodiscard]] std::size_t depth() const { return depth_; }
  [[nodiscard]] bool innermost_is_object() const {
    return depth_ > kMaxJsonDepth ? deeper_.back() : first_[depth_ - 1];
  }
  void open(bool is_object) {
    if (depth_ < kMaxJsonDepth) {
      first_[depth_] = is_object;
    } else {
      deeper_.push_back(is_object);
    }
    ++depth_;
  }
  void close() {
    if (depth_-- > kMaxJsonDepth) deeper_.pop_back();
  }

 private:
  std::bitset<kMaxJsonDepth> first_;
  std::vector<bool> deeper_;
  std::size_t depth_ = 0;
};

// kOurs: those of parse_json. kNone: any depth of nesting, and numbers past a double's range.
enum class Bounds { kOurs, kNone };

// Walks JSON text. Each function consumes one thing and says whether it was there and well formed;
// after the first false the position has no meaning.
class Scanner {
 public:
  explicit Scanner(std::string_view text, Bounds bounds = Bounds::kOurs)
      : rest_(text), bounds_(bounds) {}

  bool whole_value() {
    skip_space();
    return value() && at_end();
  }

  bool object(std::span<WantedMember> wanted) {
    outer_depth_ = 1;  // the object that is being scanned is one level itself
    if (!token('{')) return false;
    if (token('}')) return at_end();
    do {
      skip_space();
      const std::string_view before_name = rest_;
      if (!string()) return false;
      const std::string_view name = consumed_since(before_name);
      if (!token(':')) return false;
      skip_space();
      const std::string_view before_value = rest_;
      if (!value()) return false;
      record(wanted, name, consumed_since(before_value));
    } while (token(','));
    return token('}') && at_end();
  }

 private:
  enum class Next { kValue, kDone, kBroken };

  void skip_space() {
    while (!rest_.empty() &&
           (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t' || rest_[0] == '\r')) {
      rest_.remove_prefix(1);
    }
  }

  bool take(char expected) {
    if (rest_.empty() || rest_[0] != expected) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool token(char expected) {
    skip_space();
    return take(expected);
  }

  bool at_end() {
    skip_space();
    return rest_.empty();
  }

  std::string_view consumed_since(std::string_view before) const {
    return before.substr(0, before.size() - rest_.size());
  }

  static void record(std::span<WantedMember> wanted, std::string_view name, std::string_view json) {
    const auto assign = [&](std::string_view characters) {
      for (WantedMember& member : wanted) {
        if (member.name == characters) member.json = json;
      }
    };
    if (name.find('\\') == std::string_view::npos) {
      assign(name.substr(1, name.size() - 2));
    } else {
      assign(decode_json_string(name));
    }
  }

  // One value of any kind.
  bool value() {
    Containers open;
    while (true) {
      bool opened = false;
      if (!scalar_or_opening(open, opened)) return false;
      if (opened) continue;
      switch (after_value(open)) {
        case Next::kValue: break;
        case Next::kDone: return true;
        case Next::kBroken: return false;
      }
    }
  }

  // `opened`: the scanner has entered a container, and its first value comes next.
  bool scalar_or_opening(Containers& open, bool& opened) {
    skip_space();
    if (rest_.empty()) return false;
    switch (rest_[0]) {
      case '"': return string();
      case '{': return enter(open, '}', opened);
      case '[': return enter(open, ']', opened);
      case 't': return word("true");
      case 'f': return word("false");
      case 'n': return word("null");
      default: return number();
    }
  }

  bool enter(Containers& open, char closing, bool& opened) {
    if (bounds_ == Bounds::kOurs && open.depth() + outer_depth_ >= kMaxJsonDepth) return false;
    rest_.remove_prefix(1);
    if (token(closing)) return true;
    const bool is_object = closing == '}';
    open.open(is_object);
    opened = true;
    return !is_object || member_name();
  }

  Next after_value(Containers& open) {
    while (open.depth() > 0) {
      const bool is_object = open.innermost_is_object();
      if (token(',')) return !is_object || member_name() ? Next::kValue : Next::kBroken;
      if (!take(is_object ? '}' : ']')) return Next::kBroken;
      open.close();
    }
    return Next::kDone;
  }

  bool member_name() {
    skip_space();
    return string() && token(':');
  }

  bool word(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }

  bool digits() {
    std::size_t length = 0;
    while (length < rest_.size() && is_digit(rest_[length])) ++length;
    rest_.remove_prefix(length);
    return length > 0;
  }

  bool number() {
    const std::string_view before = rest_;
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!digits()) return false;
    }
    return bounds_ == Bounds::kNone || fits_double(consumed_since(before));
  }

  bool string() {
    if (!take('"')) return false;
    while (true) {
      rest_.remove_prefix(plain_json_bytes(rest_));
      if (rest_.empty()) return false;
      if (take('"')) return true;
      if (rest_[0] == '\\') {
        if (!escape()) return false;
        continue;
      }
      const std::size_t sequence = first_utf8_character(rest_).length;
      if (sequence < 2) return false;  // a control character, or no UTF-8
      rest_.remove_prefix(sequence);
    }
  }

  bool escape() {
    constexpr std::string_view kSimple = "\"\\/bfnrt";
    if (rest_.size() < 2) return false;
    if (kSimple.find(rest_[1]) != std::string_view::npos) {
      rest_.remove_prefix(2);
      return true;
    }
    std::uint32_t unit = 0;
    if (!escaped_unit(unit) || is_low_surrogate(unit)) return false;
    if (!is_high_surrogate(unit)) return true;
    return escaped_unit(unit) && is_low_surrogate(unit);
  }

  // \uXXXX: one UTF-16 code unit.
  bool escaped_unit(std::uint32_t& unit) {
    if (rest_.size() < 6 || rest_[0] != '\\' || rest_[1] != 'u') return false;
    const std::string_view hex = rest_.substr(2, 4);
    if (hex.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) return false;
    unit = hex_value(hex);
    rest_.remove_prefix(6);
    return true;
  }

  std::string_view rest_;
  const Bounds bounds_;
  std::size_t outer_depth_ = 0;
};

void append_utf8(std::string& out, std::uint32_t point) {
  const auto append = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) {
    append(point);
    return;
  }
  if (point < 0x800) {
    append(0xC0U | (point >> 6U));
  } else {
    if (point < 0x10000) {
      append(0xE0U | (point >> 12U));
    } else {
      append(0xF0U | (point >> 18U));
      append(0x80U | ((point >> 12U) & 0x3FU));
    }
    append(0x80U | ((point >> 6U) & 0x3FU));
  }
  append(0x80U | (point & 0x3FU));
}

char simple_escape(char letter) {
  switch (letter) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return letter;
  }
}

}  // namespace

bool scan_json_object(std::string_view text, std::span<WantedMember> wanted) {
  for (WantedMember& member : wanted) member.json = {};
  return Scanner(text).object(wanted);
}

bool scan_unbounded_json_object(std::string_view text, std::span<WantedMember> wanted) {
  for (WantedMember& member : wanted) member.json = {};
  return Scanner(text, Bounds::kNone).object(wanted);
}

bool is_json(std::string_view text) {
  return Scanner(text).whole_value();
}

std::string decode_json_string(std::string_view json) {
  HEARTH_ASSERT(json.size() >= 2 && json.front() == '"' && json.back() == '"',
                "only a scanned JSON string can be decoded");
  json = json.substr(1, json.size() - 2);
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const std::size_t plain = std::min(json.find('\\'), json.size());
    out.append(json.substr(0, plain));
    json.remove_prefix(plain);
    if (json.empty()) break;
    if (json[1] != 'u') {
      out += simple_escape(json[1]);
      json.remove_prefix(2);
      continue;
    }
    std::uint32_t point = hex_value(json.substr(2, 4));
    json.remove_prefix(6);
    if (is_high_surrogate(point)) {
      point = 0x10000U + ((point - 0xD800U) << 10U) + (hex_value(json.substr(2, 4)) - 0xDC00U);
      json.remove_prefix(6);
    }
    append_utf8(out, point);
  }
  return out;
}

std::string readable_text(std::string_view text, std::size_t max_bytes) {
  text = cut_text(text, max_bytes);
  if (is_valid_utf8(text)) return std::string(text);
  std::string json;
  append_json_string(json, text);
  return decode_json_string(json);
}

std::string json_in_one_spelling(std::string_view json) {
  std::string text;
  for (std::size_t at = 0; at < json.size();) {
    if (json[at] != '"') {
      if (std::string_view(" \t\r\n").find(json[at]) == std::string_view::npos) text += json[at];
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    while (json[end] != '"') end += json[end] == '\\' ? 2 : 1;
    append_json_string(text, decode_json_string(json.substr(at, ++end - at)));
    at = end;
  }
  return text;
}

}  // namespace hearth

#include "json/json.hpp"

#include "json/json_text.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace hearth {
namespace {

// nlohmann's message without its prefix and without the text that it read, which may be megabytes
// of a client's input.
std::string reason_of(std::string_view message) {
  if (const auto at = message.find("syntax error"); at != std::string_view::npos) {
    message.remove_prefix(at);
  } else if (const auto end = message.find("] "); end != std::string_view::npos) {
    message.remove_prefix(end + 2);
  }
  const std::size_t last_read = message.find("; last read");
  const std::size_t number = message.find(" parsing '");
  message = message.substr(0, std::min({last_read, number, std::size_t{160}}));
  return std::string(message);
}

// Builds the value from the parser's events. Unlike nlohmann's builder it reports an error without
// an exception: frames that are not JSON are common, and a throw costs more than the frame.
class TreeBuilder {
 public:
  TreeBuilder(std::size_t size, int max_depth) : size_(size), max_depth_(max_depth) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }  // not in JSON text
  bool start_object(std::size_t) { return open(Json::object()); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    slot_ = &(*open_.back())[name];
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) {
    // The parser counts the characters that it has read, including the wrong one and the end.
    const std::size_t offset = std::min(size_, position == 0 ? 0 : position - 1);
    error_ = "at byte " + std::to_string(offset) + ": " + reason_of(error.what());
    return false;
  }

  [[nodiscard]] bool too_deep() const { return too_deep_; }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] Json take() { return std::move(root_); }

 private:
  template <class Value>
  bool add(Value&& value) {
    place(Json(std::forward<Value>(value)));
    return true;
  }

  bool open(Json container) {
    if (std::cmp_greater_equal(open_.size(), max_depth_)) {
      too_deep_ = true;
      return false;
    }
    open_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  // The value's address, valid while its container is open: only the innermost open container
  // grows.
  Json* place(Json&& value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) return &open_.back()->emplace_back(std::move(value));
    *slot_ = std::move(value);
    return slot_;
  }

  const std::size_t size_;
  const int max_depth_;
  Json root_;
  std::vector<Json*> open_;  // containers not yet closed, outermost first
  Json* slot_ = nullptr;     // where the value of the last key belongs
  bool too_deep_ = false;
  std::string error_;
};

// The offset of the bracket that opens level `max_depth` + 1. The parser has found `text`
// well-formed up to there.
std::size_t offset_of_depth(std::string_view text, int max_depth) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > max_depth) return i;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return text.size();
}

Error invalid(std::string reason) {
  return Error{Errc::kInvalidArgument, "invalid JSON " + std::move(reason)};
}

}  // namespace

Result<Json> parse_json(std::string_view text, int max_depth) {
  // nlohmann treats a NUL as the end of the text, and would accept any text after it.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    return invalid("at byte " + std::to_string(nul) + ": a NUL byte");
  }
  TreeBuilder builder(text.size(), max_depth);
  if (Json::sax_parse(text, &builder)) return builder.take();
  if (builder.too_deep()) {
    return invalid("at byte " + std::to_string(offset_of_depth(text, max_depth)) +
                   ": nested deeper than " + std::to_string(max_depth) + " levels");
  }
  return invalid(builder.error());
}

Result<Json> parse_client_json(std::string_view text, int max_depth) {
  const auto mended = without_lone_surrogates(text);
  return parse_json(mended ? std::string_view(*mended) : text, max_depth);
}

Result<Json> parse_host_json(std::string_view text) {
  constexpr int kLevelsAround = 8;  // more than any answer has around a value
  auto value = parse_json(text, kMaxJsonDepth + kLevelsAround);
  if (value) return value;
  return Error{Errc::kInternal, "a document of the server is not JSON, " + value.error().message};
}

std::string dump_json(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string text_member(const Json& object, const char* name) {
  const auto found = object.find(name);  // end() if it is not an object
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace hearth
